"""Losses of boosting for numbers: what models predict, what their scores mean, bad targets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import (
    mean_absolute_error,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_squared_error,
)

from exact.losses import make_loss
from lhtree import LHBoostRegressor, load, save
from lhtree.training.targets import Weights, place_means, place_numbers, place_quantiles

LEVELS = [0.1, 0.5, 0.9]
MODELS = {
    "squared_error": LHBoostRegressor("squared_error"),
    "absolute_error": LHBoostRegressor("absolute_error"),
    "quantile": LHBoostRegressor("quantile", quantile=0.8),
    "quantiles": LHBoostRegressor("quantile", quantile=LEVELS),
    "poisson": LHBoostRegressor("poisson"),
    "gamma": LHBoostRegressor("gamma"),
}
NAMES = pytest.mark.parametrize("name", MODELS)


def measure(name, y, predicted, weight=None):
    """Return the mean loss of predictions."""
    if name == "squared_error":
        return mean_squared_error(y, predicted, sample_weight=weight) / 2
    if name == "absolute_error":
        return mean_absolute_error(y, predicted, sample_weight=weight)
    if name == "poisson":
        return mean_poisson_deviance(y, predicted, sample_weight=weight) / 2
    if name == "gamma":
        return mean_gamma_deviance(y, predicted, sample_weight=weight) / 2
    levels = [0.8] if name == "quantile" else LEVELS
    columns = np.asarray(predicted).reshape(len(y), -1).T
    parts = zip(columns, levels, strict=True)
    return np.mean(
        [mean_pinball_loss(y, each, alpha=level, sample_weight=weight) for each, level in parts]
    )


def make_rows(name, n=600, seed=0):
    """Return rows and numbers that a loss may have as targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    mean = np.exp(X[:, 0] + np.sin(2 * X[:, 1]))
    if name == "poisson":
        return X, rng.poisson(mean).astype(float)
    if name == "gamma":
        return X, rng.gamma(2, mean / 2)
    return X, mean + rng.normal(size=n) * (1 + np.abs(X[:, 2]))


def make(name, **parameters):
    """Return a small model of so many rounds: no rows are held out unless a test says so."""
    rounds = {"n_estimators": 15, "learning_rate": 0.1, "early_stopping": False}
    rounds |= {"max_leaf_nodes": 31, "random_state": 0}
    return clone(MODELS[name]).set_params(**rounds | parameters)


@NAMES
@pytest.mark.parametrize("is_weighted", [False, True])
def test_scores_are_minus_the_mean_losses(name, is_weighted):
    (X, y), (X_val, y_val) = make_rows(name), make_rows(name, 200, 1)
    weight = np.random.default_rng(2).random(600) if is_weighted else None
    weight_val = np.arange(200) % 3 + 1 if is_weighted else None
    given = {"X_val": X_val, "y_val": y_val, "sample_weight_val": weight_val}
    model = make(name, early_stopping=False).fit(X, y, weight, **given)
    for score, table, target, own in (
        (model.train_score_, X, y, weight),
        (model.validation_score_, X_val, y_val, weight_val),
    ):
        loss = measure(name, target, model.predict(table), own)
        assert -score[-1] == pytest.approx(loss, rel=1e-4)
        assert len(score) == 16
    assert (np.diff(model.train_score_) > 0).all()


@NAMES
def test_models_start_with_the_best_constant(name):
    X, y = make_rows(name)
    weight = np.random.default_rng(2).integers(1, 4, 600)
    copies = np.repeat(y, weight)
    expected = {
        "absolute_error": np.median(copies),
        "quantile": np.quantile(copies, 0.8, method="averaged_inverted_cdf"),
        "quantiles": np.quantile(copies, LEVELS, method="averaged_inverted_cdf"),
    }.get(name, copies.mean())
    model = make(name, min_samples_leaf=10**6).fit(X, y, weight)
    assert model.get_n_leaves() == 15
    first = model.predict(X[:1])[0]
    assert_allclose(first, expected, rtol=1e-5)


