"""RSPD-sc, the paper's Algorithm 1."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pommel._validation import check_count
from pommel.engines.engine import Engine, Iterate
from pommel.problem import Problem, Vector
from pommel.solvers._restarted import PAPER_FIRST_LENGTH, PILOT_RATIO, RestartedSolver, count
from pommel.theory import Plan, theorem_1

__all__ = ["RSPDsc"]


@dataclass(frozen=True, kw_only=True)
class RSPDsc(RestartedSolver):
    """Restarted stochastic primal-dual method for a strongly convex P (Algorithm 1 of [1]_).

    Solves min_x max_y y'l(x) - phi*(y) + g(x). Each stage takes stochastic gradient steps in x and y, then restarts
    from the average of its x and from the exact dual response to it; stages double in length while steps halve.
    With P strongly convex and grad phi Lipschitz (v = 1), E[P(x) - P*] = O(1/T) after T gradients (Theorem 1).

    Parameters
    ----------
    primal_step, dual_step : float, default="auto"
        eta_x and eta_y of the first stage, halved from stage to stage. "auto" takes them at each restart from the size
        of the objective and of the gradients there (`Problem.natural_steps`), which follows any scale of the data; the
        primal one is at most D / (M sqrt(T)), D how far stages have led so far, M the size of the gradients, and a
        stage that it leads far astray is made again with a shorter one; the dual one is not halved.
    stage_length : int, default="auto"
        T_1, doubled from stage to stage; "auto" is four passes, and at least 500 steps.
    sampling : {"auto", "uniform", "dual", "mixed"}, default="auto"
        Rows are drawn by their sample weights, or i ~ y as in [2]_. The latter divides a loss by its y_i: a row whose
        weight falls to zero is not drawn again before the next restart, so those gradients are biased. "mixed" draws
        half of the rows each way, which bounds all gradients. "auto" is that where the problem is stiff, see
        `pommel.problem.NaturalSteps`, and "uniform" elsewhere.
    dual_gradient : {"centred", "whole", "implicit"}, default="centred"
        How grad_y is sampled. "centred" samples phi* at the row's own coordinate too, centred by an estimate of the
        multiplier of sum(y) = 1, which is exact at each restart and then follows x: unbiased on the simplex, and nearly
        without variance close to a solution. "whole" takes grad phi* whole, as the paper has it; "implicit" takes it at
        the point the step leads to, which suits long steps. The first two are the same where y does not live on a
        simplex.
    bound : float, default=inf
        Keeps |x| <= bound; `from_theory` sets it to the ball on which the problem's constants hold.
    pilot : bool, default=True
        Whether short runs look for an "auto" primal step first, where the problem is stiff.
    n_stages : int, optional
        S; by default stages go on until the budget or the tolerance ends them.

    References
    ----------
    .. [1] Yan, Xu, Lin, Zhang and Yang, Stochastic primal-dual algorithms with faster convergence than O(1/sqrt(T))
       for problems without bilinear structure, 2019.
    .. [2] Namkoong and Duchi, Stochastic gradient methods for distributionally robust optimization with
       f-divergences, NIPS 2016.

    Examples
    --------
    >>> import pommel as pm
    >>> X, labels = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.3]], [1, 1, 0]
    >>> p = pm.DRO(X, labels, divergence=pm.ChiSquare(1 / 3), regularizer=pm.L2(1 / 3))
    >>> sol = pm.RSPDsc().solve(p, tol=0, max_passes=2000)
    >>> round(sol.objective, 2)
    0.42
    """

    n_stages: int | None = None

    def stages(self, problem: Problem, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
        X, Y = self.sets(problem)
        T = self.first_length(problem)
        start = engine.restart(x0)  # x_0 and y_0 = A(x_0)
        tuned, factor = yield from self.tuned(engine, start, rng)  # what "auto" stands for here
        distance, cut = 0.0, 1.0
        for _ in count(self.n_stages):
            eta = tuned.steps(engine, start, cut * factor, distance / math.sqrt(T) if distance > 0.0 else math.inf)
            rule = tuned.rule(eta, X, Y, start)
            average = engine.run(rule, start.x, start.y, T, rng)  # lines 3 to 6, as in engines/reference.py
            reached = engine.restart(average.x)  # lines 7 and 8
            yield reached
            if tuned.is_lost(problem, start, reached):
                cut /= PILOT_RATIO  # the same stage again
                continue
            start, cut, distance = reached, 1.0, max(distance, X.distance(reached.x, x0))
            factor, T = factor / 2.0, 2 * T  # line 9: eta_x, eta_y and T_s

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_stages is not None:
            check_count(self.n_stages, "n_stages")

    @staticmethod
    def plan(problem: Problem, epsilon: float, *, epsilon0: float | None = None) -> Plan:
        """What Theorem 1 asks for to reach E[P(x) - P*] <= epsilon; `print(plan.describe())` shows it.

        `epsilon0` is a bound of P(x_0) - P*, by default that of the problem's constants for x_0 = 0.
        """
        known = problem.constants("uniform").given(epsilon0=epsilon0)
        M, B, G, L, v, mu, epsilon0 = known.require("M", "B", "G", "L", "v", "mu", "epsilon0")
        if v != 1.0:
            raise ValueError(f"Theorem 1 needs a Lipschitz gradient of phi, v = 1; this divergence has v = {v:g}")
        return theorem_1(M=M, B=B, G=G, L=L, mu=mu, epsilon0=epsilon0, epsilon=epsilon)

    @classmethod
    def from_theory(cls, problem: Problem, epsilon: float, *, epsilon0: float | None = None) -> RSPDsc:
        """The solver with Theorem 1's own parameters. They promise a lot and are slow: see `plan` for the price."""
        plan = cls.plan(problem, epsilon, epsilon0=epsilon0)
        return cls(**plan.first_stage, n_stages=plan.n_stages, **cls.theory_setting(problem))

    @classmethod
    def as_in_paper(cls, problem: Problem, primal_step: float, dual_step: float) -> RSPDsc:
        """The setting of the paper's experiments: i ~ y, T_1 = 10,000; both steps were tuned over `PAPER_STEPS`.

        The paper's dual step is read as one for n y, whose entries are of order 1; for y itself it is n^2 times less.
        """
        return cls(
            primal_step=primal_step,
            dual_step=dual_step / problem.n**2,
            stage_length=PAPER_FIRST_LENGTH,
            sampling="dual",
            dual_gradient="whole",
        )
