"""Pictures of what one split does to the rows that reach it."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from lhtree.estimators import lookup
from lhtree.explain import SplitView, split_view
from lhtree.explain.histogram import count_projections
from lhtree.plot.canvas import (
    FAINT,
    INK,
    NEGATIVE,
    PLAIN,
    POSITIVE,
    get_axes,
    name_class,
    remove_frame,
    show_legend,
)

REASONS = {
    "N1": "positive rows below all negative ones",
    "N2": "positive rows above all negative ones",
    "N3": "negative rows below all positive ones",
    "N4": "negative rows above all positive ones",
    "e": "middle of the four extremes",
    "gini": "least Gini impurity",
}


def plot_split(
    model: Any, tree: int, node: int, X: Any, y: Any, *, ax: Axes | None = None
) -> Axes:
    """Show how a split separates the rows that reach it.

    Positive rows, those of the tree's class, are counted upwards along the projection,
    negative rows downwards. Triangles mark the four extremes of the training rows, a dashed
    line the threshold. The side that was pure in training is shaded in its colour.

    Parameters
    ----------
    model : LHTClassifier or LHForestClassifier
        A fitted model.
    tree : int
        Which tree of ``model.trees_``.
    node : int
        Which split of the tree; 0 is the root.
    X : array-like of shape (n_rows, n_features)
        Rows to count.
    y : array-like of shape (n_rows,)
        Their classes.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lhtree import LHTClassifier
    >>> from lhtree.plot import plot_split
    >>> X, y = load_wine(return_X_y=True)
    >>> ax = plot_split(LHTClassifier().fit(X, y), 0, 0, X, y)
    >>> ax.get_title()
    'Tree 0, split 0: class 0 against all other classes'
    """
    remedy = "its trees have no positive class; split_table lists their splits"
    lookup.check_is_forest(model, "plot_split", remedy)
    view = split_view(model, tree, node, X, y)
    ax = get_axes(ax)
    n_bins = int(np.clip(np.sqrt(len(view.projection)) * 2, 10, 40))
    bins = count_projections(
        view.projection, view.is_positive, view.threshold, view.extremes, n_bins
    )
    for count, color in ((bins.positive, POSITIVE), (-bins.negative, NEGATIVE)):
        ax.bar(bins.edge[:-1], count, bins.width, align="edge", color=color, linewidth=0)
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.axvline(view.threshold, color=INK, linewidth=1.4, linestyle="--")
    for k, value in enumerate(view.extremes):
        is_positive = k < 2
        ax.plot(
            value,
            0,
            marker=("^" if is_positive else "v"),
            color=POSITIVE if is_positive else NEGATIVE,
            markeredgecolor=INK,
            markersize=8,
            clip_on=False,
            zorder=3,
        )
    _shade_pure_side(ax, view, bins.edge)
    _label(ax, view)
    return ax


def _shade_pure_side(ax: Axes, view: SplitView, edge: Any) -> None:
    margin = 0.02 * (edge[-1] - edge[0])
    low, high = edge[0] - margin, edge[-1] + margin
    ax.set_xlim(low, high)
    least_positive, most_positive, *_ = view.extremes
    sides = {"left": ["left"], "right": ["right"], "both": ["left", "right"], "none": []}
    for side in sides[view.pure_side]:
        is_left = side == "left"
        is_positive = (
            least_positive < view.threshold if is_left else most_positive >= view.threshold
        )
        span = (low, view.threshold) if is_left else (view.threshold, high)
        ax.axvspan(*span, color=POSITIVE if is_positive else NEGATIVE, alpha=0.15, zorder=0)


def _label(ax: Axes, view: SplitView) -> None:
    name = name_class(view.positive_class)
    title = f"Tree {view.tree}, split {view.node}: {name} against all other classes"
    ax.set_title(title, **PLAIN)
    ax.set_xlabel(
        f"projection, left below c = {view.threshold:.3g} "
        f"({view.threshold_kind}: {REASONS[view.threshold_kind]})"
    )
    ax.set_ylabel("rows")
    ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.margins(y=0.12)
    remove_frame(ax)
    marks = [
        Patch(color=POSITIVE, label=f"{name} (positive)"),
        Patch(color=NEGATIVE, label="all other classes (negative)"),
        Line2D([], [], color=INK, linestyle="--", label="threshold c"),
        Line2D([], [], color="w", marker="^", markeredgecolor=INK, label="extremes in training"),
    ]
    if view.pure_side != "none":
        marks.append(Patch(facecolor=FAINT, alpha=0.3, label="pure side"))
    show_legend(ax, handles=marks)
