"""From lines of measurements to means, ranks, cells of tables and figures."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.data import ALL
from benchmarks.lines import Line

Floats = NDArray[np.float64]

TIE = 0.05  # points of accuracy: closer means are a tie
# Nemenyi: studentized range at 5 % for k models, divided by the square root of 2.
_Q05 = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}


# ---- Means and ranks


class Result(NamedTuple):
    """A model on a data set, over its splits; accuracies in percent."""

    accuracy: float
    std: float
    n_seeds: int
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
    done = [line for line in group if "accuracy" in line]
    if not done:
        return Result(math.nan, math.nan, 0, math.nan, max(line["over_s"] for line in group))
    accuracy = np.array([get_number(line, "accuracy") for line in done])
    if ALL[name].n_train is None:
        std = float(accuracy.std(ddof=1)) if len(accuracy) > 1 else math.nan
    else:
        # The standard deviation over bootstrapped test rows, without drawing them.
        mean = accuracy.mean() / 100
        std = 100 * math.sqrt(mean * (1 - mean) / done[0]["test"])
    cpu = float(np.median([line["cpu_s"] for line in done]))
    return Result(float(accuracy.mean()), std, len(done), cpu)


def get_number(line: Line, field: str) -> float:
    """Return a field of a line; accuracy in percent."""
    if field != "accuracy":
        return float(line[field])
    return float(100 * line["right"] / line["test"] if "right" in line else 100 * line["accuracy"])


def compare(
    lines: Iterable[Line], models: Sequence[str], field: str = "accuracy", seed: str = "seed"
) -> tuple[list[str], Floats]:
    """Return the data sets on which all models have run, and the table of their means.

    Means are over the seeds (or folds) that all models share, so that like is compared with
    like; those of accuracy are in percent.
    """
    values: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        if field in line and line["model"] in models:
            values[line["data"]][line["model"]][line[seed]] = get_number(line, field)
    names, rows = [], []
    for name in [*[name for name in ALL if name in values], *[x for x in values if x not in ALL]]:
        common = sorted(set.intersection(*[set(values[name][model]) for model in models]))
        if common:
            names.append(name)
            rows.append([np.mean([values[name][m][s] for s in common]) for m in models])
    return names, np.array(rows).reshape(len(names), len(models))


def rank(table: Floats, *, is_loss: bool = False) -> Floats:
    """Return the rank of each column in each row, 1 for the best; equal values share ranks."""
    score = np.round(-table if not is_loss else table, 9)
    below = (score[:, None, :] < score[:, :, None]).sum(axis=2)
    equal = (score[:, None, :] == score[:, :, None]).sum(axis=2)
    ranks: Floats = below + (equal + 1) / 2
    return ranks


def count_wins(gap: Floats, tie: float = TIE) -> tuple[int, int, int]:
    """Return on how many data sets the gap is above zero, about zero, and below."""
    return int((gap >= tie).sum()), int((np.abs(gap) < tie).sum()), int((gap <= -tie).sum())


def compute_critical_difference(n_models: int, n_datasets: int) -> float:
    """Return the gap of mean ranks above which two models differ (Nemenyi, 5 %)."""
    return _Q05[n_models] * math.sqrt(n_models * (n_models + 1) / (6 * n_datasets))


# ---- Cells of tables

PM = "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"


def group_lines(found: list[Line], *fields: str) -> dict[tuple[Any, ...], list[Line]]:
    """Return the lines by the values of some fields, in the order of their first lines."""
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in found:
        groups.setdefault(tuple(line[name] for name in fields), []).append(line)
    return groups


def make_table(header: Sequence[str], rows: Iterable[Sequence[object]], n_left: int = 1) -> str:
    """Return a Markdown table; all columns but the first ones are aligned to the right."""
    marks = ["---"] * n_left + ["---:"] * (len(header) - n_left)
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [header, marks, *rows])


def choose_newest(found: list[Line], choice: str) -> list[Line]:
    """Return the lines that have the sources of the last one of a choice."""
    builds = [line["build"] for line in found if line["choice"] == choice]
    return [line for line in found if builds and line["build"] == builds[-1]]


def format_change(changes: Floats) -> str:
    """Return a mean over tables ± its standard error, or nothing."""
    if len(changes) < 2:
        return ""
    return f"{changes.mean():+.2f} ± {changes.std(ddof=1) / math.sqrt(len(changes)):.2f}"


def format_ratio(logarithms: Floats) -> str:
    """Return the geometric mean of ratios."""
    return f"{math.exp(logarithms.mean()):.2f}"


def leave_blank(label: str, header: Sequence[str]) -> list[str]:
    """Return the row of what was not measured."""
    return [label, "not measured", *[""] * (len(header) - 2)]


def format_result(result: Result | None, *, is_best: bool = False) -> str:
    """Return accuracy ± standard deviation, or why there is none."""
    if result is None:
        return "not run"
    if result.over_s is not None:
        return "not run: over the time limit"
    digits = 2 if result.accuracy > 99.5 else 1
    text = f"{result.accuracy:.{digits}f}"
    text = f"**{text}**" if is_best else text
    return text if math.isnan(result.std) else f"{text}{PM}{result.std:.{digits}f}"


def format_row(results: Results, name: str, columns: Sequence[str]) -> list[str]:
    """Return the cells of a data set; the best ones of those printed are marked."""
    if not ALL[name].checksum:
        return ["data not available", *[""] * (len(columns) - 1)]
    found = [results.get((name, model)) for model in columns]
    best = max((round(r.accuracy, 2) for r in found if r and r.over_s is None), default=math.nan)
    return [
        format_result(r, is_best=r is not None and round(r.accuracy, 2) == best) for r in found
    ]


def describe_splits(results: Results, name: str, columns: Sequence[str]) -> str:
    """Return how many random splits a row rests on."""
    if ALL[name].n_train is not None:
        return "given"
    seeds = {results[name, m].n_seeds for m in columns if (name, m) in results} - {0}
    if not seeds:
        return ""
    return str(max(seeds)) if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"


def write_design(out: Path, name: str, text: str) -> Path:
    """Write a page of the folder ``design`` beside `out`."""
    page = out.parent / "design" / f"{name}.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text(text, encoding="utf-8")
    return page


# ---- Figures, as small SVG files

OURS, PEER = "#c2410c", "#334155"
# The same bytes for the same numbers, so that a new figure means new numbers.
_STYLE: dict[Any, Any] = {"svg.hashsalt": "lhtree", "svg.fonttype": "none", "font.size": 10}


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def _choose_colour(model: str) -> str:
    return OURS if model.startswith("LH") else PEER


def plot_ranks(
    path: Path, models: list[str], mean_rank: Floats, critical: float, n_datasets: int
) -> None:
    """Draw mean ranks as a bar for each model, best on top, with the critical difference."""
    order = np.argsort(mean_rank)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7, 0.45 * len(models) + 1.4))
        axes = figure.add_subplot()
        for place, i in enumerate(order):
            axes.barh(place, mean_rank[i], color=_choose_colour(models[i]), height=0.65)
            axes.text(mean_rank[i] + 0.06, place, f"{mean_rank[i]:.2f}", va="center")
        axes.set_yticks(range(len(models)), [models[i] for i in order])
        axes.invert_yaxis()
        best = mean_rank[order[0]]
        axes.axvline(best + critical, color="0.4", linestyle="--", linewidth=1)
        axes.set_xlabel(
            f"mean rank of accuracy over {n_datasets} data sets (1 is best); models right of the "
            "dashed\nline differ from the best one (Nemenyi test, 5 %)"
        )
        axes.set_xlim(0, max(mean_rank.max() + 0.6, best + critical + 0.2))
        axes.spines[["top", "right"]].set_visible(False)
        _save(figure, path)


def spread(values: Floats, gap: float) -> Floats:
    """Return ascending values moved apart to at least `gap`, about where they were."""
    places = values.copy()
    for _ in range(200):
        overlap = np.maximum(gap - np.diff(places), 0)
        places[:-1] -= overlap / 2
        places[1:] += overlap / 2
    return places


def plot_time(path: Path, models: list[str], mean_rank: Floats, time_ratio: Floats) -> None:
    """Draw mean rank of accuracy against the time of a fit, relative to RF."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7, 4.2))
        axes = figure.add_subplot()
        height = spread(np.sort(mean_rank), (mean_rank.max() - mean_rank.min() + 1) / 16)
        for label_height, i in zip(height, np.argsort(mean_rank), strict=True):
            colour = _choose_colour(models[i])
            axes.plot(time_ratio[i], mean_rank[i], "o", color=colour, markersize=8)
            axes.annotate(
                models[i], (time_ratio[i], mean_rank[i]), color=colour, va="center",
                xytext=(1.03, label_height), textcoords=axes.get_yaxis_transform(),
                arrowprops={"arrowstyle": "-", "color": "0.75", "linewidth": 0.8},
            )  # fmt: skip
        axes.set_xscale("log")
        axes.invert_yaxis()
        axes.margins(x=0.1, y=0.1)
        axes.set_xlabel("CPU time of a fit, relative to RF (geometric mean over data sets)")
        axes.set_ylabel("mean rank of accuracy (up is better)")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        _save(figure, path)


def plot_gains(path: Path, names: list[str], ours: Floats, paper: Floats) -> None:
    """Draw the gap between our accuracy and the paper's, a bar for each data set."""
    gap = ours - paper
    order = np.argsort(gap)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7, 0.24 * len(names) + 1))
        axes = figure.add_subplot()
        colours = [OURS if gap[i] >= 0 else PEER for i in order]
        axes.barh(range(len(names)), gap[order], color=colours, height=0.7)
        axes.set_yticks(range(len(names)), [names[i] for i in order])
        axes.axvline(0, color="0.2", linewidth=0.8)
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xlabel(
            "points of accuracy above the paper's LHT (better of LHForest, defaults and tuned)"
        )
        axes.spines[["top", "right"]].set_visible(False)
        _save(figure, path)
