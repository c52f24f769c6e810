"""Weights on the simplex under uniform sampling: a step costs O(1), whatever n is, and O(log n) where rows reach zero.

The set of the dual variable, `sets/simplex.py`, projects all of y after every step; here the same projection moves one
row and two numbers. Kernels see it as `Weights`, see `_protocols.py`. `tree_simplex.py` is the one that can draw i ~ y.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pommel._jit import kernel, prefetch, state
from pommel.kernels._scaled import CHECKS, HUGE, REACH, SCALE, TINY, ZERO, far, within

__all__ = ["HeapSimplex", "heap_simplex"]

STAMP, RECORD = 0, 1  # columns of stamps
LEVEL, MASS, TAIL = 0, 1, 2  # of records: a mass is the sum of two numbers
TIME, COUNT, ORDER = 0, 1, 2  # of tallies
NEAR, REST, TOTAL, TOTAL_TAIL = 3, 4, 5, 6  # entries of scalars, after S, L and 1 / the smallest mass
SIZE, TOP, DUE, ROUNDS = 0, 1, 2, 3  # of counts

CLIPPED = -math.inf  # in place of the u of a row that a record stands for
PROBES, TAKEN = 256, 16  # a sixteenth of all rows goes into the heap: gathering costs as much as it saves


@state
class HeapSimplex(NamedTuple):
    r"""Relative weights :math:`r_i = y_i / y_i^0 \ge 0` with :math:`\sum_i p_i r_i = 1`, for masses :math:`p = y^0`.

    .. math:: r_i = S (u_i - L),\qquad
              S' = c S,\quad u_i' = u_i + \delta / S',\quad
              L':\ \sum_j p_j (u_j' - L')_+ = 1 / S',\quad u \leftarrow \max(u', L').

    A move changes S, L and one u. L' is found by Michelot's algorithm: with everything in the sum it is
    L + (c - 1 + p_i delta) / S', then the rows it has reached leave the sum, which raises it, until it reaches no more.
    Two structures tell which rows it reaches:

    *Individuals*, rows not clipped since they were last moved. Those with u below a mark are in a heap, ordered by a
    lower bound of u that is corrected when it surfaces. When L' comes to the mark, a sixteenth of all rows, those next
    above, is gathered in one scan. So rows that are far, that rise, or that fall and stay above their bound cost no
    work here, nor does one that its own move clips, which leaves a dead slot.

    *Clipped rows* are not stored one by one: those untouched since time t have u = the largest L since t. So a monotone
    stack of records (level, mass, time, count), levels falling and times rising from bottom to top, says it all: a new
    level swallows the records it reaches, and the record of a row is the first with a time not before the row's. The
    rows at zero are the top record while its level is L, and rise with it when L falls.

    A move costs O(1) where L' reaches nothing but the top record, else amortised O(log n): every removal is paid for by
    a move that raised or inserted a row, and every scan by n / 16 removals. What rounding takes from L and from the
    masses of records is kept beside them, so that sum p r = 1 holds although no move looks at all rows. Every n moves,
    and earlier, but not within n / 16 moves, where L is far from the values, all is computed anew.

    Attributes
    ----------
    points, masses : arrays of shape (n,)
        u_i, or `CLIPPED`; p_i.
    slots : int32 array of shape (n,)
        The row's place in the heap, or -1.
    stamps : int32 array of shape (n, 2)
        The time when the row was clipped and its record then: in most cases that still is its record. Rows of mass 0
        have time 0.
    keys, rows : arrays of shape (n,), the second int32
        The heap, four children to a node. An empty one has the mark as its smallest key.
    records : array of shape (n + n / 4 + 4, 3)
        Level, and mass as the sum of two numbers. Record 0 is a sentinel: its level is NaN, which nothing reaches.
    tallies : int32 array, one row for each of `records`
        Time and count; the third column is scratch.
    scalars : array
        S, L, 1 / the smallest mass, the mark, sum p (u - L) less 1 / S, sum p in two numbers.
    counts : int64 array
        Heap size, last record, moves until a check, checks until a rebuild.
    """

    points: Any
    masses: Any
    slots: Any
    stamps: Any
    keys: Any
    rows: Any
    records: Any
    tallies: Any
    scalars: Any
    counts: Any

    def expect(self, i):
        """Row i is wanted soon."""
        prefetch(self.points, np.intp(i))
        prefetch(self.masses, np.intp(i))
        prefetch(self.stamps, 2 * np.intp(i))

    def value(self, i):
        """r_i, exactly 0 where it is clipped. O(1), or O(log n) for a clipped row that is not in the top record."""
        u = self.points[i]
        if u == CLIPPED:
            if self.stamps[i, STAMP] == 0:  # mass 0
                return 0.0
            u = self.records[record_of(self, i), LEVEL]
        return self.scalars[SCALE] * (u - self.scalars[ZERO])

    def move(self, i, c, delta):
        """r <- projection of c r + delta e_i, 0 < c <= 1, p_i > 0; all NaN if c or delta is not finite."""
        S, L = c * self.scalars[SCALE], self.scalars[ZERO]
        p, u = self.masses[i], self.points[i]
        reach = (1.0 + c) * self.scalars[REACH]
        if not abs(delta) <= reach:
            delta = within(delta, reach)
        if u == CLIPPED:
            k = record_of(self, i)
            u = self.records[k, LEVEL]
            if u == L and c == 1.0 and delta <= 0.0:
                return  # stays at zero, and so all others stay where they are
            detach(self, i, k)
        unit = 1.0 / S  # known early: the next step waits for delta, not for a division
        old, u = u, u + unit * delta
        excess = self.scalars[REST] + (unit * (c - 1.0) + p * (u - old))  # of sum p (u - L) over 1 / S
        level = L + excess
        self.scalars[SCALE] = S
        if u > level:
            self.points[i] = u
            if u < self.scalars[NEAR]:
                lower(self, i, u)
            if self.keys[0] <= level or self.records[self.counts[TOP], LEVEL] <= level:
                settle(self, excess, 0, 0.0)
            else:
                self.scalars[ZERO], self.scalars[REST] = level, excess - (level - L)
        else:
            top = self.counts[TOP]
            self.points[i] = CLIPPED
            self.stamps[i, STAMP], self.stamps[i, RECORD] = self.tallies[top, TIME] + 1, top + 1
            settle(self, excess - p * (u - L), 1, p)
        self.counts[DUE] -= 1
        if self.counts[DUE] <= 0 or S < TINY or S > HUGE:
            check(self)

    def store(self, r):
        """Write all r_i into an array. O(n), times the logarithm of the number of records."""
        for i in range(self.masses.size):
            r[i] = self.value(i)


def heap_simplex(r, masses):
    """Relative weights r >= 0 with sum masses * r = 1, sum masses = 1, as a `HeapSimplex`. O(n)."""
    r, masses = np.asarray(r, dtype=float), np.ascontiguousarray(masses, dtype=float)
    n = masses.size
    live, zero = (masses > 0.0) & (r > 0.0), (masses > 0.0) & ~(r > 0.0)
    records, tallies = np.zeros((n + n // 4 + 4, 3)), np.zeros((n + n // 4 + 4, 3), dtype=np.int32)
    records[0, LEVEL] = np.nan
    tallies[1] = 1, zero.sum(), 0
    weights = HeapSimplex(
        points=np.where(live, r, CLIPPED),
        masses=masses,
        slots=np.full(n, -1, dtype=np.int32),
        stamps=np.column_stack([zero, zero]).astype(np.int32),
        keys=np.zeros(n),
        rows=np.zeros(n, dtype=np.int32),
        records=records,
        tallies=tallies,
        scalars=np.array([1.0, 0.0, 1.0 / masses[masses > 0.0].min(), 0.0, 0.0, 0.0, 0.0]),
        counts=np.array([0, int(zero.any()), n // CHECKS + 1, CHECKS]),
    )
    rebuild(weights)
    return weights


@kernel
def record_of(self, i):
    """The record of a clipped row: the first with a time not before the row's."""
    time, last, tallies = self.stamps[i, STAMP], self.counts[TOP], self.tallies
    if last == 0 or tallies[last - 1, TIME] < time:
        return last
    last = min(last, self.stamps[i, RECORD])  # records of its time can only have sunk
    if tallies[last - 1, TIME] < time:
        return last
    first, last = 0, last - 1
    while first < last:
        middle = (first + last) >> 1
        if tallies[middle, TIME] < time:
            first = middle + 1
        else:
            last = middle
    return last


