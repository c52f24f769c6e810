"""DRO against CVXPY, scikit-learn and itself stated in other words: repeated rows, other storage, other units."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

import numpy as np
import pytest
from oracles import solve_dro
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from small_problems import DIVERGENCES, WEIGHTS, N, binary_data, dro

import pommel as pm
from pommel.problem import Divergence, Sampling

SAMPLINGS: tuple[Sampling, ...] = get_args(Sampling)


def known(problem: pm.DRO, sampling: Sampling) -> dict[str, float]:
    return {name: value for name, value in asdict(problem.constants(sampling)).items() if isinstance(value, float)}


@pytest.mark.parametrize("radius", [None, 0.3], ids=["free", "ball"])
@pytest.mark.parametrize("sample_weight", [None, WEIGHTS], ids=["", "weighted"])
@pytest.mark.parametrize("lam1", [None, 1.0 / N, 1e-3], ids=["mean", "chi2", "weak chi2"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_objective_agrees_with_cvxpy(
    loss: str, lam1: float | None, sample_weight: Any, radius: float | None, rng: np.random.Generator
) -> None:
    X, labels = binary_data(rng)
    options = {"loss": loss, "lam1": lam1, "lam2": 0.1, "sample_weight": sample_weight, "radius": radius}
    problem, optimum = dro(X, labels, **options), solve_dro(X, labels, **options)
    assert problem.objective(optimum.x) == pytest.approx(optimum.value, abs=1e-7)
    points = [problem.primal_set.project(z) for z in optimum.x + 0.1 * rng.standard_normal((50, problem.d))]
    assert min(map(problem.objective, points)) >= optimum.value - 1e-8


@pytest.fixture
def counts(rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([[1, 2, 0, 3], rng.integers(0, 4, N - 4)])


@pytest.mark.parametrize("divergence", DIVERGENCES.values(), ids=DIVERGENCES)
def test_integer_weight_is_a_repeated_row(divergence: Divergence, counts: np.ndarray, rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    copies = np.repeat(np.arange(N), counts)
    parts = {"divergence": divergence, "regularizer": pm.L2(0.1)}
    weighted = pm.DRO(X, labels, sample_weight=counts, **parts)
    repeated = pm.DRO(X[copies], labels[copies], **parts)

    def shared(y: np.ndarray) -> np.ndarray:
        """Each copy gets the same part of its row's weight."""
        return (y / np.maximum(counts, 1))[copies]

    def merged(y: np.ndarray) -> np.ndarray:
        return np.bincount(copies, y, minlength=N)

    def close(a: Any, b: Any) -> None:
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)

    x = rng.standard_normal(weighted.d)
    y = weighted.dual_set.project(rng.dirichlet(np.ones(N)))
    close(weighted.objective(x), repeated.objective(x))
    close(weighted.respond(x).center, repeated.respond(x).center)
    close(weighted.best_response(x), merged(repeated.best_response(x)))
    close(weighted.saddle(x, y), repeated.saddle(x, shared(y)))
    grads, grads_of_copies = weighted.gradients(x, y), repeated.gradients(x, shared(y))
    close(grads[0], grads_of_copies[0])
    close(grads[1][copies], grads_of_copies[1])
    close(  # one gradient step, in the metric that makes rows move as their copies do
        weighted.dual_set.project(y + 0.1 * weighted.dual_set.metric * grads[1]),
        merged(repeated.dual_set.project(shared(y) + 0.1 * grads_of_copies[1])),
    )
    for sampling in SAMPLINGS:
        ours, theirs = known(weighted, sampling), known(repeated, sampling)
        for name in "MB":  # copies could also have unequal weights
            assert ours.pop(name, 0.0) <= theirs.pop(name, 0.0) * (1.0 + 1e-9)
        assert ours == pytest.approx(theirs, rel=1e-9)


