"""Pictures of importances and of the contributions to one prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lhtree.data.reading import name_features
from lhtree.explain import arguments, class_importances, explain_rows, model_view
from lhtree.explain.row_text import describe_values
from lhtree.plot.canvas import (
    DOWN,
    FAINT,
    INK,
    PLAIN,
    POSITIVE,
    UP,
    check_count,
    choose_decimals,
    format_change,
    format_plain,
    get_axes,
    name_class,
    remove_frame,
    shorten,
)

FAR = 3  # from zero, in ranges of the sums: changes would be too small to see beside the base


def plot_importances(
    model: Any, class_label: Any = None, *, n_features: int = 15, ax: Axes | None = None
) -> Axes:
    """Show how strongly the splits rely on each feature.

    Parameters
    ----------
    model : classifier or regressor of this package
        A fitted model.
    class_label : object, default=None
        Label of a class: its trees count, or of boosted models the changes of its score (see
        :func:`lhtree.explain.class_importances`). None shows ``feature_importances_``.
    n_features : int, default=15
        How many features to draw, the most important first.
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
    >>> from lhtree.plot import plot_importances
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> ax = plot_importances(LHTClassifier().fit(X, y), class_label=0)
    >>> ax.get_yticklabels()[0].get_text()
    'proline'
    """
    view = model_view.view_model(model)
    if class_label is None:
        importance, whose, unit = model.feature_importances_, "all trees", view.importance_name
    else:
        k = model_view.look_up_output(view, class_label)
        importance = model_view.sum_by_feature(
            class_importances(model)[k], model.column_source_, model.n_features_in_
        )
        whose, unit = f"trees of {name_class(class_label)}", view.class_importance_name
    order = np.argsort(-importance, kind="stable")[: check_count("n_features", n_features)]
    ax = get_axes(ax, (6.4, 1.3 + 0.28 * max(len(order), 3)))
    ax.barh(np.arange(len(order)), importance[order], height=0.7, color=POSITIVE)
    for i, value in enumerate(importance[order]):
        ax.annotate(
            f"{value:.3f}", (value, i), (3, 0), textcoords="offset points", va="center",
            fontsize="small", color=INK,
        )  # fmt: skip
    names = name_features(model)
    ax.set_yticks(range(len(order)), [shorten(names[j]) for j in order], **PLAIN)
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.margins(x=0.16)
    ax.set_title(f"Importance of features, {whose}", **PLAIN)
    n_hidden = len(importance) - len(order)
    note = f"; {n_hidden:,} less important features are not shown" if n_hidden else ""
    ax.set_xlabel(f"{unit}{note}")
    remove_frame(ax)
    return ax


def plot_contributions(
    model: Any, x: Any, class_label: Any = None, *, n_features: int = 10, ax: Axes | None = None
) -> Axes:
    """Show what each feature adds on the way from the base value to the score of one row.

    The score is the vote for a class of trees and forests, and the raw score of boosted
    models: see :func:`lhtree.explain.explain_rows`.

    Parameters
    ----------
    model : classifier or regressor of this package
        A fitted model.
    x : array-like of shape (1, n_features) or (n_features,)
        One row with the columns of the training data; for a frame, ``X.iloc[[i]]``.
    class_label : object, default=None
        Label of the class whose score is explained; None for the predicted class, or the
        predicted number.
    n_features : int, default=10
        How many features to draw, the strongest first; the others are added up.
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
    >>> from lhtree.plot import plot_contributions
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> ax = plot_contributions(LHTClassifier().fit(X, y), X.iloc[[0]])
    >>> ax.get_title()
    'Why class 0: vote 1.000'
    """
    view = model_view.view_model(model)
    X = arguments.read_row(x)
    explained = explain_rows(model, X)
    is_predicted = class_label is None and view.classes is not None
    label = model.predict(X)[0] if is_predicted else class_label
    k = model_view.look_up_output(view, label)
    total = explained.by_feature()
    names = [
        f"{shorten(name)} = {shorten(value)}"
        for name, value in zip(total.column_names, describe_values(explained, 0), strict=True)
    ]
    steps = _choose_steps(names, total.contribution[0, k], check_count("n_features", n_features))
    base, score = float(total.base[k]), float(total.score[0, k])
    ax = get_axes(ax, (6.4, 1.6 + 0.3 * (len(steps) + 2)))
    decimals = choose_decimals([base, score, *(value for _, value in steps)])
    ends = (view.start_name, base), (view.score_name, score)
    _draw_waterfall(ax, ends, steps, decimals)
    if view.classes is None:
        title, unit = f"Why {format_plain(score, decimals)}", view.output_names[k]
    else:
        unit = f"{view.score_name} {view.preposition} {name_class(label)}"
        title = f"Why {name_class(label)}: {view.score_name} {format_plain(score, decimals)}"
    ax.set_title(title, **PLAIN)
    ax.set_xlabel(unit, **PLAIN)
    remove_frame(ax)
    return ax


def _choose_steps(names: list[str], contribution: Any, n_features: int) -> list[tuple[str, float]]:
    """Return the strongest contributions in order, and the sum of the others."""
    order = np.argsort(-np.abs(contribution), kind="stable")
    order = order[contribution[order] != 0]
    steps = [(names[j], float(contribution[j])) for j in order[:n_features]]
    others = order[n_features:]
    if len(others):
        steps.append((f"{len(others):,} other features", float(contribution[others].sum())))
    return steps


def _draw_waterfall(
    ax: Axes,
    outer: tuple[tuple[str, float], tuple[str, float]],
    steps: list[tuple[str, float]],
    decimals: int,
) -> None:
    """Draw the bars from the base value at the top to the score at the bottom."""
    (start_name, base), (end_name, score) = outer
    ends = base + np.cumsum([0.0, *(value for _, value in steps)])
    rows = len(steps) + 2
    ax.barh([0, rows - 1], [base, score], height=0.6, color=FAINT)
    for i, (_, value) in enumerate(steps, start=1):
        ax.barh(i, value, left=ends[i - 1], height=0.6, color=UP if value >= 0 else DOWN)
    for i, end in enumerate(ends):
        ax.plot([end, end], [i - 0.3, i + 1.3], color=INK, linewidth=0.7)
    texts = [
        format_plain(base, decimals),
        *(format_change(value, decimals) for _, value in steps),
        format_plain(score, decimals),
    ]
    right = [max(base, 0.0), *np.maximum(ends[:-1], ends[1:]), max(score, 0.0)]
    for i, (text, x) in enumerate(zip(texts, right, strict=True)):
        ax.annotate(
            text, (x, i), (4, 0), textcoords="offset points", va="center", fontsize="small",
            color=INK,
        )  # fmt: skip
    labels = [start_name, *(name for name, _ in steps), end_name]
    ax.set_yticks(range(rows), labels, **PLAIN)
    ax.set_ylim(rows - 0.4, -0.6)
    ax.margins(x=0.16)
    low, high = float(ends.min()), float(ends.max())
    if low * high > 0 and min(abs(low), abs(high)) > FAR * (high - low) > 0:
        ax.set_xlim(low - 0.3 * (high - low), high + 0.4 * (high - low))