@kernel
def detach(self, i, k):
    """Take row i out of record k. Empty records on top go, others wait for a rebuild."""
    self.records[k, MASS], self.records[k, TAIL] = plus(self.records[k, MASS], self.records[k, TAIL], -self.masses[i])
    self.tallies[k, COUNT] -= 1
    if self.tallies[k, COUNT] == 0:
        self.records[k, MASS] = self.records[k, TAIL] = 0.0
        top = self.counts[TOP]
        while top > 0 and self.tallies[top, COUNT] == 0:
            top -= 1
        self.counts[TOP] = top


@kernel
def settle(self, excess, count, mass):
    """Let all leave the sum whom the level reaches; one record, on top, now stands for them. The level becomes L.

    `count` rows of `mass` in all have left already; `excess` is the sum over the others of p (u - L), less 1 / S.
    """
    L, top = self.scalars[ZERO], self.counts[TOP]
    record, time = top + 1, self.tallies[top, TIME] + 1
    tail = 0.0
    stay = staying(self.scalars, mass, tail)
    level = L + excess / stay
    while True:
        if self.records[top, LEVEL] <= level:
            excess -= self.records[top, MASS] * (self.records[top, LEVEL] - L)
            mass, tail = plus(mass, tail + self.records[top, TAIL], self.records[top, MASS])
            count += self.tallies[top, COUNT]
            top -= 1
        elif self.keys[0] <= level and self.scalars[NEAR] < math.inf and self.counts[SIZE] == 0:
            gather(self, level)
            continue
        elif self.keys[0] <= level and self.counts[SIZE] > 0:
            j = self.rows[0]
            u = self.points[j]
            if u > level and u < self.scalars[NEAR]:
                sink(self, 0, u, j)
                continue
            drop_root(self)
            if u > level or u == CLIPPED:
                continue
            self.points[j], self.stamps[j, STAMP], self.stamps[j, RECORD] = CLIPPED, time, record
            excess -= self.masses[j] * (u - L)
            mass, tail = plus(mass, tail, self.masses[j])
            count += 1
        else:
            break
        stay = staying(self.scalars, mass, tail)
        level = L + excess / stay
    if count > 0:
        top += 1
        self.records[top, LEVEL], self.records[top, MASS], self.records[top, TAIL] = level, mass, tail
        self.tallies[top, TIME], self.tallies[top, COUNT] = time, count
    self.counts[TOP] = top
    self.scalars[ZERO], self.scalars[REST] = level, excess - stay * (level - L)
    if top + 1 == len(self.records):
        self.counts[DUE], self.counts[ROUNDS] = 0, 0  # a rebuild drops empty records, a fifth of them at least


