"""ExactAUC, linear algebra for what an AUC problem is once its one dual variable is at its best."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np

from pommel.certificates_auc import auc_bound, multiplier
from pommel.engines.engine import Engine, Exhausted, Iterate
from pommel.problem import Problem, Vector
from pommel.problems._auc_quadratic import EPS, AUCQuadratic, Evaluation, no_quadratic
from pommel.problems.auc import AUC
from pommel.solvers._solver import Solver
from pommel.solvers._trust_region import (
    Direction,
    Factor,
    conjugate_gradients,
    corrected,
    minimize_formed,
    minimize_in_span,
)

__all__ = ["ExactAUC"]

FORMED_SIDE = 2000
"""Up to this many columns Q is formed: a factor of it takes less than a second."""

REFINEMENTS = 5
"""Steps that take what the formed Q has lost to rounding; one or two are enough."""

WIDE_POWER = 0.25
"""Of the diagonal of Q, as preconditioner where columns are more than rows: eigenvalues of the null space are then all
lam, and Jacobi's 1 would spread them out. Measured: 414 steps where 0 takes 398 and 1 takes 1118; 30, 38 and 30."""

CHECK_SHARE = 0.03
"""A point is checked whenever what conjugate gradients measure of its gap has fallen to this share."""

INNER_SHARE = 1e-4
"""On the ball's boundary, directions are sought until that is the share left of the gap of the linear system."""

ROUNDING_SHARE = 4.0
"""A gap of less than this many roundings of P is measured again, with more care for them: two are always in it."""

BLURRED = 1e-6
"""Where rounding may change P by more than this share of p(1 - p), w is so long that P tells nothing about it."""

PATIENCE = 3
"""Steps without progress after which there is nothing left but rounding."""


@dataclass(frozen=True, kw_only=True)
class ExactAUC(Solver):
    r"""The optimum of AUC problems with the square loss, by linear algebra.

    With the dual variable, a and b at their best, the problem of [1]_ is class-balanced least squares,

    .. math:: \min_{\|w\| \le R} \; q \left( w^\top H w - 2 w^\top \delta \right) + \tfrac{\lambda}{2} \|w\|^2,
       \qquad H = C_+ + C_- + \delta \delta^\top, \quad q = p (1 - p),

    with the class covariances C and the difference delta of the class means; a ball on v = (w, a, b) gives one of the
    same kind in v. With few columns the Hessian is formed in one pass over the rows and factorised; the ball is kept by
    Newton's method for its multiplier [2]_. With many, conjugate gradients read the rows twice a step; on the boundary
    of the ball they look for Newton's direction along it, and P is minimised over the span of that and the point [3]_.
    Every point comes with a lower bound; without ball and regularizer a singular Hessian proves none.

    Parameters
    ----------
    method : {"auto", "factorise", "iterate"}, default="auto"
        Whether the Hessian is formed; "auto" forms it for up to 2000 columns.

    References
    ----------
    .. [1] Ying, Wen and Lyu, Stochastic online AUC maximization, NIPS 2016.
    .. [2] More and Sorensen, Computing a trust region step, 1983.
    .. [3] Hager, Minimizing a quadratic over a sphere, 2001; for the first steps, from within the ball, also Gould,
       Lucidi, Roma and Toint, Solving the trust-region subproblem using the Lanczos method, 1999.

    Examples
    --------
    >>> import pommel as pm
    >>> p = pm.AUC([[2.0, 0.0], [1.0, 1.0], [0.0, 0.5], [1.5, 1.0]], [1, 0, 0, 1], constraint=pm.L2Ball(0.5))
    >>> sol = pm.ExactAUC().solve(p, tol=1e-9)
    >>> sol.status.name, round(sol.objective, 4)
    ('CONVERGED', -0.1976)
    """

    method: Literal["auto", "factorise", "iterate"] = "auto"

    def __post_init__(self) -> None:
        if self.method not in ("auto", "factorise", "iterate"):
            raise ValueError(f'method must be "auto", "factorise" or "iterate", got {self.method!r}')

    def check(self, problem: Problem) -> None:
        missing = no_quadratic(problem)
        if missing is not None:
            raise ValueError(f"ExactAUC needs {missing}")

    def stages(self, problem: Problem, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate]:
        return (iterate for iterate in self.steps(problem, engine, x0, rng) if iterate is not None)

    def steps(self, problem: Problem, engine: Engine, x0: Vector, rng: np.random.Generator) -> Iterator[Iterate | None]:
        """The same with a None wherever rows have been read and there is nothing to show for it yet."""
        assert isinstance(problem, AUC)
        quadratic = AUCQuadratic(problem)
        if self.method == "factorise" or (self.method == "auto" and quadratic.size <= FORMED_SIDE):
            return _factorise(quadratic, engine)
        return _iterate(quadratic, engine, quadratic.lower(x0))


