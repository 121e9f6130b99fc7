"""Explaining rows against predicting them, in one run.

Usage::

    LHTREE_DATA=<folder> python -m benchmarks.explain

It prints one JSON line per model: the CPU time of ``predict_proba`` and of
``explain_rows`` for 1,000 rows of satimage on one thread, the best of several repeats
taken in turn, and their ratio, which has to stay below ten.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.data import Absent, load
from benchmarks.models import make_default_forest, make_paper_forest
from lhtree.explain import explain_rows

N_ROWS = 1000
N_REPEATS = 10
LARGEST_RATIO = 10.0


def measure(task: Callable[[], Any]) -> float:
    """Return the CPU time of a task."""
    start = time.process_time()
    task()
    return time.process_time() - start


def main() -> int:
    """Print the lines; return 1 if a model takes too long to explain, 2 without data."""
    try:
        table = load("satimage")
    except Absent as error:
        print(f"skipped: {error}", file=sys.stderr)
        return 2
    rows = np.ascontiguousarray(table.X_test[:N_ROWS])
    is_fast = True
    paper, defaults = make_paper_forest("satimage", 1, 0), make_default_forest(0)
    for name, model in [("paper settings", paper), ("defaults", defaults.set_params(n_jobs=1))]:
        model.fit(table.X, table.y)
        times = np.array([
            (
                measure(lambda model=model: model.predict_proba(rows)),  # type: ignore[misc]
                measure(lambda model=model: explain_rows(model, rows)),  # type: ignore[misc]
            )
            for _ in range(N_REPEATS)
        ])  # fmt: skip
        predict, explain = times.min(axis=0)
        line = {"model": name, "trees": len(model.forest_), "rows": len(rows)}
        line |= {"predict_proba": predict, "explain_rows": explain, "ratio": explain / predict}
        print(json.dumps(line), flush=True)
        is_fast = is_fast and explain < LARGEST_RATIO * predict
    return 0 if is_fast else 1


if __name__ == "__main__":
    sys.exit(main())
