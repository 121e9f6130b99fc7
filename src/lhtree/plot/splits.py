"""Pictures of what one split does to the rows that reach it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from lhtree.estimators import lookup
from lhtree.explain import SplitView, split_view
from lhtree.explain.histogram import count_projections
from lhtree.explain.wording import AnyCondition, describe_side, make_vocabulary
from lhtree.plot.canvas import (
    FAINT,
    INK,
    NEGATIVE,
    PLAIN,
    POSITIVE,
    get_axes,
    name_class,
    remove_frame,
    shorten,
    show_legend,
)
from lhtree.plot.nodes import format_rows

REASONS = {
    "N1": "positive rows below all negative ones",
    "N2": "positive rows above all negative ones",
    "N3": "negative rows below all positive ones",
    "N4": "negative rows above all positive ones",
    "e": "middle of the four extremes",
    "gini": "least Gini impurity",
}

LENGTH = 66  # letters of a condition


def plot_split(
    model: Any, tree: int, node: int, X: Any, y: Any, *, ax: Axes | None = None
) -> Axes:
    """Show how a split separates the rows that reach it.

    Positive rows, those of the tree's class, are counted upwards along the projection,
    negative rows downwards. Triangles mark the four extremes of the training rows, a dashed
    line the threshold. The side that was pure in training is shaded in its colour.

    A forest whose leaves are constant does not keep the extremes of its training rows:
    extremes and pure sides are then those of `X`. A split by categories has a bar per side.

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
    ax.axhline(0, color=INK, linewidth=0.8)
    if np.isnan(view.threshold):
        _draw_sides(ax, view)
    else:
        _draw_projections(ax, view)
    _label(ax, model, view)
    return ax


def _draw_sides(ax: Axes, view: SplitView) -> None:
    """Draw a bar per side: no number decides."""
    for side in (0, 1):
        here = view.is_positive[view.is_right == side]
        for count, color in ((here.sum(), POSITIVE), (-(~here).sum(), NEGATIVE)):
            ax.bar(side, count, 0.6, color=color, linewidth=0)
    ax.set_xlim(-0.6, 1.6)


def _draw_projections(ax: Axes, view: SplitView) -> None:
    """Draw counts along the projection, threshold and extremes."""
    has_number = ~np.isnan(view.projection)
    projection, is_positive = view.projection[has_number], view.is_positive[has_number]
    n_bins = int(np.clip(np.sqrt(len(projection)) * 2, 10, 40))
    extremes = view.extremes[~np.isnan(view.extremes)]
    bins = count_projections(projection, is_positive, view.threshold, extremes, n_bins)
    for count, color in ((bins.positive, POSITIVE), (-bins.negative, NEGATIVE)):
        ax.bar(bins.edge[:-1], count, bins.width, align="edge", color=color, linewidth=0)
    ax.axvline(view.threshold, color=INK, linewidth=1.4, linestyle="--")
    for k, value in enumerate(view.extremes):
        ax.plot(
            value,
            0,
            marker=("^" if k < 2 else "v"),
            color=POSITIVE if k < 2 else NEGATIVE,
            markeredgecolor=INK,
            markersize=8,
            clip_on=False,
            zorder=3,
        )
    _shade_pure_side(ax, view, bins.edge)


def _shade_pure_side(ax: Axes, view: SplitView, edge: Any) -> None:
    margin = 0.02 * (edge[-1] - edge[0])
    low, high = edge[0] - margin, edge[-1] + margin
    ax.set_xlim(low, high)
    sides = {"left": ["left"], "right": ["right"], "both": ["left", "right"], "none": []}
    for side in sides[view.pure_side]:
        is_left = side == "left"
        is_positive = _has_positive(view, is_left)
        span = (low, view.threshold) if is_left else (view.threshold, high)
        ax.axvspan(*span, color=POSITIVE if is_positive else NEGATIVE, alpha=0.15, zorder=0)


def _has_positive(view: SplitView, is_left: bool) -> bool:
    """Return whether the rows behind the pure sides have positive ones on a side."""
    if not view.is_of_training:
        return bool(view.is_positive[view.is_right != is_left].any())
    least_positive, most_positive, *_ = view.extremes
    if is_left:
        return bool(least_positive < view.threshold)
    return bool(most_positive >= view.threshold)


def _label(ax: Axes, model: Any, view: SplitView) -> None:
    name = name_class(view.positive_class)
    title = f"Tree {view.tree}, split {view.node}: {name} against all other classes"
    ax.set_title(title, **PLAIN)
    if view.is_of_training:
        ax.set_xlabel(
            f"projection, left below c = {view.threshold:.3g} "
            f"({view.threshold_kind}: {REASONS[view.threshold_kind]})"
        )
    else:
        _label_condition(ax, model, view)
    ax.set_ylabel("rows")
    ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.margins(y=0.12)
    remove_frame(ax)
    marks: list[Patch | Line2D] = [
        Patch(color=POSITIVE, label=f"{name} (positive)"),
        Patch(color=NEGATIVE, label="all other classes (negative)"),
    ]
    has_projection = not np.isnan(view.threshold)
    if has_projection:
        whose = "in training" if view.is_of_training else "of these rows"
        marks += [
            Line2D([], [], color=INK, linestyle="--", label="threshold c"),
            Line2D([], [], color="w", marker="^", markeredgecolor=INK, label=f"extremes {whose}"),
        ]
    if has_projection and view.pure_side != "none":
        marks.append(Patch(facecolor=FAINT, alpha=0.3, label="pure side"))
    show_legend(ax, handles=marks)


def _label_condition(ax: Axes, model: Any, view: SplitView) -> None:
    """Say what goes left, and where rows without a number go."""
    words = make_vocabulary(model, "raw")
    words = replace(words, columns=tuple(shorten(column, 30) for column in words.columns))
    tree = model.forest_[view.tree]
    sides = [describe_side(tree, view.node, is_right, words) for is_right in (False, True)]
    if np.isnan(view.threshold):
        texts = [_fit(side, LENGTH // 2) for side in sides]
        ax.set_xticks([0, 1], [f"left:\n{texts[0]}", f"right:\n{texts[1]}"], **PLAIN)
        return
    lines = [
        f"projection, left below c = {view.threshold:.4g} (gini: {REASONS['gini']})",
        f"left: {_fit(sides[0], LENGTH)}",
    ]
    without = np.isnan(view.projection)
    if without.any():
        n_rows = format_rows(int(without.sum()))
        side = "right" if view.is_right[without][0] else "left"
        lines.append(f"not drawn: {n_rows} without a value, on the {side}")
    ax.set_xlabel("\n".join(lines), **PLAIN)


def _fit(side: AnyCondition, length: int) -> str:
    """Return a condition with as many terms, or categories, as fit."""
    for n_terms in (None, 4, 3, 2, 1):
        text = side.format(2, n_terms)
        if len(text) <= length:
            return text
    return shorten(text, length)
