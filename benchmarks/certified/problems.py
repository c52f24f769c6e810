"""What is solved: the sets, and the problems on each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

import pommel as pm
from benchmarks.certified.objective import Objective
from benchmarks.engine.report import say
from benchmarks.sets import load
from pommel.datasets import make_text_like

SETS = ("a9a", "w8a", "news20", "rcv1-like (synthetic)", "covtype", "dense 20k (synthetic)", "dense 100k (synthetic)")
SHORT = {name: name.removesuffix(" (synthetic)").replace(" ", "-") for name in SETS}
SPARSE_AND_WIDE = ("w8a", "news20", "rcv1-like (synthetic)")
"""Where a third of the best peer's time to 1e-4 is asked for."""

STRENGTHS = (1.0, 0.1, 10.0)
"""n lam1; lam2 = 1/n throughout. The first is the main one, on which all peers run."""

LOSSES = {"hinge": pm.Hinge, "logistic": pm.Logistic}
ROWS, COLUMNS, FLIP = {"dense 20k (synthetic)": 20_000, "dense 100k (synthetic)": 100_000}, 50, 0.5


def gaussian(n: int, d: int = COLUMNS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal rows, labels from a linear rule plus normal noise of half its spread."""
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d) / np.sqrt(d)
    return X, np.where(X @ w + FLIP * rng.standard_normal(n) > 0.0, 1.0, -1.0)


@lru_cache(1)
def data(name: str) -> tuple[Any, np.ndarray]:
    say(f"{'making' if 'synthetic' in name else 'reading'} {name}")
    if name in ROWS:
        return gaussian(ROWS[name])
    if name.startswith("rcv1"):
        return make_text_like(random_state=0)
    X, labels = load(name)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # what scikit-learn takes
    return X, labels


@dataclass(frozen=True)
class Case:
    """A loss and an adversary on a set; `strength` is n lam1, None for no adversary."""

    set: str
    loss: str
    strength: float | None

    @property
    def name(self) -> str:
        return f"{self.set}, {self.loss}, " + ("Mean" if self.strength is None else f"n lam1 = {self.strength:g}")

    @property
    def is_main(self) -> bool:
        return self.strength == STRENGTHS[0]

    @cached_property
    def n(self) -> int:
        return data(self.set)[1].size

    @property
    def lam1(self) -> float | None:
        return None if self.strength is None else self.strength / self.n

    def problem(self, rows: slice = slice(None)) -> pm.DRO:
        X, labels = data(self.set)
        labels = labels[rows]
        n = labels.size
        divergence = pm.Mean() if self.strength is None else pm.ChiSquare(self.strength / n)
        return pm.DRO(X[rows], labels, loss=LOSSES[self.loss](), divergence=divergence, regularizer=pm.L2(1.0 / n))

    def objective(self) -> Objective:
        X, labels = data(self.set)
        return Objective(X, labels, self.loss, self.lam1, 1.0 / self.n)
