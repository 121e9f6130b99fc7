"""Forests of numbers on tables so small that the answer is known, and what they promise."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from exact import boosting, columns, forests, losses, trees
from exact.arithmetic import MASK, draw_columns, hash64

N_CODES = [0, 0, 4, 0]


def grow(X, y, weight=None, n_codes=None, learned=None, **plan):
    """Learn the columns of a table, unless they are known, and grow a forest; one tree at least.

    Targets are integers already.
    """
    X, y = np.array(X, dtype=np.float64), np.array(y)
    learned = columns.learn_columns(X, weight, n_codes) if learned is None else learned
    weights = np.ones(len(X), dtype=np.int64) if weight is None else weight
    start = losses.SquaredError().start(y, weights)
    score = np.tile(np.array(start, dtype=np.int64), (len(X), 1))
    plan = forests.Plan(**{"n_estimators": 1} | plan)
    return learned, forests.grow(learned, boosting.Rows(X, y, weight, score), plan)


def grow_tree(X, y, weight=None, **plan):
    """Return the only tree of a forest."""
    return grow(X, y, weight, **plan)[1][0]


def make_table(seed, n=60):
    """Return a table with numbers, few values, categories and zeros, with gaps, and targets."""
    rng = np.random.default_rng(seed)
    zeros = np.where(rng.random(n) < 0.6, 0.0, rng.normal(size=n))
    X = np.column_stack([rng.normal(size=n), rng.integers(-2, 3, n), rng.integers(0, 6, n), zeros])
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0] + X[:, 1] - X[:, 3]) + 0.3 * rng.normal(size=n)
    return X, np.round(y * 1e6).astype(np.int64)


def strip_rows(forest):
    """Return trees without the numbers of the rows."""
    return [[replace(node, rows=None) for node in tree] for tree in forest]


def list_values(tree):
    """Return what the leaves of a tree add."""
    return [node.values[0] for node in tree if node.left < 0]


# ---- cuts -----------------------------------------------------------------------------


def test_cuts_lie_amid_the_bins_that_have_rows():
    X = np.arange(10.0)[:, None]
    learned, [tree] = grow(X, [0, 0, 9, 9, 9, 9, 9, 9, 9, 9])
    assert (tree[0].threshold, list_values(tree)) == (1.5, [-7, 2])  # the start is 7
    for kept, threshold in (
        ([0, 1, 8, 9], 4.5),
        ([0, 1, 7, 9], 4.5),
        ([1, 2], 1.5),
        ([1, 4], 2.5),
    ):
        y = [0 if x < 2 else 9 for x in kept]
        _, [tree] = grow(X[kept], y, learned=learned)
        assert tree[0].threshold == threshold
        assert len(tree) == 3


def test_missing_values_go_where_they_help():
    X = [[0], [0], [1], [1], [np.nan]]
    for target, missing_left in ((9, False), (0, True)):
        tree = grow_tree(X, [0, 0, 9, 9, target])
        assert (tree[0].threshold, tree[0].missing_left, len(tree)) == (0.5, missing_left, 3)


def test_missing_alone_splits_above_all_bins():
    learned = columns.learn_columns(np.arange(9.0)[:, None])
    X = [[np.nan], [2.0], [3.0], [np.nan]]  # there are bins above those of the node
    _, [tree] = grow(X, [9, 1, 1, 9], learned=learned)
    assert (tree[0].threshold, tree[0].missing_left, len(tree)) == (math.inf, False, 3)


def test_the_order_of_equal_cuts():
    tree = grow_tree([[0], [1], [2], [3]], [0, 9, 9, 0], max_depth=1)  # ends are equal
    assert tree[0].threshold == 0.5
    X = [[0], [1], [np.nan]]  # the same rows apart: missing right comes first
    assert not grow_tree(X, [0, 9, 9], max_depth=1)[0].missing_left


def test_absent_categories_go_to_the_larger_side_or_left():
    for y, is_left in (([9, 9, 0, 0], True), ([9, 9, 9, 0], True), ([9, 0, 0, 0], False)):
        X = np.where(np.array(y) > 0, 0.0, 1.0)[:, None]  # the larger targets go left
        tree = grow_tree(X, y, n_codes=[3])
        absent = {2, *range(3, 256)} if is_left else set()
        assert tree[0].codes == {0} | absent


# ---- nodes ----------------------------------------------------------------------------


def test_trees_grow_until_all_targets_of_a_leaf_are_equal():
    y = [3, 3, 7, 1, 1, 1, 8, 5]
    learned, [tree] = grow(np.arange(8)[:, None], y)
    assert [len(set(np.array(y)[node.rows])) for node in tree if node.left < 0] == [1] * 5
    at = trees.walk(tree, learned, np.arange(8.0)[:, None])
    assert [4 + tree[k].values[0] for k in at] == y  # the start is the mean, rounded


def test_rows_that_no_column_tells_apart_answer_their_mean():
    tree = grow_tree([[5], [5], [5]], [0, 1, 1])  # the start is 1
    assert [node.values for node in tree] == [(0,)]
    tree = grow_tree([[0], [0], [1], [1]], [0, 1, 10, 13])  # 6, and means 0.5 and 11.5
    assert list_values(tree) == [-5, 6]  # halves go up


def test_a_mean_weighs_its_rows():
    weight = np.array([3, 1, 1])
    tree = grow_tree([[0], [0], [1]], [0, 40, 90], weight)  # the start is 26
    assert list_values(tree) == [10 - 26, 90 - 26]


def test_light_nodes_and_light_sides_are_not_made():
    X, y = np.arange(8)[:, None], [0, 9, 1, 8, 2, 7, 3, 6]
    assert min(node.weight for node in grow_tree(X, y, min_weight=3)) == 3
    for least, n_nodes in ((9, 1), (8, 3), (3, 11)):
        tree = grow_tree(X, y, min_split_weight=least)
        assert len(tree) >= n_nodes
        assert all(node.weight >= least for node in tree if node.left >= 0)
    assert len(grow_tree(X, y, min_split_weight=9)) == 1
    assert len(grow_tree(X, y, max_depth=0)) == 1
    assert len(grow_tree(X, y)) == 15


def test_the_oldest_of_equal_nodes_is_split_first():
    X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 2, 100, 102]
    tree = grow_tree(X, y, max_leaf_nodes=3)
    assert [node.left for node in tree] == [1, 3, -1, -1, -1]
    tree = grow_tree(X, [0, 2, 100, 103], max_leaf_nodes=3)
    assert [node.left for node in tree] == [1, -1, 3, -1, -1]


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), n_leaves=st.integers(1, 30))
def test_enough_leaves_are_no_limit(seed, n_leaves):
    X, y = make_table(seed, 40)
    plan = {"n_codes": N_CODES, "n_hyperplanes": 3, "max_features": 2, "seed": seed}
    _, whole = grow(X, y, **plan)
    _, limited = grow(X, y, max_leaf_nodes=n_leaves, **plan)
    n_all = sum(node.left < 0 for node in whole[0])
    assert sum(node.left < 0 for node in limited[0]) == min(n_leaves, n_all)
    if n_leaves >= n_all:
        assert strip_rows(limited) == strip_rows(whole)


# ---- draws ----------------------------------------------------------------------------


def test_an_estimator_draws_the_rows_of_smallest_hashes():
    X, y = make_table(0)
    key = hash64(5, 3)
    for n_draws in (1, 20, 60, 99):
        tree = grow_tree(X, y, n_codes=N_CODES, seed=5, first_estimator=3, n_draws=n_draws)
        ranks = sorted(range(60), key=lambda i: hash64(key, i))
        assert tree[0].rows.tolist() == sorted(ranks[:n_draws])


def test_rows_that_are_drawn_twice_weigh_twice():
    X, y = make_table(1)
    y >>= 2  # 22 bits: no bit is dropped, whatever rows there are
    weight = np.arange(60) % 3 + 1
    plan = {"n_codes": N_CODES, "seed": 5, "n_hyperplanes": 3}
    learned, [tree] = grow(X, y, weight, bootstrap=True, n_draws=50, **plan)
    drawn = [hash64(hash64(5, 0), j) % 60 for j in range(50)]
    count = np.bincount(drawn, minlength=60)
    assert tree[0].weight == (count * weight).sum()
    assert_array_equal(tree[0].rows, np.flatnonzero(count))
    start = losses.SquaredError().start(y, weight)
    copies = np.repeat(np.arange(60), count * weight)
    score = np.full((len(copies), 1), start[0])
    rows = boosting.Rows(X[copies], y[copies], None, score)
    copied = forests.grow(learned, rows, forests.Plan(n_estimators=1, seed=5, n_hyperplanes=3))
    assert strip_rows(copied) == strip_rows([tree])


def test_estimators_are_the_same_alone_and_together():
    X, y = make_table(2)
    plan = {"n_codes": N_CODES, "bootstrap": True, "n_draws": 40, "max_features": 2}
    _, together = grow(X, y, n_estimators=5, **plan)
    _, first = grow(X, y, n_estimators=2, **plan)
    _, rest = grow(X, y, n_estimators=3, first_estimator=2, **plan)
    assert strip_rows(first + rest) == strip_rows(together)
    assert len({repr(tree) for tree in strip_rows(together)}) == 5


def test_columns_are_drawn_in_every_order():
    orders = [tuple(draw_columns(key, [2, 0, 1], None)) for key in range(6000)]
    assert {tuple(sorted(order)) for order in orders} == {(0, 1, 2)}
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6
    assert min(counts) > 900
    assert max(counts) < 1100
    assert draw_columns(7, [3, 9, 5], 2) == draw_columns(7, [9, 5, 3], None)[:2]


def test_equal_columns_are_taken_in_the_order_drawn():
    X, y = np.tile(np.arange(4.0)[:, None], 3), [0, 0, 9, 9]
    seen = set()
    for seed in range(20):
        tree = grow_tree(X, y, seed=seed)
        draws = hash64(hash64(hash64(seed, 0), MASK), MASK - 2)
        assert tree[0].column == min(range(3), key=lambda j: hash64(draws, j))
        seen.add(tree[0].column)
    assert seen == {0, 1, 2}


def test_columns_of_one_bin_are_not_drawn():
    X = np.column_stack([np.full(6, 3.0), np.full(6, np.nan), np.arange(6), np.zeros(6)])
    for seed in range(10):
        assert grow_tree(X, [0, 0, 0, 9, 9, 9], max_features=1, seed=seed)[0].column == 2
    X[:3, 0] = np.nan  # the bin of missing values is one
    chosen = {
        grow_tree(X, [0, 0, 0, 9, 9, 9], max_features=1, seed=s)[0].column for s in range(10)
    }
    assert chosen == {0, 2}


# ---- hyperplanes ----------------------------------------------------------------------


def test_a_plane_separates_what_one_column_cannot():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 2))
    y = 1000 * (X[:, 0] + X[:, 1] > 0)
    plane = grow_tree(X, y, n_hyperplanes=1)[0].hyperplane
    assert plane.weights[0] == pytest.approx(plane.weights[1], rel=0.3)
    tree = grow_tree(X, y, n_hyperplanes=1, axis_splits=False)
    assert all(node.hyperplane for node in tree if node.left >= 0)
    assert grow_tree(X, y)[0].hyperplane is None


def test_hyperplanes_use_the_first_columns_drawn_for_every_fourth_row():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(12, 6))
    y = np.round(X.sum(axis=1) * 100).astype(np.int64)
    for seed in range(5):
        plan = {"seed": seed, "n_hyperplanes": 1, "axis_splits": False, "max_depth": 1}
        key = hash64(hash64(seed, 0), MASK)
        drawn = draw_columns(hash64(key, MASK - 2), range(6), None)
        for n_rows, n_terms in ((12, 3), (11, 2), (8, 2), (7, 0)):
            tree = grow_tree(X[:n_rows], y[:n_rows], **plan)
            plane = tree[0].hyperplane
            assert (plane.columns if plane else ()) == tuple(drawn[:n_terms])


def test_a_hyperplane_comes_before_an_equal_column():
    X = np.repeat(np.repeat([[0.0], [1.0], [2.0], [5.0]], 2, axis=1), 3, axis=0)
    y = np.repeat([0, 0, 9999, 9999], 3)
    tree = grow_tree(X, y, n_hyperplanes=3)
    assert sorted(tree[0].hyperplane.columns) == [0, 1]
    assert len(tree) == 3


# ---- constraints ----------------------------------------------------------------------


@pytest.mark.parametrize("trend", [-1, 1])
def test_values_are_in_order_where_a_column_has_a_trend(trend):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 2))
    y = np.round(1e6 * (np.sin(3 * X[:, 0]) + trend * X[:, 1] / 2)).astype(np.int64)
    learned, forest = grow(
        X, y, n_estimators=3, bootstrap=True, n_draws=200, n_hyperplanes=1,
        monotonic_cst=(0, trend), max_features=1,
    )  # fmt: skip
    for tree in forest:
        for first in rng.normal(size=5):
            line = np.column_stack([np.full(99, first), np.linspace(-3, 3, 99)])
            values = [tree[k].values[0] for k in trees.walk(tree, learned, line)]
            assert (trend * np.diff(values) >= 0).all()
    assert any(node.column == 0 for tree in forest for node in tree)


def test_paths_stay_in_one_group():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(200, 4))
    y = np.round(1e6 * X.sum(axis=1)).astype(np.int64)
    groups = ((0, 1), (2, 3))
    _, forest = grow(X, y, n_estimators=9, n_hyperplanes=1, interaction_cst=groups)
    n_planes = 0
    for tree in forest:
        above = {0: set()}
        for k, node in enumerate(tree):
            if node.left < 0:
                assert above[k] <= {0, 1} or above[k] <= {2, 3}
                continue
            used = {node.column} if node.hyperplane is None else set(node.hyperplane.columns)
            n_planes += node.hyperplane is not None
            above[node.left] = above[node.left + 1] = above[k] | used
    assert n_planes > 0


# ---- what all forests promise ----------------------------------------------------------


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_rows_changes_nothing_but_draws(seed):
    X, y = make_table(seed)
    order = np.random.default_rng(seed).permutation(len(X))
    plan = {"n_codes": N_CODES, "n_hyperplanes": 3, "max_features": 2}
    _, forest = grow(X, y, **plan)
    _, shuffled = grow(X[order], y[order], **plan)
    assert strip_rows(forest) == strip_rows(shuffled)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_weight_counts_like_copies(seed):
    X, y = make_table(seed, 30)
    weight = np.random.default_rng(seed).integers(1, 8, len(X))
    plan = {"n_codes": N_CODES, "n_hyperplanes": 3, "max_features": 2, "min_split_weight": 9}
    _, weighted = grow(X, y, weight, **plan)
    copies = np.repeat(np.arange(len(X)), weight)
    _, copied = grow(X[copies], y[copies], **plan)
    assert strip_rows(weighted) == strip_rows(copied)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_rows_walk_to_the_leaves_that_they_made(seed):
    X, y = make_table(seed, 300)
    plan = {"n_codes": N_CODES, "n_hyperplanes": 3, "max_features": 3}
    learned, [tree] = grow(X, y, n_draws=200, **plan)
    at = trees.walk(tree, learned, X)
    for k, node in enumerate(tree):
        if node.left < 0:
            assert set(node.rows) <= set(np.flatnonzero(at == k))


def test_residuals_of_all_rows_decide_how_many_bits_are_dropped():
    # Drawn or not, the last row is far: two targets that differ by one step are equal then.
    X, y = np.arange(3)[:, None], np.array([0, 1, 1 << 24])
    score = np.zeros((3, 1), dtype=np.int64)
    learned = columns.learn_columns(X.astype(np.float64))
    rows = boosting.Rows(X.astype(np.float64), y, None, score)
    seed = next(s for s in range(99) if max(range(3), key=lambda i: hash64(hash64(s, 0), i)) == 2)
    [tree] = forests.grow(learned, rows, forests.Plan(n_estimators=1, n_draws=2, seed=seed))
    assert tree[0].rows.tolist() == [0, 1]
    assert [node.values for node in tree] == [(1,)]


# ---- prices and intervals ---------------------------------------------------------------


def test_terms_have_a_price_in_units_of_the_variance():
    X = np.random.default_rng(9).normal(size=(100, 2))
    y = np.round(1e4 * X.sum(axis=1)).astype(np.int64)
    plan = {"n_hyperplanes": 1, "axis_splits": False, "max_depth": 1}
    free = grow_tree(X, y, **plan)[0].gain
    g = round(y.mean()) - y
    noise = g.var()
    paid = grow_tree(X, y, term_price=3.0, **plan)[0].gain
    assert free - paid == pytest.approx(3 * noise, rel=1e-9)
    assert len(grow_tree(X, y, term_price=1.01 * free / noise, **plan)) == 1
    doubled = grow_tree(X, y, np.full(100, 2), unit_weight=2, term_price=3.0, **plan)[0].gain
    assert doubled == pytest.approx(2 * paid, rel=1e-9)


def test_some_estimators_have_hyperplanes():
    X = np.random.default_rng(9).normal(size=(100, 2))
    y = np.round(1e4 * X.sum(axis=1)).astype(np.int64)
    plan = {"n_hyperplanes": 1, "hyperplane_interval": 3, "first_estimator": 2}
    _, forest = grow(X, y, n_estimators=6, **plan)
    assert [tree[0].hyperplane is not None for tree in forest] == [False, True, False] * 2
