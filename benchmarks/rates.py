"""Convergence rates, measured and beside the theory's: `make bench-rates`, two minutes at most on one core.

The gap P(x) - P* at the last restart is set against the gradients it took, evaluations included, and the slope of the
median over seeds is fitted on log-log axes. The theory bounds gaps from above, so a slope may be steeper, and for a
while at least one that is not yet asymptotic is. A table is printed; results/rates.json and results/rates.png beside
this file hold all numbers and the curves.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import pommel as pm
from pommel.experiments.optima import auc_optimum, dro_optimum
from pommel.problem import Problem
from pommel.solvers._solver import Solver

RESULTS = Path(__file__).parent / "results"
STARTED = time.perf_counter()


@dataclass(frozen=True)
class Rate:
    """Median gaps of one method against gradients, from the first one counted on."""

    label: str
    problem: str
    seeds: int
    theory: float  # slope
    says: str  # what the theory says, in full
    gradients: list[int]
    gaps: list[float]

    @property
    def slope(self) -> float:
        return fitted(self.gradients, self.gaps)

    @property
    def decades(self) -> float:
        return float(np.log10(self.gradients[-1] / self.gradients[0]))


def fitted(gradients: Sequence[float], gaps: Sequence[float]) -> float:
    """The slope of log gap against log gradients, by least squares."""
    return float(np.polyfit(np.log(gradients), np.log(gaps), 1)[0])


KINKED, CURVED = 97, 0
"""Seeds of `robust_hinge`: five margins lie at the kink of the hinge at the optimum, so that P grows linearly around
it in all five directions (the problem of the tests); or two do, so that P is quadratic, theta = 1/2, in the others."""


def robust_hinge(seed: int) -> tuple[pm.DRO, float]:
    """Hinge loss, chi-square (n lam1 = 1), L2 (lam2 = 0.1), n = 20, d = 5, and P*."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 5))
    labels = np.where(X.sum(axis=1) + rng.standard_normal(20) > 0.0, 1.0, -1.0)
    problem = pm.DRO(X, labels, divergence=pm.ChiSquare(1 / 20), regularizer=pm.L2(0.1))
    return problem, dro_optimum(problem)[0]


def auc_in_a_ball() -> tuple[pm.AUC, float]:
    """Square AUC with n = 200, d = 10 and |w| <= 1, which binds, and P* from an eigenvalue decomposition."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 10)) / np.sqrt(10)
    labels = np.where(X.sum(axis=1) + 0.5 * rng.standard_normal(200) > 0.3, 1.0, -1.0)
    problem = pm.AUC(X, labels, constraint=pm.L2Ball(1.0))
    optimum, v = auc_optimum(problem)
    assert problem.is_constraint_active(v)
    return problem, optimum


def restarted_and_averaged(budget: int = 25_750, first: int = 200, seeds: int = 10) -> list[Rate]:
    """RSPD-sc against one long run, each with about the best steps for the end; the gap at each check of a run."""
    problem, optimum = robust_hinge(KINKED)
    one_stage = "E[gap] = O(T^-1/2) for bounded gradients and sets"
    methods: list[tuple[str, Solver, float, str]] = [
        (
            "RSPD-sc",
            pm.RSPDsc(stage_length=50, primal_step=0.1, dual_step=0.0025, dual_gradient="whole"),
            -1.0,
            "Theorem 1: E[gap] = O(1/T)",
        ),
        ("RSPD-sc, automatic steps", pm.RSPDsc(stage_length=100), -1.0, "Theorem 1: E[gap] = O(1/T)"),
        ("PDSG, steps ~ 1/sqrt(T)", pm.PDSG(primal_step=1.0, dual_step=0.01), -0.5, one_stage),
    ]
    rates = []
    for label, solver, theory, says in methods:
        gradients, gaps = medians(label, solver, problem, optimum, seeds, max_passes=budget / problem.n)
        counted = gradients >= first
        rates.append(
            Rate(label, "DRO, kinked", seeds, theory, says, gradients[counted].tolist(), gaps[counted].tolist())
        )
    return rates


def one_run_per_accuracy(halvings: Sequence[int] = range(2, 9), first: int = 25, seeds: int = 10) -> Rate:
    """RSPD run anew for each epsilon = epsilon0 / 2^S, with theta = 1/2 and v = 1.

    R_x = c epsilon0 / epsilon^(1/2) grows like 2^(S/2), so the stage length like 2^S, as in Theorem 2; the factors in
    front are far below its own.
    """
    problem, optimum = robust_hinge(CURVED)
    totals, gaps = [], []
    for S in halvings:
        solver = pm.RSPD(
            primal_step=0.05,
            dual_step=0.0025,
            stage_length=first * 2**S,
            n_stages=S,
            primal_radius=4.0 * 2 ** (S / 2),
            dual_radius=2.0 * 2 ** (S / 2),
            dual_gradient="whole",
        )
        gradients, values = medians(f"RSPD, epsilon0 / 2^{S}", solver, problem, optimum, seeds, max_passes=None)
        totals.append(int(gradients[-1]))
        gaps.append(float(values[-1]))
    theory = fitted([S * 2**S for S in halvings], [2.0**-S for S in halvings])
    says = (
        "Theorem 2: T = O(epsilon^(2 v theta - 2) log(1/epsilon)) = O(log(1/epsilon) / epsilon), the slope with its log"
    )
    return Rate("RSPD, a run per accuracy", "DRO, theta = 1/2", seeds, theory, says, totals, gaps)


def adaptive(theta: float, n_calls: int, stage_length: int, seeds: int = 5) -> Rate:
    """ARSPD on AUC in an active ball, where theta = 1/2 holds; the gap at the end of each call but the first."""
    problem, optimum = auc_in_a_ball()
    solver = pm.ARSPD(theta=theta, stage_length=stage_length, n_calls=n_calls)
    label = f"ARSPD, theta = {theta:g}" if theta > 0.0 else "ARSPD, theta unknown"
    gradients, gaps = medians(label, solver, problem, optimum, seeds, max_passes=None)
    ends = slice(2 * solver.n_stages, None, solver.n_stages)
    slope = -1.0 / (2.0 * (1.0 - theta))
    says = f"Theorem {3 if theta else 4}: T = O(epsilon^{1.0 / slope:g}) up to logarithms (for kappa = 1; here 1/2)"
    return Rate(label, "AUC, active ball", seeds, slope, says, gradients[ends].tolist(), gaps[ends].tolist())


def medians(
    label: str, solver: Solver, problem: Problem, optimum: float, seeds: int, *, max_passes: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients and median gap at each check."""
    say(f"{label}: {seeds} seeds")
    runs = [solver.solve(problem, tol=0, max_passes=max_passes, random_state=seed).history for seed in range(seeds)]
    return runs[0]["n_gradients"], np.median([run["objective"] - optimum for run in runs], axis=0)


