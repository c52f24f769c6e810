"""The contracts of Pommel on one page: read this first.

A problem is  min_{x in X} max_{y in Y}  f(x, y) = y'l(x) - phi*(y) + g(x),  and  P(x) = max_y f(x, y).
It is put together from a loss (l), a divergence (phi*), a regularizer (g) and two convex sets (X, Y), each a small
immutable object that lives in a file of its own. Solvers see a `Problem`, never its parts.

The same letters are used throughout:

======================  =======================================================================================
x in R^d, y             primal and dual variable; y holds the weights of the worst case
A(x)                    `best_response(x)`, the maximiser of f(x, .): the exact dual update every restart makes
eta_x, eta_y            `primal_step`, `dual_step`
R_x, R_y                `primal_radius`, `dual_radius`: the balls of Algorithm 2
weights (w), n, y0      sample weights, their sum and w/n: an integer weight stands for a repeated row
M, B, G, L, v, mu, c,   bounds of the paper's Assumption 1, see `Constants`
theta, epsilon0
one gradient            one sampled pair (grad_x, grad_y); a pass is n_rows of them, or one read of all rows
======================  =======================================================================================
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dnrm2

Vector = NDArray[np.float64]
Sampling = Literal["uniform", "dual", "mixed"]
"""How a row is drawn: by its sample weight, by i ~ y (Namkoong and Duchi, 2016), or half of the time by each."""

MIX: dict[Sampling, float] = {"uniform": 0.0, "dual": 1.0, "mixed": 0.5}
"""gamma, where rows are drawn with probabilities q = gamma y + (1 - gamma) y0."""


class Loss(Protocol):
    """h(margin, label) of a linear model, l_i(x) = h(a_i'x, b_i).

    `value` and `derivative` are written with arithmetic and NumPy functions, so that the same lines serve a number
    and an array. They are all a solver needs; the theory and bounds need the constants, too.
    """

    lipschitz: float  # |h'| <= lipschitz
    smoothness: float  # |h''| <= smoothness, inf where h has kinks
    infimum: float  # h >= infimum

    def value(self, margin: Any, label: Any) -> Any: ...
    def derivative(self, margin: Any, label: Any) -> Any: ...  # some subgradient at a kink
    def conjugate(self, slope: Any, label: Any) -> Any: ...  # h*(slope) = sup_m slope*m - h(m), inf outside its domain


class SmoothLoss(Loss, Protocol):
    """A loss whose derivative has no jumps: second-order methods use its second derivative, written in the same way."""

    def second_derivative(self, margin: Any, label: Any) -> Any: ...  # from one side where the two differ


class KinkedLoss(Loss, Protocol):
    """A loss with kinks that can be rounded: how second-order methods take it."""

    def smoothed(self, width: float) -> SmoothLoss: ...  # h - width / 2 <= smoothed <= h, with slopes in dom h*


class PiecewiseLinearLoss(Loss, Protocol):
    """A loss that is the largest of a few linear functions: how interior-point methods take it.

    `pieces` gives their slopes and intercepts, numbers or arrays like `label`: h(m) = max_k slope_k m + intercept_k.
    """

    def pieces(self, label: Any) -> tuple[tuple[Any, Any], ...]: ...


class WorstCase(NamedTuple):
    """What the adversary answers to losses."""

    y: Vector  # grad phi(l)
    risk: float  # phi(l)
    multiplier: float  # of sum(y) = 1


class Divergence(Protocol):
    """phi* on its domain Y, and its conjugate phi(l) = max_{y in Y} y'l - phi*(y)."""

    def dual_set(self, weights: Vector) -> ConvexSet: ...  # Y
    def value(self, y: Vector, weights: Vector) -> float: ...  # phi*(y) for y in Y
    def gradient(self, y: Vector, weights: Vector) -> Vector: ...  # of phi*
    def conjugate(self, losses: Vector, weights: Vector) -> float: ...  # phi
    def best_response(self, losses: Vector, weights: Vector) -> Vector: ...  # grad phi(l), the maximiser
    def holder(self, weights: Vector) -> tuple[float, float]: ...  # (L, v): |grad phi(a) - grad phi(b)| <= L|a - b|^v
    def gradient_bound(self, weights: Vector) -> float | None: ...  # sup over Y of |grad phi*|, None if unbounded
    def curvature(self, weights: Vector) -> float | None: ...  # phi*(y) = (curvature / 2) |y - y0|^2, None for others
    def response_slopes(self, y: Vector, weights: Vector) -> Vector: ...  # c: phi'' = diag(c) - cc'/sum(c) where A = y
    def of_robustness(self, robustness: float, n: float) -> Divergence: ...  # the same kind: stronger the larger it is
    def respond(self, losses: Vector, weights: Vector, near: float = np.nan) -> WorstCase:
        """All three from one search for the multiplier, which starts at `near` if that is a number."""
        ...


class Regularizer(Protocol):
    """g, of which only subgradients are ever needed."""

    @property
    def strong_convexity(self) -> float: ...
    def value(self, x: Vector) -> float: ...
    def subgradient(self, x: Vector) -> Vector: ...
    def conjugate(self, u: Vector, radius: float = np.inf) -> float: ...  # sup of u'x - g(x) over |x| <= radius
    def lipschitz(self, radius: float) -> float: ...  # bound of |subgradient| where |x| <= radius


class ConvexSet(ABC):
    """A closed convex set with its projection, in the norm |z|^2 = sum z_j^2 / metric_j.

    The metric is 1 but for a simplex with sample weights, where it is the weights and distances are those of the
    problem in which row i stands weights_i times, and for coordinates that have other units than the rest. A gradient
    step is then  z <- project(z +- step * metric * gradient),  and the length of the gradient that of metric *
    gradient, sqrt(sum metric_j gradient_j^2).
    """

    metric: float | Vector = 1.0
    radius: float = np.inf  # sup of |z| over the set
    diameter: float = np.inf

    @abstractmethod
    def project(self, z: Vector) -> Vector: ...

    def distance(self, a: Vector, b: Vector) -> float:
        return float(dnrm2(a - b))  # neither overflows nor underflows on the way


class Response(NamedTuple):
    """What one exact dual update at x gives."""

    y: Vector  # A(x)
    objective: float  # P(x) = f(x, A(x))
    center: float | None  # multiplier of sum(y) = 1 at A(x); None where y does not live on a simplex
    read: Vector | None = None  # what the pass over the rows gave: `natural_steps` can do with it and read them no more


class Steps(NamedTuple):
    """Step sizes of a stage."""

    primal: float  # eta_x
    dual: float  # eta_y


class NaturalSteps(NamedTuple):
    """Step sizes that suit a problem where a stage starts; default steps are shares of them."""

    primal: float
    dual: float
    gradient: float = 0.0  # root mean square of the sampled grad_x: an estimate of M
    stiff: bool = False  # whether y could move further in a step than sampled gradients can be trusted for


class Problem(Protocol):
    """What a solver may ask of a problem. Immutable; every answer depends on the arguments alone.

    `check_problem` tests one against this page.
    """

    n: int  # rows, that is component losses, one can sample
    d: int  # length of x
    primal_set: ConvexSet
    dual_set: ConvexSet
    dual_curvature: float | None  # phi* is a quadratic of this curvature in the metric of Y; None if it is none

    def losses(self, x: Vector) -> Vector: ...  # l(x)
    def best_response(self, x: Vector) -> Vector: ...  # A(x)
    def objective(self, x: Vector) -> float: ...  # P(x)
    def respond(self, x: Vector) -> Response: ...  # both from one pass over the rows
    def saddle(self, x: Vector, y: Vector) -> float: ...  # f(x, y)
    def gradients(self, x: Vector, y: Vector) -> tuple[Vector, Vector]: ...  # full (sub)gradients of f
    def draw(self, u: float, y: Vector, sampling: Sampling) -> int: ...  # u in [0, 1) -> row
    def sample_gradients(
        self, x: Vector, y: Vector, i: int, sampling: Sampling = "uniform", center: float | None = None
    ) -> tuple[Vector, Vector]:
        """One stochastic pair, unbiased when i = draw(u, y, sampling) with u uniform.

        With a `center`, grad_y is the control variate of the simplex: phi* is sampled at coordinate i too and the
        constant `center` is taken off. The projection cannot see a constant, so any will do; the multiplier at A(x)
        leaves no variance where y = A(x).
        """
        ...

    def natural_steps(
        self, x: Vector, y: Vector, sampling: Sampling = "uniform", read: Vector | None = None
    ) -> NaturalSteps:
        """The order of magnitude of steps where a stage starts at x, y = A(x).

        They are the theory's epsilon0 / M^2 and epsilon0 / B^2 with the size of P in place of epsilon0 and second
        moments of the sampled gradients in place of their bounds, so that they follow every change of scale; where the
        problem is stiff, see `NaturalSteps`, the dual one is longer than that. `read` is what `respond(x)` gave: with
        it no row is read again.
        """
        ...

    def constants(self, sampling: Sampling = "uniform", objective: float | None = None) -> Constants:
        """Bounds of Assumption 1. `objective` is P at the point of X nearest to 0, if the caller knows it."""
        ...

    def lower_bound(self) -> float: ...  # a number never above min P, -inf if none is known
    def magnitude(self, objective: float) -> float: ...  # s(P), what a relative gap is relative to


@dataclass(frozen=True)
class Constants:
    """Bounds of the paper's Assumption 1: each valid, or None with the reason in `why`.

    They hold for x in X with |x| <= `radius`, a ball that contains every minimiser. Lengths of x and grad_x are those
    of the metric of X; lengths of y, and of the l and grad_y it is multiplied with, those of the metric of Y.
    """

    M: float | None = None  # |grad_x f(x, y; i)| <= M
    B: float | None = None  # |grad_y f(x, y; i)| <= B
    G: float | None = None  # |l(x) - l(x')| <= G |x - x'|
    L: float | None = None  # |grad phi(a) - grad phi(b)| <= L |a - b|^v
    v: float | None = None
    mu: float | None = None  # strong convexity of P
    c: float | None = None  # error bound: dist(x, X*) <= c (P(x) - P*)^theta
    theta: float | None = None
    epsilon0: float | None = None  # P(x0) - P* <= epsilon0 for the point x0 of X nearest to 0
    radius: float = np.inf
    why: dict[str, str] = field(default_factory=dict)

    def given(self, **values: float | None) -> Constants:
        """The same with some constants replaced by what the caller knows; None leaves them."""
        known: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
        return replace(self, **known)

    def require(self, *names: str) -> tuple[float, ...]:
        """The named constants, or an error that says why one is missing."""
        missing = [f"{name}: {self.why.get(name, 'not given')}" for name in names if getattr(self, name) is None]
        if missing:
            raise ValueError(
                "the theory needs constants that are not known for this problem:\n  "
                + "\n  ".join(missing)
                + "\nGive them through the problem, or give the solver's parameters yourself."
            )
        return tuple(getattr(self, name) for name in names)


def members(contract: type) -> tuple[str, ...]:
    """What a contract on this page asks for."""
    named = [name for name, member in vars(contract).items() if callable(member) or isinstance(member, property)]
    return (*inspect.get_annotations(contract), *(name for name in named if not name.startswith("_")))


PROBLEM_MEMBERS = members(Problem)


def check_part(part: object, name: str, contract: type, optional: tuple[str, ...] = ()) -> None:
    """Refuse, before any work, what is no loss, divergence, regularizer or set, and say what it lacks."""
    if isinstance(part, type):
        raise TypeError(f"{name} must be an instance: write {name}={part.__name__}(...), not {name}={part.__name__}")
    needed = [member for member in members(contract) if member not in optional]
    missing = [member for member in needed if not hasattr(part, member)]
    if missing:
        raise TypeError(
            f"{name}={part!r} is not a {contract.__name__}: it must implement {', '.join(needed)}. "
            f"Missing: {', '.join(missing)}."
        )


def check_members(problem: object) -> None:
    """Refuse, before any work, an object that is not a Problem, and say what it lacks."""
    missing = [name for name in PROBLEM_MEMBERS if not hasattr(problem, name)]
    if missing:
        raise TypeError(
            f"{type(problem).__name__} is not a pommel problem: it must implement {', '.join(PROBLEM_MEMBERS)}. "
            f"Missing: {', '.join(missing)}."
        )
