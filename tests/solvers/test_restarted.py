"""What the restarted solvers share: implicit steps, samplings, weights, seeds, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boxes
import cvxpy as cp
import numpy as np
import oracles
import pytest
from small_problems import WEIGHTS, N, auc, binary_data, dro, quadratics
from traces import robust_hinge, trace

import pommel as pm
from pommel.engines import ENGINES
from pommel.problem import Sampling, Vector
from pommel.solvers._solver import Solver

RESTARTED = [pm.RSPDsc, pm.RSPD, pm.ARSPD]
STEPS = {"primal_step": 0.2, "dual_step": 0.02}
restarted = pytest.mark.parametrize("solver", RESTARTED)


@restarted
def test_iterates_keep_within_the_bound(rng: np.random.Generator, seed: int, solver: Any) -> None:
    """Steps are long enough to reach it, from a start that is as long as allowed."""
    problem, _, x0 = robust_hinge(rng)
    x0 *= 0.5 / np.linalg.norm(x0)
    options = {"stage_length": 40, "n_stages": 2, "bound": 0.5, "primal_radius": 100.0, **one_call(solver), **STEPS}
    if solver is pm.RSPDsc:
        del options["primal_radius"]
    lengths = np.linalg.norm(
        np.vstack([stage.x for stage in trace(solver(**options), problem, x0, seed).stages]), axis=1
    )
    assert lengths.max() == pytest.approx(0.5, rel=1e-12)
    assert np.isclose(lengths, 0.5).sum() > 5


@restarted
def test_an_integer_weight_solves_the_problem_with_repeated_rows(
    rng: np.random.Generator, seed: int, solver: Any
) -> None:
    """Weight zero is a removed row; n lam1 is the same on both sides. For 60 seeds the gap was at most 0.006."""
    X, labels = binary_data(rng)
    weights = np.array([2.0, 1.0, 3.0, 0.0, 1.0, 1.0, 4.0, 1.0, 0.0, 1.0, 1.0, 2.0])
    copies = np.repeat(np.arange(N), weights.astype(int))
    repeated = oracles.solve_dro(X[copies], labels[copies], loss="hinge", lam1=0.1, lam2=0.3)
    problem, x0 = dro(X, labels, loss="hinge", lam1=0.1, lam2=0.3, sample_weight=weights), np.full(3, 3.0)
    solution = solver(stage_length=1500, n_stages=3).solve(problem, x0=x0, tol=0, max_passes=800, random_state=seed)
    assert problem.objective(x0) > repeated.value + 0.5
    assert repeated.value - 1e-8 <= solution.objective <= repeated.value + 0.02
    assert problem.objective(repeated.x) == pytest.approx(repeated.value, abs=1e-7)


@pytest.mark.parametrize(("sampling", "by_y"), [("dual", 1.0), ("mixed", 0.5)])
def test_drawing_by_y_follows_y(sampling: Sampling, by_y: float, rng: np.random.Generator, seed: int) -> None:
    """Frequencies are those of y, or half as much and half of 1 / n, within five deviations.

    Rows that are not likely at all are never drawn.
    """
    problem, _, _ = robust_hinge(rng)
    y = problem.dual_set.project(np.where(np.arange(N) < 4, -1.0, rng.random(N)))
    draws = 20_000
    rows = [problem.draw(u, y, sampling) for u in np.random.default_rng(seed).random(draws)]
    counts, q = np.bincount(rows, minlength=N), by_y * y + (1.0 - by_y) / N
    assert not counts[q == 0.0].any() and (y == 0.0).any()
    assert (np.abs(counts - draws * q) <= 5.0 * np.sqrt(draws * q * (1.0 - q)) + 5.0).all()


@restarted
@pytest.mark.parametrize("sampling", ["dual", "mixed"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("steps", [{}, STEPS], ids=["auto", "given"])
def test_auc_has_one_dual_variable_which_cannot_draw_rows(
    rng: np.random.Generator, solver: Any, sampling: str, engine: str, steps: dict[str, float]
) -> None:
    problem = auc(*binary_data(rng), radius=1.0)
    with pytest.raises(ValueError, match=f'rows are drawn with sampling="uniform", got {sampling!r}$'):
        solver(sampling=sampling, **steps).solve(problem, engine=engine)


# Implicit steps


@dataclass
class Proximal:
    """y'l - phi*(y) - |y - y_t|^2 / (2 eta), chi-square and metric by the weights w, and l nothing but l_i / q_i."""

    w: Vector
    lam: float
    eta: float
    y_t: Vector
    i: int
    ascent: float

    def value(self, y: Any) -> Any:
        """In CVXPY."""
        n, kept = self.w.sum(), np.flatnonzero(self.w)
        from_y0 = cp.multiply(y[kept] - self.w[kept] / n, np.sqrt(n / self.w[kept]))
        return (
            self.ascent * y[self.i]
            - n * self.lam / 2 * cp.sum_squares(from_y0)
            - cp.sum_squares(scaled(y - self.y_t, self.w)) / (2 * self.eta)
        )

    def gradient(self, y: Vector) -> Vector:
        """Of rows of positive weight; others stay at zero."""
        n, kept = self.w.sum(), np.flatnonzero(self.w)
        slope = (
            -n * self.lam * (y - self.w / n)[kept] * n / self.w[kept] - (y - self.y_t)[kept] / self.w[kept] / self.eta
        )
        slope[kept == self.i] += self.ascent
        return slope


