"""Whether something is a problem in the sense of `pommel.problem`, and if it is not, what is wrong with it.

The contract is tested from the outside, at random points of X and Y, by what its words imply: the point nearest to z
makes no sharp angle with z, a convex function lies above its tangents, a maximiser is not moved by a gradient step, and
the mean over all rows by their probabilities is the expectation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, get_args

import numpy as np

from pommel.problem import ConvexSet, Problem, Sampling, Vector, check_members

__all__ = ["check_problem"]

ROUNDING = 1e-8
"""Relative errors up to this pass where two ways to the same number are compared."""

STEP = 1e-4
"""Length of the secants that gradients are compared with, relative to the point."""


def check_problem(problem: Problem, *, random_state: int = 0, points: int = 3, rtol: float = 1e-4) -> None:
    """Test a problem against its contract at random points; raise AssertionError naming the first fault found.

    Meant for problems users write. Told apart are projections that are none, losses that are not those of f, gradients
    that are wrong or have the wrong sign, a best response that is not the maximiser, an objective that is not the
    maximum, sampled gradients whose mean is not the gradient, and constants that are no bounds. Errors below a share
    `rtol` are not looked for. Every row is sampled, so take a small instance.
    """
    check_members(problem)
    rng = np.random.default_rng(random_state)
    for _ in range(points):
        for fault in _faults(problem, rng, rtol):
            raise AssertionError(f"{type(problem).__name__}: {fault}")


def _faults(problem: Problem, rng: np.random.Generator, rtol: float) -> Iterator[str]:
    """Each is judged with the help of what was judged before it alone, so that the first one is the culprit."""
    X, Y = problem.primal_set, problem.dual_set
    yield from _projection_faults("primal_set", X, np.ones(problem.d), rng)
    x = _inside(X, np.ones(problem.d), rng)
    losses, best = problem.losses(x), problem.best_response(x)
    if losses.shape != best.shape:
        yield f"losses(x) has shape {losses.shape}, best_response(x) {best.shape}"
    yield from _projection_faults("dual_set", Y, best, rng)
    if not _close(Y.project(best), best, ROUNDING):
        yield "best_response(x) lies outside dual_set"
    y = _inside(Y, best, rng)
    yield from _gradient_faults(problem, x, y, rng, rtol)
    yield from _curvature_faults(problem, x, y, best, rtol)
    yield from _response_faults(problem, x, rtol)
    for sampling in get_args(Sampling):
        yield from _sampling_faults(problem, x, y, sampling, rtol)


def _projection_faults(name: str, convex_set: ConvexSet, near: Vector, rng: np.random.Generator) -> Iterator[str]:
    """p = project(z) is the nearest point of the set if and only if <z - p, q - p> <= 0 for all q in it."""
    metric = np.broadcast_to(convex_set.metric, near.shape)
    inverse = np.divide(1.0, metric, out=np.zeros(near.size), where=metric > 0.0)
    sizes = [size * np.abs(near).max() for size in (0.1, 1.0, 10.0, 100.0)]
    spread = np.repeat([*sizes, min(convex_set.radius, sizes[-1])], 6)
    points = near + spread[:, None] * rng.standard_normal((spread.size, near.size))
    projected = [convex_set.project(z) for z in points]
    for z, p in zip(points, projected, strict=True):
        if not _close(convex_set.project(p), p, ROUNDING):
            yield f"{name}.project moves a point of the set"
        for q in projected:
            slack = ROUNDING * np.linalg.norm(inverse * (z - p)) * (np.linalg.norm(q - p) + np.linalg.norm(p))
            if not (inverse * (z - p)) @ (q - p) <= slack:
                yield f"{name}.project(z) is not the point nearest to z"
            for bound, length in (("diameter", convex_set.distance(p, q)), ("radius", convex_set.distance(p, 0.0 * p))):
                if not length <= getattr(convex_set, bound) * (1.0 + ROUNDING):
                    yield f"{name}.{bound} = {getattr(convex_set, bound):.6g} is no bound: {length:.6g} was met"


def _gradient_faults(problem: Problem, x: Vector, y: Vector, rng: np.random.Generator, rtol: float) -> Iterator[str]:
    """f = y'l(x) - phi*(y) + g(x), convex in x and concave in y, is compared with its tangents at points nearby."""
    saddle = problem.saddle
    other = _inside(problem.primal_set, x, rng), _inside(problem.dual_set, y, rng)
    rest = [saddle(u, v) - v @ problem.losses(u) for u in (x, other[0]) for v in (y, other[1])]  # g(u) - phi*(v)
    noise = ROUNDING * (abs(saddle(x, y)) + np.abs(rest).max())
    if not abs(rest[0] - rest[1] - rest[2] + rest[3]) <= noise:
        yield "losses(x) are not those of saddle: saddle(x, y) - y'losses(x) is not g(x) - phi*(y) for any g and phi*"

    grad_x, grad_y = problem.gradients(x, y)
    sides: list[tuple[str, Callable[[Vector], float], float, ConvexSet, Vector, Vector]] = [
        ("gradients(x, y)[0]", lambda u: saddle(u, y), 1.0, problem.primal_set, x, grad_x),
        ("gradients(x, y)[1]", lambda v: saddle(x, v), -1.0, problem.dual_set, y, grad_y),
    ]
    for name, f, sign, convex_set, point, gradient in sides:
        if gradient.shape != point.shape:
            yield f"{name} has shape {gradient.shape}, not {point.shape}"
        steps = STEP * np.abs(point).max() * rng.standard_normal((8, point.size))
        nearby = [convex_set.project(point + step) for step in (*steps, *-steps)]
        rises = sign * np.array([f(z) - f(point) for z in nearby])
        slopes = sign * np.array([gradient @ (z - point) for z in nearby])
        slack = rtol * np.abs(slopes) + STEP * noise
        if not (rises >= slopes - slack).all():
            opposite = (rises >= -slopes - slack).all()
            yield f"{name} has the wrong sign" if opposite else f"{name} is wrong: saddle falls below its tangent"


