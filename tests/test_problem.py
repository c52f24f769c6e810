"""The contract: `check_problem` passes every problem of ours and names what is wrong with others; `Constants`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small_problems import PROBLEMS, N, binary_data, quadratics

import pommel as pm
from pommel.problem import PROBLEM_MEMBERS, ConvexSet, NaturalSteps, Sampling, Vector, WorstCase


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_keeps_the_contract(name: str, rng: np.random.Generator, seed: int) -> None:
    pm.check_problem(PROBLEMS[name](rng), random_state=seed)


class Shrunk(ConvexSet):
    """Scaling into the cube is no projection; scaled down further it does not even keep the cube's points."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def project(self, z: Vector) -> Vector:
        return self.factor * z / max(1.0, np.abs(z).max())


class Renormalised(pm.Simplex):
    """What is negative is cut off and the rest divided by its sum: on the simplex, but not the nearest point."""

    def project(self, z: Vector) -> Vector:
        positive = np.maximum(z, 1e-9)
        return positive / positive.sum()


def understated(simplex: pm.Simplex) -> pm.Simplex:
    simplex.diameter = 0.1
    return simplex


def times(first: float, second: float, *, only: str | None = None) -> Callable[..., Any]:
    """Multiplies a pair of gradients, or only those sampled in one way."""

    def spoil(gradients: Callable[..., Any]) -> Callable[..., Any]:
        def spoiled(x: Vector, y: Vector, *how: Any) -> Any:
            pair = gradients(x, y, *how)
            return pair if only and only not in how else (first * pair[0], second * pair[1])

        return spoiled

    return spoil


FAULTS: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("primal_set.project moves a point", "primal_set", lambda _: Shrunk(0.9)),
    ("primal_set.project(z) is not the point nearest", "primal_set", lambda _: Shrunk(1.0)),
    ("dual_set.project(z) is not the point nearest", "dual_set", lambda _: Renormalised(N)),
    ("dual_set.diameter = 0.1 is no bound", "dual_set", understated),
    ("losses(x) has shape", "best_response", lambda old: lambda x: np.append(old(x), 0.0)),
    ("losses(x) are not those of saddle", "saddle", lambda old: lambda x, y: old(x, y) + (y @ y) * (x @ x)),
    ("gradients(x, y)[0] has shape", "gradients", lambda old: lambda x, y: (old(x, y)[0][:1], old(x, y)[1])),
    ("gradients(x, y)[0] is wrong", "gradients", times(1.01, 1.0)),
    ("gradients(x, y)[0] has the wrong sign", "gradients", times(-1.0, 1.0)),
    ("gradients(x, y)[1] is wrong", "gradients", times(1.0, 1.01)),
    ("gradients(x, y)[1] has the wrong sign", "gradients", times(1.0, -1.0)),
    ("best_response(x) lies outside dual_set", "best_response", lambda old: lambda x: 1.01 * old(x)),
    ("best_response(x) does not maximise", "best_response", lambda old: lambda x: 0.98 * old(x) + 0.02 / N),
    ("objective(x) is not saddle", "objective", lambda old: lambda x: 1.001 * old(x)),
    ("respond(x) is not best_response(x)", "respond", lambda old: lambda x: old(x)._replace(objective=0.0)),
    ("objective(x) lies below lower_bound()", "lower_bound", lambda old: lambda: 1e6),
    (
        "natural_steps(x, best_response(x)) must be finite",
        "natural_steps",
        lambda old: lambda *_: NaturalSteps(np.nan, 1.0),
    ),
    (
        "natural_steps(x, best_response(x)) are others with what respond(x) has read",
        "respond",
        lambda old: lambda x: old(x)._replace(read=np.zeros(N)),
    ),
    (f"dual_curvature = {1.01 * N:.6g} is not that of phi*", "dual_curvature", lambda old: 1.01 * old),
    (f"draw gives row {N}, there are {N}", "draw", lambda old: lambda *how: old(*how) + 1),
    ('biased for sampling="uniform"', "draw", lambda old: lambda *how: min(old(*how), N - 2)),
    ("its mean is not gradients(x, y)[0]", "sample_gradients", times(1.1, 1.0)),
    ("its mean is not gradients(x, y)[1]", "sample_gradients", times(1.0, 1.1)),
    ('biased for sampling="dual"', "sample_gradients", times(1.1, 1.0, only="dual")),
    ('biased for sampling="mixed"', "sample_gradients", times(1.1, 1.0, only="mixed")),
    ('constants("uniform").M = 0.001 is no bound', "constants", lambda old: lambda how: replace(old(how), M=1e-3)),
    ('constants("uniform").B = 0.001 is no bound', "constants", lambda old: lambda how: replace(old(how), B=1e-3)),
]