def scaled(z: Any, w: Vector) -> Any:
    """z_i / sqrt(w_i) of the rows of positive weight."""
    kept = np.flatnonzero(w)
    return cp.multiply(z[kept], 1.0 / np.sqrt(w[kept]))


@pytest.mark.parametrize("dual_step", [1e-3, 0.1, 100.0])
@pytest.mark.parametrize("radius", [np.inf, 0.05], ids=["", "ball"])
@pytest.mark.parametrize("w", [np.ones(N), WEIGHTS], ids=["", "weighted"])
def test_implicit_steps_of_weights_are_proximal(
    dual_step: float, radius: float, w: Vector, rng: np.random.Generator, seed: int
) -> None:
    """Each leads to argmax_y y'l - phi*(y) - |y - y_t|^2 / (2 eta) over Y, for the sampled l.

    Clarabel finds no larger value; without a ball no vertex of the simplex lies uphill, which is sharper.
    """
    lam1, (X, labels) = 0.1 / N, binary_data(rng)
    problem = dro(X, labels, loss="hinge", lam1=lam1, lam2=0.1, sample_weight=w)
    given = {"primal_step": 0.1, "dual_step": dual_step, "primal_radius": np.inf, "dual_radius": radius}
    solver = pm.RSPD(stage_length=8, n_stages=1, sampling="uniform", dual_gradient="implicit", **given)
    stage = trace(solver, problem, rng.standard_normal(3), seed).stages[0]
    y0, kept = w / w.sum(), np.flatnonzero(w)
    for x, y_t, u, made in zip(stage.x, stage.y, boxes.drawn(seed)(8), stage.y[1:], strict=False):
        i = int(np.searchsorted(np.cumsum(y0), u * np.cumsum(y0)[-1], side="right"))
        ascent = max(0.0, 1.0 - labels[i] * (X[i] @ x)) / y0[i]
        proximal = Proximal(w, lam1, dual_step, y_t, i, ascent)
        y = cp.Variable(N)
        inside = [] if radius == np.inf else [cp.norm2(scaled(y - stage.y[0], w)) <= radius]
        best = cp.Problem(cp.Maximize(proximal.value(y)), [cp.sum(y) == 1, y >= 0, y[w == 0.0] == 0, *inside])
        best.solve(solver=cp.CLARABEL, **oracles.TIGHT)
        assert proximal.value(cp.Constant(made)).value == pytest.approx(best.value, abs=1e-7 * (1.0 + ascent))
        assert made.sum() == pytest.approx(1.0, rel=1e-12) and made.min() >= 0.0 and not made[w == 0.0].any()
        assert problem.dual_set.distance(made, stage.y[0]) <= radius * (1.0 + 1e-9)
        slope = proximal.gradient(made)
        assert radius < np.inf or (slope - slope @ made[kept]).max() <= 1e-11 * (1.0 + ascent + 1.0 / dual_step)
    assert np.ptp(stage.y, axis=0).any()  # it did move


@pytest.mark.parametrize("dual_step", [1e-3, 1.0, 1e3])
def test_implicit_steps_of_auc_are_proximal(dual_step: float, rng: np.random.Generator, seed: int) -> None:
    """The largest F(w, a, b, alpha; row) - (alpha - alpha_t)^2 / (2 eta) over the interval of alpha."""
    X, labels = binary_data(rng)
    problem, p = auc(X, labels, radius=0.5), np.mean(labels > 0.0)
    end = 0.5 * np.linalg.norm(X[labels > 0.0].mean(axis=0) - X[labels < 0.0].mean(axis=0))
    given = {"primal_step": 0.1, "dual_step": dual_step, "stage_length": 30, "n_stages": 1}
    x0 = problem.primal_set.project(rng.standard_normal(problem.d))
    stage = trace(pm.RSPDsc(dual_gradient="implicit", **given), problem, x0, seed).stages[0]
    for v, y, u, made in zip(stage.x, stage.y, boxes.drawn(seed)(30), stage.y[1:], strict=False):
        i = int(N * u)
        share = 1.0 - p if labels[i] > 0.0 else p

        def value(alpha: Any, v: Vector = v, y: Vector = y, i: int = i, share: float = share) -> Any:
            gain = -2.0 * (1.0 + alpha) * share * labels[i] * (X[i] @ v[:-2]) - p * (1.0 - p) * alpha**2
            return gain - (alpha - y[0]) ** 2 / (2.0 * dual_step)

        ends = np.linspace(-end, end, 4001)  # where a parabola through neighbours of the best point has its vertex
        best = np.clip(ends[np.argmax(value(ends))], -end, end)
        h = ends[1] - ends[0]
        slope, bend = value(best + h) - value(best - h), value(best + h) - 2.0 * value(best) + value(best - h)
        assert made[0] == pytest.approx(np.clip(best - h * slope / (2.0 * bend), -end, end), abs=1e-7)


