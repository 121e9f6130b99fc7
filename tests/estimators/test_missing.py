"""Missing values: trees and predictions are the reference's, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference
import tables
from forests import check_trees
from growing import assert_same_tree, compare_with_reference, grow, grow_reference, read_tree
from lhtree import LHForestClassifier, LHTClassifier
from preconditions import Precondition

MODELS = [
    LHTClassifier(),
    LHTClassifier(contrast="standardized", criterion="gini"),
    LHTClassifier(contrast="fisher", criterion="gini"),
    LHForestClassifier(5, random_state=0),
    LHForestClassifier(5, preset="paper", beta=0.5, voting="margin", random_state=0),
    LHForestClassifier(5, bootstrap=True, class_weight="balanced", random_state=0),
]
integers = tables.with_holes(tables.integer_tables())
reals = tables.with_holes(tables.real_tables())


@settings(max_examples=300)
@given(integers, tables.params, st.sampled_from(["none", "integer"]))
def test_integer_trees_are_the_reference_bit_for_bit(table, params, kind):
    Z, is_positive = table
    weight = tables.make_weight(kind, len(Z))
    native = grow(Z, is_positive, weight, params)
    assert_same_tree(native, grow_reference(Z, is_positive, weight, params), exact=True)


@settings(max_examples=100)
@given(integers, tables.candidate_params, st.sampled_from(["none", "integer"]))
def test_candidates_of_mean_contrasts_are_the_reference_bit_for_bit(table, params, kind):
    Z, is_positive = table
    params = replace(params, contrast="mean")
    weight = tables.make_weight(kind, len(Z))
    native = grow(Z, is_positive, weight, params)
    assert_same_tree(native, grow_reference(Z, is_positive, weight, params), exact=True)


def test_candidates_on_integers_are_the_reference_where_rounding_decides_nothing():
    stable = Precondition()

    @settings(max_examples=170)
    @given(
        integers,
        tables.candidate_params,
        st.sampled_from(["standardized", "fisher"]),  # they divide by rounded numbers
        st.sampled_from(["none", "integer"]),
    )
    def compare(table, params, contrast, kind):
        Z, is_positive = table
        params = replace(params, contrast=contrast)
        weight = tables.make_weight(kind, len(Z))
        compare_with_reference((Z, is_positive), weight, params, stable)

    compare()
    stable.demand(n_held=170, fraction=0.9)


def test_real_trees_are_the_reference_where_rounding_decides_nothing():
    stable = Precondition()

    @settings(max_examples=300)
    @given(reals, st.one_of(tables.params, tables.candidate_params), tables.weights)
    def compare(table, params, kind):
        X, is_positive = table
        params = replace(params, beta=min(params.beta, 0.45))
        weight = tables.make_weight(kind, len(X))
        mean, std = reference.standardization(X, np.ones(len(X)) if weight is None else weight)
        Z = (X - mean) / std
        compare_with_reference((Z, is_positive), weight, params, stable)

    compare()
    stable.demand(n_held=300, fraction=0.9)


@settings(max_examples=200)
@given(
    st.one_of(integers, reals), st.one_of(tables.params, tables.candidate_params), tables.weights,
    st.sampled_from([np.float64, np.float32]),
)  # fmt: skip
def test_training_rows_reach_the_leaves_they_grew(table, params, kind, dtype):
    Z, is_positive = table
    Z = np.clip(Z, -1e30, 1e30).astype(dtype)
    weight = tables.make_weight(kind, len(Z))
    tree = grow(Z, is_positive, weight, params)
    leaf = tree.forest.apply(Z)[:, 0]
    for node in np.flatnonzero(tree.left < 0):
        own = leaf == node
        assert tree.n_samples[node] == np.count_nonzero(own)
        own_weight = np.ones(len(Z)) if weight is None else weight
        assert_allclose(tree.weight_sum[node], own_weight[own].sum(), rtol=1e-12)
        assert_allclose(tree.value[node], np.average(is_positive[own], weights=own_weight[own]))


@settings(max_examples=100)
@given(tables.real_tables(), reals, tables.params, tables.weights)
def test_predictions_are_the_references(full, holed, params, kind):
    # Values are missing in the rows that are predicted, then in the training rows, too.
    for Z, is_positive in (full, holed):
        tree = grow(Z, is_positive, tables.make_weight(kind, len(Z)), params)
        plain = read_tree(tree)
        is_missing = np.random.default_rng(len(Z)).random(Z.shape) < 0.4
        rows = np.where(is_missing, np.nan, Z * 1.5)
        rows[0] = np.nan
        assert_array_equal(tree.forest.apply(rows)[:, 0], reference.apply(plain, rows))
        vote, signed, _ = tree.forest.vote(rows, n_classes=2)
        membership = reference.membership(plain, rows)
        assert_array_equal(vote[:, 1], membership)
        distance = reference.distance(plain, rows)
        assert_allclose(signed[:, 1], (2 * membership - 1) * distance, rtol=1e-12)
        for i in range(min(len(rows), 3)):  # few rows take another path through the core
            few = tree.forest.vote(rows[i : i + 1], n_classes=2)
            assert_array_equal(few[0], vote[i : i + 1])
            assert_array_equal(few[1], signed[i : i + 1])


@settings(max_examples=100)
@given(reals, tables.weights)
def test_scale_is_the_references(table, kind):
    X, is_positive = table
    weight = tables.make_weight(kind, len(X))
    forest = LHTClassifier(max_depth=1).fit(X, is_positive, weight).forest_
    mean, std = reference.standardization(X, np.ones(len(X)) if weight is None else weight)
    assert_allclose(forest.column_std, std, rtol=1e-7)
    assert (np.abs(forest.column_mean - mean) <= 1e-9 * std).all()


@settings(max_examples=60)
@given(tables.integer_tables(), tables.params)
def test_a_column_without_values_is_ignored(table, params):
    Z, is_positive = table
    params = replace(params, n_columns=None)  # draws go by the number of columns
    empty = np.full((len(Z), 1), np.nan)
    plain = grow(Z, is_positive, None, params)
    native = grow(np.hstack([Z, empty]), is_positive, None, params)
    assert_array_equal(native.left, plain.left)
    assert_array_equal(native.threshold, plain.threshold)
    assert_array_equal(native.forest.weight, plain.forest.weight)
    with_values = np.hstack([Z, np.ones((len(Z), 1))])
    assert_array_equal(native.forest.apply(with_values), plain.forest.apply(Z))


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_classifiers_take_missing_values(model, blobs):
    X, y = blobs
    rng = np.random.default_rng(1)
    X = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    X[:5] = np.nan  # rows with nothing
    X = np.hstack([X, np.full((len(X), 1), np.nan)])
    model.fit(X, y)
    check_trees(model.forest_)
    proba = model.predict_proba(X)
    assert np.isfinite(proba).all()
    assert_allclose(proba.sum(axis=1), 1)
    assert_array_equal(proba[:5], np.repeat(proba[:1], 5, axis=0))
    assert (model.predict(X) == y).mean() > 0.8
    assert model.feature_importances_[-1] == 0
    single = np.vstack([model.predict_proba(X[i : i + 1]) for i in range(20)])
    assert_array_equal(single, proba[:20])
    assert_array_equal(model.predict_proba(X.astype(object)), proba)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_values_may_be_missing_at_prediction_only(model, blobs):
    X, y = blobs
    model.fit(X, y)
    holed = X.copy()
    holed[::2, 0] = np.nan
    proba = model.predict_proba(holed)
    assert np.isfinite(proba).all()
    assert_array_equal(proba[1::2], model.predict_proba(X)[1::2])
    assert (proba[::2] != model.predict_proba(X)[::2]).any()
    with pytest.raises(ValueError, match="infinity"):
        model.predict(np.where(np.isnan(holed), np.inf, holed))


def test_split_by_hand():
    # Rows with a value: positive ones at 6 and 9, negative ones at 1, 2 and 4; the mean is 4.4.
    # The missing value counts as the mean: N2 = 3 positive rows above 4, the largest negative.
    Z = np.array([[1.0], [2.0], [4.0], [np.nan], [6.0], [9.0]])
    is_positive = np.array([0, 0, 0, 1, 1, 1], dtype=bool)
    tree = grow(Z, is_positive, None, reference.Params())
    assert_array_equal(tree.extremes[0], [4.4, 9, 1, 4])
    assert tree.threshold_kind[0] == 2
    assert tree.terms(0)[2][0] == 4.4
    assert_array_equal(tree.forest.apply(np.array([[np.nan], [3.0]]))[:, 0], [2, 1])


def test_leaf_line_by_hand():
    # Slope and mean of the four rows that have a value, value of all six.
    Z = np.array([[0.0], [2.0], [4.0], [6.0], [np.nan], [np.nan]])
    is_positive = np.array([0, 0, 1, 1, 1, 1], dtype=bool)
    tree = grow(Z, is_positive, None, reference.Params(max_depth=0))
    _, slope, center, _ = tree.terms(0)
    assert_allclose([slope[0], center[0]], [0.2, 3])
    vote = tree.forest.vote(np.array([[np.nan], [3.0], [4.0]]), n_classes=2)[0][:, 1]
    assert_allclose(vote, [4 / 6, 4 / 6, 4 / 6 + 0.2])
