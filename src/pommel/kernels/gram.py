"""Weighted sums of outer products of sparse rows, for `pommel.rows.Rows.gram`: raw arrays in, as that imports this."""

from __future__ import annotations

from pommel._jit import kernel


@kernel
def add_outer_products(data, indices, indptr, scale, weights, shifted, shift, slots, values, columns, total):
    """total + total' += sum_i weights[i] (a_i - m)(a_i - m)', m[shifted] = shift and 0 elsewhere.

    a_i has the entries scale[j] * data[k], j = indices[k], in any order and in parts. `total` is changed in place.
    `slots[j]` is where column j stands in `shifted`, -1 where it does not; `values` and `columns` are room for the
    longest row and the shifted columns. A row costs half the square of its entries, one of weight 0 nothing.
    """
    for t in range(shifted.size):
        columns[t] = shifted[t]
    for i in range(weights.size):
        weight = weights[i]
        if weight == 0.0:
            continue
        size = shifted.size
        for t in range(size):
            values[t] = -shift[t]
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            value, slot = scale[j] * data[entry], slots[j]
            if slot >= 0:
                values[slot] += value
            else:
                values[size], columns[size] = value, j
                size += 1
        for k in range(size):
            scaled, line = weight * values[k], total[columns[k]]
            for m in range(k):
                line[columns[m]] += scaled * values[m]
            line[columns[k]] += 0.5 * scaled * values[k]
