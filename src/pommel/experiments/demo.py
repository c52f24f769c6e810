"""`pommel demo`: restarts against a plain stochastic method, on robust risk and on AUC; and what robustness buys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from pommel.datasets import make_minority
from pommel.divergences.chi_square import ChiSquare
from pommel.divergences.mean import Mean
from pommel.experiments.optima import auc_optimum, dro_optimum
from pommel.losses.logistic import Logistic
from pommel.problem import Problem, Vector
from pommel.problems.auc import AUC
from pommel.problems.dro import DRO
from pommel.regularizers.l2 import L2
from pommel.rows import Rows
from pommel.sets.l2_ball import L2Ball
from pommel.solvers._solver import Solver
from pommel.solvers.arspd import ARSPD
from pommel.solvers.pdsg import PDSG
from pommel.solvers.rspd_sc import RSPDsc

__all__ = ["Curve", "Race", "Tail", "robust_risk", "square_auc", "tails"]

SEEDS = (0, 1, 2)
STEP_SIZES = (0.01, 0.03, 0.1, 0.3)
"""What the plain method's steps are tuned over, as shares of the problem's natural ones at the end of the run."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Curve:
    """Objective gaps of the best point so far, which is what a solve returns, at the checks of one solver."""

    label: str
    passes: Vector
    gaps: Vector  # (seeds, checks)

    def at(self, passes: float) -> float:
        """Median gap within so many passes."""
        return float(np.median(self.gaps[:, self.passes <= passes][:, -1]))


@dataclass(frozen=True)
class Race:
    """Solvers on one problem with the same budget of gradients."""

    title: str
    data: str
    optimum: str  # the optimal value, and how it is known
    passes: float
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Tail:
    """How one model does on fresh data."""

    label: str
    losses: Vector
    worst_group_loss: float
    worst_group_accuracy: float
    accuracy: float

    def worst(self, share: float) -> float:
        """Mean loss over the given share of rows with the largest losses."""
        kept = max(1, round(share * self.losses.size))
        return float(np.sort(self.losses)[-kept:].mean())


def robust_risk(progress: Progress, *, passes: float = 70.0, robustness: float = 5.0, C: float = 0.1) -> Race:
    """RSPD-sc on hinge loss, chi-square and L2, on the breast cancer data that comes with scikit-learn."""
    X, labels = load_breast_cancer(return_X_y=True)
    X, n = standardised(X), len(X)
    problem = DRO(X, labels, divergence=ChiSquare(1.0 / (robustness * n)), regularizer=L2(1.0 / (C * n)))
    progress("robust risk: looking for the optimum in another way")
    lower, upper = dro_optimum(problem)
    return Race(
        title="Robust risk: hinge loss, chi-square, L2",
        data=f"breast cancer, {n} x {X.shape[1]}, standardised",
        optimum=f"P* = {lower:.9f}, proved to {upper - lower:.0e} by smoothing and duality",
        passes=passes,
        curves=_race(problem, RSPDsc(), "RSPD-sc, no tuning", lower, passes, progress),
    )


def square_auc(progress: Progress, *, passes: float = 40.0, radius: float = 2.0) -> Race:
    """ARSPD on AUC with an active L2 ball: eights against all other digits, in the data of scikit-learn."""
    X, digits = load_digits(return_X_y=True)
    X = standardised(X)
    problem = AUC(X, digits == 8, constraint=L2Ball(radius))
    optimum, v = auc_optimum(problem)
    active = "active" if problem.is_constraint_active(v) else "not active"
    return Race(
        title="AUC, square loss, L2 ball",
        data=f"digits, 8 against the rest, {problem.n} x {problem.d - 2}, standardised",
        optimum=f"P* = {optimum:.9f}, from an eigenvalue decomposition; the ball is {active}",
        passes=passes,
        curves=_race(problem, ARSPD(), "ARSPD, no tuning", optimum, passes, progress),
    )


def tails(progress: Progress, *, robustness: tuple[float, ...] = (0.0, 1.0, 3.0), passes: float = 60.0) -> list[Tail]:
    """Logistic regression for the mean loss and for the robust one, on synthetic data with a minority of 10 %."""
    X, labels, _ = make_minority(600, random_state=0)
    fresh = make_minority(20_000, random_state=1)
    n = len(X)
    found = []
    for level in robustness:
        label = "ERM" if level == 0.0 else f"DRO, robustness {level:g}"
        progress(f"a minority: {label}")
        divergence = Mean() if level == 0.0 else ChiSquare(1.0 / (level * n))
        problem = DRO(Rows(X, constant=1.0), labels, loss=Logistic(), divergence=divergence, regularizer=L2(1.0 / n))
        x = RSPDsc().solve(problem, tol=0.0, max_passes=passes).x
        margins = Rows(fresh.X, constant=1.0).matvec(x)
        losses, right = Logistic().value(margins, fresh.labels), margins * fresh.labels > 0.0
        groups = (fresh.is_minority, ~fresh.is_minority)
        found.append(
            Tail(
                label,
                losses,
                worst_group_loss=max(float(losses[group].mean()) for group in groups),
                worst_group_accuracy=min(float(right[group].mean()) for group in groups),
                accuracy=float(right.mean()),
            )
        )
    return found


def standardised(X: Vector) -> Vector:
    """Columns centred and of equal variance, rows of mean square length one."""
    return StandardScaler().fit_transform(X) / np.sqrt(X.shape[1])


def _race(
    problem: Problem, restarted: Solver, label: str, optimum: float, passes: float, progress: Progress
) -> tuple[Curve, Curve]:
    """The restarted method as it comes, and the plain one with the best of some step sizes."""

    def curve(solver: Solver, label: str, seeds: tuple[int, ...]) -> Curve:
        found = []
        for seed in seeds:
            progress(f"{label}: seed {seed}")
            history = solver.solve(problem, tol=0.0, max_passes=passes, random_state=seed).history
            found.append((history["n_passes"], np.minimum.accumulate(history["objective"] - optimum)))
        checks = np.unique(np.concatenate([at for at, _ in found]))  # no seed need have those of another
        gaps = [best[np.searchsorted(at, checks, side="right") - 1] for at, best in found]
        return Curve(label, checks, np.array(gaps))

    x0 = np.zeros(problem.d)
    natural = problem.natural_steps(x0, problem.best_response(x0))
    root = np.sqrt(passes * problem.n)

    def plain(share: float) -> PDSG:
        return PDSG(primal_step=share * natural.primal * root, dual_step=share * natural.dual * root)

    tried = {share: curve(plain(share), f"PDSG, steps x {share:g}", SEEDS[:1]).at(passes) for share in STEP_SIZES}
    best = min(tried, key=lambda share: tried[share])
    return (
        curve(restarted, label, SEEDS),
        curve(plain(best), f"PDSG, best of {len(STEP_SIZES)} step sizes", SEEDS),
    )
