"""ARSPD, the paper's Algorithm 3."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pommel._validation import check_count, check_number
from pommel.engines.engine import Engine, Iterate
from pommel.problem import Problem, Vector
from pommel.solvers._restarted import PAPER_FIRST_LENGTH, Auto, RestartedSolver, count, given, reach
from pommel.solvers.rspd import RSPD
from pommel.theory import Plan, round_up, theorem_3, theorem_4

__all__ = ["ARSPD"]


@dataclass(frozen=True, kw_only=True)
class ARSPD(RestartedSolver):
    """Adaptive RSPD: for an unknown c, or theta, of the local error bound (Algorithm 3 of [1]_).

    Calls RSPD again and again, each time from where the last call ended with radii 2^(1 - theta) and stages
    4^(1 - theta) times as large, so that a first radius that was too small is outgrown. With v = 1 and theta known it
    takes about epsilon^{-2 (1 - theta)} gradients (Theorem 3); with theta unknown, set to 0, about
    D^2 / epsilon^2, D the distance of the minimisers from the level set reached first (Theorem 4).

    Parameters
    ----------
    primal_step, dual_step, stage_length, sampling, dual_gradient, bound, pilot
        See `RSPDsc`; here they are those of the first stage of the first call, whose length is three fifths of a pass
        where it is "auto".
    n_stages : int, default=5
        S, stages in each call.
    n_calls : int, optional
        K; by default calls go on until the budget or the tolerance ends them.
    primal_radius : float, default="auto"
        R_x of the first call. "auto" is 2^(1 - theta) times a bound of the distance to the minimisers, infinity where
        the problem's constants do not give one.
    dual_radius : float, default="auto"
        R_y of the first call; "auto" is L G R_x.
    theta : float, default=0.0
        Exponent of the error bound in [0, 1]; 0 if it is not known. For theta = 1 no growth is needed but to outgrow a
        c guessed too small, so radii double and stages grow four times, as for 0.
    kappa : float, default=0.5
        Call k starts with steps kappa^(k - 1) times those of the first, in (0, 1]. The theory covers 1; smaller ones
        keep a call from undoing what the last one reached.

    References
    ----------
    .. [1] Yan, Xu, Lin, Zhang and Yang, Stochastic primal-dual algorithms with faster convergence than O(1/sqrt(T))
       for problems without bilinear structure, 2019.

    Examples
    --------
    >>> import pommel as pm
    >>> X, labels = [[2.0], [1.0], [0.5], [-1.0]], [1, 1, 0, 0]
    >>> p = pm.AUC(X, labels, constraint=pm.L2Ball(0.2))
    >>> sol = pm.ARSPD().solve(p, tol=0, max_passes=2000)
    >>> round(sol.objective, 2), round(float(np.linalg.norm(sol.x[:-2])), 2)
    (-0.14, 0.2)
    """

    n_stages: int = 5
    n_calls: int | None = None
    primal_radius: float | Auto = "auto"
    dual_radius: float | Auto = "auto"
    theta: float = 0.0
    kappa: float = 0.5

    FIRST_PASSES: ClassVar[float] = 0.6

    def stages(self, problem: Problem, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
        start = engine.restart(x0)
        tuned, factor = yield from self.tuned(engine, start, rng)  # what "auto" stands for here
        S, T = self.n_stages, self.first_length(problem)
        R_x, R_y = self.radii(problem, engine, start)
        growth = 2.0 ** (1.0 - self.theta) if self.theta < 1.0 else 2.0
        for _ in count(self.n_calls):
            rspd = tuned.share_with(
                RSPD,
                pilot=False,
                n_stages=S,
                stage_length=T,
                primal_radius=R_x,
                dual_radius=R_y,
                v=1.0,
                step_factor=factor,
            )
            call = rspd.stages(problem, engine, start.x, rng)  # line 4: x^(k) = RSPD(x^(k-1), ...)
            for start in call:
                yield start
            R_x, R_y, T = growth * R_x, growth * R_y, round_up(growth**2 * T)  # line 5
            factor *= self.kappa  # line 5: epsilon_0^(k+1), and with it eta_x and eta_y

    def radii(self, problem: Problem, engine: Engine, start: Iterate) -> tuple[float, float]:
        """R_x and R_y of the first call."""
        R_x, R_y = self.primal_radius, self.dual_radius
        if not (isinstance(R_x, str) or isinstance(R_y, str)):
            return R_x, R_y
        known = reach(problem, engine, start)
        R_x = given(R_x, 2.0 ** (1.0 - self.theta) * known.distance)
        return R_x, given(R_y, known.dual_radius(R_x, 1.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.n_stages, "n_stages")
        if self.n_calls is not None:
            check_count(self.n_calls, "n_calls")
        for name in ("primal_radius", "dual_radius"):
            if getattr(self, name) != "auto":
                check_number(getattr(self, name), name, equal=True, infinite=True)
        check_number(self.theta, "theta", equal=True, at_most=1.0)
        check_number(self.kappa, "kappa", at_most=1.0)

    @staticmethod
    def plan(
        problem: Problem,
        epsilon: float,
        *,
        theta: float = 0.0,
        delta: float = 0.1,
        epsilon0: float | None = None,
        epsilon1: float | None = None,
    ) -> Plan:
        """What Theorem 3 (0 < theta < 1) or 4 (theta = 0) asks for to reach P(x) - P* <= epsilon.

        `epsilon1`, by default epsilon0 / 2, is the accuracy that the first radius is right for.
        """
        known = problem.constants("uniform").given(epsilon0=epsilon0)
        names = ("M", "B", "G", "L", "v", "c", "theta", "epsilon0")
        M, B, G, L, v, c, known_theta, epsilon0 = known.require(*names)
        if v != 1.0:
            raise ValueError(f"Theorems 3 and 4 need a Lipschitz gradient of phi; this divergence has v = {v:g}")
        epsilon1 = epsilon0 / 2.0 if epsilon1 is None else epsilon1
        common = dict(M=M, B=B, G=G, L=L, epsilon0=epsilon0, epsilon1=epsilon1, epsilon=epsilon / 2.0, delta=delta)
        if theta == 0.0:
            return theorem_4(distance=c * epsilon1**known_theta, **common)
        if theta != known_theta:
            raise ValueError(f"the problem's error bound is known for theta = {known_theta:g}, got theta={theta}")
        return theorem_3(c=c, theta=theta, **common)

    @classmethod
    def from_theory(
        cls,
        problem: Problem,
        epsilon: float,
        *,
        theta: float = 0.0,
        delta: float = 0.1,
        epsilon0: float | None = None,
        epsilon1: float | None = None,
    ) -> ARSPD:
        """The solver with the own parameters of Theorem 3 or 4, kappa = 1 among them."""
        plan = cls.plan(problem, epsilon, theta=theta, delta=delta, epsilon0=epsilon0, epsilon1=epsilon1)
        return cls(
            **plan.first_stage,
            **plan.first_radii,
            n_stages=plan.n_stages,
            n_calls=plan.n_calls,
            theta=theta,
            kappa=1.0,
            **cls.theory_setting(problem),
        )

    @classmethod
    def as_in_paper(cls, primal_step: float, dual_step: float, kappa: float, primal_radius: float) -> ARSPD:
        """The setting of the paper's AUC experiments: S = 5, theta taken as 0.

        Steps were tuned over `PAPER_STEPS`, kappa over 0.25, 0.5, 0.75 and 1. The paper does not say its first stage
        length; it is that of its DRO experiments here. Nor does it say its first radius: give one.
        """
        return cls(
            primal_step=primal_step,
            dual_step=dual_step,
            stage_length=PAPER_FIRST_LENGTH,
            primal_radius=primal_radius,
            sampling="uniform",
            n_stages=5,
            theta=0.0,
            kappa=kappa,
        )
