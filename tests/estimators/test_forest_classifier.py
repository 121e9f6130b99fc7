"""Forests of classes on the exact engine: what they predict, draw and refuse."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array, csr_array
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

import reference
from boosted import make_frame
from forests import assert_same_model, read_shares, read_split
from lhtree import LHForestClassifier

FEW = {"n_estimators": 12, "random_state": 0}
STEP = 2.0**-16  # of the shares in leaves


def make_rows(n_rows=600, n_classes=3, n_columns=5, seed=0):
    """Return rows of overlapping classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    target = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + 0.3 * rng.normal(size=n_rows)
    levels = np.quantile(target, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(levels, target)


def average_drawn(model, X, y, weight):
    """Return for each estimator, row and class the share among the rows drawn in its leaf."""
    leaf, n_classes = model.apply(X), model.n_classes_
    n_trees = len(model.trees_) // model.n_estimators_
    share = np.empty((model.n_estimators_, len(X), n_classes))
    for i, rows in enumerate(model.estimators_samples_):
        own = weight(rows)
        for k in range(n_classes):
            at = leaf[:, i * n_trees + min(k, n_trees - 1)]
            total = np.bincount(at[rows], own * (y[rows] == k), at.max() + 1)
            size = np.bincount(at[rows], own, at.max() + 1)
            share[i, :, k] = (total / np.maximum(size, 1e-300))[at]
    return share


# ---- votes ------------------------------------------------------------------------------


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["plain", "weighted", "dict", "balanced", "balanced_subsample"])
def test_a_vote_is_the_mean_over_trees_of_the_share_of_a_leaf(bootstrap, n_classes, kind):
    X, y = make_rows(n_classes=n_classes)
    is_kept = (y > 0) | (np.arange(600) % 3 == 0)  # the first class is rare
    X, y = X[is_kept], y[is_kept]
    given = np.random.default_rng(1).integers(1, 5, len(y)) if kind == "weighted" else None
    factor = {"dict": {0: 3.0, 1: 0.5}}.get(kind, kind if kind.startswith("bal") else None)
    model = LHForestClassifier(
        **FEW, shrinkage=0.0, calibration=None, bootstrap=bootstrap, max_depth=4,
        class_weight=factor,
    ).fit(X, y, given)  # fmt: skip

    def weigh(rows):
        if kind == "weighted":
            return given[rows]
        if kind == "balanced_subsample":
            return compute_sample_weight("balanced", y[rows])
        return compute_sample_weight(factor, y)[rows]

    expected = average_drawn(model, X, y, weigh).mean(axis=0)
    # Weights of classes are rounded to multiples of 2**-16 of a row.
    votes = read_shares(model, X).mean(axis=0)
    assert_allclose(votes, expected, atol=STEP if kind in ("plain", "weighted") else 10 * STEP)
    proba = (votes + 5e-7) / (votes + 5e-7).sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(X), proba, rtol=1e-12)
    assert_array_equal(model.predict(X), proba.argmax(axis=1))


@pytest.mark.parametrize("labels", [["b", "a"], ["b", "c", "a"], [7, -1, 3, 5]])
def test_the_first_class_wins_a_tie(labels):
    X, y = np.zeros((12 * len(labels), 2)), labels * 12
    for kind in ({"calibration": None}, {"calibration": "auto"}, {"n_estimators": 40}):
        model = LHForestClassifier(**{**FEW, **kind, "max_samples": None}).fit(X, y)
        assert_array_equal(model.predict(X), np.full(len(X), min(labels)))
        assert_allclose(model.predict_proba(X), 1 / len(labels))


def test_labels_are_those_of_the_largest_probabilities():
    X, y = make_rows(200, 4)
    model = LHForestClassifier(2, max_depth=2, random_state=0).fit(X, y)  # many ties
    rows = np.random.default_rng(1).normal(size=(5000, 5))
    proba = model.predict_proba(rows)
    assert_array_equal(model.predict(rows), proba.argmax(axis=1))
    assert_allclose(proba.sum(axis=1), 1)
    assert (proba > 0).all()


