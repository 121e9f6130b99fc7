"""Quantiles and intervals of forests of numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from lhtree import LHForestRegressor
from lhtree.model.conformity import Conformity, Spread
from lhtree.model.leaf_rows import LeafRows

SPREAD = Spread(usual=1.0, least=0.1, share=0.2)


def make_rows(n_rows=900, seed=0):
    """Return rows whose targets have noise that grows with the first column."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_rows, 4))
    return X, 3 * X[:, 1] + X[:, 0] * rng.normal(size=n_rows)


def list_weights(model, X_train, y, X, weight=None):
    """Return the weight of each training target in the distribution of each row."""
    weight = np.ones(len(y)) if weight is None else weight
    of_row, total = model.apply(X), np.zeros((len(X), len(y)))
    leaf = model.apply(X_train)
    for k, drawn in enumerate(model.estimators_samples_):
        own = np.bincount(drawn, weight[drawn], len(y))
        for i in range(len(X)):
            shares = own * (leaf[:, k] == of_row[i, k])
            total[i] += shares / shares.sum() / len(model.trees_)
    return total


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_quantiles_are_those_of_the_targets_in_the_leaves(bootstrap, is_weighted):
    X, y = make_rows(150)
    y = np.round(y, 1)  # some targets are equal
    weight = np.random.default_rng(3).integers(1, 4, 150) if is_weighted else None
    model = LHForestRegressor(9, bootstrap=bootstrap, min_samples_leaf=4, random_state=1)
    new, levels = make_rows(20, seed=5)[0], np.array([0.0, 0.11, 0.5, 0.937, 1.0])
    found = model.fit(X, y, weight).predict_quantiles(new, levels)
    order = np.argsort(y, kind="stable")
    up_to = np.cumsum(list_weights(model, X, y, new, weight)[:, order], axis=1)
    for i in range(len(new)):
        place = [max(0, int(np.searchsorted(up_to[i], q - 1e-9))) for q in levels]
        place[0] = int(np.flatnonzero(up_to[i] > 0)[0])
        assert_array_equal(found[i], y[order][place])


def test_quantiles_ascend_and_do_not_depend_on_the_block(monkeypatch):
    X, y = make_rows()
    model = LHForestRegressor(30, random_state=0).fit(X, y)
    levels = np.linspace(0, 1, 21)
    found = model.predict_quantiles(X, levels)
    assert (np.diff(found, axis=1) >= 0).all()
    assert set(np.unique(found)) <= set(y)
    monkeypatch.setattr("lhtree.model.leaf_rows.PAIRS_AT_ONCE", 1)
    monkeypatch.setattr("lhtree.estimators.averaging.regressor.LEAVES_AT_ONCE", 200)
    assert_array_equal(model.predict_quantiles(X, levels), found)
    assert_array_equal(model.predict_quantiles(X[5:6], levels), found[5:6])


def test_a_single_level_gives_a_list():
    X, y = make_rows(100)
    model = LHForestRegressor(5, random_state=0).fit(X, y)
    median = model.predict_quantiles(X, 0.5)
    assert_array_equal(median, model.predict_quantiles(X, [0.5])[:, 0])
    assert model.predict_quantiles(X).shape == (100, 3)


def test_quantiles_tell_where_targets_have_noise():
    X, y = make_rows(3000)
    model = LHForestRegressor(min_samples_leaf=5, random_state=0).fit(X, y)
    low, high = model.predict_quantiles(X, [0.1, 0.9]).T
    width = high - low
    assert width[X[:, 0] > 0.9].mean() > 3 * width[X[:, 0] < 0.2].mean()


# ---- intervals --------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.98])
def test_intervals_hold_the_share_that_was_asked_for(coverage):
    X, y = make_rows(4000, seed=1)
    new, true = make_rows(4000, seed=2)
    model = LHForestRegressor(random_state=0).fit(X, y)
    low, high = model.interval(new, coverage).T
    assert ((low <= true) & (true <= high)).mean() == pytest.approx(coverage, abs=0.02)
    outside = (1 - coverage) / 2
    assert (true < low).mean() == pytest.approx(outside, abs=0.015)
    assert (true > high).mean() == pytest.approx(outside, abs=0.015)
    # Where the noise is larger, intervals are wider.
    width = high - low
    assert width[new[:, 0] > 0.9].mean() > 1.5 * width[new[:, 0] < 0.2].mean()


def test_intervals_widen_with_coverage_around_the_prediction():
    X, y = make_rows()
    model = LHForestRegressor(50, random_state=0).fit(X, y)
    narrow, wide = model.interval(X, 0.5), model.interval(X, 0.95)
    assert (wide[:, 0] < narrow[:, 0]).all()
    assert (narrow[:, 0] < narrow[:, 1]).all()
    assert (narrow[:, 1] < wide[:, 1]).all()


def test_limits_are_ranks_of_one_row_more_than_there_are():
    ratio = np.random.default_rng(0).permutation(np.arange(-9.0, 10.0))  # 19 rows
    errors = Conformity(ratio, ratio, np.ones(19), 0.0, SPREAD)
    assert errors.compute_limits(0.9) == (-9, 9)
    assert errors.compute_limits(0.8) == (-8, 8)
    with pytest.raises(ValueError, match=r"coverage=0.91 needs at least 22 out-of-bag rows, got"):
        errors.compute_limits(0.91)
    double = Conformity(ratio[::2], ratio[::2], np.full(10, 2.0), 0.0, SPREAD)
    twice = np.repeat(ratio[::2], 2)
    single = Conformity(twice, twice, np.ones(20), 0.0, SPREAD)
    assert double.compute_limits(0.85) == single.compute_limits(0.85)


