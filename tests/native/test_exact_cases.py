"""Cases of the exact engine that drawn tables rarely have, equal to the reference to the bit."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from exact import boosting
from exact.columns import GAP, learn_columns
from native.test_exact_engine import (
    assert_same_trees,
    boost,
    boost_by_reference,
    check_walk,
    learn,
    make_case,
    make_ensemble,
)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("max_bins", [255, 63])
def test_a_heavy_value_between_many_light_ones_has_a_bin_of_its_own(max_bins, is_weighted):
    light = np.append(np.arange(-400.0, -99.0), np.arange(100.0, 401.0))
    X = np.append(light, np.zeros(1 if is_weighted else 60))[:, np.newaxis]
    weight = np.where(X[:, 0] == 0, 60, 1) if is_weighted else None
    columns, encoded = learn(X, np.zeros(1, dtype=np.int32), weight, max_bins=max_bins)
    (expected,) = learn_columns(X, weight, max_bins=max_bins)
    assert_array_equal(columns.threshold, expected.thresholds)
    assert {-50.0, 50.0} <= set(columns.threshold)
    number = np.bincount(encoded.bin[X[:, 0] != 0, 0])
    assert number[encoded.bin[X[:, 0] == 0, 0]].sum() == 0  # no other value shares its bin
    assert number.max() <= -(-len(light) // (max_bins - 2))  # the others are spread evenly


def test_gaps_of_held_out_rows_alone_are_none():
    X = np.array([[1.0, 1.0], [2.0, np.nan], [np.nan, 3.0]])
    held_out = np.array([0, 0, 1], dtype=np.uint8)
    columns, _ = learn(X, np.zeros(2, dtype=np.int32), None, held_out)
    assert_array_equal(columns.has_gaps, [False, True])


def test_residuals_of_held_out_rows_take_no_bits_of_the_others():
    X = np.arange(40.0)[:, np.newaxis]
    y = np.arange(40, dtype=np.int32) % 7
    held_out = np.zeros(40, dtype=np.uint8)
    held_out[-1], y[-1] = 1, 2**30  # as a training row it would leave the others no gradient
    plan = boosting.Plan(n_rounds=2, min_weight=0)
    case = make_case((X, np.zeros(1, dtype=np.int32), None), ("squared_error", 1), plan, 0)
    case = replace(case, y=y, held_out=held_out)
    _, found = boost(case)
    assert (found["trees"]["left"] >= 0).any()
    assert_same_trees(found["trees"], boost_by_reference(case).trees)


def test_categories_have_no_trend_after_a_column_that_has_one():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 4, 200)
    X = np.column_stack([rng.normal(size=200), code]).astype(np.float64)
    for trend in (-1, 1):
        plan = boosting.Plan(n_rounds=2, min_weight=0, monotonic_cst=(trend, 0))
        table = X, np.array([0, 4], dtype=np.int32), None
        case = make_case(table, ("squared_error", 1), plan, 0)
        case = replace(case, y=(code << 20).astype(np.int32))
        _, found = boost(case)
        assert (found["trees"]["column"] == 1).any()
        assert_same_trees(found["trees"], boost_by_reference(case).trees)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_tree_separates_all_classes_from_none(n_classes):
    X = np.random.default_rng(0).normal(size=(60, 2))
    plan = boosting.Plan(n_rounds=20, min_weight=0)  # all classes are drawn in some of the rounds
    case = make_case((X, np.zeros(2, dtype=np.int32), None), ("log_loss", n_classes), plan, 0)
    _, found = boost(case)
    assert (found["trees"]["left"][found["trees"]["tree_start"][:-1]] >= 0).all()
    assert_same_trees(found["trees"], boost_by_reference(case).trees)


def test_probabilities_of_scores_far_apart_are_those_of_the_reference():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    plan = boosting.Plan(n_rounds=3, min_weight=0)
    case = make_case((X, np.zeros(2, dtype=np.int32), None), ("log_loss", 3), plan, 0)
    case = replace(case, score=rng.choice([-900, 0, 900], (60, 3)) << 24)  # beyond what exp takes
    expected = boost_by_reference(case)
    _, found = boost(case)
    assert_array_equal(found["training_loss"], [float(each) for each in expected.training_loss])
    assert_same_trees(found["trees"], expected.trees)


def test_the_oldest_of_nodes_with_equal_gains_is_divided_first():
    X = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 3, axis=0)
    y = np.repeat([-110, -90, 90, 110], 3).astype(np.int32)
    for n_leaves, is_divided in ((3, [True, True, False]), (4, [True, True, True])):
        plan = boosting.Plan(n_rounds=1, max_leaf_nodes=n_leaves, min_weight=0)
        plan = replace(plan, l2_regularization=0.0)  # else the smaller splits gain nothing
        case = make_case((X, np.zeros(2, dtype=np.int32), None), ("squared_error", 1), plan, 0)
        case = replace(case, y=y)
        trees = boost(case)[1]["trees"]
        assert_array_equal(trees["left"][:3] >= 0, is_divided)
        assert_same_trees(trees, boost_by_reference(case).trees)


@pytest.mark.parametrize("n_hyperplanes", [0, 1])
@pytest.mark.parametrize("score", [0, 15 << 24])  # the largest hessians, the largest gradients
def test_sums_of_more_rows_than_a_word_holds_are_those_of_the_reference(score, n_hyperplanes):
    X = np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], (9000, 1))  # a word: 8,192 rows
    plan = boosting.Plan(
        n_rounds=1, n_hyperplanes=n_hyperplanes, max_terms=2, min_weight=0, min_hessian=0.0
    )
    case = make_case((X, np.zeros(2, dtype=np.int32), None), ("log_loss", 1), plan, 0)
    y = X.any(axis=1).astype(np.int32)
    case = replace(case, y=y, score=np.full((len(X), 1), score))
    _, found = boost(case)
    assert len(found["trees"]["cut"]) == n_hyperplanes
    expected = boost_by_reference(case)
    assert_same_trees(found["trees"], expected.trees)
    assert_array_equal(found["score"], expected.training_score)


def test_absent_values_of_held_out_rows_have_a_place_where_training_rows_have_none():
    a, b = [1, 2, 0, 0, 1, 4, 1, 2, 7, 11, 9, 0], [6, 0, 2, 2, 8, 0, 0, 4, 0, 0, 2, 2]
    table = np.column_stack([a, b]).astype(float), np.zeros(2, dtype=np.int32), None
    plan = boosting.Plan(n_rounds=3, n_hyperplanes=1, max_terms=2, min_weight=0, min_hessian=0.0)
    plan = replace(plan, l2_regularization=0.0, shrinkage=0.0, max_leaf_nodes=2)
    case = make_case(table, ("squared_error", 1), plan, 0)
    case = replace(case, held_out=(np.array(a) == 0).astype(np.uint8))
    _, found = boost(case, is_sparse=True)
    assert len(found["trees"]["cut"]) > 0
    assert_array_equal(found["score"], boost_by_reference(case).training_score)


@pytest.mark.parametrize("n_hyperplanes", [0, 1])
@pytest.mark.parametrize("n", [1, 40])  # rows that walk one by one, and as a block
def test_an_ensemble_without_trees_adds_nothing(n, n_hyperplanes):
    plan = boosting.Plan(n_rounds=0, n_hyperplanes=n_hyperplanes, min_weight=0)
    case = make_case((np.ones((n, 2)), np.zeros(2, dtype=np.int32), None), ("poisson", 1), plan, 0)
    columns, found = boost(case)
    assert len(found["trees"]["left"]) == 0
    assert_array_equal(found["score"], case.score)
    check_walk(columns, found, case)


def raise_cuts(trees, leaf, z):
    """Return cuts that divide the rows of each hyperplane alike, with a row on each."""
    left, cut = trees["left"], trees["cut"].copy()
    parent = np.full(len(left), -1)
    for node in np.flatnonzero(left >= 0):
        parent[left[node] : left[node] + 2] = node
    for k, node in enumerate(np.flatnonzero((left >= 0) & (trees["column"] < 0))):
        child, is_here = leaf.copy(), np.zeros(len(leaf), dtype=bool)
        while (child >= 0).any():
            is_here |= child == node
            child = np.where(child >= 0, parent[child], -1)
        terms = slice(*trees["term_start"][k : k + 2])
        of_terms = z[:, trees["feature"][terms]].astype(np.int64)
        of_terms = np.where(of_terms == GAP, trees["fill"][terms], of_terms)
        projection = of_terms @ trees["coefficient"][terms].astype(np.int64)
        cut[k] = projection[is_here & (projection >= cut[k])].min()
    return cut


@pytest.mark.parametrize("n", [60, 600])  # rows of a block, and of more than one
@pytest.mark.parametrize("share", [0.0, 0.1])  # of gaps
def test_rows_on_a_hyperplane_go_right(share, n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3))
    X[rng.random(X.shape) < share] = np.nan
    plan = boosting.Plan(n_rounds=1, n_hyperplanes=3, min_weight=0, max_leaf_nodes=12)
    case = make_case((X, np.zeros(3, dtype=np.int32), None), ("squared_error", 1), plan, 0)
    signal = np.nan_to_num(X).sum(axis=1)
    case = replace(case, y=(2**24 * np.sin(2 * signal)).astype(np.int32))
    columns, found = boost(case)
    trees = found["trees"]
    assert len(trees["cut"]) > 3
    leaf = make_ensemble(columns, found, case).apply(X)[:, 0]
    _, encoded = learn(X, case.n_codes, None)
    trees["cut"] = raise_cuts(trees, leaf, encoded.z)
    check_walk(columns, found, case)


@pytest.mark.parametrize("column", [0, 1, 2])
def test_gaps_of_any_column_fill_their_terms(column):
    rng = np.random.default_rng(column)
    X = rng.normal(size=(200, 3))
    X[rng.random(200) < 0.3, column] = np.nan
    plan = boosting.Plan(n_rounds=3, n_hyperplanes=1, min_weight=0, max_leaf_nodes=8)
    case = make_case((X, np.zeros(3, dtype=np.int32), None), ("squared_error", 1), plan, 0)
    signal = np.nan_to_num(X).sum(axis=1)
    columns, found = boost(replace(case, y=(2**20 * signal).astype(np.int32)))
    assert np.isin(found["trees"]["feature"], column).any()
    check_walk(columns, found, case)
