"""Types of arrays, and the layout of a projection."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

LANES = 8  # partial sums of a projection: column j is added to sum j % 8

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]
Scale = tuple[Floats, Floats]  # mean and standard deviation of the columns
