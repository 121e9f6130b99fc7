"""What kinds share that try other values than those that were chosen."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.lines import Line

KEY = ("data", "split", "choice", "value")
DEFAULT = ("default", "")


def list_tables() -> dict[str, data.Description]:
    """Return the tables to choose by."""
    return {name: each for name, each in data.list_tables().items() if each.role == "choose"}


def make_jobs(
    places: Iterable[tuple[str, int]], variants: Iterable[tuple[str, str]]
) -> list[Line]:
    """Return the jobs: all values do a split of a table before the next one follows."""
    variants = list(variants)
    return [dict(zip(KEY, (*p, *v), strict=True)) for p in places for v in variants]


def draw_rows(X: Any, y: Any, most: int, seed: int) -> tuple[Any, Any]:
    """Return rows in another order, and not more than so many."""
    row = np.random.default_rng(seed).permutation(len(y))[:most]
    return X[row] if isinstance(X, np.ndarray) else X.iloc[row], y[row]


def count_terms(X: Any, times: float) -> int:
    """Return so many square roots of the number of columns of numbers."""
    return max(2, int(times * math.sqrt(X.shape[1] - len(data.find_text(X)))))


def time_fit(model: Any, X: Any, y: Any) -> float:
    """Return the process time of a fit in seconds."""
    start = time.process_time()
    model.fit(X, y)
    return round(time.process_time() - start, 4)