def _curvature_faults(problem: Problem, x: Vector, y: Vector, other: Vector, rtol: float) -> Iterator[str]:
    """A quadratic phi* lies below its chord by curvature / 8 times the square of the chord's length."""
    if problem.dual_curvature is None:
        return
    values = [problem.saddle(x, z) for z in (y, other, (y + other) / 2.0)]
    expected = problem.dual_curvature / 8.0 * problem.dual_set.distance(y, other) ** 2
    sizes = [abs(value) + abs(z @ problem.losses(x)) for z, value in zip((y, other), values, strict=False)]
    if not abs(values[2] - (values[0] + values[1]) / 2.0 - expected) <= rtol * expected + ROUNDING * max(sizes):
        yield f"dual_curvature = {problem.dual_curvature:.6g} is not that of phi*"


def _response_faults(problem: Problem, x: Vector, rtol: float) -> Iterator[str]:
    losses, best, Y = problem.losses(x), problem.best_response(x), problem.dual_set
    if not _close(_ascend(Y, best, problem.gradients(x, best)[1], losses), best, rtol):
        yield "best_response(x) does not maximise saddle(x, .): a gradient step moves it"
    value, response = problem.objective(x), problem.respond(x)
    noise = ROUNDING * (abs(value) + abs(best @ losses))
    if not abs(problem.saddle(x, best) - value) <= noise:
        yield "objective(x) is not saddle(x, best_response(x))"
    if not (_close(response.y, best, ROUNDING) and abs(response.objective - value) <= noise):
        yield "respond(x) is not best_response(x) with objective(x)"
    if not value >= problem.lower_bound() - noise:
        yield "objective(x) lies below lower_bound()"
    steps = problem.natural_steps(x, best)
    if not (np.isfinite(steps).all() and min(steps) >= 0.0):
        yield f"natural_steps(x, best_response(x)) must be finite and not negative, but are {steps}"
    if not _close(np.array(problem.natural_steps(x, best, "uniform", response.read)), np.array(steps), ROUNDING):
        yield "natural_steps(x, best_response(x)) are others with what respond(x) has read"


