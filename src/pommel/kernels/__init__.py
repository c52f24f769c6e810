"""Compiled step rules, and the lazy states they work on, one structure a file.

A module may offer `model_state(problem)`, `primal_state(problem, rule, x)` or `dual_state(problem, rule, y)`, which
give None where its structure does not fit; the compiled engine takes the first that does.
"""

from pommel.kernels import _protocols  # noqa: F401 - declares what kernels may call