@pytest.mark.parametrize(("message", "member", "spoil"), FAULTS, ids=[message for message, _, _ in FAULTS])
def test_faults_are_named(message: str, member: str, spoil: Any, rng: np.random.Generator, seed: int) -> None:
    problem = pm.DRO(*binary_data(rng), divergence=pm.ChiSquare(1.0 / N), regularizer=pm.L2(0.1))
    setattr(problem, member, spoil(getattr(problem, member)))
    with pytest.raises(AssertionError, match=re.escape(message)):
        pm.check_problem(problem, random_state=seed)


class Box(ConvexSet):
    """[0, 2/n]^n: its projection sees a constant added to grad_y."""

    def project(self, z: Vector) -> Vector:
        return np.clip(z, 0.0, 2.0 / N)


class HalfSquare(pm.Mean):
    """phi*(y) = n |y|^2 / 2 on the box."""

    def dual_set(self, weights: Vector) -> ConvexSet:
        return Box()

    def value(self, y: Vector, weights: Vector) -> float:
        return N * float(y @ y) / 2.0

    def gradient(self, y: Vector, weights: Vector) -> Vector:
        return N * y

    def best_response(self, losses: Vector, weights: Vector) -> Vector:
        return np.clip(losses / N, 0.0, 2.0 / N)

    def conjugate(self, losses: Vector, weights: Vector) -> float:
        y = self.best_response(losses, weights)
        return float(losses @ y) - self.value(y, weights)

    def respond(self, losses: Vector, weights: Vector, near: float = np.nan) -> WorstCase:
        return WorstCase(self.best_response(losses, weights), self.conjugate(losses, weights), np.nan)

    def curvature(self, weights: Vector) -> None:
        return None  # it is a quadratic around 0, not around y0


def test_only_a_simplex_has_a_center(rng: np.random.Generator, seed: int) -> None:
    problem = quadratics(rng, divergence=HalfSquare())
    pm.check_problem(problem, random_state=seed)
    respond = problem.respond
    assert respond(np.zeros(problem.d)).center is None
    problem.respond = lambda x: respond(x)._replace(center=1.0)
    with pytest.raises(AssertionError, match="dual_set sees the center"):
        pm.check_problem(problem, random_state=seed)


@pytest.mark.parametrize("sampling", ["dual", "mixed"])
def test_rows_are_drawn_by_y_only_where_y_is_a_distribution(sampling: Sampling, rng: np.random.Generator) -> None:
    """Weights in a box are none, and say so before any work."""
    problem = quadratics(rng, divergence=HalfSquare())
    x, y = np.zeros(problem.d), np.full(N, 0.5 / N)
    for refused in (
        lambda: problem.draw(0.5, y, sampling),
        lambda: problem.sample_gradients(x, y, 0, sampling),
        lambda: problem.natural_steps(x, y, sampling),
        lambda: pm.RSPDsc(sampling=sampling).solve(problem),
        lambda: pm.RSPDsc(sampling=sampling, primal_step=0.1, dual_step=0.1).solve(problem),
    ):
        with pytest.raises(ValueError, match=f'^sampling="{sampling}" draws i ~ y, but .* more than distributions$'):
            refused()
    assert pm.RSPDsc().solve(problem, tol=0, max_passes=20).n_passes == 20  # "auto" does not draw by y


@pytest.mark.parametrize("member", PROBLEM_MEMBERS)
def test_missing_members_are_named(member: str) -> None:
    others = SimpleNamespace(**dict.fromkeys(set(PROBLEM_MEMBERS) - {member}))
    with pytest.raises(TypeError, match=f"SimpleNamespace is not a pommel problem: .* Missing: {member}\\.$"):
        pm.check_problem(others)


class TestConstants:
    known = pm.Constants(M=1.0, theta=0.0, why={"B": "nobody knows"})

    def test_require_returns_what_is_known_zero_too(self) -> None:
        assert self.known.require("theta", "M") == (0.0, 1.0)

    def test_require_says_why_each_missing_one_is(self) -> None:
        with pytest.raises(ValueError, match=r"B: nobody knows\n  G: not given\n"):
            self.known.require("M", "B", "G")

    def test_given_replaces_what_the_caller_knows(self) -> None:
        assert self.known.given(M=2.0, theta=None, c=3.0) == replace(self.known, M=2.0, c=3.0)

    def test_given_refuses_unknown_names(self) -> None:
        with pytest.raises(TypeError, match="sigma"):
            self.known.given(sigma=1.0)
