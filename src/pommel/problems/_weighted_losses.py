"""y'l(x) - phi*(y) + g(x) with a y that weighs rows: what `DRO` and `FunctionProblem` share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from pommel.problem import (
    MIX,
    Constants,
    ConvexSet,
    Divergence,
    NaturalSteps,
    Regularizer,
    Response,
    Sampling,
    Vector,
    check_part,
)


class WeightedLosses(ABC):
    """A problem whose dual variable weighs n component losses; subclasses say what the losses are.

    In the stochastic gradients a row drawn with probability q_i is divided by q_i: q = y0 for "uniform" sampling, then
    grad_x = (y_i / y0_i) grad l_i + grad g and grad_y = (l_i / y0_i) e_i - grad phi*; q = y for "dual" sampling, and
    the mean of both for "mixed".
    """

    def __init__(
        self,
        *,
        d: int,
        weights: Vector,
        divergence: Divergence,
        regularizer: Regularizer,
        primal_set: ConvexSet,
    ) -> None:
        check_part(divergence, "divergence", Divergence)
        check_part(regularizer, "regularizer", Regularizer, optional=("conjugate",))
        check_part(primal_set, "constraint", ConvexSet)
        self.n, self.d = weights.size, d
        self.weights, self.divergence, self.regularizer = weights, divergence, regularizer
        self.primal_set, self.dual_set = primal_set, divergence.dual_set(weights)
        self.dual_curvature = divergence.curvature(weights)
        self.y0 = weights / weights.sum()
        self._cumulative = None if np.ptp(weights) == 0.0 else np.cumsum(self.y0)

    @abstractmethod
    def read(self, x: Vector) -> Vector:
        """What a pass over the rows gives: margins, or the losses themselves."""

    @abstractmethod
    def losses_of(self, read: Vector) -> Vector:
        """l(x) from that."""

    @abstractmethod
    def weighted_gradient(self, x: Vector, y: Vector) -> Vector:
        """sum_i y_i grad l_i(x)."""

    @abstractmethod
    def loss_and_gradient(self, x: Vector, i: int) -> tuple[float, Vector]:
        """l_i(x) and a subgradient of it."""

    @abstractmethod
    def second_moments(self, x: Vector, share: Vector, q: Vector, read: Vector) -> tuple[float, float]:
        """E|share_i grad l_i|^2 and E|l_i e_i / q_i|^2 (in the metric of Y) for a row i drawn with probability q_i."""

    @abstractmethod
    def constants(self, sampling: Sampling = "uniform", objective: float | None = None) -> Constants: ...

    def losses(self, x: Vector) -> Vector:
        return self.losses_of(self.read(x))

    def best_response(self, x: Vector) -> Vector:
        return self.divergence.best_response(self.losses(x), self.weights)

    def objective(self, x: Vector) -> float:
        return self.divergence.conjugate(self.losses(x), self.weights) + self.regularizer.value(x)

    def respond(self, x: Vector, read: Vector | None = None) -> Response:
        read = self.read(x) if read is None else read
        losses = self.losses_of(read)
        y, risk, multiplier = self.divergence.respond(losses, self.weights)
        return Response(y, risk + self.regularizer.value(x), multiplier if self._sums_to_one else None, read)

    @cached_property
    def _sums_to_one(self) -> bool:
        """Whether Y lies in the plane sum(y) = 1: its projection then does not see a constant added to grad_y."""
        Y, y = self.dual_set, self.dual_set.project(self.y0)
        ends = [Y.project(y + t * Y.metric / self.weights.sum()) for t in (-1.0, 1.0)]
        return bool(np.isclose(y.sum(), 1.0) and np.allclose(ends, y, atol=0.0))

    def saddle(self, x: Vector, y: Vector) -> float:
        return self._saddle(x, y, self.losses(x))

    def _saddle(self, x: Vector, y: Vector, losses: Vector) -> float:
        return float(y @ losses) - self.divergence.value(y, self.weights) + self.regularizer.value(x)

    def gradients(self, x: Vector, y: Vector) -> tuple[Vector, Vector]:
        grad_x = self.weighted_gradient(x, y) + self.regularizer.subgradient(x)
        return grad_x, self.losses(x) - self.divergence.gradient(y, self.weights)

    def draw(self, u: float, y: Vector, sampling: Sampling) -> int:
        """Inverse distribution function; a row of probability zero is never drawn."""
        if sampling != "uniform":
            cumulative = np.cumsum(self._odds(y, sampling))
        elif self._cumulative is None:
            return int(u * self.n)
        else:
            cumulative = self._cumulative
        return int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))

    def sample_gradients(
        self, x: Vector, y: Vector, i: int, sampling: Sampling = "uniform", center: float | None = None
    ) -> tuple[Vector, Vector]:
        loss, grad_loss = self.loss_and_gradient(x, i)
        q_i = self._odds(y, sampling)[i]
        grad_x = (y[i] / q_i) * grad_loss + self.regularizer.subgradient(x)
        grad_phi = self.divergence.gradient(y, self.weights)
        if center is None:
            grad_y = -grad_phi
            grad_y[i] += loss / q_i
        else:
            grad_y = np.zeros(self.n)
            grad_y[i] = (loss - grad_phi[i] - center) / q_i
        return grad_x, grad_y

    def natural_steps(
        self, x: Vector, y: Vector, sampling: Sampling = "uniform", read: Vector | None = None
    ) -> NaturalSteps:
        """See `Problem`.

        A dual step is at most what takes a sampled y_i all the way to its best response. Where the second moments
        allow for less, it is the geometric mean of both, and the problem is stiff.
        """
        read = self.read(x) if read is None else read
        q = self._odds(y, sampling)
        share = np.divide(y, q, out=np.zeros(self.n), where=q > 0.0)
        moment_x, moment_y = self.second_moments(x, share, q, read)
        slope = self.regularizer.subgradient(x)
        moment_x += float(slope @ slope)
        # P(x), as y = A(x); f(x, y) would lose all digits where phi* is steep.
        objective = self.divergence.conjugate(self.losses_of(read), self.weights) + self.regularizer.value(x)
        bound, mu = self.lower_bound(), self.regularizer.strong_convexity
        size = max(objective - bound, 0.0) if np.isfinite(bound) else abs(objective)  # rounding may lead below
        L, v = self.divergence.holder(self.weights)
        reach = L * self.y0[self.y0 > 0.0].min() if v == 1.0 else np.inf
        trusted = size / moment_y if moment_y > 0.0 else np.inf
        stiff = bool(trusted < 0.5 * reach)
        dual = float(np.sqrt(trusted) * np.sqrt(reach)) if stiff and np.isfinite(reach) else min(trusted, reach)
        # Where no gradient is left no step is needed; a step longer than 1 / mu overshoots by the regularizer alone.
        primal = size / moment_x if moment_x > 0.0 else 0.0
        if mu > 0.0 and moment_x > 0.0:
            primal = min(primal, 0.5 / mu) if size > 0.0 or np.isfinite(bound) else 0.5 / mu
        return NaturalSteps(primal, dual if np.isfinite(dual) else 0.0, float(np.sqrt(moment_x)), stiff)

    def _odds(self, y: Vector, sampling: Sampling) -> Vector:
        """q."""
        if sampling == "uniform":
            return self.y0
        if not self._sums_to_one:
            raise ValueError(f'sampling="{sampling}" draws i ~ y, but {self.dual_set!r} holds more than distributions')
        return MIX[sampling] * y + (1.0 - MIX[sampling]) * self.y0

    def lower_bound(self) -> float:
        return -np.inf

    def magnitude(self, objective: float) -> float:
        return abs(objective)
