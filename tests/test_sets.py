"""Sets: projections are exact over ties, zeros and magnitudes from 1e-300 to 1e300, also onto the part in a ball."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from exact import projection_error
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import vectors

import pommel as pm
from pommel._registry import examples
from pommel.problem import ConvexSet
from pommel.sets import SETS

EXACT = 1e-12

every_set = pytest.mark.parametrize("convex_set", examples(SETS), ids=repr)


def dimensions(convex_set: ConvexSet) -> st.SearchStrategy[int]:
    """Of a set: its own, or any where one instance serves them all."""
    return st.just(convex_set.n) if hasattr(convex_set, "n") else st.integers(1, 5)


@st.composite
def points(draw: Any, convex_set: ConvexSet, n: int) -> np.ndarray:
    """A point, at times moved far along the direction that a simplex cannot see."""
    return draw(vectors(n)) + draw(st.sampled_from([0.0, 0.0, 1e8, -1e8])) * convex_set.metric


@every_set
@given(data=st.data())
def test_projection_is_exact(convex_set: ConvexSet, data: Any) -> None:
    n = data.draw(dimensions(convex_set))
    z = data.draw(points(convex_set, n))
    assert projection_error(convex_set, z, convex_set.project(z)) <= EXACT


@pytest.mark.parametrize("base", examples(SETS), ids=repr)
@settings(max_examples=25)
@given(data=st.data())
def test_projection_onto_the_part_in_a_ball_is_exact(base: ConvexSet, data: Any) -> None:
    """Also where the base set is such a part itself, as in RSPD with a bound on x."""
    n = data.draw(dimensions(base))
    z, center = data.draw(points(base, n)), base.project(data.draw(points(base, n)))
    reach = base.distance(base.project(z), center)
    share = data.draw(st.one_of(st.floats(1e-3, 0.9), st.floats(1.1, 2.0)))
    radius = data.draw(st.sampled_from([share * reach, 0.0, 1e-3, 0.5]))
    part = pm.BallWithin(base, center, radius)
    assert projection_error(part, z, part.project(z)) <= EXACT


@every_set
@given(data=st.data())
def test_projection_behaves_as_one(convex_set: ConvexSet, data: Any) -> None:
    n = data.draw(dimensions(convex_set))
    a, b = data.draw(points(convex_set, n)), data.draw(points(convex_set, n))
    before = a.copy()
    near_a, near_b = convex_set.project(a), convex_set.project(b)
    np.testing.assert_array_equal(a, before)
    size = convex_set.distance(near_a, np.zeros(n)) + EXACT
    assert convex_set.distance(convex_set.project(near_a), near_a) <= EXACT * size
    assert convex_set.distance(near_a, near_b) <= convex_set.distance(a, b) * (1.0 + EXACT) + EXACT * size
    assert size <= convex_set.radius * (1.0 + EXACT) + 2.0 * EXACT
    assert convex_set.distance(near_a, near_b) <= convex_set.diameter * (1.0 + EXACT) + EXACT


@every_set
def test_projection_hides_no_nan_and_raises_nothing(convex_set: ConvexSet) -> None:
    """Engines look at iterates for the first sign of divergence."""
    n = getattr(convex_set, "n", 2)
    with np.errstate(all="ignore"):
        for bad in (np.nan, np.inf):
            z = np.zeros(n)
            z[0] = bad
            assert isinstance(convex_set, pm.Point) or not np.isfinite(convex_set.project(z)).all()


@every_set
def test_set_survives_pickling(convex_set: ConvexSet) -> None:
    z = np.arange(1.0, 1.0 + getattr(convex_set, "n", 3))
    twin = pickle.loads(pickle.dumps(convex_set))
    np.testing.assert_array_equal(twin.project(z), convex_set.project(z))
    assert (repr(twin), twin.radius, twin.diameter) == (repr(convex_set), convex_set.radius, convex_set.diameter)


@given(data=st.data())
def test_simplex_takes_any_weights(data: Any) -> None:
    """Where a weight is no power of two, z_i / w_i is rounded: then the projection is that of a z off by as much."""
    n = data.draw(st.integers(1, 6))
    weights = np.array(data.draw(st.lists(st.floats(1e-3, 1e3), min_size=n, max_size=n)))
    weights[1:] *= data.draw(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1))
    z = weights * data.draw(st.lists(st.sampled_from([0.0, 0.1, 0.7, 2.0, -3.0]), min_size=n, max_size=n))
    simplex = pm.Simplex(n, weights)
    y = simplex.project(z)
    size, size_of_z = simplex.distance(y, np.zeros(n)), simplex.distance(z, np.zeros(n))
    assert size * projection_error(simplex, z, y) <= EXACT * (size + size_of_z)


@pytest.mark.parametrize("scale", [1e-300, 1e-6, 1.0, 1e6, 1e300])
def test_long_simplex(scale: float, rng: np.random.Generator) -> None:
    """What the projection of a long vector must satisfy: a threshold that is the same wherever y > 0."""
    z = scale * rng.standard_normal(100_000).round(3)  # rounded, so that there are ties
    y = pm.Simplex(z.size).project(z)
    thresholds = (z - z.max()) - y
    threshold = np.median(thresholds[y > 0.0])
    assert y.min() >= 0.0
    assert abs(y.sum() - 1.0) <= EXACT
    assert np.abs(thresholds[y > 0.0] - threshold).max() <= EXACT
    assert thresholds[y == 0.0].max(initial=-np.inf) <= threshold + EXACT


def test_radius_and_diameter_are_attained() -> None:
    simplex = pm.Simplex(4, [2.0, 1.0, 0.5, 0.0])
    vertices = np.eye(4)[:3]
    lengths = [simplex.distance(a, np.zeros(4)) for a in vertices]
    distances = [simplex.distance(a, b) for a in vertices for b in vertices]
    assert (simplex.radius, simplex.diameter) == pytest.approx((max(lengths), max(distances)), rel=EXACT)
    assert (pm.L2Ball(3.0).radius, pm.L2Ball(3.0).diameter) == (3.0, 6.0)


@pytest.mark.parametrize("base", [pm.WholeSpace(), pm.L2Ball(1.0), pm.Simplex(4)], ids=repr)
def test_point_on_the_border_of_the_ball(base: ConvexSet, rng: np.random.Generator) -> None:
    """Rounding alone decides whether it lies inside or outside; either way it is its own projection, nearly."""
    for _ in range(200):
        center, z = base.project(rng.standard_normal(4)), 3.0 * rng.standard_normal(4)
        nearest = base.project(z)
        part = pm.BallWithin(base, center, base.distance(nearest, center))
        np.testing.assert_allclose(part.project(z), nearest, atol=1e-6)


def test_results_are_not_the_insides_of_a_set() -> None:
    for convex_set in (pm.Point([1.0, 2.0]), pm.BallWithin(pm.WholeSpace(), np.array([1.0, 2.0]), 0.0)):
        convex_set.project(np.zeros(2))[:] = 7.0
        np.testing.assert_array_equal(convex_set.project(np.zeros(2)), [1.0, 2.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pm.L2Ball(0.0), r"L2Ball\(radius\) must be a finite number > 0, got 0.0"),
        (lambda: pm.L2Ball(np.inf), r"L2Ball\(radius\) must be a finite number > 0, got inf"),
        (lambda: pm.Simplex(0), r"n must be >= 1, got 0"),
        (lambda: pm.Simplex(3, [1.0, 2.0]), r"weights must have shape \(3,\), got \(2,\)"),
        (lambda: pm.Simplex(2, [1.0, -2.0]), r"weights must be >= 0, row 1 has -2.0"),
        (lambda: pm.Product((0, pm.WholeSpace())), r"the length of a block must be >= 1, got 0"),
        (lambda: pm.BallWithin(pm.WholeSpace(), [0.0], -1.0), r"the radius of a ball must be a number >= 0, got -1.0"),
        (lambda: pm.BallWithin(pm.L2Ball(1.0), [3.0], 1.0), r"does not meet the set: its center is 2 away, radius 1"),
    ],
)
def test_impossible_sets_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
