"""P(x) and its subgradient as a user of NumPy and SciPy would write them for speed, and what a run of it recorded.

Peers minimise this, not Pommel's own code, so that neither profits from the other. With c = n lam1 and losses l,
    P(x) = min_tau  tau + c/2 + sum (l_i - tau)_+^2 / (2 c n)  + lam2/2 |x|^2,   y_i = (l_i - tau)_+ / (c n),
and the best tau is found by Newton's method from the last one, without sorting. `Mean` has y = 1/n.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp


class Enough(Exception):
    """The run has what it was started for, or no time left."""


@dataclass
class Trace:
    """The best objective seen over time, on a clock that stands still while something is recorded."""

    max_seconds: float
    goal: float = -np.inf  # an objective that ends the run
    seconds: list[float] = field(default_factory=list)
    objectives: list[float] = field(default_factory=list)
    recording: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    def now(self) -> float:
        return time.perf_counter() - self.started - self.recording

    def record(self, objective: float, seconds: float | None = None) -> None:
        seconds = self.now() if seconds is None else seconds
        if not self.objectives or objective < self.objectives[-1]:
            self.seconds.append(seconds)
            self.objectives.append(objective)
        if objective <= self.goal or seconds > self.max_seconds:
            raise Enough


class Objective:
    """P of a linear model with labels in {-1, 1}; `lam1=None` is plain risk minimisation."""

    def __init__(self, X: Any, labels: np.ndarray, loss: str, lam1: float | None, lam2: float) -> None:
        self.n, self.d = X.shape
        self.loss, self.c, self.lam2 = loss, None if lam1 is None else self.n * lam1, lam2
        if sp.issparse(X):
            self.Z = sp.csr_array(X.multiply(labels[:, None]))
            self.Z.indices, self.Z.indptr = self.Z.indices.astype(np.int32), self.Z.indptr.astype(np.int32)
            self.Zt = self._faster_transpose()
        else:
            self.Z = np.ascontiguousarray(X * labels[:, None])
            self.Zt = self.Z.T
        self.tau = 0.0

    def _faster_transpose(self) -> Any:
        """Z' as it is or with its own rows stored one after the other: which product is faster differs."""
        choices, u, seconds = (self.Z.T, sp.csr_array(self.Z.T)), np.ones(self.n), []
        for Zt in choices:
            taken = []
            for _ in range(5):
                started = time.perf_counter()
                Zt @ u
                taken.append(time.perf_counter() - started)
            seconds.append(min(taken))
        return choices[int(np.argmin(seconds))]

    def losses(self, m: np.ndarray, width: float = 0.0, slopes: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
        """Losses of margins b_i a_i'x and minus their derivatives; `width` rounds the hinge's kink."""
        if self.loss == "logistic":
            small = np.exp(-np.abs(m))
            values = np.log1p(small)
            values -= np.minimum(m, 0.0)
            return values, np.where(m > 0.0, small, 1.0) / (1.0 + small) if slopes else None
        excess = 1.0 - m
        if width == 0.0:
            return np.maximum(excess, 0.0), excess > 0.0 if slopes else None
        share = np.clip(excess / width, 0.0, 1.0)
        return share * (excess - 0.5 * width * share), share

    def risk(self, losses: np.ndarray) -> tuple[float, np.ndarray | float]:
        """phi(l) and n y."""
        if self.c is None:
            return float(losses.mean()), 1.0
        wanted, tau, climbing = self.n * self.c, self.tau, False
        while True:
            excess = np.maximum(losses - tau, 0.0)
            short = float(excess.sum()) - wanted
            if abs(short) <= 1e-14 * wanted or (climbing and short <= 0.0):
                break  # from the left the steps climb, and end at the root
            climbing = short > 0.0
            count = np.count_nonzero(excess)
            # Above all losses there is no slope: start from where the root is if no weight is zero.
            step = tau + short / count if count else float(losses.mean()) - self.c
            if step == tau:
                break
            tau = step
        self.tau = tau
        return tau + 0.5 * self.c + float(excess @ excess) / (2.0 * wanted), excess / self.c

    def value(self, x: np.ndarray) -> float:
        losses, _ = self.losses(self.Z @ x, slopes=False)
        return self.risk(losses)[0] + 0.5 * self.lam2 * float(x @ x)

    def value_and_gradient(self, x: np.ndarray, width: float = 0.0) -> tuple[float, np.ndarray]:
        losses, slopes = self.losses(self.Z @ x, width)
        risk, y = self.risk(losses)
        gradient = self.Zt @ (slopes * (y * (-1.0 / self.n)))
        gradient += self.lam2 * x
        return risk + 0.5 * self.lam2 * float(x @ x), gradient