def test_limits_of_half_of_the_trees_lead_on_to_those_of_all():
    ratio = np.arange(-9.0, 10.0)
    errors = Conformity(ratio, 1.5 * ratio, np.ones(19), 0.4, SPREAD)
    assert errors.compute_limits(0.9) == pytest.approx((-9 + 0.4 * 4.5, 9 - 0.4 * 4.5))
    far = Conformity(ratio, 9 * ratio, np.ones(19), 0.9, SPREAD)
    assert far.compute_limits(0.9) == (0, 0)  # but not beyond the middle
    narrow = Conformity(ratio, 0.5 * ratio, np.ones(19), 0.4, SPREAD)
    assert narrow.compute_limits(0.9) == pytest.approx((-9 - 0.4 * 4.5, 9 + 0.4 * 4.5))


def test_a_spread_lies_between_the_own_and_the_usual_one():
    assert_allclose(SPREAD.compute(np.array([0.0, 1.0, 6.0])) ** 2, [0.3, 1.1, 5.1])


@pytest.mark.parametrize(
    ("method", "value", "error", "message"),
    [
        (
            "predict_quantiles",
            1.5,
            ValueError,
            r"quantiles must be a number from 0 to 1, or .*1.5",
        ),
        ("predict_quantiles", [], ValueError, r"quantiles must be .*, got \[\]"),
        ("predict_quantiles", [[0.5]], ValueError, r"quantiles must be .*, got \[\[0.5\]\]"),
        ("predict_quantiles", "all", TypeError, "quantiles must be .*, got 'all'"),
        ("interval", 1.0, ValueError, "coverage must be a number between 0 and 1, got 1.0"),
        ("interval", 0.999, ValueError, "needs at least 1999 out-of-bag rows, got .* fit on mo"),
        ("interval", [0.5], TypeError, r"coverage must be .*, got \[0.5\]"),
    ],
)
def test_bad_levels_are_refused_in_one_sentence(method, value, error, message):
    X, y = make_rows(100)
    model = LHForestRegressor(20, random_state=0).fit(X, y)
    with pytest.raises(error, match=message):
        getattr(model, method)(X, value)


def test_intervals_need_rows_that_were_not_drawn():
    X, y = make_rows(100)
    model = LHForestRegressor(20, max_samples=None, random_state=0).fit(X, y)
    assert model.predict_quantiles(X).shape == (100, 3)
    with pytest.raises(ValueError, match=r"interval needs out-of-bag rows, but max_samples=None"):
        model.interval(X)


# ---- the rows of leaves -----------------------------------------------------------------


def test_equal_targets_of_a_leaf_are_kept_once():
    X = make_rows(400)[0]
    y = np.floor(4 * X[:, 1])
    rows = LHForestRegressor(10, max_depth=2, random_state=0).fit(X, y).leaf_rows_
    assert rows.rank.dtype == np.uint8
    assert len(rows.rank) < 10 * 4 * 4
    assert rows.weight.sum() == 10 * 320


def test_targets_that_differ_need_no_weights():
    X, y = make_rows(400)
    rows = LHForestRegressor(10, random_state=0).fit(X, y).leaf_rows_
    assert rows.rank.dtype == np.uint16
    assert len(rows.rank) == 10 * 320
    assert len(rows.weight) == 0


def test_moments_are_those_of_the_distribution():
    X, y = make_rows(200)
    model = LHForestRegressor(8, min_samples_leaf=3, random_state=0).fit(X, y + 1e6)
    weights = list_weights(model, X, y, X[:30])
    expected = (weights * y**2).sum(axis=1) - (weights * y).sum(axis=1) ** 2
    leaf = model.forest_.locate_leaves(X[:30])
    assert_allclose(model.leaf_rows_.compute_variance(leaf), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": np.array([1.0, 1.0])}, "targets are not ascending"),
        ({"target": np.array([1.0, np.nan])}, "targets are not ascending"),
        ({"size": np.array([1, 0])}, "a leaf has no target"),
        ({"size": np.array([2, 2])}, "rank does not have one entry for each target"),
        ({"rank": np.array([0, 1, 2])}, "a rank is not that of a target"),
        ({"rank": np.array([0, 1, -1])}, "a rank is not that of a target"),
        ({"weight": np.array([1, 2])}, "weight does not have one entry for each rank"),
        ({"weight": np.array([1, 2, 0])}, "a weight is not positive"),
        ({"weight": np.array([1.0, 2.0, 1.0])}, "size, rank or weight are not integers"),
    ],
)
def test_rows_that_no_fit_makes_are_refused(change, message):
    whole = {
        "target": np.array([1.0, 2.0]),
        "size": np.array([2, 1]),
        "rank": np.array([0, 1, 1]),
        "weight": np.array([], dtype=np.int64),
    }
    LeafRows(**whole)
    with pytest.raises(ValueError, match=message):
        LeafRows(**(whole | change))
