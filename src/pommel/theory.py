"""Theorems 1 to 4: from constants and a target accuracy to stage lengths, steps, radii and the price in gradients.

Each function takes the theorem's own epsilon. Theorem 1 then promises E[P(x) - P*] <= epsilon; Theorems 2 to 4
promise P(x) - P* <= 2 epsilon with probability 1 - delta, so solvers pass them half of what a user asks for. The
paper's text is corrected where its proofs show a slip: logarithms in the numbers of stages and calls are base 2 and
natural in log(1/delta); delta-tilde of Theorems 3 and 4 is delta / (S (S + 1)); the stage length of Theorem 2 holds for
every stage, which for v < 1 means the last; R_y of call k is L G R_x of call k; lengths are rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pommel._validation import check_number

__all__ = ["Plan", "Stage", "theorem_1", "theorem_2", "theorem_3", "theorem_4"]


@dataclass(frozen=True)
class Stage:
    """One stage of a plan; radii are infinite where an algorithm uses no balls."""

    call: int
    stage: int
    length: int
    primal_step: float
    dual_step: float
    primal_radius: float = math.inf
    dual_radius: float = math.inf


@dataclass(frozen=True)
class Plan:
    """The stages a theorem asks for, in order."""

    theorem: int
    promise: str
    stages: tuple[Stage, ...]

    @property
    def n_stages(self) -> int:
        """S, stages in one call."""
        return max((stage.stage for stage in self.stages), default=0)

    @property
    def n_calls(self) -> int:
        """K, calls of RSPD."""
        return max((stage.call for stage in self.stages), default=0)

    @property
    def total_gradients(self) -> int:
        return sum(stage.length for stage in self.stages)

    @property
    def first_stage(self) -> dict[str, Any]:
        """Steps and length of the first stage, as solvers take them."""
        first = self._first()
        return {"primal_step": first.primal_step, "dual_step": first.dual_step, "stage_length": first.length}

    @property
    def first_radii(self) -> dict[str, Any]:
        first = self._first()
        return {"primal_radius": first.primal_radius, "dual_radius": first.dual_radius}

    def _first(self) -> Stage:
        if not self.stages:
            raise ValueError(f"nothing is left to do: the start is within the accuracy asked for ({self.promise})")
        return self.stages[0]

    def describe(self) -> str:
        """A table of the stages, the promise and the price."""
        columns = ("call", "stage", "length", "primal_step", "dual_step", "primal_radius", "dual_radius")
        widths = (4, 5, 14, 11, 11, 13, 11)
        lines = [f"Theorem {self.theorem}: {self.promise}"]
        lines.append("  ".join(name.rjust(width) for name, width in zip(columns, widths, strict=True)))
        for stage in self.stages:
            cells = [
                f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
                for value in (getattr(stage, name) for name in columns)
            ]
            lines.append("  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)))
        lines.append(f"total: {self.total_gradients:,} gradients")
        return "\n".join(lines)


def theorem_1(*, M: float, B: float, G: float, L: float, mu: float, epsilon0: float, epsilon: float) -> Plan:
    """RSPD-sc on a mu-strongly convex P with v = 1: lengths double, steps halve, E[P(x_S) - P*] <= epsilon."""
    _check_bounds(M=M, B=B, G=G, L=L)
    check_number(mu, "mu")
    n_stages = _halvings(epsilon0, epsilon)
    first = round_up(max(405.0 * M**2, 810.0 * (L * G * B) ** 2) / (mu * epsilon0))
    primal_step, dual_step = _step(2.0 * epsilon0 / 45.0, M), _step(2.0 * epsilon0 / 45.0, B)
    stages = tuple(
        Stage(1, s, 2 ** (s - 1) * first, primal_step / 2 ** (s - 1), dual_step / 2 ** (s - 1))
        for s in range(1, n_stages + 1)
    )
    return Plan(1, f"E[P(x) - P*] <= {epsilon:.3g}", stages)


def theorem_2(
    *,
    M: float,
    B: float,
    G: float,
    L: float,
    v: float,
    c: float,
    theta: float,
    epsilon0: float,
    epsilon: float,
    delta: float,
) -> Plan:
    """RSPD under the error bound (c, theta) and a (L, v)-Holder continuous grad phi: all stages of equal length."""
    _check_bounds(M=M, B=B, G=G, L=L, c=c)
    _check_delta(delta)
    for name, exponent in (("v", v), ("theta", theta)):
        check_number(exponent, name, equal=True, at_most=1.0)
    n_stages = _halvings(epsilon0, epsilon)
    radius = c * epsilon0 / epsilon ** (1.0 - theta)
    log_term = math.log(n_stages / delta) if n_stages else 0.0
    stages = _rspd(1, n_stages, M=M, B=B, G=G, L=L, v=v, epsilon0=epsilon0, radius=radius, log_term=log_term)
    return Plan(2, _high_probability(epsilon, delta), stages)


def theorem_3(
    *,
    M: float,
    B: float,
    G: float,
    L: float,
    c: float,
    theta: float,
    epsilon0: float,
    epsilon1: float,
    epsilon: float,
    delta: float,
) -> Plan:
    """ARSPD with known theta in (0, 1), v = 1 and kappa = 1: radius grows by 2^(1-theta) a call, length by its square.

    epsilon1, in (epsilon, epsilon0 / 2], is the accuracy the first call's radius c epsilon0 / epsilon1^(1-theta) is
    right for; not knowing c means not knowing epsilon1.
    """
    if not 0.0 < theta < 1.0:
        raise ValueError(f"Theorem 3 needs 0 < theta < 1, got {theta}; Theorem 4 covers an unknown theta")
    _check_bounds(c=c)
    _check_accuracies(epsilon0, epsilon1, epsilon)
    radius = c * epsilon0 / epsilon1 ** (1.0 - theta)
    stages = _arspd(radius, theta, M, B, G, L, epsilon0, epsilon1, epsilon, delta)
    return Plan(3, _high_probability(epsilon, delta), stages)


def theorem_4(
    *,
    M: float,
    B: float,
    G: float,
    L: float,
    distance: float,
    epsilon0: float,
    epsilon1: float,
    epsilon: float,
    delta: float,
) -> Plan:
    """ARSPD with unknown theta, taken as 0, v = 1 and kappa = 1.

    `distance` is the paper's B_epsilon1: the farthest any x with P(x) - P* = epsilon1 lies from a minimiser.
    """
    _check_bounds(distance=distance)
    _check_accuracies(epsilon0, epsilon1, epsilon)
    stages = _arspd(distance * epsilon0 / epsilon1, 0.0, M, B, G, L, epsilon0, epsilon1, epsilon, delta)
    return Plan(4, _high_probability(epsilon, delta), stages)


def _rspd(
    call: int,
    n_stages: int,
    *,
    M: float,
    B: float,
    G: float,
    L: float,
    v: float,
    epsilon0: float,
    radius: float,
    log_term: float,
    length: int | None = None,
) -> tuple[Stage, ...]:
    """The stages of one call of RSPD; the length that Theorem 2 asks for unless one is given."""
    primal_step, dual_step = _step(epsilon0 / 40.0, M), _step(epsilon0 / 40.0, B)
    dual_radius = L * (G * radius) ** v
    if length is None:
        needed = 0.0
        for s in range(n_stages):  # R_{x,s} and epsilon_{s-1} of stage s + 1
            noise = max(M * radius / 2**s, B * dual_radius / 2 ** (v * s)) / (epsilon0 / 2**s)
            needed = max(needed, max(320.0, 8192.0 * log_term) * noise**2)
        length = round_up(needed)
    return tuple(
        Stage(call, s + 1, length, primal_step / 2**s, dual_step / 2**s, radius / 2**s, dual_radius / 2 ** (v * s))
        for s in range(n_stages)
    )


def _arspd(
    radius: float,
    theta: float,
    M: float,
    B: float,
    G: float,
    L: float,
    epsilon0: float,
    epsilon1: float,
    epsilon: float,
    delta: float,
) -> tuple[Stage, ...]:
    _check_bounds(M=M, B=B, G=G, L=L)
    _check_delta(delta)
    n_stages = _halvings(epsilon0, epsilon)
    n_calls = _halvings(epsilon1, epsilon) + 1
    log_term = math.log(n_stages * (n_stages + 1) / delta)
    first = max(320.0, 8192.0 * log_term) * max(M * radius, B * L * G * radius) ** 2 / epsilon0**2
    calls: list[Stage] = []
    length = round_up(first)
    for k in range(n_calls):
        calls += _rspd(
            k + 1,
            n_stages,
            M=M,
            B=B,
            G=G,
            L=L,
            v=1.0,
            epsilon0=epsilon0,
            log_term=log_term,
            radius=radius * 2.0 ** ((1.0 - theta) * k),
            length=length,
        )
        length = round_up(length * 4.0 ** (1.0 - theta))
    return tuple(calls)


def _halvings(start: float, target: float) -> int:
    """ceil(log2(start / target)), at least 0; powers of two are exact."""
    check_number(start, "the accuracy of the start, epsilon0 or epsilon1,")
    check_number(target, "epsilon")
    return max(0, math.ceil(math.log2(start / target) - 1e-12))


def round_up(length: float) -> int:
    """A whole number of steps, not below 1 and not below `length` but for its rounding error."""
    return max(1, math.ceil(length * (1.0 - 1e-12)))


def _step(numerator: float, bound: float) -> float:
    """numerator / bound^2; a gradient bounded by zero needs no step."""
    return numerator / bound**2 if bound > 0.0 else 0.0


def _check_bounds(**bounds: float) -> None:
    for name, bound in bounds.items():
        check_number(bound, name, equal=True)


def _check_delta(delta: float) -> None:
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie in (0, 1), got {delta}")


def _check_accuracies(epsilon0: float, epsilon1: float, epsilon: float) -> None:
    check_number(epsilon, "epsilon")
    if not (epsilon <= epsilon1 <= epsilon0 / 2.0 and epsilon <= epsilon0 / 4.0):
        raise ValueError(
            f"Theorems 3 and 4 need epsilon <= epsilon0 / 4 and epsilon <= epsilon1 <= epsilon0 / 2, "
            f"got epsilon={epsilon}, epsilon1={epsilon1}, epsilon0={epsilon0}"
        )


def _high_probability(epsilon: float, delta: float) -> str:
    return f"P(x) - P* <= {2.0 * epsilon:.3g} with probability at least {1.0 - delta:.3g}"