def test_a_single_class_is_always_predicted():
    X = make_rows(60)[0]
    for kind in ({}, {"oob_score": True, "n_estimators": 40}, {"class_weight": {"b": 0}}):
        y = np.where(np.arange(60) % 2, "a", "b") if "class_weight" in kind else ["a"] * 60
        model = LHForestClassifier(**{**FEW, **kind}).fit(X, y)
        assert_array_equal(model.predict(X), ["a"] * 60)
        assert_array_equal(model.predict_proba(X), np.ones((60, 1)))
        assert_array_equal(model.predict_log_proba(X), np.zeros((60, 1)))
        assert model.get_n_leaves() == model.n_estimators_ == len(model.trees_)
        assert_array_equal(model.apply(X), np.zeros((60, model.n_estimators_)))
        assert not model.feature_importances_.any()


# ---- rows -------------------------------------------------------------------------------


def test_each_estimator_draws_its_share_of_the_rows():
    X, y = make_rows()
    for bootstrap, n_draws in ((False, 480), (True, 100)):
        kind = {"bootstrap": bootstrap, "max_samples": 0.8 if n_draws == 480 else 100}
        model = LHForestClassifier(**FEW, **kind).fit(X, y)
        assert len(model.estimators_samples_) == model.n_estimators_ == 12
        for i, rows in enumerate(model.estimators_samples_):
            drawn, count = reference.draw_rows(model._seed, i, 600, n_draws, bootstrap)
            assert_array_equal(rows, np.repeat(drawn, np.asarray(count, dtype=int)))
            root = model.trees_[3 * i].first_node
            assert model.forest_.weight[root] == n_draws


@pytest.mark.parametrize("preset", ["accurate", "paper"])
def test_positions_of_drawn_rows_count_those_of_weight_zero(preset):
    X, y = make_rows(200)
    weight = np.arange(200) % 3 > 0
    model = LHForestClassifier(**FEW, preset=preset).fit(X, y, weight)
    other = LHForestClassifier(**FEW, preset=preset).fit(X[weight], y[weight])
    for rows, same in zip(model.estimators_samples_, other.estimators_samples_, strict=True):
        assert_array_equal(rows, np.flatnonzero(weight)[same])
    refitted = model.set_params(preset="paper" if preset == "accurate" else "accurate").fit(X, y)
    assert max(map(max, refitted.estimators_samples_)) == 199


@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_layout_and_kind_of_table_change_nothing(n_classes):
    X, y = make_rows(500, n_classes)
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32).astype(np.float64)
    kind = {"random_state": 0, "oob_score": True, "class_weight": "balanced_subsample"}
    model = LHForestClassifier(40, n_jobs=1, **kind).fit(X, y)
    tables = [
        (X, 2), (X, 7), (np.asfortranarray(X), 1), (X.astype(np.float32), 2),
        (np.asfortranarray(X, dtype=np.float32), 7), (csr_array(X), 2), (csc_array(X), 7),
    ]  # fmt: skip
    for table, n_jobs in tables:
        other = LHForestClassifier(40, n_jobs=n_jobs, **kind).fit(table, y)
        assert_same_model(other, model)
        assert_array_equal(other.calibration_, model.calibration_)
        assert_array_equal(other.oob_decision_function_, model.oob_decision_function_)
        assert_array_equal(other.predict_proba(table), model.predict_proba(X))
        assert_array_equal(other.apply(table), model.apply(X))


def test_the_number_of_estimators_found_does_not_depend_on_threads():
    X, y = make_rows(300)
    one, seven = (LHForestClassifier("auto", n_jobs=n, random_state=0).fit(X, y) for n in (1, 7))
    assert one.n_estimators_ == seven.n_estimators_ >= 60
    assert_same_model(one, seven)


def test_missing_values_and_categories_are_learned():
    frame, y = make_frame(800)
    y = np.array(["low", "high"])[(y > 0).astype(int)]
    model = LHForestClassifier(40, oob_score=True, random_state=0).fit(frame, y)
    without = LHForestClassifier(40, oob_score=True, random_state=0)
    assert model.oob_score_ > without.fit(frame.drop(columns="color"), y).oob_score_ + 0.03
    assert list(model.feature_names_in_) == list(frame)
    assert model.feature_importances_[list(frame).index("color")] > 0.1
    assert np.isfinite(model.predict_proba(frame.assign(color=None, a=np.nan))).all()
    coarse = clone(model).set_params(max_categories=2, max_bins=8).fit(frame, y)
    assert coarse.forest_.columns.n_codes.max() == 2
    assert len(np.unique(coarse.forest_.threshold)) <= 5 * 8


