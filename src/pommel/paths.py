"""One problem after another along a range of robustness or regularisation, each from the answers before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pommel._validation import check_number
from pommel.drive import solve
from pommel.problem import Regularizer, Vector
from pommel.problems.dro import DRO
from pommel.solution import Solution, Status

__all__ = ["path"]


def path(
    problem: DRO,
    *,
    robustness: Sequence[float] | None = None,
    regularizers: Sequence[Regularizer] | None = None,
    **options: Any,
) -> list[Solution]:
    """Solve a problem for many strengths of its divergence, or with many regularizers, each certified.

    Each solve starts where the two before it point to. Neighbours on the path should thus be neighbours in strength.

    Parameters
    ----------
    problem : DRO
    robustness : sequence of float, optional
        Values r >= 0 from no adversary to a strong one: lam = 1 / (r n) for `ChiSquare`, and `Mean` at r = 0.
    regularizers : sequence of Regularizer, optional
        In place of the problem's own. One of both is given.
    **options
        As for `pommel.solve`, for each of the solves: `tol`, `max_seconds`, `verbose`, ...

    Returns
    -------
    list of Solution
        One for each value, up to the one that Ctrl-C or the callback has stopped.

    Examples
    --------
    >>> import pommel as pm
    >>> p = pm.DRO([[1.0], [0.5], [-1.0]], [1, 1, 0], divergence=pm.ChiSquare(0.5), regularizer=pm.L2(0.5))
    >>> [round(sol.objective, 3) for sol in pm.path(p, robustness=[0.0, 1.0, 10.0])]
    [0.417, 0.444, 0.65]
    """
    if not isinstance(problem, DRO):
        raise TypeError(f"path takes a DRO problem, got {type(problem).__name__}")
    if (robustness is None) == (regularizers is None):
        raise ValueError("give either robustness or regularizers")
    if "x0" in options:
        raise TypeError("path has starts of its own: it takes no x0")
    if regularizers is not None:
        problems = [problem.like(regularizer=each) for each in regularizers]
    else:
        total = float(problem.weights.sum())
        values = [
            check_number(each, "robustness", equal=True) for each in np.atleast_1d(np.asarray(robustness, dtype=float))
        ]
        problems = [problem.like(divergence=problem.divergence.of_robustness(each, total)) for each in values]
    found: list[Solution] = []
    for each in problems:
        found.append(solve(each, x0=_ahead(found), **options))
        if found[-1].status in (Status.INTERRUPTED, Status.STOPPED):
            break
    return found


def _ahead(found: list[Solution]) -> Vector | None:
    """Where the last two solutions point to."""
    if len(found) < 2:
        return found[0].x if found else None
    return np.asarray(2.0 * found[-1].x - found[-2].x)
