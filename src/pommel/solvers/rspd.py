"""RSPD, the paper's Algorithm 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pommel._validation import check_count, check_number
from pommel.engines.engine import Engine, Iterate
from pommel.problem import Problem, Vector
from pommel.sets.ball_within import BallWithin
from pommel.solvers._restarted import Auto, RestartedSolver, count, given, reach
from pommel.theory import Plan, theorem_2

__all__ = ["RSPD"]

MOST_HALVINGS = 1000.0
"""More leave nothing of a number."""


@dataclass(frozen=True, kw_only=True)
class RSPD(RestartedSolver):
    """Restarted stochastic primal-dual method under a local error bound (Algorithm 2 of [1]_).

    Solves min_x max_y y'l(x) - phi*(y) + g(x) where dist(x, X*) <= c (P(x) - P*)^theta and grad phi is (L, v)-Hölder
    continuous. Stages have equal length; x and y stay in balls around the stage's start, which shrink along with the
    steps. For an accuracy epsilon set beforehand it takes about epsilon^{-2 (1 - v theta)} gradients (Theorem 2): run
    it once for each epsilon, or use `ARSPD` where c is not known.

    Parameters
    ----------
    primal_step, dual_step, stage_length, sampling, dual_gradient, bound, pilot
        See `RSPDsc`; here stage_length is T, the same for every stage.
    n_stages : int, default=10
        S: each stage is meant to halve P(x) - P*.
    primal_radius : float, default="auto"
        R_x of the first stage, halved from stage to stage. It has to be at least c epsilon_0 / epsilon^(1 - theta);
        "auto" is that for epsilon = epsilon_0 / 2^S where the problem's constants are known, else infinity.
    dual_radius : float, default="auto"
        R_y of the first stage, divided by 2^v from stage to stage; "auto" is L (G R_x)^v.
    v : float, default="auto"
        Hölder exponent of grad phi in [0, 1]; "auto" is that of the problem's constants, 1 if unknown.
    step_factor : float, default=1.0
        Steps are multiplied by it, but for an "auto" dual step that is not lowered from stage to stage either:
        epsilon_0^(k) / epsilon_0 in call k of ARSPD.

    References
    ----------
    .. [1] Yan, Xu, Lin, Zhang and Yang, Stochastic primal-dual algorithms with faster convergence than O(1/sqrt(T))
       for problems without bilinear structure, 2019. Its line 6 has G_x where G_y is meant.

    Examples
    --------
    >>> import pommel as pm
    >>> X, labels = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.3]], [1, 1, 0]
    >>> p = pm.DRO(X, labels, divergence=pm.ChiSquare(1 / 3), regularizer=pm.L2(1 / 3))
    >>> sol = pm.RSPD(stage_length=1000, n_stages=6).solve(p, tol=0, max_passes=None)
    >>> round(sol.objective, 2)
    0.42
    """

    n_stages: int = 10
    primal_radius: float | Auto = "auto"
    dual_radius: float | Auto = "auto"
    v: float | Auto = "auto"
    step_factor: float = 1.0

    def stages(self, problem: Problem, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
        X, Y = self.sets(problem)
        T = self.first_length(problem)
        start = engine.restart(x0)  # x_0 and y_0 = A(x_0)
        tuned, factor = yield from self.tuned(engine, start, rng)  # what "auto" stands for here
        factor *= self.step_factor
        R_x, R_y, v = self.radii(problem, engine, start)
        for _ in count(self.n_stages):
            eta = tuned.steps(engine, start, factor)
            B_x, B_y = BallWithin(X, start.x, R_x), BallWithin(Y, start.y, R_y)
            rule = tuned.rule(eta, B_x, B_y, start)
            average = engine.run(rule, start.x, start.y, T, rng)  # lines 3 to 7, as in engines/reference.py
            start = engine.restart(average.x)  # lines 8 and 9
            yield start
            R_x, R_y, factor = R_x / 2.0, R_y / 2.0**v, factor / 2.0  # line 10, with eta_x and eta_y

    def radii(self, problem: Problem, engine: Engine, start: Iterate) -> tuple[float, float, float]:
        """R_x, R_y and v of the first stage."""
        R_x, R_y, v = self.primal_radius, self.dual_radius, self.v
        if not (isinstance(R_x, str) or isinstance(R_y, str) or isinstance(v, str)):
            return R_x, R_y, v
        known = reach(problem, engine, start)
        R_x = given(R_x, known.distance * 2.0 ** min((1.0 - known.theta) * self.n_stages, MOST_HALVINGS))
        v = given(v, known.v)
        return R_x, given(R_y, known.dual_radius(R_x, v)), v

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.n_stages, "n_stages")
        for name in ("primal_radius", "dual_radius"):
            if getattr(self, name) != "auto":
                check_number(getattr(self, name), name, equal=True, infinite=True)
        if self.v != "auto":
            check_number(self.v, "v", equal=True, at_most=1.0)
        check_number(self.step_factor, "step_factor")

    @staticmethod
    def plan(problem: Problem, epsilon: float, *, delta: float = 0.1, epsilon0: float | None = None) -> Plan:
        """What Theorem 2 asks for to reach P(x) - P* <= epsilon with probability 1 - delta."""
        known = problem.constants("uniform").given(epsilon0=epsilon0)
        M, B, G, L, v, c, theta, epsilon0 = known.require("M", "B", "G", "L", "v", "c", "theta", "epsilon0")
        return theorem_2(
            M=M, B=B, G=G, L=L, v=v, c=c, theta=theta, epsilon0=epsilon0, epsilon=epsilon / 2.0, delta=delta
        )

    @classmethod
    def from_theory(
        cls, problem: Problem, epsilon: float, *, delta: float = 0.1, epsilon0: float | None = None
    ) -> RSPD:
        """The solver with Theorem 2's own parameters."""
        plan = cls.plan(problem, epsilon, delta=delta, epsilon0=epsilon0)
        (v,) = problem.constants("uniform").require("v")
        return cls(**plan.first_stage, **plan.first_radii, n_stages=plan.n_stages, v=v, **cls.theory_setting(problem))