def test_gaps_may_say_something():
    X, y = make_rows(400, 2)
    X[y > 0, 1] = np.nan
    model = LHForestClassifier(**FEW).fit(X, y)
    assert model.score(X, y) == 1


# ---- trees ------------------------------------------------------------------------------


def test_limits_of_trees_hold():
    X, y = make_rows(300)
    assert LHForestClassifier(max_depth=3, **FEW).fit(X, y).get_depth() == 3
    model = LHForestClassifier(max_leaf_nodes=5, **FEW).fit(X, y)
    assert {tree.n_leaves for tree in model.trees_} == {5}
    model = LHForestClassifier(min_samples_leaf=20, **FEW).fit(X, y)
    assert model.forest_.weight.min() >= 20
    model = LHForestClassifier(min_weight_fraction_leaf=0.1, **FEW).fit(X, y)
    assert model.forest_.weight.min() >= 24  # of 240 drawn rows
    ensemble = LHForestClassifier(min_samples_split=0.5, **FEW).fit(X, y).forest_
    assert ensemble.weight[ensemble.left >= 0].min() >= 150
    single = LHForestClassifier(n_hyperplanes=0, **FEW).fit(X, y).forest_
    assert len(single.cut) == 0 < len(single.threshold)
    planes = LHForestClassifier(axis_splits=False, **FEW).fit(X, y).forest_
    assert len(planes.threshold) == 0 < len(planes.cut)


