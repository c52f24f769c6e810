"""Weights on the simplex from which rows are drawn, i ~ gamma y + (1 - gamma) y0: step and draw cost O(log n).

The same mathematics as `heap_simplex.py`, which is faster where rows are drawn uniformly; here a tree over the rows, in
the order of their indexes, knows sums as well as minima. Kernels see it as `Weights` and `DrawableWeights` of
`_protocols.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pommel._jit import kernel, state
from pommel.kernels._scaled import CHECKS, HUGE, REACH, SCALE, TINY, ZERO, far, within

__all__ = ["TreeSimplex", "tree_simplex"]

BLOCK = 16  # rows under a leaf: with 32 a step is slower, with 8 it is no faster
MIN1, MIN2, MASS1, MASS, SUM = 0, 1, 2, 3, 4  # columns of nodes
DUE = 0  # of counts: moves until the next check
EMPTY = 1e300  # the u of no row; finite, so that 0 times it is 0


@state
class TreeSimplex(NamedTuple):
    r"""Relative weights :math:`r_i = y_i / y_i^0 \ge 0` with :math:`\sum_i p_i r_i = 1`, for masses :math:`p = y^0`.

    .. math:: r_i = S (u_i - L),\qquad
              S' = c S,\quad u_i' = u_i + \delta / S',\quad
              L':\ \sum_j p_j (u_j' - L')_+ = 1 / S',\quad u \leftarrow \max(u', L').

    A move changes S, L and one u. The last step, for all rows, is that of "segment tree beats" [1]_: a node keeps the
    smallest and the second smallest u below it, the mass at the smallest, and mass and sum of p u of the others. Then
    u <- max(u, level) changes only the smallest where level is below the second smallest, and may wait there: what a
    node has yet to tell a child is that no u is below its own smallest. L' comes from the sums at the root (Michelot's
    algorithm).

    A move costs amortised O(log n): each node that the last step visits beyond the root loses a distinct value. `value`
    and `draw` cost O(log n). Sums are made anew on the way up, so no error gathers; all is computed anew, in O(n), only
    where L is far from the values.

    Attributes
    ----------
    points, masses : arrays, n rounded up to whole blocks
        u_i, as it was when its block was last visited; p_i, zero beyond n.
    nodes : array of shape (2 * leaves, 5)
        Node k has children 2 k and 2 k + 1, leaf b is node leaves + b: the smallest u, the second smallest, the mass at
        the smallest, mass and sum p u of the others.
    scalars, counts : arrays
        S, L, 1 / the smallest mass; moves until the next check.
    stack : int64 array
        Scratch.
    size : int
        n

    References
    ----------
    .. [1] Ji, Segment tree beats, China national olympiad in informatics camp, 2016.
    """

    points: Any
    masses: Any
    nodes: Any
    scalars: Any
    counts: Any
    stack: Any
    size: int

    def expect(self, i):
        """Row i is wanted soon; nothing is asked for, as rows drawn by y are not known before."""

    def value(self, i):
        """r_i, exactly 0 where it is clipped. O(log n)."""
        if self.masses[i] == 0.0:
            return 0.0
        return self.scalars[SCALE] * (max(self.points[i], floor_of(self, i // BLOCK)) - self.scalars[ZERO])

    def move(self, i, c, delta):
        """r <- projection of c r + delta e_i, 0 < c <= 1, p_i > 0; all NaN if c or delta is not finite."""
        S, L = c * self.scalars[SCALE], self.scalars[ZERO]
        reach = (1.0 + c) * self.scalars[REACH]
        if not abs(delta) <= reach:
            delta = within(delta, reach)
        block = i // BLOCK
        u = max(self.points[i], floor_of(self, block))
        if u == L and c == 1.0 and delta <= 0.0:
            return  # stays at zero, and so all others stay where they are
        set_point(self, i, u + delta / S)
        self.scalars[SCALE], self.scalars[ZERO] = S, settle(self, 1.0 / S)
        self.counts[DUE] -= 1
        if self.counts[DUE] <= 0 or S < TINY or S > HUGE:
            self.counts[DUE] = self.size // CHECKS + 1
            if far(self.scalars):
                rebuild(self)

    def draw(self, u, gamma):
        """The row i at which the cumulative sums of q = gamma y + (1 - gamma) y0 first exceed u times their total.

        Rows of probability zero are never drawn. O(log n).
        """
        nodes, leaves = self.nodes, len(self.nodes) // 2
        k, floor = 1, nodes[1, MIN1]
        target = u * odds(self, k, floor, gamma)
        while k < leaves:
            k *= 2
            left = odds(self, k, floor, gamma)
            if possible(self, k + 1, floor, gamma) and not (target < left and possible(self, k, floor, gamma)):
                target -= left
                k += 1
            floor = max(floor, nodes[k, MIN1])
        S, L = self.scalars[SCALE], self.scalars[ZERO]
        first = (k - leaves) * BLOCK
        drawn = first
        for i in range(first, first + BLOCK):
            q = self.masses[i] * (gamma * S * (max(self.points[i], floor) - L) + (1.0 - gamma))
            if q > 0.0:
                drawn = i
                if target < q:
                    break
                target -= q
        return drawn

    def store(self, r):
        """Write all r_i into an array. O(n)."""
        S, L = self.scalars[SCALE], self.scalars[ZERO]
        for block in range(len(self.points) // BLOCK):
            floor = floor_of(self, block)
            for i in range(block * BLOCK, min((block + 1) * BLOCK, self.size)):
                r[i] = S * (max(self.points[i], floor) - L) if self.masses[i] > 0.0 else 0.0


def tree_simplex(r, masses):
    """Relative weights r >= 0 with sum masses * r = 1, sum masses = 1, as a `TreeSimplex`. O(n)."""
    n = len(masses)
    leaves = 1
    while leaves * BLOCK < n:
        leaves *= 2
    blocks = -(-n // BLOCK)
    points, padded = np.zeros((2, blocks * BLOCK))
    points[:n], padded[:n] = r, masses
    points[padded == 0.0] = 0.0
    nodes = np.zeros((2 * leaves, 5))
    nodes[:, :2] = EMPTY
    nodes[leaves : leaves + blocks, MIN1] = -EMPTY  # below all u
    scalars = np.array([1.0, 0.0, 1.0 / padded[padded > 0.0].min()])
    stack = np.zeros(4 * leaves.bit_length() + 4, dtype=np.int64)
    weights = TreeSimplex(points, padded, nodes, scalars, np.array([n // CHECKS + 1]), stack, n)
    nodes[1:leaves, MIN1] = -EMPTY
    rebuild(weights)
    return weights


@kernel
def floor_of(self, block):
    """The largest smallest u that a block's leaf or a node above it knows of."""
    k = len(self.nodes) // 2 + block
    floor = self.nodes[k, MIN1]
    while k > 1:
        k >>= 1
        floor = max(floor, self.nodes[k, MIN1])
    return floor


