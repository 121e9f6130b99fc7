"""What quantiles and intervals are asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lhtree.arrays import Floats
from lhtree.estimators.params import SMALLEST, check_real

WANTED = "a number from 0 to 1, or a list of them"


def read_levels(quantiles: Any) -> Floats:
    """Return the levels of quantiles as a list."""
    given = [quantiles] if np.ndim(quantiles) == 0 else list(quantiles)
    if not given or np.ndim(quantiles) > 1:
        raise ValueError(f"quantiles must be {WANTED}, got {quantiles!r}.")
    for level in given:
        check_real("quantiles", level, WANTED, low=0, high=1)
    return np.array(given, dtype=np.float64)


def check_coverage(coverage: Any) -> float:
    """Return the share of targets that an interval should hold."""
    wanted, below_one = "a number between 0 and 1", math.nextafter(1.0, 0.0)
    check_real("coverage", coverage, wanted, low=SMALLEST, high=below_one)
    return float(coverage)