def test_rows_of_weight_count_in_limits_like_copies():
    X, y = make_rows(200)
    weight = np.random.default_rng(0).integers(1, 4, 200)
    kind = {"max_samples": None, "min_samples_leaf": 9, "min_samples_split": 0.2}
    model = LHForestClassifier(**FEW, **kind)
    light = model.fit(X, y, weight).predict_proba(X)
    heavy = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).predict_proba(X)
    assert_array_equal(light, heavy)
    assert model.forest_.weight.min() >= 9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_importances_are_gains(n_classes):
    X, y = make_rows(400, n_classes)
    model = LHForestClassifier(4, n_hyperplanes=0, shrinkage=0.0, random_state=0).fit(X, y)
    leaf, gain = model.apply(X), np.zeros(5)
    n_trees = len(model.trees_) // 4
    for k, tree in enumerate(model.trees_):
        rows = model.estimators_samples_[k // n_trees]
        is_positive = y[rows] == (1 if n_classes == 2 else k % 3)
        count = np.bincount(leaf[rows, k], minlength=tree.n_nodes).astype(float)
        total = np.bincount(leaf[rows, k], is_positive, minlength=tree.n_nodes)
        for node in np.flatnonzero(tree.left >= 0)[::-1]:
            left, right = tree.left[node], tree.left[node] + 1
            count[node], total[node] = count[left] + count[right], total[left] + total[right]
            step = total[left] / count[left] - total[right] / count[right]
            gain[tree.column[node]] += count[left] * count[right] / count[node] * step**2
    assert_allclose(model.feature_importances_, gain / gain.sum(), rtol=1e-3)


# ---- constraints ------------------------------------------------------------------------


@pytest.mark.parametrize("shrinkage", ["auto", 0.0, 30.0])
@pytest.mark.parametrize("calibration", ["auto", None])
def test_trends_hold_between_all_pairs_of_rows(shrinkage, calibration):
    X, y = make_rows(500, 2, 3)
    y = (X[:, 0] - X[:, 2] + np.sin(3 * X[:, 1]) + 0.5 * (y - 0.5) > 0).astype(int)
    kind = {"monotonic_cst": [1, 0, -1], "shrinkage": shrinkage, "calibration": calibration}
    model = LHForestClassifier(30, **kind, random_state=0).fit(X, y)
    rng = np.random.default_rng(0)
    low = rng.normal(size=(4000, 3)) * 1.5
    high = low + rng.exponential(size=low.shape) * [1, 0, -1] * (rng.random(low.shape) < 0.7)
    below, above = (model.predict_proba(rows)[:, 1] for rows in (low, high))
    assert (above >= below).all()
    assert (above > below).mean() > 0.5
    assert (model.predict(high) >= model.predict(low)).all()
    falling = clone(model).set_params(monotonic_cst=[-1, 0, 1]).fit(X, 1 - y)
    assert (falling.predict_proba(high)[:, 1] <= falling.predict_proba(low)[:, 1]).all()


def test_trends_need_two_classes():
    X, y = make_rows(100)
    with pytest.raises(ValueError, match=r"^monotonic_cst .*class"):
        LHForestClassifier(**FEW, monotonic_cst=[1, 0, 0, 0, 0]).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_columns_of_other_groups_do_not_meet(n_classes):
    X, y = make_rows(400, n_classes, 4)
    kind = {"interaction_cst": [{0, 1}, {2, 3}], "max_features": 1}  # roots draw both groups
    model = LHForestClassifier(**kind, **FEW).fit(X, y)
    seen = set()
    for tree in model.trees_:
        used = {0: set()}
        for node in np.flatnonzero(tree.left >= 0).tolist():  # parents come first
            for child in (tree.left[node], tree.left[node] + 1):
                used[int(child)] = used[node] | read_split(tree, node)
        assert all(columns <= {0, 1} or columns <= {2, 3} for columns in used.values())
        seen |= set().union(*used.values())
    assert seen == {0, 1, 2, 3}


# ---- warm starts and copies -------------------------------------------------------------


@pytest.mark.parametrize("kind", [{}, {"bootstrap": True}, {"class_weight": "balanced_subsample"}])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_warm_start_gives_the_forest_of_one_long_fit(kind, is_weighted):
    frame, y = make_frame(300)
    y = np.digitize(y, [-1, 1])
    weight = np.random.default_rng(0).uniform(0, 2, 300) * is_weighted + (not is_weighted)
    kind = {"shrinkage": 3.0, "random_state": 4, **kind}
    long = LHForestClassifier(50, **kind, oob_score=True).fit(frame, y, weight)
    model = LHForestClassifier(8, **kind, warm_start=True).fit(frame, y, weight)
    model.set_params(n_estimators=50, oob_score=True).fit(frame, y, weight)
    assert_same_model(model, long)
    assert_array_equal(model.calibration_, long.calibration_)
    assert_array_equal(model.oob_decision_function_, long.oob_decision_function_)
    with pytest.warns(UserWarning, match="n_estimators=50 estimators are grown already"):
        assert_same_model(model.fit(frame, y, weight), long)


def test_a_warm_start_keeps_the_strength_that_the_first_fit_chose():
    X, y = make_rows(300)
    model = LHForestClassifier(30, warm_start=True, random_state=0).fit(X, y)
    first, strength = model.forest_, model.shrinkage_
    model.set_params(n_estimators=45).fit(X, y)
    assert model.shrinkage_ == strength
    assert_array_equal(model.forest_.value[: len(first.value)], first.value)
    same = LHForestClassifier(45, shrinkage=strength, random_state=0).fit(X, y)
    assert_same_model(model, same)


def test_warm_starts_on_other_terms_are_refused():
    X, y = make_rows(300)
    model = LHForestClassifier(4, warm_start=True, random_state=0).fit(X, y)
    model.set_params(n_estimators=6)
    before = dict(vars(model))
    for rows, labels, message in [
        (X[:250], y[:250], "warm_start=True needs the draws of the estimators"),
        (X, np.minimum(y, 1), r"y has the classes \[0, 1\], but warm_start=True"),
        (X * 3 + 1, y, "but the columns of the rows have changed"),
        (X[:, :4], y, "but the columns of the rows have changed|another number of columns"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(rows, labels)
        assert vars(model) == before
    for rules in ({"preset": "paper"}, {"contrast": "mean"}, {"beta": 0.5}, {"voting": "margin"}):
        other = copy.deepcopy(model).set_params(**rules)
        with pytest.raises(ValueError, match="warm_start=True adds to estimators that grew by ot"):
            other.fit(X, y)
    other = LHForestClassifier(4, preset="paper", warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="warm_start=True adds to estimators that grew by other"):
        other.set_params(preset="accurate").fit(X, y)


def test_the_model_survives_pickles_and_copies():
    X, y = make_rows(300)
    model = LHForestClassifier(30, oob_score=True, random_state=0).fit(X, y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert_same_model(other, model)
        assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        assert_array_equal(other.estimators_samples_, model.estimators_samples_)
