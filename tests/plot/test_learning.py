"""Pictures of how boosted models learned."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from lhtree import LHBoostClassifier, LHBoostRegressor, LHTClassifier
from lhtree.plot import plot_learning_curve


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def rows():
    """Return rows and numbers above 0."""
    X = np.random.default_rng(0).normal(size=(300, 3))
    return X, np.exp(X[:, 0] + np.sin(X[:, 1]))


def read_lines(ax):
    """Return the drawn heights by the words of the legend."""
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    lines = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    assert list(lines) == shown
    return lines


def find_mark(ax, words):
    """Return where the line lies that the legend names so."""
    return next(line.get_xdata() for line in ax.get_lines() if line.get_label() == words)


def test_losses_of_all_rounds_are_drawn(rows, ax):
    X, y = rows
    model = LHBoostRegressor(early_stopping=True, refit=False, random_state=0).fit(X, y)
    assert plot_learning_curve(model, ax=ax) is ax
    lines = read_lines(ax)
    assert_array_equal(lines["training rows"], -model.train_score_)
    assert_array_equal(lines["validation rows"], -model.validation_score_)
    assert model.n_iter_ < len(model.train_score_) - 1
    assert_array_equal(find_mark(ax, f"the model: {model.n_iter_} rounds"), model.n_iter_)
    assert ax.get_xlabel() == "rounds"


@pytest.mark.parametrize("scoring", ["loss", "r2"])
def test_the_best_round_is_marked_where_the_model_was_grown_anew(scoring, rows, ax):
    model = LHBoostRegressor(scoring=scoring, random_state=0).fit(*rows)
    best = np.argmax(model.validation_score_)
    assert model.n_iter_ > best > 1
    plot_learning_curve(model, ax=ax)
    words = f"best round: {best}; the model: {model.n_iter_} on all rows"
    assert_array_equal(find_mark(ax, words), best)
    other = Figure().subplots()
    plot_learning_curve(model.set_params(refit=False).fit(*rows), ax=other)
    assert_array_equal(find_mark(other, f"the model: {best} rounds"), best)


def test_without_validation_rows_there_is_one_line(rows, ax):
    model = LHBoostRegressor(n_estimators=5, early_stopping=False).fit(*rows)
    lines = read_lines(plot_learning_curve(model, ax=ax))
    assert list(lines) == ["training rows"]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (LHBoostRegressor(), "half the mean squared error"),
        (LHBoostRegressor("absolute_error"), "mean absolute error"),
        (LHBoostRegressor("quantile", quantile=[0.1, 0.9]), "mean quantile loss"),
        (LHBoostRegressor("poisson"), "half the mean Poisson deviance"),
        (LHBoostRegressor("gamma"), "half the mean gamma deviance"),
        (LHBoostRegressor(scoring=None), "R2"),
        (LHBoostRegressor(scoring=lambda *_: 1.0), "score"),
        (LHBoostClassifier(), "log-loss"),
        (LHBoostClassifier(scoring="roc_auc"), "roc_auc"),
        (LHBoostClassifier(scoring=None), "accuracy"),
    ],
)
def test_the_measure_is_named(model, words, rows, ax):
    X, y = rows
    model.set_params(n_estimators=3).fit(X, y > 1 if hasattr(model, "predict_proba") else y)
    assert plot_learning_curve(model, ax=ax).get_ylabel() == words
    sign = 1 if model.scoring != "loss" else -1
    assert_array_equal(read_lines(ax)["training rows"], sign * model.train_score_)


def test_models_without_rounds_are_refused(rows):
    words = "^model must be a fitted LHBoostClassifier or LHBoostRegressor, got LHTClassifier; "
    with pytest.raises(TypeError, match=words):
        plot_learning_curve(LHTClassifier().fit(rows[0], rows[1] > 1))
    with pytest.raises(NotFittedError):
        plot_learning_curve(LHBoostRegressor())
