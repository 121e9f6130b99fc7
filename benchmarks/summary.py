"""From lines of measurements to means, ranks and comparisons; no text, no figures."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import ALL

TIE = 0.05  # points of accuracy: closer means are a tie
# Nemenyi: studentized range at 5 % for k models, divided by the square root of 2.
_Q05 = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}

Line = dict[str, Any]


class Result(NamedTuple):
    """A model on a data set, over its splits; accuracies in percent."""

    accuracy: float
    deviation: float
    n_seeds: int
    log_loss: float
    ece: float
    cpu_s: float
    over_s: float | None = None  # the time limit that it exceeded; nothing else is known then


Results = dict[tuple[str, str], Result]


def summarize(lines: Iterable[Line]) -> Results:
    """Return the result of each data set and model."""
    groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        groups[line["data"], line["model"]].append(line)
    return {key: _summarize_group(key[0], group) for key, group in groups.items()}


def _summarize_group(name: str, group: list[Line]) -> Result:
    done = [line for line in group if "right" in line]
    if not done:
        over = max(line["over_s"] for line in group)
        return Result(math.nan, math.nan, 0, math.nan, math.nan, math.nan, over)
    accuracy = np.array([100 * line["right"] / line["test"] for line in done])
    if ALL[name].n_train is None:
        deviation = float(accuracy.std(ddof=1)) if len(accuracy) > 1 else math.nan
    else:
        # The deviation of a mean over bootstrapped test rows, without drawing them.
        share = accuracy.mean() / 100
        deviation = 100 * math.sqrt(share * (1 - share) / done[0]["test"])
    return Result(
        float(accuracy.mean()),
        deviation,
        len(done),
        float(np.mean([line["log_loss"] for line in done])),
        float(np.mean([line["ece"] for line in done])),
        float(np.median([line["cpu_s"] for line in done])),
    )


def compare(
    lines: Iterable[Line], models: Sequence[str], field: str = "accuracy"
) -> tuple[list[str], NDArray[np.float64]]:
    """Return the data sets on which all models have run, and the table of their means.

    Means are over the seeds that all models share, so that like is compared with like.
    `field` is "accuracy" in percent, or a field of the lines.
    """
    values: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        if "right" in line and line["model"] in models:
            is_accuracy = field == "accuracy"
            value = 100 * line["right"] / line["test"] if is_accuracy else line[field]
            values[line["data"]][line["model"]][line["seed"]] = value
    names, rows = [], []
    for name in ALL:
        seeds = [set(values[name][model]) for model in models] if name in values else []
        common = sorted(set.intersection(*seeds)) if seeds else []
        if common:
            names.append(name)
            rows.append([np.mean([values[name][m][s] for s in common]) for m in models])
    return names, np.array(rows).reshape(len(names), len(models))


def rank(table: NDArray[np.float64], *, is_loss: bool = False) -> NDArray[np.float64]:
    """Return the rank of each column in each row, 1 for the best; equal values share ranks."""
    score = np.round(-table if not is_loss else table, 9)
    below = (score[:, None, :] < score[:, :, None]).sum(axis=2)
    equal = (score[:, None, :] == score[:, :, None]).sum(axis=2)
    ranks: NDArray[np.float64] = below + (equal + 1) / 2
    return ranks


def count_wins(mine: NDArray[np.float64], theirs: NDArray[np.float64]) -> tuple[int, int, int]:
    """Return on how many data sets mine is better, about equal, and worse."""
    gap = mine - theirs
    return int((gap >= TIE).sum()), int((np.abs(gap) < TIE).sum()), int((gap <= -TIE).sum())


def find_critical_difference(n_models: int, n_datasets: int) -> float:
    """Return the gap of mean ranks above which two models differ (Nemenyi, 5 %)."""
    return _Q05[n_models] * math.sqrt(n_models * (n_models + 1) / (6 * n_datasets))
