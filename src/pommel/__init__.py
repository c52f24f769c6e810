"""Pommel: convex-concave min-max learning, min_x max_y y'l(x) - phi*(y) + g(x).

A problem (`DRO`, `AUC`, `FunctionProblem`) is made of parts: a loss, a divergence, a regularizer, a set. A solver
(`RSPDsc`, `RSPD`, `ARSPD`, ...) solves it and returns a `Solution`. `pommel.problem` has all contracts on one page.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pommel import divergences, losses, problems, regularizers, sets, solvers, theory
from pommel.checks import check_problem
from pommel.drive import solve
from pommel.paths import path
from pommel.problem import Constants
from pommel.solution import History, Solution, Status

__version__ = version("pommel")

_PARTS = (
    losses.LOSSES
    | divergences.DIVERGENCES
    | regularizers.REGULARIZERS
    | sets.SETS
    | problems.PROBLEMS
    | solvers.SOLVERS
)
globals().update(_PARTS)

__all__ = ["Constants", "History", "Solution", "Status", "check_problem", "path", "solve", "theory", *_PARTS]

if TYPE_CHECKING:  # parts are found in their folders, which type checkers cannot do

    def __getattr__(name: str) -> Any: ...