def test_implicit_steps_need_a_quadratic(rng: np.random.Generator) -> None:
    problem = quadratics(rng)
    problem.dual_curvature = None  # of a divergence that is not a quadratic
    with pytest.raises(ValueError, match=r'^dual_gradient="implicit" needs a quadratic phi\*; that of Function'):
        pm.RSPDsc(dual_gradient="implicit").solve(problem)
    assert pm.RSPDsc().solve(problem, tol=0, max_passes=10).status is pm.Status.MAX_PASSES


SOLVERS: dict[str, Callable[[], Solver]] = {
    "RSPDsc": lambda: pm.RSPDsc(stage_length=50),
    "RSPDsc-dual": lambda: pm.RSPDsc(stage_length=50, sampling="dual", dual_gradient="whole"),
    "RSPDsc-mixed": lambda: pm.RSPDsc(stage_length=50, sampling="mixed", dual_gradient="implicit"),
    "RSPD": lambda: pm.RSPD(stage_length=50),
    "ARSPD": lambda: pm.ARSPD(stage_length=50),
    "PDSG": lambda: pm.PDSG(primal_step=1.0, dual_step=0.1),
}


@pytest.mark.parametrize("build", SOLVERS.values(), ids=SOLVERS)
def test_the_same_seed_gives_the_same_bits_and_another_does_not(
    rng: np.random.Generator, seed: int, build: Callable[[], Solver]
) -> None:
    problem, _, x0 = robust_hinge(rng)

    def solve(random_state: Any) -> tuple[bytes, bytes]:
        solution = build().solve(problem, x0=x0, tol=0, max_passes=60, random_state=random_state)
        return solution.x.tobytes(), solution.history["objective"].tobytes()

    first = solve(seed)
    assert solve(seed) == first
    assert solve(np.random.default_rng(seed)) == first
    assert solve(seed + 1)[1] != first[1]


@restarted
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"primal_step": -0.1}, ValueError, r"primal_step must be a finite number >= 0, got -0\.1"),
        ({"primal_step": np.inf}, ValueError, "primal_step must be a finite number >= 0, got inf"),
        ({"dual_step": np.nan}, ValueError, "dual_step must be a finite number >= 0, got nan"),
        ({"dual_step": "large"}, TypeError, "dual_step must be a number >= 0, got 'large'"),
        ({"stage_length": 0}, ValueError, "stage_length must be a finite number >= 1, got 0"),
        ({"stage_length": np.inf}, ValueError, "stage_length must be a finite number >= 1, got inf"),
        ({"stage_length": True}, TypeError, "stage_length must be a number >= 1, got True"),
        ({"bound": 0.0}, ValueError, r"bound must be a number > 0, got 0\.0"),
        ({"sampling": "both"}, ValueError, "sampling must be one of 'auto', 'uniform', 'dual', 'mixed', got 'both'"),
        (
            {"dual_gradient": "half"},
            ValueError,
            "dual_gradient must be one of 'centred', 'whole', 'implicit', got 'half'",
        ),
        ({"n_stages": 0}, ValueError, "n_stages must be >= 1, got 0"),
        ({"n_stages": 1.5}, TypeError, r"n_stages must be a whole number >= 1, got 1\.5"),
    ],
)
def test_bad_parameters_are_refused(solver: Any, wrong: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        solver(**wrong)


@pytest.mark.parametrize("solver", [pm.RSPD, pm.ARSPD])
@pytest.mark.parametrize("name", ["primal_radius", "dual_radius"])
def test_radii_are_checked(solver: Any, name: str) -> None:
    solver(**{name: np.inf}), solver(**{name: 0.0})
    for wrong, error in ((-1.0, ValueError), (np.nan, ValueError), ("small", TypeError)):
        with pytest.raises(error, match=f"{name} must be a number >= 0, got"):
            solver(**{name: wrong})


def one_call(solver: Any) -> dict[str, Any]:
    return {"n_calls": 1} if solver is pm.ARSPD else {}
