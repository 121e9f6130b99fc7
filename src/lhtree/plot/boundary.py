"""Pictures of the decision regions of two features."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap

from lhtree.arrays import Floats
from lhtree.estimators import lookup
from lhtree.explain import arguments, model_view
from lhtree.model.tree import Tree
from lhtree.plot.canvas import (
    INK,
    MARKERS,
    PALETTE,
    PLAIN,
    check_count,
    get_axes,
    name_class,
    shorten,
    show_legend,
)


def plot_boundary(
    model: Any,
    X: Any,
    y: Any,
    *,
    estimator: int = 0,
    resolution: int = 200,
    ax: Axes | None = None,
) -> Axes:
    """Show the regions of the classes for two features, and the hyperplanes behind them.

    Parameters
    ----------
    model : LHTClassifier or LHForestClassifier
        A model that was fitted on two numeric columns.
    X : array-like of shape (n_rows, 2)
        Rows to draw as points; they set the limits of the picture.
    y : array-like of shape (n_rows,)
        Their classes.
    estimator : int, default=0
        Whose hyperplanes to draw, in a forest. Each is drawn where it splits: within
        the region that reaches its node.
    resolution : int, default=200
        Number of points per axis at which the model predicts.
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
    >>> from lhtree.plot import plot_boundary
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> two = X[["alcohol", "flavanoids"]]
    >>> ax = plot_boundary(LHTClassifier(max_depth=2).fit(two, y), two, y)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('alcohol', 'flavanoids')
    """
    lookup.check_is_forest(model, "plot_boundary", "predict has the classes of rows")
    if model.forest_.n_features != 2 or model.n_features_in_ != 2:
        raise ValueError(
            "plot_boundary needs a model of two numeric columns, but this one has "
            f"{model.forest_.n_features}; fit a model on two columns of X."
        )
    n_per_estimator = model.voting_.n_trees_per_estimator
    estimator = lookup.check_number(
        "estimator", estimator, 0, len(model.forest_) // n_per_estimator - 1
    )
    table = model.encode_rows(X)
    labels = arguments.check_labels(model, y, len(table))
    ax = get_axes(ax)
    low, high = _compute_limits(table)
    colors = [PALETTE[k % len(PALETTE)] for k in range(len(model.classes_))]
    _draw_regions(ax, model, low, high, check_count("resolution", resolution), colors)
    for k in range(n_per_estimator):
        tree = model.forest_[estimator * n_per_estimator + k]
        color = INK if n_per_estimator == 1 else colors[tree.positive_class]
        _draw_segments(ax, tree, low, high, color)
    for k, label in enumerate(model.classes_):
        ax.plot(
            *table[labels == label].T,
            linestyle="none",
            marker=MARKERS[k % len(MARKERS)],
            markersize=5,
            color=colors[k],
            markeredgecolor="white",
            markeredgewidth=0.6,
            label=name_class(label),
        )
    names = model.column_names_
    ax.set_xlabel(shorten(names[0], 50), **PLAIN)
    ax.set_ylabel(shorten(names[1], 50), **PLAIN)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    show_legend(ax, frameon=True, ncols=1 + len(model.classes_) // 8)
    return ax


def _compute_limits(table: Floats) -> tuple[Floats, Floats]:
    low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    margin = np.where(high > low, 0.06 * (high - low), np.maximum(np.abs(low), 1.0) * 0.06)
    return low - margin, high + margin


def _draw_regions(
    ax: Axes, model: Any, low: Floats, high: Floats, resolution: int, colors: list[str]
) -> None:
    """Colour the picture by the predicted class."""
    # The middles of the pixels are predicted, so that no pixel lies on the border.
    across, up = (
        low[j] + (high[j] - low[j]) * (np.arange(resolution) + 0.5) / resolution for j in range(2)
    )
    grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    predicted = model_view.view_model(model).predict_encoded(grid)
    ax.imshow(
        predicted.reshape(resolution, resolution),
        extent=(low[0], high[0], low[1], high[1]),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        cmap=ListedColormap(colors),
        vmin=-0.5,
        vmax=len(colors) - 0.5,
        alpha=0.3,
    )


def _draw_segments(ax: Axes, tree: Tree, low: Floats, high: Floats, color: str) -> None:
    """Draw the hyperplanes of a tree, each within the region of its node."""
    segments = compute_segments(tree, low, high)
    ax.add_collection(LineCollection(segments, colors=color, linewidths=1.1), autolim=False)


def compute_segments(tree: Tree, low: Floats, high: Floats) -> list[Floats]:
    """Return the segment of every split that lies within the limits, in raw units."""
    forest = tree.forest
    corner = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    regions = {0: low + corner * (high - low)}
    segments = []
    for node in range(tree.n_nodes):
        region = regions.pop(node, None)
        if region is None or tree.left[node] < 0:
            continue
        feature, weight, *_ = tree.terms(node)
        hyperplane = np.zeros(2)
        hyperplane[feature] = weight
        z = (region - forest.column_mean) / forest.column_std
        score = z @ hyperplane - tree.threshold[node]
        left, right, segment = _cut(region, score)
        if segment is not None:
            segments.append(segment)
        for child, half in ((tree.left[node], left), (tree.left[node] + 1, right)):
            if len(half) > 2:
                regions[int(child)] = half
    return segments


def _cut(region: Floats, score: Floats) -> tuple[Floats, Floats, Floats | None]:
    """Cut a convex polygon where the score of its corners changes sign."""
    left: list[Floats] = []
    right: list[Floats] = []
    border: list[Floats] = []
    for i in range(len(region)):
        here, there = region[i], region[(i + 1) % len(region)]
        a, b = score[i], score[(i + 1) % len(region)]
        (left if a < 0 else right).append(here)
        if (a < 0) != (b < 0):
            crossing = here + (there - here) * (a / (a - b))
            left.append(crossing)
            right.append(crossing)
            border.append(crossing)
    segment = np.array(border) if len(border) == 2 else None
    return np.array(left), np.array(right), segment
