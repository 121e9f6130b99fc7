"""Forests of numbers: what they predict, draw, shrink and score."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics import mean_absolute_error, r2_score

from boosted import make_frame
from lhtree import LHForestRegressor

FEW = {"n_estimators": 12, "random_state": 0}
MANY = {"n_estimators": 60, "random_state": 0}  # each leaves some rows undrawn
STEP = 2e-6  # of the grid of targets


def make_rows(n_rows=600, n_columns=5, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    return X, X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + noise * rng.normal(size=n_rows)


@pytest.fixture(scope="module")
def fitted():
    """Return a forest without shrinkage, its rows and their targets."""
    X, y = make_rows()
    return LHForestRegressor(shrinkage=0.0, oob_score=True, **MANY).fit(X, y), X, y


def average_drawn(model, X, y, weight=None):
    """Return for each row and tree the mean target of the rows drawn in its leaf."""
    leaf = model.apply(X)
    weight = np.ones(len(y)) if weight is None else weight
    mean = np.empty(leaf.shape)
    for k, rows in enumerate(model.estimators_samples_):
        own = leaf[rows, k]
        total = np.bincount(own, weight[rows] * y[rows], leaf[:, k].max() + 1)
        size = np.bincount(own, weight[rows], leaf[:, k].max() + 1)
        mean[:, k] = (total / np.maximum(size, 1e-300))[leaf[:, k]]
    return mean


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_prediction_is_the_mean_over_trees_of_the_mean_of_a_leaf(bootstrap, is_weighted):
    X, y = make_rows()
    weight = np.random.default_rng(1).integers(1, 5, len(y)) if is_weighted else None
    kind = {"shrinkage": 0.0, "bootstrap": bootstrap, "max_depth": 4}
    model = LHForestRegressor(**kind, **FEW).fit(X, y, weight)
    expected = average_drawn(model, X, y, weight).mean(axis=1)
    assert_allclose(model.predict(X), expected, atol=STEP)


def test_each_estimator_draws_its_share_of_the_rows(fitted):
    model, X, _ = fitted
    drawn = model.estimators_samples_
    assert len(drawn) == model.n_estimators_ == 60
    for rows in drawn:
        assert len(rows) == round(0.8 * len(X))
        assert_array_equal(rows, np.unique(rows))
    assert not np.array_equal(drawn[0], drawn[1])
    with_repeats = LHForestRegressor(bootstrap=True, max_samples=100, **FEW).fit(*make_rows())
    for rows in with_repeats.estimators_samples_:
        assert len(rows) == 100 > len(np.unique(rows))


def test_rows_of_weight_zero_are_never_drawn_and_count_in_positions():
    X, y = make_rows(200)
    weight = np.arange(200) % 3 > 0
    model = LHForestRegressor(oob_score=True, **MANY).fit(X, y, weight)
    assert not set(np.concatenate(model.estimators_samples_)) - set(np.flatnonzero(weight))
    assert np.isnan(model.oob_prediction_[~weight]).all()
    assert len(model.oob_prediction_) == 200
    other = LHForestRegressor(oob_score=True, **MANY).fit(X[weight], y[weight])
    assert_array_equal(model.predict(X), other.predict(X))
    assert_array_equal(model.oob_prediction_[weight], other.oob_prediction_)


def test_out_of_bag_predictions_are_those_of_trees_that_did_not_draw_the_row(fitted):
    model, X, y = fitted
    single = np.stack([tree.prediction[leaf, 0] for tree, leaf in zip(
        model.trees_, model.apply(X).T, strict=True)])  # fmt: skip
    is_out = np.ones(single.shape, dtype=bool)
    for k, rows in enumerate(model.estimators_samples_):
        is_out[k, rows] = False
    n = is_out.sum(axis=0)
    expected = np.where(n > 0, (single * is_out).sum(axis=0) / np.maximum(n, 1), np.nan)
    assert_allclose(model.oob_prediction_, expected, atol=1e-7)
    assert_array_equal(np.isnan(model.oob_prediction_), n == 0)
    known = n > 0
    assert model.oob_score_ == pytest.approx(r2_score(y[known], expected[known]), abs=1e-6)
    assert 0.4 < model.oob_score_ < model.score(X, y)


def test_a_callable_measures_out_of_bag_predictions():
    X, y = make_rows(300)
    model = LHForestRegressor(40, oob_score=mean_absolute_error, random_state=0).fit(X, y)
    assert model.oob_score_ == mean_absolute_error(y, model.oob_prediction_)
    assert not hasattr(model.set_params(oob_score=False).fit(X, y), "oob_score_")


def test_rows_that_every_estimator_drew_are_named_in_a_warning():
    X, y = make_rows(50)
    model = LHForestRegressor(2, oob_score=True, random_state=0)
    with pytest.warns(UserWarning, match=r"rows were drawn by every estimator.* use more est"):
        model.fit(X, y)
    assert np.isnan(model.oob_prediction_).any()


def test_threads_layout_and_kind_of_table_change_nothing():
    X, y = make_rows(400)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    model = LHForestRegressor(n_jobs=1, oob_score=True, **MANY).fit(X, y)
    for table, n_jobs in ((X, 2), (np.asfortranarray(X), 1), (csr_array(X), 2)):
        other = LHForestRegressor(n_jobs=n_jobs, oob_score=True, **MANY).fit(table, y)
        assert_array_equal(other.predict(X), model.predict(X))
        assert_array_equal(other.oob_prediction_, model.oob_prediction_)
        assert_array_equal(other.interval(table), model.interval(X))
        assert_array_equal(other.predict_quantiles(table), model.predict_quantiles(X))


def test_missing_values_and_categories_are_learned():
    frame, y = make_frame(800)
    model = LHForestRegressor(40, oob_score=True, random_state=0).fit(frame, y)
    without = LHForestRegressor(40, oob_score=True, random_state=0)
    assert model.oob_score_ > without.fit(frame.drop(columns="color"), y).oob_score_ + 0.1
    assert list(model.feature_names_in_) == list(frame)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_[list(frame).index("color")] > 0.2
    assert np.isfinite(model.predict(frame.assign(color=None, a=np.nan))).all()


# ---- shrinkage --------------------------------------------------------------------------


def shrink_by_hand(tree, strength, unit=1):
    """Return the shrunken prediction of each leaf of a tree."""
    value, weight = tree.prediction[:, 0], tree.ensemble.weight[tree.nodes] / unit
    shrunken = value.copy()
    for node in np.flatnonzero(tree.left >= 0):  # parents come first
        for child in (tree.left[node], tree.left[node] + 1):
            step = value[child] - value[node]
            shrunken[child] = shrunken[node] + step * weight[node] / (weight[node] + strength)
    return shrunken


@pytest.mark.parametrize("strength", [0.5, 10.0, 1e300])
def test_shrinkage_pulls_leaves_towards_the_nodes_above(fitted, strength):
    plain, X, y = fitted
    model = LHForestRegressor(shrinkage=strength, **MANY).fit(X, y)
    assert model.shrinkage_ == strength
    for tree, other in zip(plain.trees_, model.trees_, strict=True):
        assert_array_equal(tree.left, other.left)
        is_leaf = tree.left < 0
        expected = shrink_by_hand(tree, strength)[is_leaf]
        assert_allclose(other.prediction[is_leaf, 0], expected, atol=STEP)


def test_fractional_weights_count_rows_in_shrinkage_too():
    X, y = make_rows(200)
    weight = np.random.default_rng(0).uniform(0.5, 1.5, 200)
    plain, model = (
        LHForestRegressor(shrinkage=each, **FEW).fit(X, y, weight) for each in (0.0, 4.0)
    )
    for tree, other in zip(plain.trees_, model.trees_, strict=True):
        expected = shrink_by_hand(tree, 4.0, 2**16)[tree.left < 0]
        assert_allclose(other.prediction[tree.left < 0, 0], expected, atol=STEP)


def test_noise_asks_for_shrinkage_and_clear_targets_for_none():
    X, y = make_rows(800, noise=3.0)
    noisy = LHForestRegressor(40, random_state=0).fit(X, y)
    assert noisy.shrinkage_ > 1
    clear = LHForestRegressor(40, random_state=0).fit(X, X[:, 0])
    assert clear.shrinkage_ == 0
    drawn_whole = LHForestRegressor(40, max_samples=None, random_state=0).fit(X, y)
    assert drawn_whole.shrinkage_ == 0


def test_shrinkage_keeps_predictions_monotone():
    X, y = make_rows(500, 3)
    for strength in (0.0, 3.0, 30.0):
        kind = {"monotonic_cst": [1, 0, -1], "shrinkage": strength}
        model = LHForestRegressor(**kind, **FEW).fit(X, y + X[:, 0] - X[:, 2])
        grid = np.linspace(-3, 3, 200)
        for row in X[:20]:
            rising = np.repeat(row[np.newaxis], 200, axis=0)
            falling = rising.copy()
            rising[:, 0], falling[:, 2] = grid, grid
            assert (np.diff(model.predict(rising)) >= 0).all()
            assert (np.diff(model.predict(falling)) <= 0).all()


def test_columns_of_other_groups_do_not_meet():
    X, y = make_rows(400, 4)
    kind = {"interaction_cst": [{0, 1}, {2, 3}], "max_features": 1}  # roots draw both groups
    model = LHForestRegressor(**kind, **FEW).fit(X, y)
    ensemble, seen = model.forest_, set()
    parent = ensemble.compute_parents()
    for leaf in np.flatnonzero(ensemble.left < 0):
        used, node = set(), parent[leaf]
        while node >= 0:
            tree = int(np.searchsorted(ensemble.tree_start, node, "right") - 1)
            split = ensemble[tree].split(int(node - ensemble.tree_start[tree]))
            used |= {split.column} if hasattr(split, "column") else set(split.feature.tolist())
            node = parent[node]
        assert used <= {0, 1} or used <= {2, 3}
        seen |= used
    assert seen == {0, 1, 2, 3}


# ---- parameters -------------------------------------------------------------------------


def test_limits_of_trees_hold():
    X, y = make_rows(300)
    assert LHForestRegressor(max_depth=3, **FEW).fit(X, y).get_depth() == 3
    model = LHForestRegressor(max_leaf_nodes=5, **FEW).fit(X, y)
    assert {tree.n_leaves for tree in model.trees_} == {5}
    model = LHForestRegressor(min_samples_leaf=20, **FEW).fit(X, y)
    assert min(tree.ensemble.weight[tree.nodes].min() for tree in model.trees_) >= 20
    model = LHForestRegressor(min_samples_split=0.5, **FEW).fit(X, y)
    ensemble = model.forest_
    assert ensemble.weight[ensemble.left >= 0].min() >= 150
    single = LHForestRegressor(n_hyperplanes=0, **FEW).fit(X, y).forest_
    assert len(single.cut) == 0 < len(single.threshold)
    planes = LHForestRegressor(axis_splits=False, **FEW).fit(X, y).forest_
    assert len(planes.threshold) == 0 < len(planes.cut)


def test_the_size_of_the_table_decides_on_the_number_of_estimators():
    X, y = make_rows(60)
    assert LHForestRegressor(max_depth=2, random_state=0).fit(X, y).n_estimators_ == 100


def test_a_constant_target_is_predicted_exactly():
    X = make_rows(50)[0]
    model = LHForestRegressor(oob_score=False, **FEW).fit(X, np.full(50, 0.1))
    assert_array_equal(model.predict(X), 0.1)
    assert_array_equal(model.predict_quantiles(X), 0.1)
    assert_array_equal(model.interval(X), 0.1)
    assert model.get_n_leaves() == 12


def test_huge_and_tiny_targets_are_like_others():
    X, y = make_rows(200)
    model = LHForestRegressor(**FEW).fit(X, y)
    for factor in (2.0**400, 2.0**-400):
        other = LHForestRegressor(**FEW).fit(X, y * factor)
        assert_allclose(other.predict(X) / factor, model.predict(X), rtol=1e-12)


def test_the_model_survives_pickles_and_copies(fitted):
    model, X, _ = fitted
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert_array_equal(other.predict(X), model.predict(X))
        assert_array_equal(other.interval(X), model.interval(X))
        assert_array_equal(other.predict_quantiles(X), model.predict_quantiles(X))
    before = len(pickle.dumps(model))
    model.predict_quantiles(X)  # what it keeps for the next call is not packed
    assert len(pickle.dumps(model)) == before


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_estimators": 0}, ValueError, "n_estimators must be an integer from 1 .* got 0"),
        ({"n_estimators": "auto"}, TypeError, "n_estimators must be .* or None.* got 'auto'"),
        ({"max_samples": 2.0}, ValueError, r"max_samples must be a float in \(0, 1\].* got 2.0"),
        ({"max_bins": 1}, ValueError, "max_bins must be an integer from 2 to 255, got 1"),
        ({"max_categories": None}, TypeError, "max_categories must be an integer from 2 to 255"),
        ({"shrinkage": -1}, ValueError, "shrinkage must be a number of at least 0, or 'auto'"),
        ({"max_features": "many"}, ValueError, "max_features must be .* 'auto' or None, got"),
        ({"oob_score": 1}, TypeError, "oob_score must be True or False, got 1"),
        ({"n_hyperplanes": -1}, ValueError, "n_hyperplanes must be an integer of at least 0, "),
        ({"axis_splits": False, "n_hyperplanes": 0}, ValueError, "leaves nodes without candid"),
        ({"monotonic_cst": [2, 0, 0, 0, 0]}, ValueError, "monotonic_cst must have 1 .* got 2"),
        ({"interaction_cst": "all"}, ValueError, "interaction_cst must be None, .* got 'all'"),
        ({"oob_score": True, "max_samples": None}, ValueError, "needs out-of-bag rows, but max_"),
        ({"min_samples_leaf": 0}, ValueError, "min_samples_leaf must be .* got 0"),
        ({"max_leaf_nodes": 1}, ValueError, "max_leaf_nodes must be .* got 1"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(params, error, message):
    X, y = make_rows(50)
    model = LHForestRegressor(**params)
    with pytest.raises(error, match=message):
        model.fit(X, y)
    assert not hasattr(model, "forest_")


def test_text_targets_and_gaps_in_targets_are_refused():
    X, y = make_rows(20)
    with pytest.raises(ValueError, match="y"):
        LHForestRegressor().fit(X, ["a", "b"] * 10)
    with pytest.raises(ValueError, match="NaN"):
        LHForestRegressor().fit(X, np.where(y > 0, np.nan, y))
    with pytest.raises(ValueError, match=r"heaviest row every time: 1\.6e\+13.* bootstrap=False"):
        LHForestRegressor(bootstrap=True).fit(X, y, [10**12] + [1] * 19)


def test_a_failed_fit_leaves_the_model_as_it_was(fitted):
    model, X, y = copy.deepcopy(fitted)
    before = model.predict(X)
    model.set_params(monotonic_cst=[1, 1])
    with pytest.raises(ValueError, match="one entry for each of the 5 columns"):
        model.fit(X, y)
    assert_array_equal(model.predict(X), before)


# ---- warm starts ------------------------------------------------------------------------


@pytest.mark.parametrize("bootstrap", [False, True])
def test_a_warm_start_gives_the_forest_of_one_long_fit(bootstrap):
    frame, y = make_frame(300)
    kind = {"shrinkage": 3.0, "random_state": 4, "bootstrap": bootstrap}
    long = LHForestRegressor(50, **kind, oob_score=True).fit(frame, y)
    model = LHForestRegressor(8, **kind, warm_start=True).fit(frame, y)
    model.set_params(n_estimators=50, oob_score=True).fit(frame, y)
    for name in ("value", "threshold", "codes", "cut", "left", "importance", "weight"):
        assert_array_equal(getattr(model.forest_, name), getattr(long.forest_, name))
    assert model.oob_score_ == long.oob_score_
    assert_array_equal(model.predict(frame), long.predict(frame))
    assert_array_equal(model.predict_quantiles(frame), long.predict_quantiles(frame))
    assert_array_equal(model.interval(frame), long.interval(frame))


def test_a_warm_start_keeps_the_shrinkage_that_was_chosen():
    X, y = make_rows(400, noise=2.0)
    model = LHForestRegressor(20, warm_start=True, random_state=0).fit(X, y)
    strength, before = model.shrinkage_, model.forest_.value
    model.set_params(n_estimators=24).fit(X, y)
    assert model.shrinkage_ == strength > 0
    assert_array_equal(model.forest_.value[: len(before)], before)
    assert model.n_estimators_ == 24


def test_a_warm_start_refuses_what_does_not_fit():
    X, y = make_rows(200)
    model = LHForestRegressor(8, warm_start=True, random_state=0).fit(X, y)
    for change, message in (
        ({"n_estimators": 7}, "n_estimators=7 must be at least 8"),
        ({"max_samples": 0.5}, "needs the draws of the estimators already grown"),
    ):
        with pytest.raises(ValueError, match=message):
            clone_fitted(model, change).fit(X, y)
    for rows, targets, what in ((X + 1, y, "the columns"), (X, y * 3, "the targets")):
        with pytest.raises(ValueError, match=f"on the rows, .* but {what} .*have changed; give"):
            clone_fitted(model, {"n_estimators": 9}).fit(rows, targets)
    with pytest.warns(UserWarning, match="8 estimators are grown already"):
        model.fit(X, y)


def clone_fitted(model, change):
    """Return a copy of a fitted model with other parameters."""
    return copy.deepcopy(model).set_params(**change)


def test_progress_is_printed_and_callbacks_do_not_change_the_model(capsys):
    X, y = make_rows(100)
    LHForestRegressor(verbose=1, **FEW).fit(X, y)
    assert "[lhtree] 12 of 12 estimators" in capsys.readouterr().err


def test_clones_frames_and_names_behave():
    frame = pd.DataFrame(make_rows(60)[0], columns=list("abcde"))
    model = clone(LHForestRegressor(monotonic_cst={"a": 1}, **FEW)).fit(frame, frame["a"])
    assert model.column_names_ == list("abcde")
    path, start = model.decision_path(frame)
    assert path.shape == (60, start[-1]) == (60, len(model.forest_.left))