@kernel
def set_point(self, i, u):
    """Set u_i: down to its block, telling children what they have to know, and up again with new sums."""
    leaf = len(self.nodes) // 2 + i // BLOCK
    depth = 0
    while leaf >> depth > 1:
        depth += 1
    for height in range(depth, 0, -1):
        push(self.nodes, leaf >> height)
    apply_floor(self, leaf, self.nodes[leaf, MIN1])
    self.points[i] = u
    sum_block(self, leaf)
    for height in range(1, depth + 1):
        pull(self.nodes, leaf >> height)


@kernel
def push(nodes, k):
    """Tell the children of node k that no u is below its smallest."""
    for child in range(2 * k, 2 * k + 2):
        if nodes[child, MIN1] < nodes[k, MIN1]:
            nodes[child, MIN1] = nodes[k, MIN1]


@kernel
def pull(nodes, k):
    """Sum node k up from its children, which know all."""
    a, b = 2 * k, 2 * k + 1
    if nodes[b, MIN1] < nodes[a, MIN1]:
        a, b = b, a
    nodes[k, MIN1], nodes[k, MASS1] = nodes[a, MIN1], nodes[a, MASS1]
    nodes[k, MASS], nodes[k, SUM] = nodes[a, MASS] + nodes[b, MASS], nodes[a, SUM] + nodes[b, SUM]
    if nodes[a, MIN1] == nodes[b, MIN1]:
        nodes[k, MASS1] += nodes[b, MASS1]
        nodes[k, MIN2] = min(nodes[a, MIN2], nodes[b, MIN2])
    else:
        nodes[k, MASS] += nodes[b, MASS1]
        nodes[k, SUM] += nodes[b, MASS1] * nodes[b, MIN1]
        nodes[k, MIN2] = min(nodes[a, MIN2], nodes[b, MIN1])