def _factorise(quadratic: AUCQuadratic, engine: Engine) -> Iterator[Iterate | None]:
    engine.pay(passes=3)  # for Q, perhaps again without offsets, and for lengths of rows
    minimum = minimize_formed(
        quadratic.matrix(), quadratic.linear, quadratic.radius, rounding=quadratic.problem.n * EPS
    )
    proves = minimum.factor.is_sound and not minimum.factor.is_singular
    x = minimum.x
    for _ in range(REFINEMENTS):
        engine.pay(passes=2)
        at = quadratic.evaluate(x)
        yield _certified(quadratic, engine, at, minimum.factor if proves else None, minimum.nu)
        minimum = corrected(minimum, at.x, at.gradient, quadratic.radius)
        x = minimum.x


def _iterate(quadratic: AUCQuadratic, engine: Engine, x: Vector) -> Iterator[Iterate | None]:
    def product(x: Vector) -> Vector:
        engine.pay(passes=2)
        return quadratic.product(x)

    def evaluate(x: Vector) -> Evaluation:
        engine.pay(passes=2)
        return quadratic.evaluate(x)

    engine.pay(passes=2)  # for lengths of rows and columns
    at = evaluate(x)
    best, patience = np.inf, PATIENCE
    power = 1.0
    if (
        quadratic.size >= quadratic.problem.n
    ):  # of many solutions without a regularizer, 0 leads to that of least length
        power = WIDE_POWER if quadratic.lam > 0.0 else 0.0
    most = 2 * min(quadratic.size, quadratic.problem.n) + 50  # in exact arithmetic half of that is enough
    while patience:
        nu = multiplier(quadratic, at)
        rho, rounding = at.gradient + nu * at.x, float(np.linalg.norm(at.gradient_error))
        left = float(np.linalg.norm(rho))
        patience = PATIENCE if left < 0.5 * best and left > rounding else patience - 1
        best = min(best, left)
        metric = (quadratic.diagonal + nu) ** power
        first: Direction | None = None
        checked = np.inf
        for step in islice(conjugate_gradients(product, rho, metric, at.x if nu > 0.0 else None, nu), most):
            yield None
            if first is None:
                first, checked = step, step.energy
            if nu > 0.0 and step.energy <= INNER_SHARE * first.energy:
                break
            if nu == 0.0 and float(np.linalg.norm(at.x + step.z)) > quadratic.radius:
                break
            if float(np.linalg.norm(step.residual)) <= rounding:
                break
            if nu == 0.0 and step.energy <= CHECK_SHARE * checked:
                checked = step.energy
                yield _certified(quadratic, engine, evaluate(at.x + step.z))
        if first is None:
            return
        x = minimize_in_span(
            [at.x, first.last, step.z, step.last],
            [at.gradient + quadratic.linear, first.Q_last, step.Qz, step.Q_last],
            quadratic.linear,
            quadratic.radius,
        )
        at = evaluate(x)
        yield _certified(quadratic, engine, at)


def _certified(
    quadratic: AUCQuadratic, engine: Engine, at: Evaluation, factor: Factor | None = None, nu: float = 0.0
) -> Iterate | None:
    """A point with its lower bound; where only rounding keeps them apart, for one more read a better one.

    None where P is nothing but rounding: least squares without a regularizer can end in such a point.
    """
    if at.objective_error > BLURRED * quadratic.problem.q:
        with suppress(Exhausted):
            engine.pay(passes=1)
            at = quadratic.sharpened(at)
        if at.objective_error > BLURRED * quadratic.problem.q:
            return None
    bound = auc_bound(quadratic, at, factor, nu)
    if at.objective - bound < ROUNDING_SHARE * at.objective_error:
        with suppress(Exhausted):
            engine.pay(passes=1)
            bound = max(bound, auc_bound(quadratic, quadratic.sharpened(at), factor, nu))
    return Iterate(at.v, at.y, at.objective, None, at.margins, bound)


def no_auc_bound(problem: AUC) -> str | None:
    """Why no bound but the problem's own can be had, None if one can."""
    missing = no_quadratic(problem)
    if missing is not None:
        return f"bounds of AUC problems need {missing}"
    is_bounded = problem.constraint is not None or problem.regularizer.strong_convexity > 0.0
    if not is_bounded and problem.d - 2 > FORMED_SIDE:
        return (
            f"without a regularizer or a ball, and with more than {FORMED_SIDE} columns, nothing tells how flat P may "
            "be: only P >= -p(1 - p) is known"
        )
    return None
