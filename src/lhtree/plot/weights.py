"""Pictures of the weights of splits."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from lhtree.arrays import Floats, Ints
from lhtree.estimators import lookup
from lhtree.model.tree import Tree
from lhtree.plot.canvas import (
    DOWN,
    FAINT,
    INK,
    PLAIN,
    UP,
    check_count,
    get_axes,
    name_class,
    shorten,
    show_legend,
)

GAP = 0.5  # between the panels of two classes, in widths of a split
MOST_COLUMNS = 24  # splits side by side that can be read
BAR = 0.44  # length of the bar of a weight of one; bars of neighbours do not touch


def plot_weights(
    model: Any,
    class_label: Any = None,
    *,
    estimator: int = 0,
    n_features: int = 20,
    n_splits: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Show the weights of the features in each split: a panel per class, a column per split.

    Where a bar points right, larger values of the feature raise a row's projection; where
    it points left, they lower it. Rows with a high projection go right.

    Parameters
    ----------
    model : LHTClassifier or LHForestClassifier
        A fitted model.
    class_label : object, default=None
        Label of the class whose panel is drawn; None for the panels of all classes.
        Of two classes, only the second has trees.
    estimator : int, default=0
        Whose trees to draw, in a forest.
    n_features : int, default=20
        How many features to draw: those with the largest weights in these splits.
    n_splits : int, default=None
        How many splits of a tree to draw, from the root on; the figure says how many it
        does not show. None draws up to six per class, fewer if there are many classes.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure that fits the panels.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on; all panels lie on them.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lhtree import LHTClassifier
    >>> from lhtree.plot import plot_weights
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> ax = plot_weights(LHTClassifier().fit(X, y))
    >>> ax.get_yticklabels()[0].get_text()
    'alcohol'
    """
    trees = _select_trees(model, class_label, estimator)
    if n_splits is None:
        n_splits = int(np.clip(MOST_COLUMNS // len(trees), 1, 6))
    n_splits = check_count("n_splits", n_splits)
    panels = [np.flatnonzero(tree.left >= 0)[:n_splits] for tree in trees]
    weight = _collect_weights(trees, panels)
    shown = _choose_features(weight, check_count("n_features", n_features))
    width = sum(max(len(panel), 1) for panel in panels) + GAP * (len(panels) - 1)
    ax = get_axes(ax, (2.8 + 0.85 * max(width, 3), 1.7 + 0.27 * max(len(shown), 3)))
    position = 0.0
    for tree, panel in zip(trees, panels, strict=True):
        _draw_panel(ax, model, tree, panel, weight[tree.number][:, shown], position)
        position += max(len(panel), 1) + GAP
    names = [shorten(model.column_names_[j]) for j in shown]
    ax.set_yticks(range(len(shown)), names, **PLAIN)
    ax.set(xlim=(-GAP / 4, position - 0.75 * GAP), ylim=(len(shown) - 0.4, -2.6))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    _finish(ax, trees, panels, len(shown), model.forest_.n_features)
    return ax


def _select_trees(model: Any, class_label: Any, estimator: int) -> list[Tree]:
    """Return the trees of an estimator, of all classes or of one."""
    lookup.check_is_forest(model, "plot_weights", "lhtree.explain.split_table lists its weights")
    n_per_estimator = model.voting_.n_trees_per_estimator
    n_estimators = len(model.forest_) // n_per_estimator
    first = lookup.check_number("estimator", estimator, 0, n_estimators - 1) * n_per_estimator
    trees = [model.forest_[first + k] for k in range(n_per_estimator)]
    if class_label is None:
        return trees
    k = lookup.look_up_class(model, class_label)
    chosen = [tree for tree in trees if tree.positive_class == k]
    if not chosen:
        raise ValueError(
            f"class_label={class_label!r} has no tree: of two classes only the second has one; "
            f"give class_label={model.classes_[1]!r}."
        )
    return chosen


def _collect_weights(trees: list[Tree], panels: list[Ints]) -> dict[int, Floats]:
    """Return for each tree the weights of its splits, one row per split."""
    collected = {}
    for tree, panel in zip(trees, panels, strict=True):
        weight = np.zeros((len(panel), tree.forest.n_features))
        for row, node in zip(weight, panel, strict=True):
            feature, value, *_ = tree.terms(node)
            row[feature] = value
        collected[tree.number] = weight
    return collected


def _choose_features(weight: dict[int, Floats], n_features: int) -> Ints:
    """Return the columns with the largest weights in any split, in their own order."""
    largest = np.abs(np.concatenate(list(weight.values()))).max(axis=0, initial=0)
    order = np.argsort(-largest, kind="stable")[:n_features]
    return np.sort(order)


def _draw_panel(
    ax: Axes, model: Any, tree: Tree, panel: Ints, weight: Floats, position: float
) -> None:
    n_shown = weight.shape[1]
    width = max(len(panel), 1)
    ax.add_patch(
        Rectangle(
            (position, -0.6), width, n_shown + 0.2, facecolor="#F2F2F2", edgecolor="none", zorder=0
        )
    )
    name = name_class(model.classes_[tree.positive_class], max(9, 11 * width))
    title: dict[str, Any] = {"ha": "center", "va": "bottom", "color": INK, **PLAIN}
    ax.text(position + width / 2, -1.7, name, weight="bold", **title)
    if not len(panel):
        ax.text(position + 0.5, n_shown / 2, "no\nsplit", ha="center", va="center", color=FAINT)
    for i, (node, row) in enumerate(zip(panel, weight, strict=True)):
        middle = position + i + 0.5
        ax.text(middle, -0.75, f"split {node}", fontsize="small", **title)
        ax.plot([middle, middle], [-0.6, n_shown - 0.4], color=FAINT, linewidth=0.7, zorder=1)
        largest = np.abs(row).max() or 1.0
        ax.barh(
            np.arange(n_shown),
            BAR * row / largest,
            left=middle,
            height=0.7,
            color=np.where(row >= 0, UP, DOWN),
            zorder=2,
        )


def _finish(
    ax: Axes, trees: list[Tree], panels: list[Ints], n_shown: int, n_features: int
) -> None:
    """Explain the bars, and say what is not shown."""
    ax.set_xticks([])
    notes = []
    n_hidden = sum(
        int(np.count_nonzero(tree.left >= 0)) - len(panel)
        for tree, panel in zip(trees, panels, strict=True)
    )
    if n_hidden:
        notes.append(f"{n_hidden:,} further splits are not shown.")
    if n_shown < n_features:
        notes.append(f"{n_features - n_shown:,} features with smaller weights are not shown.")
    scale = "Weights for standardised columns,\nthe largest of each split at full length."
    ax.set_xlabel(
        "\n".join([scale, " ".join(notes)]).strip(), fontsize="small", color=INK, labelpad=24
    )
    marks = [
        Patch(color=DOWN, label="lowers the projection"),
        Patch(color=UP, label="raises the projection"),
    ]
    show_legend(ax, handles=marks, ncols=2, loc="upper center", bbox_to_anchor=(0.5, 0.0))
