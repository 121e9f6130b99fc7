"""What the parameters of boosting are where they are "auto"."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.estimators.boosting.params import BoostingParams
from lhtree.training.targets import Weights
from watched import NAMES, assert_same, make, make_rows

KINDS = pytest.mark.parametrize("kind", [LHBoostClassifier, LHBoostRegressor])


def make_steps(n):
    """Return rows of one column, in an order at random, and targets that rise with it."""
    x = np.random.default_rng(0).permutation(n)
    return x[:, np.newaxis].astype(float), np.sqrt(x)


def measure_rates(n_rows=1000, **parameters):
    """Return the learning rates of rounds, from what each leaves of two distant groups."""
    X = np.repeat([[0.0], [1.0]], n_rows // 2, axis=0)
    # A hundredth of each step is taken, so that something is left after many rounds.
    ridge = 99 * (n_rows // 2)
    model = LHBoostRegressor(l2_regularization=ridge, early_stopping=False, **parameters)
    score = model.fit(X, X[:, 0]).train_score_
    return 100 * (1 - np.sqrt(score[1:] / score[:-1]))


@pytest.mark.parametrize(
    ("n_rows", "growth"), [(1000, 0.0015), (1002, 0.0005), (20_000, 0.0005), (20_002, 0.0015)]
)
def test_rates_rise_faster_where_few_rounds_are_enough_or_each_takes_long(n_rows, growth):
    number = np.arange(260)
    expected = np.minimum(0.05 + growth * number, 0.3)
    assert_allclose(measure_rates(n_rows, n_estimators=260), expected, atol=4e-4)


@pytest.mark.parametrize(
    ("n_classes", "parameters", "stops_early", "first"),
    [
        (0, {}, True, 0.025),
        (0, {}, False, 0.025),  # of the model that is grown anew
        (0, {"early_stopping": False}, False, 0.05),
        (0, {"n_estimators": 50}, True, 0.05),
        (2, {}, True, 0.05),
    ],
)
def test_numbers_start_slowly_where_there_are_rounds_enough(
    n_classes, parameters, stops_early, first
):
    kind = LHBoostClassifier if n_classes else LHBoostRegressor
    plan = BoostingParams.read(kind(**parameters)).resolve(
        n_columns=3, n_numbers=3, n_rows=500, weights=Weights(None), seed=0,
        stops_early=stops_early, n_classes=n_classes,
    )  # fmt: skip
    assert plan.learning_rate == first


def test_a_rate_that_is_given_stays():
    assert_allclose(measure_rates(n_estimators=40, learning_rate=0.3), 0.3, atol=4e-4)


@NAMES
def test_rates_of_a_warm_start_go_on_rising(name):
    X, y = make_rows(name)
    expected = make(name, learning_rate="auto", n_estimators=30).fit(X, y)
    model = make(name, learning_rate="auto", n_estimators=12, warm_start=True).fit(X, y)
    assert_same(expected, model.set_params(n_estimators=30).fit(X, y))


@KINDS
def test_there_are_100_rounds_if_nothing_stops_them(kind):
    X, y = make_steps(150)
    y = y > 6 if kind is LHBoostClassifier else y
    model = kind(early_stopping=False).fit(X, y)
    assert model.n_iter_ == 100
    assert_same(kind(early_stopping=False, n_estimators=100).fit(X, y), model)
    assert kind().fit(X[:99], y[:99]).n_iter_ == 100


@pytest.mark.parametrize(
    ("kind", "n_classes", "n_rounds"),
    [(LHBoostRegressor, 0, 600), (LHBoostClassifier, 2, 600), (LHBoostClassifier, 3, 1000)],
)
def test_more_rounds_are_allowed_where_some_rows_say_when_to_stop(kind, n_classes, n_rounds):
    params = BoostingParams.read(kind())
    assert params.count_rounds(stops_early=True, n_classes=n_classes) == n_rounds
    assert params.count_rounds(stops_early=False, n_classes=n_classes) == 100
    given = BoostingParams.read(kind(n_estimators=7))
    assert given.count_rounds(stops_early=True, n_classes=n_classes) == 7


def test_a_fit_ends_after_as_many_rounds_as_it_may_have(capfd):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.normal(size=300)
    for kind, target, n_rounds in (
        (LHBoostRegressor, y, 600),
        (LHBoostClassifier, y > 0, 600),
        (LHBoostClassifier, np.digitize(y, [-0.5, 0.5]), 1000),
    ):
        # Rounds that no one counts as failed go on to the last.
        model = kind(n_iter_no_change=10**6, refit=False, random_state=0, verbose=1)
        model.fit(X, target)
        assert len(model.validation_score_) == n_rounds + 1
        assert f"[lhtree] {n_rounds} of {n_rounds} rounds, " in capfd.readouterr().err


@pytest.mark.parametrize(("n", "n_leaves"), [(20_000, 15), (20_001, 31)])
def test_trees_of_many_rows_have_more_leaves(n, n_leaves):
    model = LHBoostRegressor(n_estimators=1, early_stopping=False, l2_regularization=0)
    model.fit(*make_steps(n))
    assert model.get_n_leaves() == n_leaves


@pytest.mark.parametrize(
    ("n", "n_trained"), [(99, 99), (100, 80), (20_000, 16_000), (20_001, 18_000)]
)
def test_a_fifth_or_a_tenth_of_the_rows_is_held_out(n, n_trained):
    model = LHBoostRegressor(n_estimators=1, refit=False).fit(*make_steps(n))
    assert model.forest_.weight[0] == n_trained
    assert (len(model.validation_score_) > 0) == (n_trained < n)


@pytest.mark.parametrize(
    ("refit", "n", "n_trained"),
    [("auto", 20_000, 20_000), ("auto", 20_001, 18_000), (True, 20_001, 20_001)],
)
def test_models_of_many_rows_are_not_refitted(refit, n, n_trained):
    model = LHBoostRegressor(n_estimators=1, refit=refit).fit(*make_steps(n))
    assert model.forest_.weight[0] == n_trained


@KINDS
def test_30_rounds_in_vain_end_a_fit(kind):
    X, y = make_rows("numbers")
    model = kind(refit=False, random_state=0).fit(X, y > 1 if kind is LHBoostClassifier else y)
    assert 0 < model.n_iter_ == np.argmax(model.validation_score_)
    assert len(model.validation_score_) == model.n_iter_ + 31


def test_the_two_estimators_have_the_same_defaults():
    own = {"loss", "quantile", "class_weight", "l2_regularization"}  # in units of hessians
    assert LHBoostClassifier().l2_regularization == 0.3
    assert LHBoostRegressor().l2_regularization == 3.0
    first, second = (
        {name: value for name, value in kind().get_params().items() if name not in own}
        for kind in (LHBoostClassifier, LHBoostRegressor)
    )
    assert first == second


def test_automatic_rules_can_be_stated():
    X, y = make_rows()
    stated: dict[str, Any] = {
        "n_estimators": 600,
        "max_leaf_nodes": 15,
        "early_stopping": True,
        "refit": True,
        "validation_fraction": 0.2,
        "l2_regularization": 3.0,
        "n_iter_no_change": 30,
    }
    expected = LHBoostRegressor(random_state=0, **stated).fit(X, y)
    model = LHBoostRegressor(random_state=0).fit(X, y)
    assert_same(expected, model)
    assert_array_equal(expected.predict(X), model.predict(X))
