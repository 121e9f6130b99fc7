"""Picture of how a boosted model learned, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from lhtree.arrays import Floats
from lhtree.estimators.boosting import BoostingEstimator
from lhtree.estimators.lookup import check_model
from lhtree.explain.learning import Learning, read_learning
from lhtree.plot.canvas import DOWN, FAINT, PLAIN, POSITIVE, get_axes, remove_frame, show_legend


def plot_learning_curve(model: Any, *, ax: Axes | None = None) -> Axes:
    """Show how training and validation rows did after each round of boosting.

    The losses fall, or, if `scoring` names another measure, the scores rise. A line marks the
    round that the model went back to. The curves of a model that was then grown anew from all
    rows (see `refit`) are those of the first model.

    Parameters
    ----------
    model : LHBoostClassifier or LHBoostRegressor
        A fitted model.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lhtree import LHBoostRegressor
    >>> from lhtree.plot import plot_learning_curve
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LHBoostRegressor(random_state=0).fit(X, y)
    >>> plot_learning_curve(model).get_ylabel()
    'half the mean squared error'
    """
    check_model(model)
    if not isinstance(model, BoostingEstimator):
        raise TypeError(
            "model must be a fitted LHBoostClassifier or LHBoostRegressor, got "
            f"{type(model).__name__}; trees and forests have no rounds."
        )
    learning = read_learning(model)
    ax = get_axes(ax, (6.4, 4.0))
    _draw_line(ax, learning.training, POSITIVE, "training rows")
    if len(learning.validation):
        _draw_line(ax, learning.validation, DOWN, "validation rows")
    if mark := _describe_best(learning):
        ax.axvline(
            learning.best_round, color=FAINT, linewidth=1, linestyle="--", zorder=1, label=mark
        )
    ax.set_xlabel("rounds")
    ax.set_ylabel(learning.measure, **PLAIN)
    ax.set_title("Learning curve")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.margins(x=0.02)
    show_legend(ax)
    remove_frame(ax)
    return ax


def _describe_best(learning: Learning) -> str | None:
    """Return what the legend says about the best round, None if it is simply the last."""
    if learning.n_refitted is not None:
        return f"best round: {learning.best_round}; the model: {learning.n_refitted} on all rows"
    is_last = learning.best_round == learning.n_rounds
    return None if is_last else f"the model: {learning.best_round} rounds"


def _draw_line(ax: Axes, values: Floats, color: str, label: str) -> None:
    ax.plot(np.arange(len(values)), values, color=color, linewidth=1.8, label=label)