def test_weight_zero_is_a_removed_row(rng: np.random.Generator) -> None:
    """Its features and its label, of a third class, are never looked at."""
    X, labels = binary_data(rng)
    parts = {"divergence": pm.ChiSquare(0.1), "regularizer": pm.L2(0.1)}
    all_rows = pm.DRO(np.vstack([X, [1e9, 0.0, 0.0]]), [*labels, 7], sample_weight=[1.0] * N + [0.0], **parts)
    rest = pm.DRO(X, labels, **parts)
    x = rng.standard_normal(rest.d)
    assert all_rows.objective(x) == pytest.approx(rest.objective(x), rel=1e-12)
    np.testing.assert_allclose(all_rows.best_response(x), [*rest.best_response(x), 0.0], rtol=1e-12)
    for sampling in SAMPLINGS:
        assert known(all_rows, sampling) == pytest.approx(known(rest, sampling), rel=1e-9)
        ours, theirs = (p.natural_steps(x, p.best_response(x), sampling) for p in (all_rows, rest))
        assert ours == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize(
    "stored",
    [csr_array, lambda X: X.tolist(), np.asfortranarray, np.float32, np.int8],
    ids=["csr", "list", "fortran", "float32", "int8"],
)
def test_storage_of_X_does_not_matter(stored: Any, rng: np.random.Generator) -> None:
    """Small whole numbers are the same in every type."""
    labels = binary_data(rng)[1]
    X = rng.integers(-3, 4, (N, 3)).astype(float)
    other, dense = (pm.DRO(rows, labels, divergence=pm.ChiSquare(0.1)) for rows in (stored(X), X))
    x, y = rng.standard_normal(3), rng.dirichlet(np.ones(N))
    assert other.objective(x) == pytest.approx(dense.objective(x), rel=1e-13)
    for ours, theirs in [
        (other.gradients(x, y), dense.gradients(x, y)),
        (other.sample_gradients(x, y, 5, "dual"), dense.sample_gradients(x, y, 5, "dual")),
    ]:
        np.testing.assert_allclose(np.concatenate(ours), np.concatenate(theirs), rtol=1e-12, atol=1e-13)


def test_float64_is_neither_copied_nor_written_to(rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    sparse = csr_array(X)
    X.flags.writeable = sparse.data.flags.writeable = False
    assert np.shares_memory(pm.DRO(X, labels, divergence=pm.Mean()).rows.X, X)
    assert np.shares_memory(pm.DRO(sparse, labels, divergence=pm.Mean()).rows.X.data, sparse.data)
    pm.check_problem(pm.DRO(X, labels, divergence=pm.ChiSquare(0.1)))


@pytest.mark.parametrize("classes", [(0, 1), (1, 2), (False, True), (-0.5, 3.5), ("ham", "spam")], ids=str)
def test_labels_are_of_any_type_and_the_larger_one_is_positive(classes: Any, rng: np.random.Generator) -> None:
    X, labels = binary_data(rng)
    named = pm.DRO(X, np.where(labels > 0.0, classes[1], classes[0]), divergence=pm.ChiSquare(0.1))
    assert tuple(named.classes) == classes
    np.testing.assert_array_equal(named.labels, labels)


@pytest.mark.parametrize("scale", [2.0**500, 2.0**-500], ids=["1e150", "1e-150"])
@pytest.mark.parametrize("loss", [pm.Hinge(), pm.Logistic()], ids=["hinge", "logistic"])
def test_extreme_units_of_features_change_nothing(loss: Any, scale: float, rng: np.random.Generator) -> None:
    """x in units of 1 / scale is the same problem; a power of two makes it so to the last bits."""
    X, labels = binary_data(rng)
    plain = pm.DRO(X, labels, loss=loss, divergence=pm.ChiSquare(0.1), regularizer=pm.L2(0.1))
    extreme = pm.DRO(scale * X, labels, loss=loss, divergence=pm.ChiSquare(0.1), regularizer=pm.L2(0.1 * scale**2))
    x = rng.standard_normal(plain.d)
    y = plain.best_response(x)
    assert extreme.objective(x / scale) == pytest.approx(plain.objective(x), rel=1e-14)
    np.testing.assert_allclose(extreme.best_response(x / scale), y, rtol=1e-13)
    ours, theirs = extreme.gradients(x / scale, y), plain.gradients(x, y)
    np.testing.assert_allclose(ours[0] / scale, theirs[0], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-13, atol=1e-15)
    ours, theirs = extreme.natural_steps(x / scale, y), plain.natural_steps(x, y)
    assert (ours.primal * scale**2, ours.dual, ours.gradient / scale, ours.stiff) == pytest.approx(theirs, rel=1e-13)
    powers = {"M": 1, "G": 1, "mu": 2, "c": -1, "radius": -1}
    rescaled = {name: value / scale ** powers.get(name, 0) for name, value in known(extreme, "uniform").items()}
    assert rescaled == pytest.approx(known(plain, "uniform"), rel=1e-12)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("lam1", [1e-3, 0.1], ids=["stiff", ""])
def test_natural_steps_follow_the_units_of_features(lam1: float, sampling: Sampling, rng: np.random.Generator) -> None:
    """To the last bit, with units of a power of two."""
    X, labels = binary_data(rng)
    plain = pm.DRO(X, labels, divergence=pm.ChiSquare(lam1), regularizer=pm.L2(0.1))
    other = pm.DRO(1024.0 * X, labels, divergence=pm.ChiSquare(lam1), regularizer=pm.L2(0.1 * 1024.0**2))
    x = rng.standard_normal(plain.d)
    y = plain.best_response(x)
    ours, theirs = other.natural_steps(x / 1024.0, y, sampling), plain.natural_steps(x, y, sampling)
    assert (ours.primal * 1024.0**2, ours.dual, ours.gradient / 1024.0, ours.stiff) == theirs


@pytest.fixture(scope="module")
def adult(a9a: Any) -> tuple[csr_array, np.ndarray]:
    """a9a with the narrow indices that liblinear asks for."""
    X, labels = a9a
    return csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape), labels