@NAMES
@pytest.mark.parametrize("seed", range(4))
def test_targets_start_as_in_the_reference(name, seed):
    _, y = make_rows(name)
    rng = np.random.default_rng(seed)
    held_out = np.zeros(600, dtype=np.uint8)
    held_out[rng.permutation(600)[:100]] = 1
    weights = Weights(rng.integers(1, 9, 600) if seed % 2 else np.ones(600, dtype=np.int64))
    given = y, weights, held_out, y[:0]
    levels = {"absolute_error": [0.5], "quantile": [0.8], "quantiles": LEVELS}.get(name, ())
    if levels:
        targets = place_quantiles(*given, None, levels, is_absolute=name == "absolute_error")
    elif name in ("poisson", "gamma"):
        targets = place_means(*given, is_gamma=name == "gamma")
    else:
        targets = place_numbers(*given)
    loss = make_loss("quantile" if levels else name, max(1, len(levels)), levels)
    own = targets.training[held_out == 0], weights.values[held_out == 0]
    assert_array_equal(targets.scale.base, loss.start(*own))
    if name == "poisson":
        loss.learn(*own)
        assert targets.scale.loss_factor == loss.mean


@NAMES
def test_the_unit_of_targets_does_not_matter(name):
    X, y = make_rows(name)
    expected = make(name).fit(X, y).predict(X)
    for power in (-900, 900):
        predicted = make(name).fit(X, np.ldexp(y, power)).predict(X)
        assert_allclose(np.ldexp(predicted, -power), expected, rtol=1e-6)


@NAMES
def test_a_model_is_better_than_its_start_on_other_rows(name):
    (X, y), (X_new, y_new) = make_rows(name, 2000), make_rows(name, 500, 1)
    model = make(name, n_estimators=60).fit(X, y)
    start = np.repeat(make(name, min_samples_leaf=10**6).fit(X, y).predict(X[:1]), 500, axis=0)
    ratio = measure(name, y_new, model.predict(X_new)) / measure(name, y_new, start)
    assert ratio < {"squared_error": 0.6, "poisson": 0.6, "gamma": 0.9}.get(name, 0.8)


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_predictions_of_means_are_positive(loss):
    X, y = make_rows(loss)
    model = make(loss, learning_rate=1.0).fit(X, y)
    assert (model.predict(X * 1e6) > 0).all()


def test_a_mean_of_zero_is_approached():
    X = np.repeat([[0.0], [1.0]], 50, axis=0)
    model = make("poisson", n_estimators=200, l2_regularization=0.0).fit(X, 3 * X[:, 0])
    # A side of a split has a hessian of one: 50 rows of 1.5 / 50 at least.
    assert_allclose(model.predict([[0.0], [1.0]]), [0.03, 3], rtol=0.02)


def test_numbers_far_below_the_others_are_above_zero():
    X, y = make_rows("gamma")
    y[:3] = [1e-300, 5e-324, 1e-12]
    assert make("gamma").fit(X, y).predict(X).min() > 0


def test_several_quantiles_do_not_cross():
    X, y = make_rows("quantiles", 300)
    levels = [0.3, 0.4, 0.5, 0.6, 0.7]
    model = make("quantiles", quantile=levels, learning_rate=1.0).fit(X, y)
    predicted = model.predict(make_rows("quantiles", 300, 1)[0])
    assert predicted.shape == (300, 5)
    assert (np.diff(predicted, axis=1) >= 0).all()
    assert (np.diff(model.forest_.score(X), axis=1) < 0).any()  # without sorting they would


def test_a_list_of_one_level_gives_one_column():
    X, y = make_rows("quantile")
    expected = make("quantile").fit(X, y).predict(X)
    for levels in ([0.8], (0.8,), np.array([0.8])):
        predicted = make("quantile", quantile=levels).fit(X, y).predict(X)
        assert_array_equal(predicted, expected[:, np.newaxis])


