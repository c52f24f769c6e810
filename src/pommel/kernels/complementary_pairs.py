"""Newton steps of an interior-point method, row by row: a row's own unknowns are eliminated and put back.

Row i, of share y0_i, has K pairs of a weight b_k > 0 and a slack w_k > 0, fixed slopes s_k, and a level v. With its
margin m and a threshold tau that all rows share,

    w_k = v - s_k m - const,        sum_k b_k = 1 + kappa (v - tau).

Newton's step towards products b_k w_k = target + extra_k, for given dm and dtau, is then

    dv = (S1 dm + kappa dtau - (1 + kappa (v - tau)) + sum_k c_k) / (S0 + kappa),       dw_k = dv - s_k dm,
    db_k = c_k - b_k - t_k dw_k,   t_k = b_k / w_k, S0 = sum t_k, S1 = sum t_k s_k, c_k = (target + extra_k) / w_k.

Rows of share 0 are left alone, and say nothing of a_i.
"""

from __future__ import annotations

from pommel._jit import inlined, kernel


@inlined
def stiffness(i, weights, slacks, slopes):
    """S0 and S1."""
    s0 = s1 = 0.0
    for k in range(slopes.shape[1]):
        t = weights[i, k] / slacks[i, k]
        s0 += t
        s1 += t * slopes[i, k]
    return s0, s1


@inlined
def rise(i, weights, slacks, slopes, levels, tau, kappa, dm, dtau, target, extra):
    """The dv of a row, and S1 / (S0 + kappa), 1 / (S0 + kappa)."""
    s0 = s1 = c0 = 0.0
    for k in range(slopes.shape[1]):
        inverse = 1.0 / slacks[i, k]
        t = weights[i, k] * inverse
        s0 += t
        s1 += t * slopes[i, k]
        c0 += (target + extra[i, k]) * inverse
    free = 1.0 / (s0 + kappa)
    return (s1 * dm[i] + kappa * dtau - (1.0 + kappa * (levels[i] - tau)) + c0) * free, s1 * free, free


@kernel
def eliminate(weights, slacks, slopes, levels, shares, tau, kappa, masses, tilts, curvatures, sums):
    """What rows say of the unknowns they share: factors of a_i a_i', and, in three columns, of a_i.

    The columns are of the gradient of the risk, of tau's border and of the right-hand side for products 0. `masses`
    and `tilts` are the dual point: y up to a factor, and the mean slopes. Returns the factor of dtau, tau's right-hand
    side, the sum of all products and that of the masses.
    """
    own = rest = products = total = 0.0
    for i in range(shares.size):
        share = shares[i]
        if share == 0.0:
            masses[i] = tilts[i] = curvatures[i] = sums[i, 0] = sums[i, 1] = sums[i, 2] = 0.0
            continue
        s0, s1 = stiffness(i, weights, slacks, slopes)
        mean, spread, mass, force = s1 / s0, 0.0, 0.0, 0.0
        least = most = slopes[i, 0]
        for k in range(slopes.shape[1]):
            b, w, s = weights[i, k], slacks[i, k], slopes[i, k]
            spread += b / w * (s - mean) ** 2
            mass += b
            force += b * s
            products += share * b * w
            least, most = min(least, s), max(most, s)
        tilts[i] = min(max(force / mass, least), most)  # within the domain of h*, rounded or not
        masses[i] = share * mass if kappa > 0.0 else share
        total += masses[i]
        free, above = kappa / (s0 + kappa), levels[i] - tau
        curvatures[i] = share * (spread + free * s0 * mean * mean)
        sums[i, 0] = masses[i] * tilts[i]
        sums[i, 1] = share * free * s1
        sums[i, 2] = -share * s1 * (1.0 + kappa * above) / (s0 + kappa)
        own += share * free * s0
        rest += share * (kappa * above - free * (1.0 + kappa * above))
    return own, rest, products, total