def say(text: str) -> None:
    print(f"{time.perf_counter() - STARTED:6.1f} s  {text}", flush=True)


def table(rates: Sequence[Rate]) -> str:
    lines = [
        f"{'method':<31}{'problem':<26}{'seeds':>5}{'gradients':>20}{'decades':>9}{'last gap':>10}"
        f"{'measured':>10}{'theory':>8}"
    ]
    for rate in rates:
        span = f"{rate.gradients[0]:,} - {rate.gradients[-1]:,}"
        lines.append(
            f"{rate.label:<31}{rate.problem:<26}{rate.seeds:>5}{span:>20}{rate.decades:>9.1f}{rate.gaps[-1]:>10.1e}"
            f"{rate.slope:>10.2f}{rate.theory:>8.2f}"
        )
    return "\n".join(lines)


def draw(rates: Sequence[Rate]) -> Figure:
    """One panel for each problem; dashed lines have the theory's slope."""
    groups: list[tuple[str, Callable[[Rate], bool]]] = [
        ("Strongly convex DRO, optimum at kinks", lambda rate: rate.problem == "DRO, kinked"),
        ("DRO with theta = 1/2, one run per accuracy", lambda rate: "theta" in rate.problem),
        ("AUC in an active ball", lambda rate: "AUC" in rate.problem),
    ]
    figure = Figure(figsize=(14.0, 4.3), layout="constrained", dpi=110)
    for axes, (title, belongs) in zip(figure.subplots(1, len(groups)), groups, strict=True):
        panel(axes, [rate for rate in rates if belongs(rate)])
        axes.set_title(title, fontsize=10)
    return figure


def panel(axes: Axes, rates: Sequence[Rate]) -> None:
    for rate, colour in zip(rates, ("#d1495b", "#edae49", "#30638e"), strict=False):
        gradients = np.array(rate.gradients, dtype=float)
        label = f"{rate.label}: {rate.slope:.2f}, theory {rate.theory:.2f}"
        axes.plot(gradients, rate.gaps, "o-", color=colour, ms=3.5, label=label)
        through = np.exp(np.mean(np.log(rate.gaps)) - rate.theory * np.mean(np.log(gradients)))
        axes.plot(gradients, through * gradients**rate.theory, "--", color=colour, lw=0.9)
    axes.set(xscale="log", yscale="log", xlabel="gradients", ylabel="median of P(x) − P*")
    axes.grid(True, which="major", alpha=0.25, lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)


def main() -> None:
    rates = [
        *restarted_and_averaged(),
        one_run_per_accuracy(),
        adaptive(0.5, n_calls=7, stage_length=250),
        adaptive(0.0, n_calls=5, stage_length=100),
    ]
    print(f"\nSlopes of log gap against log gradients\n\n{table(rates)}\n")
    for rate in rates:
        print(f"{rate.label}: {rate.says}")
    RESULTS.mkdir(exist_ok=True)
    rows = [asdict(rate) | {"slope": rate.slope} for rate in rates]
    (RESULTS / "rates.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    draw(rates).savefig(RESULTS / "rates.png")
    print(f"\n{time.perf_counter() - STARTED:.0f} s; numbers and curves are in {RESULTS}/rates.json and rates.png")


if __name__ == "__main__":
    main()
