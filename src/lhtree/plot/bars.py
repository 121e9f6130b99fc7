"""Pictures of importances and of the contributions to one prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lhtree.data.reading import name_features
from lhtree.estimators import lookup
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
    format_change,
    get_axes,
    name_class,
    remove_frame,
    shorten,
)


def plot_importances(
    model: Any, class_label: Any = None, *, n_features: int = 15, ax: Axes | None = None
) -> Axes:
    """Show how strongly the splits rely on each feature.

    Parameters
    ----------
    model : LHTClassifier or LHForestClassifier
        A fitted model.
    class_label : object, default=None
        Label of the class whose trees count; None for all trees.
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
    lookup.check_is_forest(model, "plot_importances", "feature_importances_ has the numbers")
    if class_label is None:
        importance, whose = model.feature_importances_, "all trees"
    else:
        k = lookup.look_up_class(model, class_label)
        importance = model_view.sum_by_feature(
            class_importances(model)[k], model.column_source_, model.n_features_in_
        )
        whose = f"trees of {name_class(class_label)}"
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
    ax.set_xlabel(f"fraction of the splits' strength{note}")
    remove_frame(ax)
    return ax


def plot_contributions(
    model: Any, x: Any, class_label: Any = None, *, n_features: int = 10, ax: Axes | None = None
) -> Axes:
    """Show what each feature adds on the way from the base value to the vote for one row.

    Parameters
    ----------
    model : LHTClassifier or LHForestClassifier
        A fitted model.
    x : array-like of shape (1, n_features) or (n_features,)
        One row with the columns of the training data; for a frame, ``X.iloc[[i]]``.
    class_label : object, default=None
        Label of the class whose vote is explained; None for the predicted class.
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
    lookup.check_is_forest(model, "plot_contributions", "explain_rows has the numbers")
    X = arguments.read_row(x)
    explained = explain_rows(model, X)
    label = model.predict(X)[0] if class_label is None else class_label
    k = lookup.look_up_class(model, label)
    total = explained.by_feature()
    names = [
        f"{shorten(name)} = {shorten(value)}"
        for name, value in zip(total.column_names, describe_values(explained, 0), strict=True)
    ]
    steps = _choose_steps(names, total.contribution[0, k], check_count("n_features", n_features))
    base, vote = float(total.base[k]), float(total.score[0, k])
    ax = get_axes(ax, (6.4, 1.6 + 0.3 * (len(steps) + 2)))
    _draw_waterfall(ax, base, steps, vote)
    ax.set_title(f"Why {name_class(label)}: vote {vote:.3f}", **PLAIN)
    ax.set_xlabel(f"vote for {name_class(label)}", **PLAIN)
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


def _draw_waterfall(ax: Axes, base: float, steps: list[tuple[str, float]], vote: float) -> None:
    """Draw the bars from the base value at the top to the vote at the bottom."""
    ends = base + np.cumsum([0.0, *(value for _, value in steps)])
    rows = len(steps) + 2
    ax.barh([0, rows - 1], [base, vote], height=0.6, color=FAINT)
    for i, (_, value) in enumerate(steps, start=1):
        ax.barh(i, value, left=ends[i - 1], height=0.6, color=UP if value >= 0 else DOWN)
    for i, end in enumerate(ends):
        ax.plot([end, end], [i - 0.3, i + 1.3], color=INK, linewidth=0.7)
    texts = [f"{base:.3f}", *(format_change(value) for _, value in steps), f"{vote:.3f}"]
    right = [base, *np.maximum(ends[:-1], ends[1:]), vote]
    for i, (text, x) in enumerate(zip(texts, right, strict=True)):
        ax.annotate(
            text, (x, i), (4, 0), textcoords="offset points", va="center", fontsize="small",
            color=INK,
        )  # fmt: skip
    labels = ["fraction in training", *(name for name, _ in steps), "vote"]
    ax.set_yticks(range(rows), labels, **PLAIN)
    ax.set_ylim(rows - 0.4, -0.6)
    ax.margins(x=0.16)
