"""Rounding, exp, log, linear systems and draws: operations that are the same everywhere."""

import math

import numpy as np

LN2_HIGH = 6.93147180369123816490e-01  # its last 21 bits are zero: exact times an exponent
LN2_LOW = 1.90821492927058770002e-10
LOG2_E = 1.44269504088896340736
MASK = (1 << 64) - 1


def round_half_up(x):
    """Return floor(x + 1/2), elementwise, as doubles; the sum is that of doubles."""
    return np.floor(np.asarray(x, dtype=np.float64) + 0.5)


def round_quotient(a, b):
    """Return floor(a / b + 1/2) of integers, exactly; b is positive."""
    return (2 * int(a) + int(b)) // (2 * int(b))


def exp(x):
    """Return e**x, about to the last bit, for x in [-700, 700]; clipped beyond.

    Libraries differ in the last bit, + - * / do not.
    """
    x = np.clip(np.asarray(x, dtype=np.float64), -700.0, 700.0)
    k = np.floor(x * LOG2_E + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    p = np.full_like(r, 1.0 / math.factorial(13))
    for n in range(12, -1, -1):
        p = p * r + 1.0 / math.factorial(n)
    return np.ldexp(p, k.astype(np.int64))


def log(x):
    """Return the natural logarithm of positive normal numbers, about to the last bit."""
    m, k = np.frexp(np.asarray(x, dtype=np.float64))
    is_low = m * m < 0.5
    m = np.where(is_low, m * 2.0, m)
    k = np.where(is_low, k - 1, k).astype(np.float64)
    s = (m - 1.0) / (m + 1.0)
    t = s * s
    p = np.full_like(t, 1.0 / 21.0)
    for n in range(19, 0, -2):
        p = p * t + 1.0 / n
    return k * LN2_HIGH + (2.0 * s * p + k * LN2_LOW)


def solve(matrix, right):
    """Solve a symmetric system by Cholesky, in one order; None if it is not positive definite."""
    n, low, x = len(right), [list(row) for row in matrix], list(right)
    for a in range(n):
        for b in range(a + 1):
            s = low[a][b]
            for k in range(b):
                s = s - low[a][k] * low[b][k]
            if a == b:
                if not s > 0.0:
                    return None
                low[a][a] = math.sqrt(s)
            else:
                low[a][b] = s / low[b][b]
    for a in range(n):
        for k in range(a):
            x[a] = x[a] - low[a][k] * x[k]
        x[a] = x[a] / low[a][a]
    for a in reversed(range(n)):
        for k in range(a + 1, n):
            x[a] = x[a] - low[k][a] * x[k]
        x[a] = x[a] / low[a][a]
    return x


# ---- draws ------------------------------------------------------------------------------


def hash64(key, counter):
    """Return the splitmix64 output number ``counter`` of the stream ``key``."""
    z = (key + (counter + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def make_child_key(key, is_right):
    """Return the key of the draws of a child."""
    return hash64(key, MASK - int(is_right))


def make_hyperplane_key(key):
    """Return the key by which a node draws the columns of its hyperplanes."""
    return hash64(key, MASK - 2)


def draw_columns(key, columns, n_drawn):
    """Return those of some columns that have the smallest hashes, in the order of these."""
    return sorted(columns, key=lambda j: (hash64(key, j), j))[:n_drawn]