def test_the_median_is_that_of_absolute_errors():
    X, y = make_rows("quantile")
    median, absolute = make("quantile", quantile=0.5).fit(X, y), make("absolute_error").fit(X, y)
    assert_array_equal(median.predict(X), absolute.predict(X))
    assert_array_equal(2 * median.train_score_, absolute.train_score_)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.95])
def test_so_many_targets_are_below_a_quantile(level):
    (X, y), (X_new, y_new) = make_rows("quantile", 8000), make_rows("quantile", 4000, 1)
    model = make("quantile", quantile=level, max_leaf_nodes=8, n_estimators=40).fit(X, y)
    assert np.mean(y_new < model.predict(X_new)) == pytest.approx(level, abs=0.02)


@NAMES
@pytest.mark.parametrize("value", [1.0, 0.1, 1e300])
def test_a_constant_target_is_predicted(name, value):
    model = make(name).fit(np.arange(30.0)[:, None], np.full(30, value))
    assert_allclose(model.predict([[3.0]]).ravel(), value, rtol=1e-7)


@NAMES
def test_files_keep_the_loss(name, tmp_path):
    X, y = make_rows(name)
    model = make(name).fit(X, y)
    save(model, tmp_path / "model")
    copy = load(tmp_path / "model")
    assert vars(copy).keys() == vars(model).keys()
    assert_array_equal(copy.predict(X), model.predict(X))
    assert_array_equal(copy.set_params(loss="squared_error").predict(X), model.predict(X))


def test_score_needs_one_prediction_for_each_row():
    X, y = make_rows("quantiles")
    assert make("quantile", quantile=0.5, l2_regularization=0).fit(X, y).score(X, y) > 0.5
    with pytest.raises(ValueError, match=r"^score needs one prediction .* gives 3; score each"):
        make("quantiles").fit(X, y).score(X, y)


LEAST = [
    ("poisson", -0.5, "loss='poisson' needs y of at least 0 in every row, got -0.5; leave out"),
    ("gamma", 0.0, "loss='gamma' needs y above 0 in every row, got 0.0; leave out"),
]


@pytest.mark.parametrize(("name", "value", "words"), LEAST)
def test_targets_that_a_loss_cannot_have_are_refused(name, value, words):
    X, y = make_rows(name)
    y[3] = value
    with pytest.raises(ValueError, match=f"^{words}"):
        make(name).fit(X, y)
    with pytest.raises(ValueError, match=f"^{words.replace(' y ', ' y_val ')}"):
        make(name).fit(X[10:], y[10:], X_val=X[:10], y_val=y[:10])
    make(name).fit(X, y, np.arange(600) != 3)  # a row of weight 0 is absent


def test_targets_of_zero_only_are_refused():
    with pytest.raises(ValueError, match=r"^loss='poisson' needs a y above 0 in some row, got z"):
        make("poisson").fit(np.zeros((9, 1)), np.zeros(9))


@pytest.mark.parametrize(
    "quantile",
    [
        None,
        0,
        1,
        1.5,
        -0.1,
        np.nan,
        "a",
        [],
        [0.5, 0.2],
        [0.2, 0.2],
        [0.1, 1.0],
        [0.1, "b"],
        [[0.1]],
        np.array([[0.1, 0.9]]),
        np.array(3),
        list(np.linspace(0.1, 0.9, 256)),
    ],
)
def test_bad_quantiles_are_refused(quantile):
    X, y = make_rows("quantile")
    with pytest.raises((TypeError, ValueError)) as caught:
        make("quantile", quantile=quantile).fit(X, y)
    assert str(caught.value).startswith("quantile must be a number between 0 and 1, or an asc")


@pytest.mark.parametrize("name", ["poisson", "gamma", "quantiles"])
def test_means_and_quantiles_stop_early(name):
    X, y = make_rows(name)
    model = make(name, early_stopping=True, refit=False, n_estimators=500).fit(X, y)
    best = int(np.argmax(model.validation_score_))
    assert 0 < model.n_iter_ == best < 480
