"""Forests on the exact engine: trees equal to the reference, bit for bit."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from exact import forests
from lhtree import _core
from lhtree.training.boosting_rows import Rows, learn_rows
from lhtree.training.plan import AveragedPlan
from native.forest_cases import (
    assert_same_arrays,
    cases,
    check,
    constrained_cases,
    grow,
    make_forest,
    make_large_case,
    make_plain_case,
    place,
    rich_cases,
)
from native.test_exact_engine import ORDERS, check_paths, check_trends, seeds


def test_plans_have_the_fields_of_the_reference():
    names = [each.name for each in fields(forests.Plan)]
    assert [each.name for each in fields(AveragedPlan)] == names
    for k in range(5):
        n_trees = forests.Plan(n_classes=k).n_trees
        assert AveragedPlan(1, 1, n_classes=k).n_trees == n_trees


@given(case=cases)
def test_forests_of_plain_choices_are_the_reference(case):
    check(case)


@settings(max_examples=300)
@given(case=rich_cases)
def test_forests_are_the_reference(case):
    _, found = check(case)
    event("some node splits" if (found["left"] >= 0).any() else "no node splits")
    event("some split is a hyperplane" if len(found["cut"]) else "no hyperplane")
    event("some split is by categories" if len(found["codes"]) else "no categories")
    event(f"{min(case.plan.n_classes, 3)} classes")


@settings(max_examples=200)
@given(case=constrained_cases, seed=seeds)
def test_constrained_forests_are_the_reference(case, seed):
    columns, found = check(case)
    check_paths(found, case)
    check_trends(make_forest(columns, found, case), case, seed)


@pytest.mark.parametrize("seed", range(12))
def test_bends_gaps_and_overlapping_groups_are_those_of_the_reference(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(250, 5))
    bend = (X[:, 0] + X[:, 1] - 0.3) ** 2 + (X[:, 2] - X[:, 3]) ** 2
    is_missing = rng.random(len(X)) < 0.2
    X[is_missing, 4] = np.nan  # which lowers the target, where it may only rise, or the reverse
    trends = rng.choice([-1, 1], 5)
    plan = forests.Plan(
        n_draws=250,
        bootstrap=seed % 3 == 0,
        n_hyperplanes=3,
        max_features=seed % 4,
        max_leaf_nodes=seed % 2 * 20,
        monotonic_cst=tuple(trends.tolist()),
        interaction_cst=((0, 1), (1, 2, 4), (2, 3, 0), (1, 3))[: seed % 2 * 4],
    )
    y = bend + X[:, :4] @ trends[:4] + 3 * is_missing * rng.choice([-1, 1])
    case = place(X, np.zeros(5, dtype=np.int32), None, y, plan)
    columns, found = check(case)
    assert (len(found["cut"]) > 0) == (plan.max_features != 1)
    check_trends(make_forest(columns, found, case), case, seed)
    check_paths(found, case)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {"bootstrap": True, "max_features": 3},
        {"max_leaf_nodes": 9, "n_hyperplanes": 7},
        {"axis_splits": False, "n_draws": 8500, "max_features": 5},
        {"monotonic_cst": (1, 1, 1, 0, 0, -1, 0, 0, 0)},
        {"interaction_cst": ((0, 1, 3), (2, 3, 4, 5), (6, 7, 8)), "max_features": 6},
    ],
)
def test_nodes_of_many_rows_are_those_of_the_reference(changes, is_weighted):
    limits = {"n_estimators": 1, "min_split_weight": 2000, "min_weight": 90}
    case = make_large_case(9000, 3, **limits | changes)
    if is_weighted:
        case = replace(case, weight=np.arange(9000) % 3 + 1)
    _, found = check(case)
    assert len(found["cut"]) > 0


def test_deep_trees_of_many_rows_are_those_of_the_reference():
    for bootstrap in (False, True):
        case = make_large_case(
            1200, 4, n_estimators=1, max_features=3, bootstrap=bootstrap, n_hyperplanes=2
        )
        _, found = check(case)
        assert len(found["left"]) > 1000


# ---- what changes nothing -------------------------------------------------------------------


@given(case=rich_cases, n_threads=st.sampled_from([2, 7]))
def test_threads_change_nothing(case, n_threads):
    assert_same_arrays(grow(case)[1], grow(case, n_threads=n_threads)[1])


@given(case=rich_cases)
def test_sparse_tables_are_like_dense_ones(case):
    numbers = np.where(np.isnan(case.X), 0.0, case.X) + 0.0
    case = replace(case, X=numbers, n_codes=np.zeros_like(case.n_codes))
    found = grow(case)[1]
    assert_same_arrays(found, grow(case, is_sparse=True)[1])
    assert_same_arrays(found, grow(case, is_sparse=True, n_threads=2)[1])


@given(case=rich_cases, seed=seeds)
def test_explicit_zeros_are_like_absent_values(case, seed):
    numbers = np.where(np.isnan(case.X), 0.0, case.X) + 0.0
    case = replace(case, X=numbers, n_codes=np.zeros_like(case.n_codes))
    stored = np.random.default_rng(seed).random(numbers.shape) < 0.5
    stored |= numbers != 0
    row, column = np.nonzero(stored)
    table = csr_array((numbers[row, column], (row, column)), shape=numbers.shape)
    columns, encoded = learn_rows(
        table, case.weight, None, case.n_codes, max_bins=255, wants_z=True, n_threads=1
    )
    rows = Rows(**vars(encoded), y=case.y, weight=case.weight, score=case.score)
    assert_same_arrays(grow(case)[1], _core.grow_averaged(columns, rows, case.plan, 1, None))


@given(case=rich_cases, order=st.sampled_from(sorted(ORDERS)), n_threads=st.sampled_from([1, 3]))
def test_grid_values_made_of_raw_rows_are_like_stored_ones(case, order, n_threads):
    raw = ORDERS[order]
    assert_same_arrays(grow(case)[1], grow(case, raw=raw, n_threads=n_threads)[1])
    single = replace(case, X=np.clip(case.X, -3e38, 3e38).astype(np.float32).astype(np.float64))
    floats = grow(single, raw=lambda X: raw(X, dtype=np.float32))[1]
    assert_same_arrays(grow(single)[1], floats)
    narrow = grow(replace(single, X=single.X.astype(np.float32)))[1]
    assert_same_arrays(floats, narrow)


def cut_trees(found, first, last):
    """Return the arrays of some of the trees."""
    start = found["tree_start"]
    nodes = slice(start[first], start[last])
    is_split, column = found["left"] >= 0, found["column"]
    parts = {
        "left": np.ones(len(column), dtype=bool),
        "value": ~is_split,
        "cut": is_split & (column < 0),
    }
    kept = {"tree_start": start[first : last + 1] - start[first]}
    for name in ("left", "column", "weight", "gain", "missing_left"):
        kept[name] = found[name][nodes]
    for name in ("value", "cut"):
        before = int(parts[name][: nodes.start].sum())
        kept[name] = found[name][before : before + int(parts[name][nodes].sum())]
    return kept


@settings(max_examples=60)
@given(case=rich_cases)
def test_estimators_are_the_same_alone_and_together(case):
    together = grow(replace(case, plan=replace(case.plan, first_estimator=0, n_estimators=10)))[1]
    n_trees = case.plan.n_trees
    for first in (0, 5):
        plan = replace(case.plan, first_estimator=first, n_estimators=5)
        half = grow(replace(case, plan=plan), n_threads=2)[1]
        for name, array in cut_trees(together, first * n_trees, (first + 5) * n_trees).items():
            assert_array_equal(half[name], array, name)


@given(case=rich_cases, seed=seeds)
def test_weights_are_copies(case, seed):
    n = len(case.X)
    weight = np.random.default_rng(seed).integers(1, 4, n)
    plan = replace(case.plan, n_draws=n, bootstrap=False, unit_weight=1, weight_shift=0)
    plan = replace(plan, balance=False)  # which rounds the weight of each row
    weighted = replace(case, weight=weight, plan=plan)
    plan = replace(plan, n_draws=int(weight.sum()))
    copied = replace(case, weight=None, plan=plan).take(np.repeat(np.arange(n), weight))
    assert_same_arrays(grow(weighted)[1], grow(copied)[1])


@given(case=rich_cases, seed=seeds)
def test_the_order_of_rows_changes_nothing_but_draws(case, seed):
    plan = replace(case.plan, n_draws=len(case.X), bootstrap=False)
    order = np.random.default_rng(seed).permutation(len(case.X))
    case = replace(case, plan=plan)
    assert_same_arrays(grow(case)[1], grow(case.take(order))[1])


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize(
    "changes", [{}, {"bootstrap": True}, {"n_draws": 25_000}, {"max_leaf_nodes": 40}]
)
def test_large_tables_do_not_depend_on_threads_or_how_they_are_stored(changes, is_weighted):
    case = make_large_case(40_000, 0, **{"max_features": 4, "n_estimators": 3} | changes)
    if is_weighted:
        case = replace(case, weight=np.arange(len(case.X)) % 3 + 1)
    _, expected = grow(case)
    assert len(expected["feature"]) > 0
    assert len(expected["codes"]) > 0
    for n_threads in (2, 7):
        assert_same_arrays(expected, grow(case, n_threads=n_threads)[1])
    for raw in ORDERS.values():
        assert_same_arrays(expected, grow(case, raw=raw, n_threads=2)[1])
    if not is_weighted:
        ones = np.ones(len(case.X), dtype=np.int64)
        assert_same_arrays(expected, grow(replace(case, weight=ones), n_threads=2)[1])


# ---- edges --------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [2**22 - 1, 2**22, 2**23 - 1, 2**23, 2**30 - 1, 2**30])
@pytest.mark.parametrize("sign", [-1, 1])
def test_residuals_at_the_ends_of_their_bits_are_those_of_the_reference(most, sign):
    y = sign * np.array([most, most - 1, most - 2, most - 3, 0, 1, 2, 3])
    check(make_plain_case(np.arange(8.0)[:, None], y))
    check(make_plain_case(np.arange(8.0)[:, None], y, n_draws=5, n_estimators=20))


def test_one_row_is_a_leaf_of_its_target():
    for bootstrap in (False, True):
        _, found = check(make_plain_case([[3.0, np.nan]], [7], bootstrap=bootstrap))
        assert_array_equal(found["value"], [[7]] * 3)


def test_halves_go_up():
    for y in ([0, 1], [-1, 0], [-2, -1], [-(2**30), 2**30 - 1]):
        _, found = check(make_plain_case([[1.0], [1.0]], y))
        assert_array_equal(found["value"], [[(sum(y) + 1) // 2]] * 3)


def test_bins_of_more_rows_than_a_word_holds_are_those_of_the_reference():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(20_000) % 2, rng.integers(0, 2, 20_000)])
    y = np.where(X[:, 0] == 0, 2**22 - 1, 2 - 2**22) - X[:, 1]  # the most bits of a gradient
    check(make_plain_case(X, y, n_estimators=1))


@pytest.mark.parametrize("seed", range(6))
def test_more_columns_than_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (30, 200)) * rng.integers(0, 2, 200)
    plan = {"max_features": [0, 1, 14][seed % 3], "n_hyperplanes": seed, "bootstrap": seed > 2}
    check(make_plain_case(X, rng.integers(-(2**20), 2**20, 30), **plan, seed=seed))


def test_missing_alone_splits_above_all_bins():
    X = np.arange(300.0)[:, None]
    X[100:] = np.nan
    y = np.where(np.arange(300) < 100, 1000, 0)
    _, found = check(make_plain_case(X, y, n_draws=30))
    assert_array_equal(found["threshold"], [np.inf] * 3)


def test_categories_have_no_trend_beside_a_column_that_has_one():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 4, 200)
    X = np.column_stack([rng.normal(size=200), code, rng.normal(size=200)]).astype(np.float64)
    for trend in (-1, 1):
        plan = forests.Plan(n_estimators=3, n_draws=200, monotonic_cst=(trend, 0, trend))
        n_codes = np.array([0, 4, 0], dtype=np.int32)
        _, found = check(place(X, n_codes, None, code * 9 + X[:, 0] * trend, plan))
        assert_array_equal(found["column"][found["tree_start"][:-1]], 1)


def test_equal_columns_are_taken_in_the_order_drawn():
    X = np.tile(np.arange(8.0)[:, None], 5)
    _, found = check(make_plain_case(X, np.arange(8) ** 2, n_estimators=20))
    assert len(np.unique(found["column"])) == 6


@pytest.mark.parametrize("weight", [2**30, 2**32, 2**36])
def test_heavy_rows_that_are_drawn_often(weight):
    rng = np.random.default_rng(0)
    X, n = rng.normal(size=(12, 3)), 12
    y = rng.integers(-(2**30), 2**30, n)
    shift = (n * weight).bit_length() - 31
    plan = {"bootstrap": True, "n_hyperplanes": 3, "weight_shift": shift, "n_estimators": 40}
    check(make_plain_case(X, y, np.full(n, weight), unit_weight=weight, **plan))