@kernel
def plus(mass, tail, more):
    """A mass and more, with what rounding takes away kept in the tail: where few rows hold all the weight it counts."""
    total = mass + more
    added = total - mass
    return total, tail + ((mass - (total - added)) + (more - added))


@kernel
def staying(scalars, mass, tail):
    """The mass of those in the sum when so much has left it. Somebody always stays, whatever rounding makes of it."""
    return max((scalars[TOTAL] - mass) + (scalars[TOTAL_TAIL] - tail), 1.0 / scalars[REACH])


@kernel
def gather(self, level):
    """Fill the empty heap with the rows below a new mark: about TAKEN / PROBES of all rows. O(n)."""
    n, keys = self.masses.size, self.keys
    mark, found = math.inf, 0
    if n > PROBES:  # the mark is the largest of the TAKEN smallest u in a sample
        step = int(0.6180339887 * n)  # golden section: no pattern in the order of rows keeps in step with it
        for probe in range(PROBES):
            u = self.points[probe * step % n]
            if u > level:
                found += 1
                slot = min(found, TAKEN) - 1
                if found > TAKEN and not u < keys[slot]:
                    continue
                while slot > 0 and u < keys[slot - 1]:
                    keys[slot] = keys[slot - 1]
                    slot -= 1
                keys[slot] = u
        if found > 2 * TAKEN:
            mark = keys[TAKEN - 1]
    size = 0
    for i in range(n):
        if CLIPPED < self.points[i] < mark:
            keys[size], self.rows[size], self.slots[i] = self.points[i], i, size
            size += 1
    self.counts[SIZE], self.scalars[NEAR] = size, mark
    for slot in range((size + 2) // 4 - 1, -1, -1):
        sink(self, slot, keys[slot], self.rows[slot])
    if size == 0:
        keys[0] = mark


@kernel
def lower(self, i, u):
    """See that row i has a key in the heap that is not above u."""
    slot = self.slots[i]
    if slot < 0:
        slot = self.counts[SIZE]
        self.counts[SIZE] += 1
    elif not u < self.keys[slot]:
        return
    while slot > 0:
        parent = (slot - 1) >> 2
        if not u < self.keys[parent]:
            break
        fill(self, slot, self.keys[parent], self.rows[parent])
        slot = parent
    fill(self, slot, u, i)


@kernel
def drop_root(self):
    """Take the smallest key out of the heap."""
    last = self.counts[SIZE] - 1
    self.slots[self.rows[0]], self.counts[SIZE] = -1, last
    if last > 0:
        sink(self, 0, self.keys[last], self.rows[last])
    else:
        self.keys[0] = self.scalars[NEAR]


@kernel
def sink(self, slot, key, row):
    """Put a key into the heap where a slot is free, or below."""
    size = self.counts[SIZE]
    while True:
        first = 4 * slot + 1
        if first >= size:
            break
        least = first
        for child in range(first + 1, min(first + 4, size)):
            if self.keys[child] < self.keys[least]:
                least = child
        if not self.keys[least] < key:
            break
        fill(self, slot, self.keys[least], self.rows[least])
        slot = least
    fill(self, slot, key, row)


@kernel
def fill(self, slot, key, row):
    """Write a heap slot, and tell its row."""
    self.keys[slot], self.rows[slot], self.slots[row] = key, row, slot


@kernel
def check(self):
    """Rebuild when the last one is n moves ago, or when S or L would cost digits; asked every n / 16 moves."""
    self.counts[DUE] = self.masses.size // CHECKS + 1
    self.counts[ROUNDS] -= 1
    if self.counts[ROUNDS] <= 0 or far(self.scalars):
        self.counts[ROUNDS] = CHECKS
        rebuild(self)


@kernel
def rebuild(self):
    """L becomes 0, records and their masses are computed anew, S is what makes the sum one; the heap is emptied. O(n).

    Times become the indexes of records.
    """
    S, L, top = self.scalars[SCALE], self.scalars[ZERO], self.counts[TOP]
    kept = 0
    for k in range(1, top + 1):
        kept += self.tallies[k, COUNT] > 0
        self.tallies[k, ORDER], self.records[k, MASS], self.records[k, TAIL] = kept, 0.0, 0.0
    total, rest, mass, tail = 0.0, 0.0, 0.0, 0.0
    for i in range(self.masses.size):
        p = self.masses[i]
        mass, tail = plus(mass, tail, p)
        self.slots[i] = -1
        if self.points[i] != CLIPPED:
            self.points[i] = S * (self.points[i] - L)
            total, rest = plus(total, rest, p * self.points[i])
        elif self.stamps[i, STAMP] > 0:
            k = record_of(self, i)
            self.records[k, MASS], self.records[k, TAIL] = plus(self.records[k, MASS], self.records[k, TAIL], p)
            self.stamps[i, STAMP] = self.stamps[i, RECORD] = self.tallies[k, ORDER]
    for k in range(1, top + 1):
        if self.tallies[k, COUNT] > 0:
            to, level = self.tallies[k, ORDER], S * (self.records[k, LEVEL] - L)
            total, rest = plus(total, rest, self.records[k, MASS] * level)
            self.records[to, LEVEL] = level
            self.records[to, MASS], self.records[to, TAIL] = self.records[k, MASS], self.records[k, TAIL]
            self.tallies[to, TIME], self.tallies[to, COUNT] = to, self.tallies[k, COUNT]
    self.counts[SIZE], self.counts[TOP], self.keys[0] = 0, kept, 0.0
    self.scalars[SCALE], self.scalars[ZERO], self.scalars[NEAR], self.scalars[REST] = (
        1.0 / (total + rest),
        0.0,
        0.0,
        0.0,
    )
    self.scalars[TOTAL], self.scalars[TOTAL_TAIL] = mass, tail
