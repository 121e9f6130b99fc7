"""The native grower against the reference, and what must hold for every tree."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference
import tables
from growing import assert_same_tree, grow, grow_from, grow_reference, is_stable, make_plan
from lhtree import Forest, check_forest
from lhtree.model.forest import (
    join_forests,
)


@settings(max_examples=500)
@given(tables.integer_tables(), tables.rules, st.sampled_from(["none", "integer"]))
def test_integer_trees_are_the_reference_bit_for_bit(table, rules, kind):
    Z, is_target = table
    weight = tables.make_weight(kind, len(Z))
    native = grow(Z, is_target, weight, rules)
    assert_same_tree(native, grow_reference(Z, is_target, weight, rules), exact=True)


@settings(max_examples=400)
@given(tables.real_tables(), tables.rules, tables.weights, st.booleans())
def test_real_trees_are_the_reference_where_rounding_decides_nothing(
    table, rules, kind, standardizes
):
    X, is_target = table
    # A weight may be 0.5, and copies of a column share the largest: rounding would decide.
    rules = replace(rules, beta=min(rules.beta, 0.45))
    weight = tables.make_weight(kind, len(X))
    ones = np.ones(len(X)) if weight is None else weight
    mean, deviation = reference.standardization(X, ones)
    Z = (X - mean) / deviation if standardizes else X
    plain = grow_reference(Z, is_target, weight, rules)
    if is_stable(plain, Z, is_target, weight, rules):
        assert_same_tree(grow(Z, is_target, weight, rules), plain, exact=False)


@settings(max_examples=400)
@given(tables.integer_tables(), tables.new_rules, st.sampled_from(["none", "integer"]))
def test_candidates_on_integers_are_the_references(table, rules, kind):
    # "mean" and single columns are exact; the others divide by rounded deviations.
    Z, is_target = table
    weight = tables.make_weight(kind, len(Z))
    plain = grow_reference(Z, is_target, weight, rules)
    if rules.contrast != "mean" and not is_stable(plain, Z, is_target, weight, rules):
        return
    native = grow(Z, is_target, weight, rules)
    assert_same_tree(native, plain, exact=rules.contrast == "mean")


@settings(max_examples=300)
@given(tables.real_tables(), tables.new_rules, tables.weights)
def test_candidates_on_reals_are_the_references(table, rules, kind):
    X, is_target = table
    weight = tables.make_weight(kind, len(X))
    mean, deviation = reference.standardization(X, np.ones(len(X)) if weight is None else weight)
    Z = (X - mean) / deviation
    plain = grow_reference(Z, is_target, weight, rules)
    if is_stable(plain, Z, is_target, weight, rules):
        assert_same_tree(grow(Z, is_target, weight, rules), plain, exact=False)


def test_gini_cuts_of_many_rows_are_the_references():
    # Enough rows for bins; outliers leave most of them empty.
    rng = np.random.default_rng(0)
    for outlier in (1.0, 1e6):
        Z = rng.normal(size=(700, 4))
        Z[0] *= outlier
        Z[:, 2] = np.round(Z[:, 2])
        is_target = Z[:, 0] + Z[:, 2] + rng.normal(size=700) > 1
        for weight in (None, rng.uniform(0.5, 2, 700)):
            for rules in (
                reference.Rules(contrast="standardized", threshold="gini"),
                reference.Rules(threshold="gini", axes=True, n_planes=0),
            ):
                native = grow(Z, is_target, weight, rules)
                plain = grow_reference(Z, is_target, weight, rules)
                assert native.n_nodes > 50
                assert_same_tree(native, plain, exact=False)


@settings(max_examples=200)
@given(
    st.one_of(tables.integer_tables(), tables.real_tables()),
    st.one_of(tables.rules, tables.new_rules),
    tables.weights,
)
def test_every_split_and_leaf_keeps_its_promise(table, rules, kind):
    Z, is_target = table
    weight = tables.make_weight(kind, len(Z))
    tree = grow(Z, is_target, weight, rules)
    leaf = tree.forest.apply(Z)[:, 0]
    members = tree.forest.vote(Z, n_classes=2)[0][:, 1]
    assert members.min() >= 0
    assert members.max() <= 1
    rows = {node: np.flatnonzero(leaf == node) for node in np.flatnonzero(tree.left < 0)}
    for node in np.flatnonzero(tree.left >= 0)[::-1]:  # children before parents
        left, right = rows[tree.left[node]], rows[tree.left[node] + 1]
        assert len(left)
        assert len(right)
        if tree.rule[node] in (1, 3):
            assert (is_target[left] == (tree.rule[node] == 1)).all()
        if tree.rule[node] in (2, 4):
            assert (is_target[right] == (tree.rule[node] == 2)).all()
        rows[node] = np.concatenate([left, right])
    for node, own in rows.items():
        assert tree.n_samples[node] == len(own)
        own_weight = np.ones(len(own)) if weight is None else weight[own]
        assert_allclose(tree.weight_sum[node], own_weight.sum(), rtol=1e-12)
        assert_allclose(tree.share[node], own_weight @ is_target[own] / own_weight.sum())


@settings(max_examples=100)
@given(tables.real_tables(), tables.rules, tables.weights)
def test_answers_are_the_references(table, rules, kind):
    Z, is_target = table
    weight = tables.make_weight(kind, len(Z))
    tree = grow(Z, is_target, weight, rules)
    terms = [tree.terms(node) for node in range(tree.n_nodes)]
    plain = reference.Tree(
        tree.left, tree.threshold, tree.share, tree.n_samples, tree.weight_sum, tree.rule,
        tree.extremes, *map(list, zip(*terms, strict=True)),
    )  # fmt: skip
    for rows in (Z, Z[::-1] * 1.5):
        assert_array_equal(tree.forest.apply(rows)[:, 0], reference.apply(plain, rows))
        vote, signed, _ = tree.forest.vote(rows, n_classes=2)
        member = reference.membership(plain, rows)
        assert_array_equal(vote[:, 1], member)
        distance = reference.distance(plain, rows)
        assert_allclose(signed[:, 1], (2 * member - 1) * distance, rtol=1e-12)
        margin, _, complement = tree.forest.vote(rows, n_classes=2, by_margin=True)
        distance = reference.distance(plain, rows, normalized=False)
        assert_array_equal(margin[:, 1], member * distance)
        assert_array_equal(complement, (1 - member) * distance)


@settings(max_examples=100)
@given(tables.integer_tables(), tables.rules, st.booleans())
def test_few_rows_are_answered_like_many(table, rules, by_margin):
    # Few rows walk another way; on integers, many lie exactly on a hyperplane.
    Z, is_target = table
    Z, is_target = np.concatenate([Z] * 5), np.concatenate([is_target] * 5)
    forest = grow(Z, is_target, None, rules).forest
    many = forest.vote(Z, n_classes=2, by_margin=by_margin)
    for i in range(len(Z) // 5):
        few = forest.vote(Z[i : i + 1], n_classes=2, by_margin=by_margin)
        for a, b in zip(few, many, strict=True):
            assert_array_equal(a, b[i : i + 1])


@settings(max_examples=100)
@given(tables.integer_tables(), tables.rules, st.booleans())
def test_float32_gives_the_model_of_float64(table, rules, is_wide):
    Z, is_target = table
    Z = np.tile(Z, (1, 5)) * 0.1 if is_wide else Z * 0.1
    narrow = Z.astype(np.float32)
    a = grow(narrow, is_target, None, rules).forest
    b = grow(narrow.astype(np.float64), is_target, None, rules).forest
    for name in ("left", "feature", "weight", "threshold", "center"):
        assert_array_equal(getattr(a, name), getattr(b, name))
    assert_array_equal(a.apply(narrow), b.apply(narrow.astype(np.float64)))


@settings(max_examples=100)
@given(tables.integer_tables(), tables.rules)
def test_integer_weights_are_copies_of_rows(table, rules):
    Z, is_target = table
    weight = tables.make_weight("integer", len(Z))
    copies = np.repeat(np.arange(len(Z)), weight.astype(int))
    a = grow(Z, is_target, weight, rules)
    b = grow(Z[copies], is_target[copies], None, rules)
    assert_array_equal(a.left, b.left)
    assert_array_equal(a.threshold, b.threshold)
    assert_array_equal(a.forest.weight, b.forest.weight)
    assert_array_equal(a.weight_sum, b.weight_sum)


def test_a_thousand_equal_values_are_a_constant_column():
    # The mean of a thousand times 0.1 is not 0.1, so its variance is not 0.
    Z = np.column_stack([np.full(1000, 0.1), np.arange(1000.0)])
    tree = grow(Z, np.arange(1000) % 3 == 0, None, reference.Rules())
    columns = np.concatenate([tree.terms(node)[0] for node in range(tree.n_nodes)])
    assert 0 not in columns


def test_balanced_xor_is_a_leaf_that_answers_a_half():
    Z = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])
    tree = grow(Z, np.array([True, False, False, True]), None, reference.Rules())
    assert tree.n_nodes == 1
    assert_array_equal(tree.forest.vote(Z, n_classes=2)[0][:, 1], 0.5)


def test_split_by_hand():
    # Means 6 and 2: weight 1. Rest lies in [1, 4], targets in [3, 9]: N2 = 2 above 4.
    Z = np.array([[1.0], [2.0], [4.0], [1.0], [3.0], [6.0], [9.0]])
    is_target = np.array([0, 0, 0, 0, 1, 1, 1], dtype=bool)
    tree = grow(Z, is_target, None, reference.Rules(min_samples_split=3))
    assert tree.rule[0] == 3  # N3 = 3 rows of the rest lie below the least target, 3
    assert tree.threshold[0] == 3.0
    assert_array_equal(tree.extremes[0], [3, 9, 1, 4])
    assert_array_equal(tree.n_samples, [7, 3, 4, 2, 2])
    assert tree.rule[2] == 2
    assert tree.threshold[2] == np.nextafter(4.0, 5.0)
    assert_array_equal(tree.share, [3 / 7, 0, 3 / 4, 1 / 2, 1])


@pytest.mark.parametrize("lower", [1.0, np.nextafter(1.0, 2.0)])
def test_a_gini_cut_between_neighbours_is_the_upper_one(lower):
    upper = np.nextafter(lower, 2.0)  # no number lies between: their middle rounds to one
    Z = np.array([[lower]] * 3 + [[upper]] * 3)
    tree = grow(Z, np.repeat([False, True], 3), None, reference.Rules(threshold="gini"))
    assert tree.threshold[0] == upper
    assert_array_equal(tree.share, [0.5, 0, 1])


def test_leaf_line_by_hand():
    # share 1/2, slope Cov / Var = (1/4 * 4) / 5 = 1/5 about the mean 3.
    Z = np.array([[0.0], [2.0], [4.0], [6.0]])
    tree = grow(Z, np.array([False, False, True, True]), None, reference.Rules(max_depth=0))
    feature, slope, center, deviation = tree.terms(0)
    assert (feature[0], center[0]) == (0, 3.0)
    assert_allclose([slope[0], deviation[0]], [0.2, np.sqrt(5)])
    vote = tree.forest.vote(np.array([[-9.0], [3.0], [4.0], [99.0]]), n_classes=2)[0][:, 1]
    assert_allclose(vote, [0, 0.5, 0.7, 1])


def test_a_leaf_whose_parts_are_infinite_answers_its_share():
    # Slopes of 1e157 in two columns of opposite sign: far away, inf - inf says nothing.
    x = np.array([-1.0, -1.0, 1.0, 1.0, 1.0]) * 1e-158
    Z = np.column_stack([x, -x])
    tree = grow(Z, np.array([False, True, True, True, False]), None, reference.Rules(max_depth=0))
    assert np.abs(tree.terms(0)[1]).min() > 1e155
    vote = tree.forest.vote(np.array([[1e154, 1e154], [0.0, 0.0]]), n_classes=2)[0][:, 1]
    assert_array_equal(vote[0], tree.share[0])


def test_tight_clusters_far_from_each_other_keep_their_digits():
    # Within a cluster the columns vary by 1e-9 about 1 or -1: their squares do not.
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(300, 2))
    Z = rng.choice([-1.0, 1.0], size=(300, 2)) + 1e-9 * noise
    is_target = noise[:, 0] + 0.3 * rng.normal(size=300) > 0
    native = grow(Z, is_target, None, reference.Rules())
    plain = grow_reference(Z, is_target, None, reference.Rules())
    assert native.n_nodes > 20
    assert_same_tree(native, plain, exact=False)


def test_draws_are_the_references():
    rng = np.random.default_rng(0)
    Z = rng.integers(-3, 4, size=(50, 9)).astype(float)
    code = rng.integers(0, 3, 50).astype(np.int32)
    for bootstrap in (False, True):
        plan = make_plan(
            reference.Rules(n_columns=3), Z.shape, n_classes=3, target=(0, 1, 2), beta=(0.0, 0.3),
            n_draws=35, seed=7, first_member=4, bootstrap=bootstrap, n_columns_per_tree=5,
        )  # fmt: skip
        forest = grow_from(Z, code, None, plan, n_threads=2)
        for number, tree in enumerate(forest):
            step, target = divmod(number, 3)
            rows, count = reference.draw_rows(7, 4 + step, 50, 35, bootstrap)
            key = reference.tree_key(7, 4 + step, target)
            plain = reference.grow(
                Z[rows], code[rows] == target, count.astype(float),
                reference.Rules(beta=plan.beta[step], n_columns=3),
                key, reference.tree_columns(key, 9, 5),
            )  # fmt: skip
            assert tree.target == target
            assert_same_tree(tree, plain, exact=True)


@pytest.mark.parametrize("n_columns", [2**16, 2**16 + 1])
def test_columns_of_wide_tables_keep_their_numbers(n_columns):
    X = np.zeros((4, n_columns))
    X[:, [7, -1]] = [[0, 0], [1, 0], [0, 1], [1, 1]]
    rules = reference.Rules()
    tree = grow(X, np.array([False, False, False, True]), None, rules)
    feature, *_ = tree.terms(0)
    assert_array_equal(feature, [7, n_columns - 1])
    assert tree.forest.feature.dtype == np.int32


def test_weights_that_differ_only_below_the_root_are_summed_in_every_node():
    X = np.arange(4.0)[:, np.newaxis]
    weight = np.array([0.5, 1.5, 1.0, 1.0])
    tree = grow(X, np.array([True, False, True, False]), weight, reference.Rules())
    assert tree.weight_sum[0] == tree.n_samples[0] == 4
    for node in np.flatnonzero(tree.left >= 0):
        child = tree.left[node]
        assert tree.weight_sum[child] + tree.weight_sum[child + 1] == tree.weight_sum[node]
    assert_array_equal(np.sort(tree.weight_sum[tree.left < 0]), np.sort(weight))


def test_joined_forests_answer_like_their_parts():
    rng = np.random.default_rng(1)
    Z, is_target = rng.normal(size=(80, 4)), rng.random(80) < 0.5
    parts = [grow(Z, is_target, None, reference.Rules(beta=b)).forest for b in (0.0, 0.5, 1.0)]
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
    Z, is_target = rng.normal(size=(40, 3)), rng.random(40) < 0.5
    forest = grow(Z, is_target, None, reference.Rules(beta=0.9)).forest
    arrays = dict(vars(forest))
    arrays[name] = arrays[name].copy()
    arrays[name][place] = value
    with pytest.raises(ValueError, match=message):
        Forest(**arrays)


@pytest.mark.parametrize("name", ["left", "start", "weight", "threshold", "feature_start"])
def test_arrays_that_do_not_fit_are_refused(name):
    Z = np.arange(20.0).reshape(10, 2)
    arrays = dict(vars(grow(Z, np.arange(10) < 4, None, reference.Rules()).forest))
    with pytest.raises(ValueError, match="This is no sound forest"):
        Forest(**{**arrays, name: arrays[name][:-1]})
    with pytest.raises(ValueError, match=f"{name} has the type float16"):
        Forest(**{**arrays, name: arrays[name].astype(np.float16)})


def test_nobody_can_change_a_forest():
    Z = np.arange(20.0).reshape(10, 2)
    forest = grow(Z, np.arange(10) < 4, None, reference.Rules()).forest
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
    is_target = np.array([True, False, True, False])
    weight = np.array([2.0**60, 2.0**60, 1, 1])
    rules = reference.Rules(threshold="gini", axes=is_alone, n_planes=int(not is_alone))
    native = grow(Z, is_target, weight, rules)
    assert native.left[0] == 1
    assert_same_tree(native, grow_reference(Z, is_target, weight, rules), exact=True)
