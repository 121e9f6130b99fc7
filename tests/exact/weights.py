"""Weights of rows as integers."""

import math

import numpy as np

UNIT_BITS = 16  # of weights that are not integers, scaled to mean one


def to_units(sample_weight):
    """Return the integer weights of the rows of positive weight, and the unit u.

    W / u is the weighted number of rows. The mean of weights that are not all integers is
    their exact sum, rounded once, divided by their number.
    """
    weight = np.asarray(sample_weight, dtype=np.float64)
    weight = weight[weight > 0]  # a row of weight 0 is absent
    if np.all(weight == np.floor(weight)):
        return weight.astype(np.int64), 1
    mean = math.fsum(weight) / len(weight)
    units = np.floor(weight / mean * 2.0**UNIT_BITS + 0.5)
    return np.maximum(units, 1.0).astype(np.int64), 1 << UNIT_BITS
