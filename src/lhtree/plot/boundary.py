"""Pictures of the decision regions of two features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap
from numpy.typing import NDArray

from lhtree.arrays import Floats
from lhtree.estimators import lookup
from lhtree.explain import arguments, model_view
from lhtree.explain.model_view import ModelView
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

# How pictures of pixels are drawn.
PIXELS: dict[str, Any] = {"origin": "lower", "aspect": "auto", "interpolation": "nearest"}


def plot_boundary(
    model: Any,
    X: Any,
    y: Any,
    *,
    estimator: int = 0,
    resolution: int = 200,
    ax: Axes | None = None,
) -> Axes:
    """Show what a model predicts for two features, and the hyperplanes behind it.

    Classes have regions; predicted numbers are shades.

    Parameters
    ----------
    model : classifier or regressor of this package
        A model that was fitted on two numeric columns.
    X : array-like of shape (n_rows, 2)
        Rows to draw as points; they set the limits of the picture.
    y : array-like of shape (n_rows,)
        Their classes, or numbers.
    estimator : int, default=0
        Whose hyperplanes to draw, in a forest; of boosted models, those of one tree.
        Each is drawn where it splits: within the region that reaches its node.
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
    view = model_view.view_model(model)
    if len(view.is_number) != 2 or model.n_features_in_ != 2 or not view.is_number.all():
        raise ValueError(
            "plot_boundary needs a model of two numeric columns, but this one has "
            f"{np.count_nonzero(view.is_number)}; fit a model on two columns of X."
        )
    estimator = lookup.check_number("estimator", estimator, 0, max(view.n_estimators - 1, 0))
    trees = view.list_trees(estimator) if view.n_estimators else []
    table = model.encode_rows(X)
    targets = arguments.check_targets(model, y, len(table))
    resolution = check_count("resolution", resolution)
    ax = get_axes(ax)
    low, high = _compute_limits(table)
    names = model.column_names_
    ax.set_xlabel(shorten(names[0], 50), **PLAIN)
    ax.set_ylabel(shorten(names[1], 50), **PLAIN)
    if view.classes is None:
        shown = _predict_pixels(low, high, resolution, view.predict_number)
        _draw_numbers(ax, shown, table, targets, (low, high))
        colors = [INK]
    else:
        colors = [PALETTE[k % len(PALETTE)] for k in range(len(view.classes))]
        _draw_regions(ax, view, low, high, resolution, colors)
    for tree in trees:
        color = INK if len(trees) == 1 else colors[view.get_class(tree)]
        _draw_segments(ax, view, tree, (low, high), color)
    if view.classes is not None:
        _draw_points(ax, view.classes, table, targets, colors)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    return ax


def _draw_points(
    ax: Axes, classes: NDArray[Any], table: Floats, labels: NDArray[Any], colors: list[str]
) -> None:
    for k, label in enumerate(classes):
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
    show_legend(ax, frameon=True, ncols=1 + len(classes) // 8)


def _draw_numbers(
    ax: Axes, shown: Floats, table: Floats, targets: Floats, limits: tuple[Floats, Floats]
) -> None:
    """Shade the picture by the predicted numbers, and the points by the true ones."""
    low, high = limits
    least, most = min(shown.min(), targets.min()), max(shown.max(), targets.max())
    shades: dict[str, Any] = {"cmap": "viridis", "vmin": least, "vmax": most}
    picture = ax.imshow(shown, extent=(low[0], high[0], low[1], high[1]), **PIXELS, **shades)
    across, up = table.T
    ax.scatter(across, up, c=targets, edgecolors="white", linewidths=0.6, s=22, zorder=3, **shades)
    ax.figure.colorbar(picture, ax=ax, label="predicted; points: true")


def _compute_limits(table: Floats) -> tuple[Floats, Floats]:
    low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    margin = np.where(high > low, 0.06 * (high - low), np.maximum(np.abs(low), 1.0) * 0.06)
    return low - margin, high + margin


def _predict_pixels(
    low: Floats, high: Floats, resolution: int, predict: Callable[[Floats], Any]
) -> Any:
    """Return predictions for the middles of the pixels, so that none lies on a border."""
    across, up = (
        low[j] + (high[j] - low[j]) * (np.arange(resolution) + 0.5) / resolution for j in range(2)
    )
    grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    return predict(grid).reshape(resolution, resolution)


def _draw_regions(
    ax: Axes, view: ModelView, low: Floats, high: Floats, resolution: int, colors: list[str]
) -> None:
    """Colour the picture by the predicted class."""
    ax.imshow(
        _predict_pixels(low, high, resolution, view.predict_encoded),
        extent=(low[0], high[0], low[1], high[1]),
        cmap=ListedColormap(colors),
        vmin=-0.5,
        vmax=len(colors) - 0.5,
        alpha=0.3,
        **PIXELS,
    )


def _draw_segments(
    ax: Axes, view: ModelView, tree: Any, limits: tuple[Floats, Floats], color: str
) -> None:
    """Draw the hyperplanes of a tree, each within the region of its node."""
    segments = compute_segments(view, tree, *limits)
    ax.add_collection(LineCollection(segments, colors=color, linewidths=1.1), autolim=False)


def compute_segments(view: ModelView, tree: Any, low: Floats, high: Floats) -> list[Floats]:
    """Return the segment of every split that lies within the limits, in raw units."""
    corner = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    regions = {0: low + corner * (high - low)}
    split = np.flatnonzero(tree.left >= 0)
    origin = view.standardize(np.zeros((1, 2)))[0]
    slopes, values = view.compute_functions(split + tree.first_node, origin)
    segments = []
    for node, slope, value in zip(split.tolist(), slopes, values, strict=True):
        region = regions.pop(node, None)
        if region is None:
            continue
        score = (view.standardize(region) - origin) @ slope + value
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
