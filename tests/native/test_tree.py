"""The native grower against the reference, and what must hold for every tree."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference
import tables
from growing import (
    assert_same_tree,
    compare_with_reference,
    grow,
    grow_forest,
    grow_reference,
    make_plan,
    read_tree,
)
from lhtree import Forest, check_forest
from lhtree.model.building import join_forests
from preconditions import Precondition


@settings(max_examples=500)
@given(tables.integer_tables(), tables.params, st.sampled_from(["none", "integer"]))
def test_integer_trees_are_the_reference_bit_for_bit(table, params, kind):
    Z, is_positive = table
    weight = tables.make_weight(kind, len(Z))
    native = grow(Z, is_positive, weight, params)
    assert_same_tree(native, grow_reference(Z, is_positive, weight, params), exact=True)


def test_real_trees_are_the_reference_where_rounding_decides_nothing():
    stable = Precondition()

    @settings(max_examples=400)
    @given(tables.real_tables(), tables.params, tables.weights, st.booleans())
    def compare(table, params, kind, standardizes):
        X, is_positive = table
        # A weight may be 0.5, and copies of a column share the largest: rounding would decide.
        params = replace(params, beta=min(params.beta, 0.45))
        weight = tables.make_weight(kind, len(X))
        ones = np.ones(len(X)) if weight is None else weight
        mean, std = reference.standardization(X, ones)
        Z = (X - mean) / std if standardizes else X
        compare_with_reference((Z, is_positive), weight, params, stable)

    compare()
    stable.demand(n_held=400, fraction=0.9)


@settings(max_examples=150)
@given(tables.integer_tables(), tables.candidate_params, st.sampled_from(["none", "integer"]))
def test_candidates_of_mean_contrasts_are_the_reference_bit_for_bit(table, params, kind):
    Z, is_positive = table
    params = replace(params, contrast="mean")
    weight = tables.make_weight(kind, len(Z))
    native = grow(Z, is_positive, weight, params)
    assert_same_tree(native, grow_reference(Z, is_positive, weight, params), exact=True)


def test_candidates_on_integers_are_the_reference_where_rounding_decides_nothing():
    stable = Precondition()

    @settings(max_examples=270)
    @given(
        tables.integer_tables(),
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
    stable.demand(n_held=270, fraction=0.9)


def test_candidates_on_reals_are_the_reference_where_rounding_decides_nothing():
    stable = Precondition()

    @settings(max_examples=300)
    @given(tables.real_tables(), tables.candidate_params, tables.weights)
    def compare(table, params, kind):
        X, is_positive = table
        weight = tables.make_weight(kind, len(X))
        mean, std = reference.standardization(X, np.ones(len(X)) if weight is None else weight)
        Z = (X - mean) / std
        compare_with_reference((Z, is_positive), weight, params, stable)

    compare()
    stable.demand(n_held=300, fraction=0.9)


def test_gini_cuts_of_many_rows_are_the_references():
    # Enough rows for bins; outliers leave most of them empty.
    rng = np.random.default_rng(0)
    for outlier in (1.0, 1e6):
        Z = rng.normal(size=(700, 4))
        Z[0] *= outlier
        Z[:, 2] = np.round(Z[:, 2])
        is_positive = Z[:, 0] + Z[:, 2] + rng.normal(size=700) > 1
        for weight in (None, rng.uniform(0.5, 2, 700)):
            for params in (
                reference.Params(contrast="standardized", criterion="gini"),
                reference.Params(criterion="gini", axis_splits=True, n_hyperplanes=0),
            ):
                native = grow(Z, is_positive, weight, params)
                plain = grow_reference(Z, is_positive, weight, params)
                assert native.n_nodes > 50
                assert_same_tree(native, plain, exact=False)


def test_nodes_describe_the_rows_that_reach_them():
    n_kinds = Counter()

    @settings(max_examples=200)
    @given(
        st.one_of(tables.integer_tables(), tables.real_tables()),
        st.one_of(tables.params, tables.candidate_params),
        tables.weights,
    )
    def check(table, params, kind):
        Z, is_positive = table
        weight = tables.make_weight(kind, len(Z))
        tree = grow(Z, is_positive, weight, params)
        n_kinds.update(tree.threshold_kind.tolist())
        rows = list_rows(tree, Z)
        for node in np.flatnonzero(tree.left >= 0):
            left, right = rows[tree.left[node]], rows[tree.left[node] + 1]
            assert len(left)
            assert len(right)
            if tree.threshold_kind[node] in (1, 3):
                assert (is_positive[left] == (tree.threshold_kind[node] == 1)).all()
            if tree.threshold_kind[node] in (2, 4):
                assert (is_positive[right] == (tree.threshold_kind[node] == 2)).all()
        for node, own in rows.items():
            assert tree.n_samples[node] == len(own)
            own_weight = np.ones(len(own)) if weight is None else weight[own]
            assert_allclose(tree.weight_sum[node], own_weight.sum(), rtol=1e-12)
            assert_allclose(tree.value[node], own_weight @ is_positive[own] / own_weight.sum())
        membership = tree.forest.vote(Z, n_classes=2)[0][:, 1]
        assert membership.min() >= 0
        assert membership.max() <= 1

    check()
    # Kinds 1 and 4 are rare: outliers must pull the mean of a class beyond the other's.
    assert all(n_kinds[kind] >= 20 for kind in (0, 2, 3, 5, 6)), n_kinds


def list_rows(tree, Z):
    """Return the rows that reach each node."""
    leaf = tree.forest.apply(Z)[:, 0]
    rows = {node: np.flatnonzero(leaf == node) for node in np.flatnonzero(tree.left < 0)}
    for node in np.flatnonzero(tree.left >= 0)[::-1]:  # children before parents
        rows[node] = np.concatenate([rows[tree.left[node]], rows[tree.left[node] + 1]])
    return rows


@settings(max_examples=100)
@given(tables.real_tables(), tables.params, tables.weights)
def test_predictions_are_the_references(table, params, kind):
    Z, is_positive = table
    weight = tables.make_weight(kind, len(Z))
    tree = grow(Z, is_positive, weight, params)
    plain = read_tree(tree)
    for rows in (Z, Z[::-1] * 1.5):
        assert_array_equal(tree.forest.apply(rows)[:, 0], reference.apply(plain, rows))
        vote, signed, _ = tree.forest.vote(rows, n_classes=2)
        membership = reference.membership(plain, rows)
        assert_array_equal(vote[:, 1], membership)
        distance = reference.distance(plain, rows)
        assert_allclose(signed[:, 1], (2 * membership - 1) * distance, rtol=1e-12)
        margin, _, complement = tree.forest.vote(rows, n_classes=2, by_margin=True)
        distance = reference.distance(plain, rows, normalized=False)
        assert_array_equal(margin[:, 1], membership * distance)
        assert_array_equal(complement, (1 - membership) * distance)


@settings(max_examples=100)
@given(tables.integer_tables(), tables.params, st.booleans())
def test_few_rows_get_the_outputs_of_many(table, params, by_margin):
    # Few rows take another path through the core; on integers, many lie on a hyperplane.
    Z, is_positive = table
    Z, is_positive = np.concatenate([Z] * 5), np.concatenate([is_positive] * 5)
    forest = grow(Z, is_positive, None, params).forest
    many = forest.vote(Z, n_classes=2, by_margin=by_margin)
    for i in range(len(Z) // 5):
        few = forest.vote(Z[i : i + 1], n_classes=2, by_margin=by_margin)
        for a, b in zip(few, many, strict=True):
            assert_array_equal(a, b[i : i + 1])


@settings(max_examples=100)
@given(tables.integer_tables(), tables.params, st.booleans())
def test_float32_gives_the_model_of_float64(table, params, is_wide):
    Z, is_positive = table
    Z = np.tile(Z, (1, 5)) * 0.1 if is_wide else Z * 0.1
    narrow = Z.astype(np.float32)
    a = grow(narrow, is_positive, None, params).forest
    b = grow(narrow.astype(np.float64), is_positive, None, params).forest
    for name in ("left", "feature", "weight", "threshold", "center"):
        assert_array_equal(getattr(a, name), getattr(b, name))
    assert_array_equal(a.apply(narrow), b.apply(narrow.astype(np.float64)))


@settings(max_examples=100)
@given(tables.integer_tables(), tables.params)
def test_integer_weights_are_copies_of_rows(table, params):
    Z, is_positive = table
    weight = tables.make_weight("integer", len(Z))
    copies = np.repeat(np.arange(len(Z)), weight.astype(int))
    a = grow(Z, is_positive, weight, params)
    b = grow(Z[copies], is_positive[copies], None, params)
    assert_array_equal(a.left, b.left)
    assert_array_equal(a.threshold, b.threshold)
    assert_array_equal(a.forest.weight, b.forest.weight)
    assert_array_equal(a.weight_sum, b.weight_sum)


def test_a_thousand_equal_values_are_a_constant_column():
    # The mean of a thousand times 0.1 is not 0.1, so its variance is not 0.
    Z = np.column_stack([np.full(1000, 0.1), np.arange(1000.0)])
    tree = grow(Z, np.arange(1000) % 3 == 0, None, reference.Params())
    columns = np.concatenate([tree.terms(node)[0] for node in range(tree.n_nodes)])
    assert 0 not in columns


def test_balanced_xor_is_a_leaf_that_outputs_a_half():
    Z = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])
    tree = grow(Z, np.array([True, False, False, True]), None, reference.Params())
    assert tree.n_nodes == 1
    assert_array_equal(tree.forest.vote(Z, n_classes=2)[0][:, 1], 0.5)


def test_split_by_hand():
    # Means 6 and 2: weight 1. Negative rows lie in [1, 4], positive ones in [3, 9].
    Z = np.array([[1.0], [2.0], [4.0], [1.0], [3.0], [6.0], [9.0]])
    is_positive = np.array([0, 0, 0, 0, 1, 1, 1], dtype=bool)
    tree = grow(Z, is_positive, None, reference.Params(min_samples_split=3))
    assert tree.threshold_kind[0] == 3  # N3 = 3 negative rows lie below 3; N2 = 2 above 4
    assert tree.threshold[0] == 3.0
    assert_array_equal(tree.extremes[0], [3, 9, 1, 4])
    assert_array_equal(tree.n_samples, [7, 3, 4, 2, 2])
    assert tree.threshold_kind[2] == 2
    assert tree.threshold[2] == np.nextafter(4.0, 5.0)
    assert_array_equal(tree.value, [3 / 7, 0, 3 / 4, 1 / 2, 1])


@pytest.mark.parametrize(
    ("positive", "negative", "kind", "threshold"),
    [
        ([0, 0, 0, 100], [1, 2, 3], 1, 1),
        ([1, 5, 6, 7], [0, 2, 3], 2, np.nextafter(3, 4)),
        ([4, 5, 6], [0, 1, 2, 7], 3, 4),
        ([-1, -2, -3], [0, 0, 0, -100], 4, np.nextafter(-1, 0)),
    ],
)
def test_the_largest_pure_group_is_cut_off(positive, negative, kind, threshold):
    Z = np.array([positive + negative], dtype=float).T
    is_positive = np.repeat([True, False], [len(positive), len(negative)])
    tree = grow(Z, is_positive, None, reference.Params())
    assert (tree.threshold_kind[0], tree.threshold[0]) == (kind, threshold)
    assert_same_tree(tree, grow_reference(Z, is_positive, None, reference.Params()), exact=True)


@pytest.mark.parametrize("lower", [1.0, np.nextafter(1.0, 2.0)])
def test_a_gini_cut_between_neighbours_is_the_upper_one(lower):
    upper = np.nextafter(lower, 2.0)  # no number lies between: their middle rounds to one
    Z = np.array([[lower]] * 3 + [[upper]] * 3)
    tree = grow(Z, np.repeat([False, True], 3), None, reference.Params(criterion="gini"))
    assert tree.threshold[0] == upper
    assert_array_equal(tree.value, [0.5, 0, 1])


def test_leaf_line_by_hand():
    # Value 1/2, slope Cov / Var = (1/4 * 4) / 5 = 1/5 about the mean 3.
    Z = np.array([[0.0], [2.0], [4.0], [6.0]])
    tree = grow(Z, np.array([False, False, True, True]), None, reference.Params(max_depth=0))
    feature, slope, center, std = tree.terms(0)
    assert (feature[0], center[0]) == (0, 3.0)
    assert_allclose([slope[0], std[0]], [0.2, np.sqrt(5)])
    vote = tree.forest.vote(np.array([[-9.0], [3.0], [4.0], [99.0]]), n_classes=2)[0][:, 1]
    assert_allclose(vote, [0, 0.5, 0.7, 1])


def test_a_leaf_whose_terms_are_infinite_outputs_its_value():
    # Slopes of 1e157 in two columns of opposite sign: far away, inf - inf says nothing.
    x = np.array([-1.0, -1.0, 1.0, 1.0, 1.0]) * 1e-158
    Z = np.column_stack([x, -x])
    tree = grow(Z, np.array([False, True, True, True, False]), None, reference.Params(max_depth=0))
    assert np.abs(tree.terms(0)[1]).min() > 1e155
    vote = tree.forest.vote(np.array([[1e154, 1e154], [0.0, 0.0]]), n_classes=2)[0][:, 1]
    assert_array_equal(vote[0], tree.value[0])


def test_tight_clusters_far_from_each_other_keep_their_digits():
    # Within a cluster the columns vary by 1e-9 about 1 or -1: their squares do not.
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(300, 2))
    Z = rng.choice([-1.0, 1.0], size=(300, 2)) + 1e-9 * noise
    is_positive = noise[:, 0] + 0.3 * rng.normal(size=300) > 0
    native = grow(Z, is_positive, None, reference.Params())
    plain = grow_reference(Z, is_positive, None, reference.Params())
    assert native.n_nodes > 20
    assert_same_tree(native, plain, exact=False)


def test_draws_are_the_references():
    rng = np.random.default_rng(0)
    Z = rng.integers(-3, 4, size=(50, 9)).astype(float)
    y_encoded = rng.integers(0, 3, 50).astype(np.int32)
    for bootstrap in (False, True):
        plan = make_plan(
            reference.Params(n_columns=3), 50, n_classes=3, positive_class=(0, 1, 2),
            beta=(0.0, 0.3), n_draws=35, seed=7, first_estimator=4, bootstrap=bootstrap,
            max_features_per_tree=5,
        )  # fmt: skip
        forest = grow_forest(Z, y_encoded, None, plan, n_threads=2)
        for number, tree in enumerate(forest):
            step, k = divmod(number, 3)
            rows, count = reference.draw_rows(7, 4 + step, 50, 35, bootstrap)
            key = reference.tree_key(7, 4 + step, k)
            plain = reference.grow(
                Z[rows], y_encoded[rows] == k, count.astype(float),
                reference.Params(beta=plan.beta[step], n_columns=3),
                key, reference.tree_columns(key, 9, 5),
            )  # fmt: skip
            assert tree.positive_class == k
            assert_same_tree(tree, plain, exact=True)


@pytest.mark.parametrize("n_columns", [2**16, 2**16 + 1])
def test_columns_of_wide_tables_keep_their_numbers(n_columns):
    X = np.zeros((4, n_columns))
    X[:, [7, -1]] = [[0, 0], [1, 0], [0, 1], [1, 1]]
    params = reference.Params()
    tree = grow(X, np.array([False, False, False, True]), None, params)
    feature, *_ = tree.terms(0)
    assert_array_equal(feature, [7, n_columns - 1])
    assert tree.forest.feature.dtype == np.int32


def test_weights_that_differ_only_below_the_root_are_summed_in_every_node():
    X = np.arange(4.0)[:, np.newaxis]
    weight = np.array([0.5, 1.5, 1.0, 1.0])
    tree = grow(X, np.array([True, False, True, False]), weight, reference.Params())
    assert tree.weight_sum[0] == tree.n_samples[0] == 4
    for node in np.flatnonzero(tree.left >= 0):
        child = tree.left[node]
        assert tree.weight_sum[child] + tree.weight_sum[child + 1] == tree.weight_sum[node]
    assert_array_equal(np.sort(tree.weight_sum[tree.left < 0]), np.sort(weight))


def test_joined_forests_predict_like_those_they_were_joined_from():
    rng = np.random.default_rng(1)
    Z, is_positive = rng.normal(size=(80, 4)), rng.random(80) < 0.5
    parts = [grow(Z, is_positive, None, reference.Params(beta=b)).forest for b in (0.0, 0.5, 1.0)]
    joined = join_forests(parts)
    check_forest(joined)
    assert_array_equal(joined.apply(Z), np.hstack([part.apply(Z) for part in parts]))


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("left", 0, 2, "children are misplaced"),
        ("left", 0, 0, "a child comes before its parent"),
        ("left", 0, -1, "children are misplaced"),
        ("left", 0, 10**6, "children are misplaced"),
        ("feature", 0, 77, "a column is out of range"),
        ("start", 1, 10**9, "start falls"),
        ("weight", 0, np.nan, "weight is not finite"),
        ("n_samples", 0, 3, "rows are lost"),
    ],
)
def test_check_forest_names_what_is_wrong(name, place, value, message):
    rng = np.random.default_rng(2)
    Z, is_positive = rng.normal(size=(40, 3)), rng.random(40) < 0.5
    forest = grow(Z, is_positive, None, reference.Params(beta=0.9)).forest
    arrays = dict(vars(forest))
    arrays[name] = arrays[name].copy()
    arrays[name][place] = value
    with pytest.raises(ValueError, match=message):
        Forest(**arrays)


@pytest.mark.parametrize("name", ["left", "start", "weight", "threshold", "feature_start"])
def test_arrays_that_do_not_fit_together_are_refused(name):
    Z = np.arange(20.0).reshape(10, 2)
    arrays = dict(vars(grow(Z, np.arange(10) < 4, None, reference.Params()).forest))
    with pytest.raises(ValueError, match="This is not a valid forest"):
        Forest(**{**arrays, name: arrays[name][:-1]})
    with pytest.raises(ValueError, match=f"{name} has the type float16"):
        Forest(**{**arrays, name: arrays[name].astype(np.float16)})


def test_nobody_can_change_a_forest():
    Z = np.arange(20.0).reshape(10, 2)
    forest = grow(Z, np.arange(10) < 4, None, reference.Params()).forest
    with pytest.raises(ValueError, match="read-only"):
        forest.left[0] = 5
    mine = forest.left.copy()
    copy = Forest(**{**vars(forest), "left": mine})
    mine[0] = 10**6
    assert_array_equal(copy.left, forest.left)
    assert_array_equal(copy.apply(Z, n_threads=0), forest.apply(Z))


@pytest.mark.parametrize("is_alone", [True, False])
def test_rows_that_sums_of_weights_lose_are_still_split(is_alone):
    Z = np.array([[0.0], [0.0], [1.0], [2.0]])
    is_positive = np.array([True, False, True, False])
    weight = np.array([2.0**60, 2.0**60, 1, 1])
    params = reference.Params(
        criterion="gini", axis_splits=is_alone, n_hyperplanes=int(not is_alone)
    )
    native = grow(Z, is_positive, weight, params)
    assert native.left[0] == 1
    assert_same_tree(native, grow_reference(Z, is_positive, weight, params), exact=True)
