"""Small problems of every kind, by name: what tests of the contract run over."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, get_args

import numpy as np
from scipy.sparse import csr_array

import pommel as pm
from pommel.problem import Problem, Sampling

N, D = 12, 3
WEIGHTS = np.array([2.0, 1.0, 0.5, 3.0, 0.0, 1.0, 1.0, 2.5, 1.0, 0.0, 1.0, 4.0])


def binary_data(rng: np.random.Generator, n: int = N, d: int = D) -> tuple[np.ndarray, np.ndarray]:
    """Noisy labels -1 and +1; both classes occur whatever the seed."""
    X = rng.standard_normal((n, d))
    labels = np.where(X.sum(axis=1) + rng.standard_normal(n) > 0.0, 1.0, -1.0)
    labels[:2] = -1.0, 1.0
    return X, labels


def dro(
    X: Any,
    labels: np.ndarray,
    *,
    loss: str,
    lam1: float | None,
    lam2: float,
    sample_weight: np.ndarray | None = None,
    radius: float | None = None,
) -> pm.DRO:
    """The problem `oracles.solve_dro` solves for the same arguments."""
    return pm.DRO(
        X,
        labels,
        loss={"hinge": pm.Hinge(), "logistic": pm.Logistic()}[loss],
        divergence=pm.Mean() if lam1 is None else pm.ChiSquare(lam1),
        regularizer=pm.L2(lam2) if lam2 > 0.0 else None,
        constraint=None if radius is None else pm.L2Ball(radius),
        sample_weight=sample_weight,
    )


def auc(X: Any, labels: np.ndarray, *, radius: float | None = None, on: str = "w", lam2: float = 0.0) -> pm.AUC:
    """The problem `oracles.solve_auc` solves for the same arguments."""
    constraint, regularizer = None if radius is None else pm.L2Ball(radius), pm.L2(lam2) if lam2 > 0.0 else None
    return pm.AUC(X, labels, constraint=constraint, on=on, regularizer=regularizer)


def quadratics(rng: np.random.Generator, **options: Any) -> pm.FunctionProblem:
    """Losses (x - c_i)'Q_i(x - c_i) as a user would write them."""
    centers, roots = rng.standard_normal((N, D)), rng.standard_normal((N, D, D))
    Q = roots @ roots.transpose(0, 2, 1)
    parts: dict[str, Any] = {
        "n": N,
        "d": D,
        "losses": lambda x: np.einsum("ij,ijk,ik->i", x - centers, Q, x - centers),
        "gradient": lambda x, i: 2.0 * Q[i] @ (x - centers[i]),
        "divergence": pm.ChiSquare(1.0 / N),
        "lower_bound": 0.0,
    }
    return pm.FunctionProblem(**parts | options)


def three_unit_rows(*, lam1: float = 2.0 / 3.0, lam2: float = 1.0) -> pm.DRO:
    """n = 3, d = 2, n lam1 = 2, lam2 = 1: small enough for the constants of Theorem 1."""
    X = np.array([[np.cos(angle), np.sin(angle)] for angle in (-0.4, 0.0, np.pi + 0.5)])
    return dro(X, np.array([1.0, 1.0, -1.0]), loss="hinge", lam1=lam1, lam2=lam2)


def linear(kind: type) -> Callable[..., Problem]:
    """Builds a DRO or AUC problem, its rows stored as asked for."""

    def build(rng: np.random.Generator, storage: Callable[[np.ndarray], Any] = np.asarray, **options: Any) -> Problem:
        X, labels = binary_data(rng)
        return kind(storage(X), labels, **options)

    return build


def every(name: str, build: Callable[..., Problem], **choices: dict[str, Any]) -> dict[str, Callable[..., Problem]]:
    """Every combination of choices, by the names of the choices made."""

    def fixed(options: dict[str, Any]) -> Callable[[np.random.Generator], Problem]:
        return lambda rng: build(rng, **options)

    return {
        "-".join([name, *(label for label, _ in chosen if label)]): fixed(
            {option: value for option, (_, value) in zip(choices, chosen, strict=True)}
        )
        for chosen in product(*(each.items() for each in choices.values()))
    }


DIVERGENCES = {"mean": pm.Mean(), "chi2": pm.ChiSquare(1.0 / N)}
REGULARIZERS = {"": None, "l2": pm.L2(0.1)}
WEIGHTINGS = {"": None, "weighted": WEIGHTS}
BALLS = {"": None, "ball": pm.L2Ball(2.0)}
STORAGE = {"": np.asarray, "csr": csr_array}

PROBLEMS = {
    **every(
        "DRO",
        linear(pm.DRO),
        loss={"hinge": pm.Hinge(), "logistic": pm.Logistic()},
        divergence=DIVERGENCES,
        regularizer=REGULARIZERS,
        constraint=BALLS,
        sample_weight=WEIGHTINGS,
        storage=STORAGE,
    ),
    **every("AUC-w", linear(pm.AUC), on={"": "w"}, constraint=BALLS, regularizer=REGULARIZERS, storage=STORAGE),
    **every("AUC-v", linear(pm.AUC), on={"": "v"}, constraint={"ball": pm.L2Ball(2.0)}, regularizer=REGULARIZERS),
    **every(
        "Function",
        quadratics,
        divergence=DIVERGENCES,
        regularizer=REGULARIZERS,
        primal_set=BALLS,
        sample_weight=WEIGHTINGS,
    ),
}

# AUC has one dual variable, which cannot say what row to draw.
SAMPLED_PROBLEMS: list[tuple[str, Sampling]] = [
    (name, sampling)
    for name in PROBLEMS
    for sampling in get_args(Sampling)
    if sampling == "uniform" or "AUC" not in name
]


def probabilities(problem: Problem, y: np.ndarray, sampling: Sampling) -> np.ndarray:
    """Of each row to be drawn, by the words of the contract."""
    weights = getattr(problem, "weights", np.ones(problem.n))
    uniform = weights / weights.sum()
    return {"uniform": uniform, "dual": y, "mixed": (y + uniform) / 2.0}[sampling]
