"""Missing values: training and answers are the reference's, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference
import tables
from growing import assert_same_tree, grow, grow_reference, is_stable
from lhtree import LHForestClassifier, LHTClassifier, check_forest

MODELS = [
    LHTClassifier(),
    LHTClassifier(contrast="standardized", threshold="gini"),
    LHTClassifier(contrast="fisher", threshold="gini"),
    LHForestClassifier(5, random_state=0),
    LHForestClassifier(5, preset="paper", beta=0.5, voting="margin", random_state=0),
    LHForestClassifier(5, bootstrap=True, class_weight="balanced", random_state=0),
]
integers = tables.with_holes(tables.integer_tables())
reals = tables.with_holes(tables.real_tables())


@settings(max_examples=300)
@given(integers, tables.rules, st.sampled_from(["none", "integer"]))
def test_integer_trees_are_the_reference_bit_for_bit(table, rules, kind):
    Z, is_target = table
    weight = tables.make_weight(kind, len(Z))
    native = grow(Z, is_target, weight, rules)
    assert_same_tree(native, grow_reference(Z, is_target, weight, rules), exact=True)


@settings(max_examples=250)
@given(integers, tables.new_rules, st.sampled_from(["none", "integer"]))
def test_candidates_on_integers_are_the_references(table, rules, kind):
    Z, is_target = table
    weight = tables.make_weight(kind, len(Z))
    plain = grow_reference(Z, is_target, weight, rules)
    if rules.contrast != "mean" and not is_stable(plain, Z, is_target, weight, rules):
        return
    native = grow(Z, is_target, weight, rules)
    assert_same_tree(native, plain, exact=rules.contrast == "mean")


@settings(max_examples=300)
@given(reals, st.one_of(tables.rules, tables.new_rules), tables.weights)
def test_real_trees_are_the_reference_where_rounding_decides_nothing(table, rules, kind):
    X, is_target = table
    rules = replace(rules, beta=min(rules.beta, 0.45))
    weight = tables.make_weight(kind, len(X))
    mean, deviation = reference.standardization(X, np.ones(len(X)) if weight is None else weight)
    Z = (X - mean) / deviation
    plain = grow_reference(Z, is_target, weight, rules)
    if is_stable(plain, Z, is_target, weight, rules):
        assert_same_tree(grow(Z, is_target, weight, rules), plain, exact=False)


@settings(max_examples=200)
@given(
    st.one_of(integers, reals), st.one_of(tables.rules, tables.new_rules), tables.weights,
    st.sampled_from([np.float64, np.float32]),
)  # fmt: skip
def test_training_rows_find_their_leaves(table, rules, kind, dtype):
    Z, is_target = table
    Z = np.clip(Z, -1e30, 1e30).astype(dtype)
    weight = tables.make_weight(kind, len(Z))
    tree = grow(Z, is_target, weight, rules)
    leaf = tree.forest.apply(Z)[:, 0]
    for node in np.flatnonzero(tree.left < 0):
        own = leaf == node
        assert tree.n_samples[node] == np.count_nonzero(own)
        own_weight = np.ones(len(Z)) if weight is None else weight
        assert_allclose(tree.weight_sum[node], own_weight[own].sum(), rtol=1e-12)
        assert_allclose(tree.share[node], np.average(is_target[own], weights=own_weight[own]))


@settings(max_examples=100)
@given(tables.real_tables(), reals, tables.rules, tables.weights)
def test_answers_are_the_references(full, holed, rules, kind):
    # Grown without missing values, asked with them; and both with them.
    for Z, is_target in (full, holed):
        tree = grow(Z, is_target, tables.make_weight(kind, len(Z)), rules)
        terms = [tree.terms(node) for node in range(tree.n_nodes)]
        plain = reference.Tree(
            tree.left, tree.threshold, tree.share, tree.n_samples, tree.weight_sum, tree.rule,
            tree.extremes, *map(list, zip(*terms, strict=True)),
        )  # fmt: skip
        is_missing = np.random.default_rng(len(Z)).random(Z.shape) < 0.4
        rows = np.where(is_missing, np.nan, Z * 1.5)
        rows[0] = np.nan
        assert_array_equal(tree.forest.apply(rows)[:, 0], reference.apply(plain, rows))
        vote, signed, _ = tree.forest.vote(rows, n_classes=2)
        member = reference.membership(plain, rows)
        assert_array_equal(vote[:, 1], member)
        distance = reference.distance(plain, rows)
        assert_allclose(signed[:, 1], (2 * member - 1) * distance, rtol=1e-12)
        for i in range(min(len(rows), 3)):  # few rows walk another way
            few = tree.forest.vote(rows[i : i + 1], n_classes=2)
            assert_array_equal(few[0], vote[i : i + 1])
            assert_array_equal(few[1], signed[i : i + 1])


@settings(max_examples=100)
@given(reals, tables.weights)
def test_scale_is_the_references(table, kind):
    X, is_target = table
    weight = tables.make_weight(kind, len(X))
    forest = LHTClassifier(max_depth=1).fit(X, is_target, weight).forest_
    mean, deviation = reference.standardization(X, np.ones(len(X)) if weight is None else weight)
    assert_allclose(forest.column_deviation, deviation, rtol=1e-7)
    assert (np.abs(forest.column_mean - mean) <= 1e-9 * deviation).all()


@settings(max_examples=60)
@given(tables.integer_tables(), tables.rules)
def test_a_column_without_values_is_ignored(table, rules):
    Z, is_target = table
    rules = replace(rules, n_columns=None)  # draws go by the number of columns
    empty = np.full((len(Z), 1), np.nan)
    plain = grow(Z, is_target, None, rules)
    native = grow(np.hstack([Z, empty]), is_target, None, rules)
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
    check_forest(model.forest_)
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
    # The rows that have a value: targets 6 and 9, rest 1, 2 and 4; their mean is 4.4.
    # The missing target stands there: N2 = 3 targets above 4, the largest of the rest.
    Z = np.array([[1.0], [2.0], [4.0], [np.nan], [6.0], [9.0]])
    is_target = np.array([0, 0, 0, 1, 1, 1], dtype=bool)
    tree = grow(Z, is_target, None, reference.Rules())
    assert_array_equal(tree.extremes[0], [4.4, 9, 1, 4])
    assert tree.rule[0] == 2
    assert tree.terms(0)[2][0] == 4.4
    assert_array_equal(tree.forest.apply(np.array([[np.nan], [3.0]]))[:, 0], [2, 1])


def test_leaf_line_by_hand():
    # Slope and mean of the four rows that have a value, share of all six.
    Z = np.array([[0.0], [2.0], [4.0], [6.0], [np.nan], [np.nan]])
    is_target = np.array([0, 0, 1, 1, 1, 1], dtype=bool)
    tree = grow(Z, is_target, None, reference.Rules(max_depth=0))
    _, slope, center, _ = tree.terms(0)
    assert_allclose([slope[0], center[0]], [0.2, 3])
    vote = tree.forest.vote(np.array([[np.nan], [3.0], [4.0]]), n_classes=2)[0][:, 1]
    assert_allclose(vote, [4 / 6, 4 / 6, 4 / 6 + 0.2])
