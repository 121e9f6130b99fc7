"""Pictures of the weights of splits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints
from lhtree.estimators import lookup
from lhtree.explain import model_view
from lhtree.explain.model_view import ModelView
from lhtree.plot.canvas import (
    DOWN,
    FAINT,
    INK,
    PLAIN,
    UP,
    check_count,
    get_axes,
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
    """Show the weights of the features in each split: a panel per tree, a column per split.

    Trees and forests of classes have a tree for each class; a boosted tree is drawn alone.
    Splits by single columns have one bar.

    Where a bar points right, larger values of the feature raise a row's projection; where
    it points left, they lower it. Rows with a high projection go right.

    Parameters
    ----------
    model : classifier or regressor of this package
        A fitted model.
    class_label : object, default=None
        Label of the class whose panel is drawn; None for the panels of all classes.
        Of two classes, only the second has trees. A boosted tree serves all classes.
    estimator : int, default=0
        Whose trees to draw, in a forest; of boosted models, the number of the tree.
    n_features : int, default=20
        How many features to draw: of those in these splits, the ones with the
        largest weights.
    n_splits : int, default=None
        How many splits of a tree to draw, from the root on; the figure says how many it
        does not show. None draws up to six per tree, fewer if there are many classes.
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
    view = model_view.view_model(model)
    trees = _select_trees(view, class_label, estimator)
    if n_splits is None:
        n_splits = int(np.clip(MOST_COLUMNS // len(trees), 1, 6))
    n_splits = check_count("n_splits", n_splits)
    panels = [np.flatnonzero(tree.left >= 0)[:n_splits] for tree in trees]
    weight = _collect_weights(view, trees, panels)
    shown = _choose_features(weight, check_count("n_features", n_features))
    width = sum(max(len(panel), 1) for panel in panels) + GAP * (len(panels) - 1)
    ax = get_axes(ax, (2.8 + 0.85 * max(width, 3), 1.7 + 0.27 * max(len(shown), 3)))
    position = 0.0
    is_set = np.array([bool(names) for names in view.codes] or [False] * len(view.is_number))
    for tree, panel in zip(trees, panels, strict=True):
        bars = _Bars(weight[tree.number][:, shown], is_set[shown])
        _draw_panel(ax, view.name_tree(tree), panel, bars, position)
        position += max(len(panel), 1) + GAP
    names = [shorten(model.column_names_[j]) for j in shown]
    ax.set_yticks(range(len(shown)), names, **PLAIN)
    ax.set(xlim=(-GAP / 4, position - 0.75 * GAP), ylim=(len(shown) - 0.4, -2.6))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    n_hidden = sum(
        int(np.count_nonzero(tree.left >= 0)) - len(panel)
        for tree, panel in zip(trees, panels, strict=True)
    )
    _finish(ax, n_hidden, len(view.is_number) - len(shown), has_sets=bool(is_set[shown].any()))
    return ax


def _select_trees(view: ModelView, class_label: Any, estimator: int) -> list[Any]:
    """Return the trees of an estimator, of all classes or of one."""
    last = view.n_estimators - 1
    trees = view.list_trees(lookup.check_number("estimator", estimator, 0, last))
    if class_label is None:
        return trees
    remedy = "its trees serve all classes, so leave class_label out"
    lookup.check_is_forest(view.model, "class_label", remedy)
    k = lookup.look_up_class(view.model, class_label)
    chosen = [tree for tree in trees if view.get_class(tree) == k]
    if not chosen:
        raise ValueError(
            f"class_label={class_label!r} has no tree: of two classes only the second has one; "
            f"give class_label={view.model.classes_[1]!r}."
        )
    return chosen


def _collect_weights(view: ModelView, trees: list[Any], panels: list[Ints]) -> dict[int, Floats]:
    """Return for each tree the weights of its splits, one row per split."""
    collected = {}
    for tree, panel in zip(trees, panels, strict=True):
        terms = view.list_terms(tree)
        weight = np.zeros((len(panel), len(view.is_number)))
        is_shown = terms.row < len(panel)
        row, value = terms.row[is_shown], terms.weight[is_shown]
        weight[row, terms.column[is_shown]] = value
        collected[tree.number] = weight
    return collected


def _choose_features(weight: dict[int, Floats], n_features: int) -> Ints:
    """Return the columns with the largest weights in any split, in their own order."""
    largest = np.abs(np.concatenate(list(weight.values()))).max(axis=0, initial=0)
    order = np.argsort(-largest, kind="stable")
    n_used = np.count_nonzero(largest) or len(largest)
    return np.sort(order[: min(n_features, n_used)])


class _Bars(NamedTuple):
    """The bars of a panel."""

    weight: Floats  # one row per split
    is_set: NDArray[np.bool_]  # which columns are split by sets of categories, without a sign

    def choose_colors(self, row: Floats) -> list[str]:
        """Return the colours of the bars of a split."""
        signs = np.where(row >= 0, UP, DOWN)
        return list(np.where(self.is_set, FAINT, signs))


def _draw_panel(ax: Axes, name: str, panel: Ints, bars: _Bars, position: float) -> None:
    n_shown = len(bars.is_set)
    width = max(len(panel), 1)
    ax.add_patch(
        Rectangle(
            (position, -0.6), width, n_shown + 0.2, facecolor="#F2F2F2", edgecolor="none", zorder=0
        )
    )
    title: dict[str, Any] = {"ha": "center", "va": "bottom", "color": INK, **PLAIN}
    ax.text(position + width / 2, -1.7, shorten(name, max(9, 11 * width)), weight="bold", **title)
    if not len(panel):
        ax.text(position + 0.5, n_shown / 2, "no\nsplit", ha="center", va="center", color=FAINT)
    for i, (node, row) in enumerate(zip(panel, bars.weight, strict=True)):
        middle = position + i + 0.5
        ax.text(middle, -0.75, f"split {node}", fontsize="small", **title)
        ax.plot([middle, middle], [-0.6, n_shown - 0.4], color=FAINT, linewidth=0.7, zorder=1)
        largest = np.abs(row).max() or 1.0
        ax.barh(
            np.arange(n_shown),
            BAR * row / largest,
            left=middle,
            height=0.7,
            color=bars.choose_colors(row),
            zorder=2,
        )


def _finish(ax: Axes, n_splits: int, n_features: int, *, has_sets: bool) -> None:
    """Explain the bars, and say how much is not shown."""
    ax.set_xticks([])
    notes = []
    if n_splits:
        notes.append(f"{n_splits:,} further splits are not shown.")
    if n_features:
        notes.append(f"{n_features:,} features with smaller weights are not shown.")
    scale = "Weights for standardised columns,\nthe largest of each split at full length."
    ax.set_xlabel(
        "\n".join([scale, " ".join(notes)]).strip(), fontsize="small", color=INK, labelpad=24
    )
    marks = [
        Patch(color=DOWN, label="lowers the projection"),
        Patch(color=UP, label="raises the projection"),
    ]
    if has_sets:
        marks.append(Patch(color=FAINT, label="a set of categories"))
    n_columns = len(marks)
    show_legend(ax, handles=marks, ncols=n_columns, loc="upper center", bbox_to_anchor=(0.5, 0.0))