def test_a9a_optimum_of_clarabel(adult: Any) -> None:
    X, labels = adult
    options = {"loss": "hinge", "lam1": 1.0 / labels.size, "lam2": 1.0 / labels.size}
    optimum = solve_dro(X, labels, **options)
    assert dro(X, labels, **options).objective(optimum.x) == pytest.approx(0.526488569, abs=1e-8)


def test_a9a_logistic_regression_is_stationary(adult: Any) -> None:
    X, labels = adult
    problem = dro(X, labels, loss="logistic", lam1=None, lam2=1.0 / labels.size)
    model = LogisticRegression(C=1.0, fit_intercept=False, solver="newton-cholesky", tol=1e-12).fit(X, labels)

    def slope(x: np.ndarray) -> float:
        return float(np.linalg.norm(problem.gradients(x, problem.y0)[0]))

    assert slope(model.coef_[0]) <= 1e-6 * slope(np.zeros(problem.d))


def test_a9a_support_vector_machine_is_optimal(adult: Any, rng: np.random.Generator) -> None:
    """liblinear stops when no dual coordinate can gain by more than tol: its duality gap is then at most tol in P.

    So no point lies lower by more than tol, in whatever direction; the way to Clarabel's optimum is the hardest one.
    """
    X, labels = adult
    options, tol = {"loss": "hinge", "lam1": None, "lam2": 1.0 / labels.size}, 1e-4
    problem, optimum = dro(X, labels, **options), solve_dro(X, labels, **options)
    model = LinearSVC(loss="hinge", C=1.0, fit_intercept=False, tol=tol, max_iter=100_000, random_state=0)
    x = model.fit(X, labels).coef_[0]
    assert -1e-9 <= problem.objective(x) - optimum.value <= tol
    downhill = -problem.gradients(x, problem.y0)[0]
    for direction in (optimum.x - x, downhill, *rng.standard_normal((10, problem.d))):
        for t in np.geomspace(1e-6, 1.0, 7):
            assert problem.objective(x + t * direction) >= problem.objective(x) - tol