@kernel
def predict(weights, slacks, slopes, levels, shares, tau, kappa, dm, dtau, extra, bends, centring):
    """The step towards products 0: what it leaves of them, -db_k dw_k, as `extra`, and what that and 1 say of a_i.

    Returns 1 / (the longest step), the sum of all `extra`, and what they and 1 say of tau.
    """
    steepest = products = bend = center = 0.0
    for i in range(shares.size):
        share = shares[i]
        if share == 0.0:
            bends[i] = centring[i] = 0.0
            continue
        s0, s1 = stiffness(i, weights, slacks, slopes)
        free = 1.0 / (s0 + kappa)
        dv = (s1 * dm[i] + kappa * dtau - (1.0 + kappa * (levels[i] - tau))) * free
        c0 = c1 = e0 = e1 = 0.0
        for k in range(slopes.shape[1]):
            inverse, away = 1.0 / slacks[i, k], slopes[i, k] - s1 * free
            t = (dv - slopes[i, k] * dm[i]) * inverse
            steepest = max(steepest, -t, 1.0 + t)
            c = weights[i, k] * t * (1.0 + t)
            extra[i, k] = c * slacks[i, k]
            products += share * extra[i, k]
            c0 += c
            c1 += c * away
            e0 += inverse
            e1 += inverse * away
        bends[i], centring[i] = -share * c1, -share * e1
        bend += share * kappa * c0 * free
        center += share * kappa * e0 * free
    return steepest, products, bend, center


@kernel
def steepness(weights, slacks, slopes, levels, shares, tau, kappa, dm, dtau, target, extra):
    """1 / (the longest step)."""
    steepest = 0.0
    for i in range(shares.size):
        if shares[i] > 0.0:
            dv, _, _ = rise(i, weights, slacks, slopes, levels, tau, kappa, dm, dtau, target, extra)
            for k in range(slopes.shape[1]):
                b, w = weights[i, k], slacks[i, k]
                t = (dv - slopes[i, k] * dm[i]) / w
                steepest = max(steepest, -t, 1.0 + t - (target + extra[i, k]) / (b * w))
    return steepest


@kernel
def recenter(
    weights, slacks, slopes, levels, shares, tau, kappa, dm, dtau, target, extra, length, low, high, turned, pulls
):
    """Ask of products that a step so long would leave outside [low, high] to come back: `turned` in place of `extra`.

    `pulls` is what products target + turned_k say of a_i; returns what they say of tau.
    """
    rest = 0.0
    for i in range(shares.size):
        share = shares[i]
        if share == 0.0:
            pulls[i] = 0.0
            continue
        dv, mean, free = rise(i, weights, slacks, slopes, levels, tau, kappa, dm, dtau, target, extra)
        c0 = c1 = 0.0
        for k in range(slopes.shape[1]):
            b, w = weights[i, k], slacks[i, k]
            dw = dv - slopes[i, k] * dm[i]
            db = (target + extra[i, k] - b * dw) / w - b
            reached = (b + length * db) * (w + length * dw)
            turned[i, k] = extra[i, k] + max(min(max(reached, low), high) - reached, -high)
            c = (target + turned[i, k]) / w
            c0 += c
            c1 += c * (slopes[i, k] - mean)
        pulls[i] = -share * c1
        rest += share * kappa * c0 * free
    return rest


@kernel
def move(weights, slacks, slopes, levels, shares, tau, kappa, dm, dtau, target, extra, length):
    """Make a step so long, in place."""
    for i in range(shares.size):
        if shares[i] > 0.0:
            dv, _, _ = rise(i, weights, slacks, slopes, levels, tau, kappa, dm, dtau, target, extra)
            levels[i] += length * dv
            for k in range(slopes.shape[1]):
                b, w = weights[i, k], slacks[i, k]
                dw = dv - slopes[i, k] * dm[i]
                weights[i, k] += length * ((target + extra[i, k] - b * dw) / w - b)
                slacks[i, k] += length * dw