@kernel
def apply_floor(self, leaf, floor):
    """u <- max(u, floor) in a block."""
    first = (leaf - len(self.nodes) // 2) * BLOCK
    for i in range(first, first + BLOCK):
        if self.points[i] < floor:
            self.points[i] = floor


@kernel
def sum_block(self, leaf):
    """Sum a leaf up from its rows, which know all."""
    first = (leaf - len(self.nodes) // 2) * BLOCK
    min1, min2, mass1, mass, total = EMPTY, EMPTY, 0.0, 0.0, 0.0
    for i in range(first, first + BLOCK):
        p, u = self.masses[i], self.points[i]
        if p == 0.0:
            continue
        if u == min1:
            mass1 += p
        elif u < min1:
            mass += mass1
            total += mass1 * min1
            min1, min2, mass1 = u, min1, p
        else:
            mass += p
            total += p * u
            min2 = min(min2, u)
    nodes = self.nodes
    nodes[leaf, MIN1], nodes[leaf, MIN2], nodes[leaf, MASS1] = min1, min2, mass1
    nodes[leaf, MASS], nodes[leaf, SUM] = mass, total


@kernel
def settle(self, total):
    """The L with sum p (u - L)_+ = total, once u <- max(u, L) is made everywhere."""
    root = self.nodes[1]
    level = (root[MASS1] * root[MIN1] + root[SUM] - total) / (root[MASS1] + root[MASS])
    if not root[MIN1] <= level:
        return level
    while root[MASS] > 0.0:  # those at the smallest have left the sum
        level = (root[SUM] - total) / root[MASS]
        if not root[MIN2] <= level:
            root[MIN1] = level
            return level
        raise_all(self, level)
    return root[MIN1] - total / root[MASS1]  # rounding made all leave: they stay


@kernel
def raise_all(self, level):
    """u <- max(u, level) for all rows. Visits a node's children only where the node loses a distinct u."""
    nodes, stack, leaves = self.nodes, self.stack, len(self.nodes) // 2
    stack[0], size = 1, 1
    while size > 0:
        size -= 1
        k = stack[size]
        if k < 0:
            pull(nodes, -k)
        elif not nodes[k, MIN1] < level:
            continue
        elif level < nodes[k, MIN2]:
            nodes[k, MIN1] = level
        elif k >= leaves:
            apply_floor(self, k, level)
            sum_block(self, k)
        else:
            push(nodes, k)
            stack[size], stack[size + 1], stack[size + 2] = -k, 2 * k, 2 * k + 1
            size += 3


@kernel
def odds(self, k, floor, gamma):
    """The probability of what is below node k, where no u is below `floor`."""
    S, L = self.scalars[SCALE], self.scalars[ZERO]
    mass1, mass = self.nodes[k, MASS1], self.nodes[k, MASS]
    r = mass1 * (max(self.nodes[k, MIN1], floor) - L) + (self.nodes[k, SUM] - L * mass)
    return gamma * S * r + (1.0 - gamma) * (mass1 + mass)


@kernel
def possible(self, k, floor, gamma):
    """Whether any row below node k has a positive probability, which rounding might hide in `odds`."""
    mass1, mass = self.nodes[k, MASS1], self.nodes[k, MASS]
    if gamma < 1.0:
        return mass1 + mass > 0.0
    return mass > 0.0 or (mass1 > 0.0 and max(self.nodes[k, MIN1], floor) > self.scalars[ZERO])


@kernel
def rebuild(self):
    """L becomes 0, S is what makes the sum one, all nodes are made anew. O(n)."""
    S, L, nodes, leaves = self.scalars[SCALE], self.scalars[ZERO], self.nodes, len(self.nodes) // 2
    for k in range(1, leaves):
        push(nodes, k)
    for block in range(len(self.points) // BLOCK):
        apply_floor(self, leaves + block, nodes[leaves + block, MIN1])
        for i in range(block * BLOCK, (block + 1) * BLOCK):
            self.points[i] = S * (self.points[i] - L)
        sum_block(self, leaves + block)
    for k in range(leaves - 1, 0, -1):
        pull(nodes, k)
    total = nodes[1, MASS1] * nodes[1, MIN1] + nodes[1, SUM]
    self.scalars[SCALE], self.scalars[ZERO] = 1.0 / total, 0.0
