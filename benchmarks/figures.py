"""Figures of the report, as small SVG files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

OURS, PEER = "#c2410c", "#334155"
# The same bytes for the same numbers, so that a new figure means new numbers.
_STYLE: dict[Any, Any] = {"svg.hashsalt": "lhtree", "svg.fonttype": "none", "font.size": 10}


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def _choose_colour(model: str) -> str:
    return OURS if model.startswith("LHT") else PEER


def plot_ranks(
    path: Path, models: list[str], mean_rank: NDArray[np.float64], critical: float, n_datasets: int
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


def spread(values: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Return ascending values moved apart to at least `gap`, about where they were."""
    places = values.copy()
    for _ in range(200):
        overlap = np.maximum(gap - np.diff(places), 0)
        places[:-1] -= overlap / 2
        places[1:] += overlap / 2
    return places


def plot_time(
    path: Path,
    models: list[str],
    mean_rank: NDArray[np.float64],
    time_ratio: NDArray[np.float64],
) -> None:
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


def plot_gains(
    path: Path, names: list[str], ours: NDArray[np.float64], paper: NDArray[np.float64]
) -> None:
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
        axes.set_xlabel("points of accuracy above the paper's LHT (better of default and tuned)")
        axes.spines[["top", "right"]].set_visible(False)
        _save(figure, path)
