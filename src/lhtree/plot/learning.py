"""Picture of how a boosted model learned, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from lhtree.arrays import Floats
from lhtree.estimators.boosting import BoostingEstimator
from lhtree.estimators.lookup import check_model
from lhtree.plot.canvas import DOWN, FAINT, PLAIN, POSITIVE, get_axes, remove_frame, show_legend

LOSSES = {
    "squared_error": "half the mean squared error",
    "absolute_error": "mean absolute error",
    "quantile": "mean quantile loss",
    "poisson": "half the mean Poisson deviance",
    "gamma": "half the mean gamma deviance",
    "log_loss": "log-loss",
}


def plot_learning_curve(model: Any, *, ax: Axes | None = None) -> Axes:
    """Show how training and validation rows did after each round of boosting.

    The losses fall, or, if `scoring` names another measure, the scores rise. A line marks the
    round that the model went back to.

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
    >>> model = LHBoostRegressor(early_stopping=True, random_state=0).fit(X, y)
    >>> plot_learning_curve(model).get_ylabel()
    'half the mean squared error'
    """
    check_model(model)
    if not isinstance(model, BoostingEstimator):
        raise TypeError(
            "model must be a fitted LHBoostClassifier or LHBoostRegressor, got "
            f"{type(model).__name__}; trees and forests have no rounds."
        )
    sign, measure = _describe_scores(model)
    ax = get_axes(ax, (6.4, 4.0))
    _draw_line(ax, sign * model.train_score_, POSITIVE, "training rows")
    if len(model.validation_score_):
        _draw_line(ax, sign * model.validation_score_, DOWN, "validation rows")
    if model.n_iter_ < len(model.train_score_) - 1:
        kept = f"the model: {model.n_iter_} rounds"
        ax.axvline(model.n_iter_, color=FAINT, linewidth=1, linestyle="--", zorder=1, label=kept)
    ax.set_xlabel("rounds")
    ax.set_ylabel(measure, **PLAIN)
    ax.set_title("Learning curve")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.margins(x=0.02)
    show_legend(ax)
    remove_frame(ax)
    return ax


def _describe_scores(model: Any) -> tuple[float, str]:
    """Return the sign of what is drawn, and its name."""
    scoring = model.scoring
    if isinstance(scoring, str) and scoring == "loss":
        return -1.0, LOSSES[getattr(model, "_loss", model.loss)]
    if scoring is None:
        return 1.0, "R2" if model._is_regressor else "accuracy"
    return 1.0, scoring if isinstance(scoring, str) else "score"


def _draw_line(ax: Axes, values: Floats, color: str, label: str) -> None:
    ax.plot(np.arange(len(values)), values, color=color, linewidth=1.8, label=label)