def _sampling_faults(problem: Problem, x: Vector, y: Vector, sampling: Sampling, rtol: float) -> Iterator[str]:
    try:
        shares = _shares(lambda u: problem.draw(u, y, sampling), problem.n)
    except ValueError:
        if sampling == "uniform":
            raise
        return  # a problem may refuse to draw i ~ y
    rows, Y = np.flatnonzero(shares), problem.dual_set
    full, known, center = problem.gradients(x, y), problem.constants(sampling), problem.respond(x).center

    def sample(center: float | None = None) -> list[Any]:
        pairs = [problem.sample_gradients(x, y, int(i), sampling, center) for i in rows]
        return [np.array(part) for part in zip(*pairs, strict=True)]

    sampled, root, length = sample(), np.sqrt(Y.metric), problem.primal_set.distance(x, 0.0 * x)
    for part, name, bound, scale in ((0, "M", known.M, np.sqrt(problem.primal_set.metric)), (1, "B", known.B, root)):
        lengths = np.linalg.norm(scale * sampled[part], axis=1)
        error = np.linalg.norm(scale * (shares[rows] @ sampled[part] - full[part]))
        if not error <= rtol * (shares[rows] @ lengths):
            yield f'sample_gradients is biased for sampling="{sampling}": its mean is not gradients(x, y)[{part}]'
        if bound is not None and length <= known.radius and lengths.max() > bound * (1.0 + ROUNDING):
            yield f'constants("{sampling}").{name} = {bound:.6g} is no bound: {lengths.max():.6g} was sampled'
    if center is not None:
        ends = [_ascend(Y, y, grad_y, problem.losses(x)) for grad_y in (full[1], shares[rows] @ sample(center)[1])]
        if not _close(ends[0], ends[1], rtol):
            yield f'sample_gradients with a center is biased for sampling="{sampling}": dual_set sees the center'


def _inside(convex_set: ConvexSet, near: Vector, rng: np.random.Generator) -> Vector:
    """A random point of the set; as the mean of two it lies off most of the boundary."""
    z = near + np.abs(near).max() * rng.standard_normal(near.size)
    return (convex_set.project(z) + convex_set.project(0.0 * near)) / 2.0


def _ascend(Y: ConvexSet, y: Vector, grad_y: Vector, losses: Vector) -> Vector:
    """One gradient step from y: the part of it that losses make is as long as y."""
    step = (np.linalg.norm(y) or 1.0) / (np.linalg.norm(Y.metric * losses) or 1.0)
    return Y.project(y + step * Y.metric * grad_y)


def _shares(draw: Callable[[float], int], n: int) -> Vector:
    """The share of u in [0, 1) that draws each row: where two points of a grid differ, the interval is halved."""
    shares, grid = np.zeros(n), np.linspace(0.0, np.nextafter(1.0, 0.0), 4 * n + 1)
    ends = [(float(u), draw(float(u))) for u in grid]
    intervals = list(itertools.pairwise(ends))
    while intervals:
        (a, i), (b, j) = intervals.pop()
        if not (0 <= i < n and 0 <= j < n):
            raise AssertionError(f"draw gives row {i if j in range(n) else j}, there are {n}")
        if i == j or b - a < 1e-12:
            shares[i] += (b - a) / 2.0
            shares[j] += (b - a) / 2.0
        else:
            middle = (a + b) / 2.0
            cut = middle, draw(middle)
            intervals += [((a, i), cut), (cut, (b, j))]
    return shares


def _close(a: Vector, b: Vector, rtol: float) -> bool:
    """NaN is close to nothing."""
    return bool(np.linalg.norm(a - b) <= rtol * (np.linalg.norm(a) + np.linalg.norm(b)))
