"""Forests of classes, pruning, and limits by shares: equal to the reference, bit for bit."""

import math
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from exact import boosting, forests
from exact.arithmetic import hash64
from exact.columns import encode
from exact.splits import Table
from native.forest_cases import (
    CLASSES,
    RICH_CLASSES,
    assert_same_arrays,
    check,
    constrained_cases,
    draw_case,
    grow,
    grow_by_reference,
    make_forest,
    make_large_case,
    make_plain_case,
    place_codes,
    rich_cases,
)
from native.test_exact_engine import ORDERS, check_paths, check_trends, list_paths, seeds

ONE = 2**16  # the share of a class that has all rows
class_cases = seeds.map(partial(draw_case, kinds=[*sorted(CLASSES), *RICH_CLASSES * 2]))
two_classes = st.builds(
    draw_case, seeds, kinds=st.just(["two", "two, one is rare"]), is_constrained=st.just(True)
)


def make_class_case(X, y, weight=None, **changes):
    """Return a case of classes of a table of numbers."""
    return make_plain_case(X, y, weight, **{"n_classes": max(y) + 1} | changes)


@settings(max_examples=300)
@given(case=class_cases)
def test_forests_of_classes_are_the_reference(case):
    _, found = check(case)
    event("some node splits" if (found["left"] >= 0).any() else "no node splits")
    event("some split is a hyperplane" if len(found["cut"]) else "no hyperplane")
    assert ((found["value"] >= 0) & (found["value"] <= ONE)).all()
    assert len(found["tree_start"]) == case.plan.n_estimators * case.plan.n_trees + 1


@settings(max_examples=150)
@given(case=two_classes, seed=seeds)
def test_constrained_forests_of_two_classes_are_the_reference(case, seed):
    columns, found = check(case)
    check_paths(found, case)
    check_trends(make_forest(columns, found, case), case, seed)


@pytest.mark.parametrize("seed", range(12))
def test_bends_gaps_and_overlapping_groups_of_classes_are_those_of_the_reference(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(250, 5))
    signal = X[:, 0] + X[:, 1] - X[:, 2] + (X[:, 2] - X[:, 3]) ** 2 + rng.normal(size=250) / 4
    is_missing = rng.random(len(X)) < 0.2
    X[is_missing, 4] = np.nan
    signal += 2 * is_missing
    n_classes = 2 + seed % 3
    trends = rng.choice([-1, 1], 5) if n_classes == 2 else ()
    plan = forests.Plan(
        n_draws=250,
        bootstrap=seed % 4 == 0,
        n_classes=n_classes,
        balance=seed % 5 == 0,
        n_hyperplanes=3,
        max_features=seed // 2 % 4,
        max_features_per_tree=seed // 3 % 2 * 4,
        max_leaf_nodes=seed % 2 * 20,
        monotonic_cst=tuple(map(int, trends)),
        interaction_cst=((0, 1), (1, 2, 4), (2, 3, 0), (1, 3))[: seed // 4 * 2],
    )
    y = np.searchsorted(np.quantile(signal, np.arange(1, n_classes) / n_classes), signal)
    case = place_codes(X, np.zeros(5, dtype=np.int32), None, y, plan)
    columns, found = check(case)
    assert (len(found["cut"]) > 0) == (plan.max_features != 1)
    check_trends(make_forest(columns, found, case), case, seed)
    check_paths(found, case)


LARGE = [
    {"n_classes": 2, "bootstrap": True, "max_features": 3},
    {"n_classes": 2, "balance": True, "n_draws": 6000, "monotonic_cst": (1, 1, 1) + (0,) * 6},
    {"n_classes": 3, "max_leaf_nodes": 9, "n_hyperplanes": 7, "ccp_alpha": 0.01},
    {"n_classes": 4, "balance": True, "bootstrap": True, "axis_splits": False},
    {"n_classes": 3, "interaction_cst": ((0, 1, 3), (2, 3, 4, 5), (6, 7, 8)), "max_features": 6},
    {"n_classes": 5, "max_features_per_tree": 5, "min_fraction": 0.02, "ccp_alpha": 1e-3},
]


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("changes", LARGE)
def test_nodes_of_many_rows_of_classes_are_those_of_the_reference(changes, is_weighted):
    limits = {"n_estimators": 1, "min_split_weight": 2000, "min_weight": 90}
    case = make_large_case(9000, 3, **limits | changes)
    if is_weighted:
        case = replace(case, weight=np.arange(9000) % 3 + 1)
    _, found = check(case)
    assert len(found["cut"]) > 0


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("changes", LARGE)
def test_large_tables_of_classes_do_not_depend_on_threads_or_how_they_are_stored(
    changes, is_weighted
):
    case = make_large_case(40_000, 0, **changes)
    if is_weighted:
        case = replace(case, weight=np.arange(len(case.X)) % 3 + 1)
    _, expected = grow(case)
    assert len(expected["feature"]) > 0
    for n_threads in (2, 7):
        assert_same_arrays(expected, grow(case, n_threads=n_threads)[1])
    for raw in ORDERS.values():
        assert_same_arrays(expected, grow(case, raw=raw, n_threads=2)[1])
    if not is_weighted:
        ones = np.ones(len(case.X), dtype=np.int64)
        assert_same_arrays(expected, grow(replace(case, weight=ones), n_threads=2)[1])


# ---- shares and balance ---------------------------------------------------------------------


def test_halves_of_shares_go_up():
    X, y = [[1.0], [1.0]], [0, 1]
    for weight, share in (([2**17 - 1, 1], 1), ([2**17, 1], 0), ([1, 2**17 - 1], ONE)):
        own = np.array(weight, dtype=np.int64)
        _, found = check(make_class_case(X, y, own))
        assert_array_equal(found["value"], [[share]] * 3)


def test_leaves_answer_shares():
    X = np.repeat([0.0, 1.0], 4)[:, None]
    _, found = check(make_class_case(X, [0, 0, 0, 1, 1, 1, 1, 1], n_estimators=1))
    assert_array_equal(found["value"], [[ONE // 4], [ONE]])
    _, found = check(make_class_case(X, [0, 0, 0, 1, 1, 1, 1, 2], n_estimators=1, n_classes=4))
    assert_array_equal(
        found["value"][:, 0], [3 * ONE // 4, 0, ONE // 4, 3 * ONE // 4, 0, ONE // 4, 0]
    )


def test_classes_without_other_rows_are_leaves():
    X = np.arange(6.0)[:, None]
    for y, n_classes, values in (
        ([0] * 6, 1, [ONE]),
        ([0] * 6, 2, [0]),
        ([1] * 6, 2, [ONE]),
        ([2] * 6, 3, [0, 0, ONE]),
    ):
        for changes in ({}, {"bootstrap": True}, {"balance": True}, {"n_hyperplanes": 3}):
            _, found = check(make_class_case(X, y, n_classes=n_classes, **changes))
            assert_array_equal(found["value"][:, 0], values * 3)


def test_balanced_classes_weigh_the_same_but_rows_at_least_one():
    X, y = np.arange(60.0)[:, None], np.zeros(60, dtype=int)
    y[[7, 30]] = 1, 2
    _, found = check(make_class_case(X, y, balance=True))
    assert found["weight"][0] == 20 + 58 + 20  # a third of 60 each, but for rounding
    weight = np.full(60, 2**16)
    _, found = check(make_class_case(X, y, weight, balance=True, unit_weight=2**16))
    assert found["weight"][0] == pytest.approx(60 * 2**16, abs=60)
    _, found = check(make_class_case(X, y, weight, balance=True, n_classes=9))
    assert found["weight"][0] == pytest.approx(60 * 2**16, abs=60)  # only three were drawn
    for draws in ({"bootstrap": True}, {"n_draws": 9}, {"n_draws": 1}):
        check(make_class_case(X, y, weight, balance=True, n_estimators=20, **draws))
        check(make_class_case(X, y, np.where(y > 0, 1, 2**20), balance=True, **draws))
        check(make_class_case(X, y, np.where(y > 0, 2**20, 1), balance=True, **draws))


@pytest.mark.parametrize("weight", [2**30, 2**32, 2**35])
def test_heavy_rows_of_classes_that_are_drawn_often(weight):
    rng = np.random.default_rng(0)
    X, n = rng.normal(size=(12, 3)), 12
    y = np.minimum(rng.geometric(0.5, n) - 1, 2)
    shift = (n * weight + n).bit_length() - 31
    plan = {"bootstrap": True, "n_hyperplanes": 3, "weight_shift": shift, "n_estimators": 40}
    for balance in (False, True):
        case = make_class_case(X, y, np.full(n, weight), unit_weight=weight, **plan)
        check(replace(case, plan=replace(case.plan, n_classes=3, balance=balance)))


@given(case=class_cases)
def test_the_first_class_is_like_numbers_of_two_values(case):
    plan = replace(case.plan, n_classes=3, n_estimators=1, balance=False, monotonic_cst=())
    y = np.minimum(case.y, 2)
    found = grow(replace(case, plan=plan, y=y))[1]
    numbers = np.where(y == 0, 2**21, 0).astype(np.int32)
    plan = replace(plan, n_classes=0, ccp_alpha=plan.ccp_alpha * 4.0**21)
    expected = grow(replace(case, plan=plan, y=numbers))[1]
    end = expected["tree_start"][1]
    assert found["tree_start"][1] == end
    for name in ("left", "column", "weight", "missing_left", "gain"):
        assert_array_equal(found[name][:end], expected[name], name)
    for name in ("threshold", "codes", "feature", "coefficient", "fill", "cut"):
        assert_array_equal(found[name][: len(expected[name])], expected[name], name)
    value = expected["value"]
    assert (np.abs(found["value"][: len(value)] - value / 32) <= 0.5 + 1 / 64).all()


# ---- pruning and shares of weight -----------------------------------------------------------


def list_prices(table, tree):
    """Return the prices of a leaf at which a split is worth just its leaves, most leaves first.

    Those of splits that are still whole then: each split below is worth more.
    """
    gain, n_leaves, least, prices = [0.0] * len(tree), [1] * len(tree), [math.inf] * len(tree), []
    for k in reversed(range(len(tree))):
        left = tree[k].left
        if left < 0:
            continue
        gain[k], n_leaves[k] = forests.sum_subtree(table, tree, k, gain, n_leaves)
        price, least[k] = gain[k] / float(n_leaves[k] - 1), min(least[left : left + 2])
        if price < least[k]:
            prices.append((n_leaves[k], price))
        least[k] = min(least[k], price)
    return [price for _, price in sorted(prices, reverse=True)]


def list_prices_of_trees(case):
    """Return those prices of each tree as `ccp_alpha`, of trees that were not pruned."""
    plan = replace(case.plan, ccp_alpha=0.0)
    rows = boosting.Rows(case.X, case.y.astype(np.int64), case.weight, case.score)
    columns, grown = grow_by_reference(replace(case, plan=plan))
    targets = [forests.place_class(rows, k) for k in plan.classes] or [forests.place_numbers(rows)]
    codes, z = encode(columns, case.X)
    result = []
    for i, tree in enumerate(grown):
        number, own = plan.first_estimator + i // plan.n_trees, targets[i % plan.n_trees]
        weight = forests.weigh_draws(hash64(plan.seed, number), rows, plan)
        table = Table(columns, codes, z, weight, own.g, np.ones_like(own.g))
        unit = 4.0**own.shift / float(tree[0].weight)
        result.append([price * unit for price in list_prices(table, tree)])
    return result


@settings(max_examples=150)
@given(case=rich_cases, seed=seeds)
def test_subtrees_that_are_worth_just_their_leaves_are_cut(case, seed):
    prices = [each for each in list_prices_of_trees(case) if each]
    if not prices:
        return
    rng = np.random.default_rng(seed)
    of_tree = prices[rng.integers(len(prices))]
    price = of_tree[rng.integers(min(len(of_tree), 3))]
    sizes = []
    for each in (math.nextafter(price, 0.0), price, math.nextafter(price, 1e300)):
        _, found = check(replace(case, plan=replace(case.plan, ccp_alpha=each)))
        sizes.append(len(found["left"]))
    assert sizes == sorted(sizes, reverse=True)
    event("a split is cut at the price" if sizes[0] > sizes[2] else "no split is cut")
    event("several leaves at once" if sizes[0] > sizes[2] + 2 else "two leaves or none")


def test_a_price_that_equals_the_gain_cuts():
    # Both classes have half the rows: the split gains 4 / 4 = 1 in weights of rows, 1 / 4 of all.
    X, y = np.arange(4.0)[:, None], [0, 0, 1, 1]
    for price, n_nodes in ((math.nextafter(0.25, 0.0), 3), (0.25, 1), (math.inf, 1)):
        _, found = check(make_class_case(X, y, ccp_alpha=price, n_estimators=1))
        assert len(found["left"]) == n_nodes
    assert_array_equal(found["value"], [[ONE // 2]])


@pytest.mark.parametrize("seed", range(40))
def test_gains_below_a_split_are_added_first(seed):
    # The first split gains little alone, and much with both below it: all are cut at once.
    X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    weight = np.random.default_rng(seed).integers(10_000, 11_000, 4)
    case = make_class_case(X, [0, 1, 1, 0], weight, n_estimators=1)
    price, sizes = list_prices_of_trees(case)[0][0], []
    for each in [price * (1 + k * 2.0**-52) for k in range(-4, 5)]:
        _, found = check(replace(case, plan=replace(case.plan, ccp_alpha=each)))
        sizes.append(len(found["left"]))
    assert (sizes[0], sizes[-1]) == (7, 1)


def test_all_is_cut_where_the_price_is_high():
    for n_classes in (2, 4):
        case = make_large_case(3000, 1, n_classes=n_classes, ccp_alpha=1.0, n_estimators=1)
        _, found = check(case)
        assert (found["left"] < 0).all()


def test_bits_that_gradients_drop_count_in_prices():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    for bits in (20, 22, 23, 27, 30):
        y = np.floor(2.0**bits * (X[:, 0] > 0) + 2.0 ** (bits - 2) * rng.normal(size=60))
        y = np.clip(y, -(2**30), 2**30)
        sizes = {
            len(check(make_plain_case(X, y, ccp_alpha=price))[1]["left"])
            for price in (2.0 ** (2 * bits - 12), 2.0 ** (2 * bits - 8), 2.0 ** (2 * bits - 5))
        }
        assert len(sizes) == 3


def test_sides_of_just_the_least_share_are_allowed():
    X, y = np.arange(10.0)[:, None], (np.arange(10) < 2).astype(int)
    for share, lightest in ((0.2, 2), (math.nextafter(0.2, 1.0), 3), (0.5, 5), (0.51, 10)):
        for case in (
            make_class_case(X, y, min_fraction=share),
            make_plain_case(X, y * 9, min_fraction=share),
            make_class_case(X, y, np.full(10, 7), min_fraction=share, min_weight=3),
        ):
            weight = 1 if case.weight is None else 7
            assert check(case)[1]["weight"].min() == lightest * weight


# ---- columns of a tree ----------------------------------------------------------------------


def test_trees_of_an_estimator_draw_columns_of_their_own():
    X = np.tile(np.arange(9.0)[:, None], 6)
    y = np.arange(9) // 3
    _, found = check(make_class_case(X, y, max_features_per_tree=1, n_estimators=20))
    chosen = found["column"][found["tree_start"][:-1]].reshape(20, 3)
    assert sorted(set(chosen.ravel().tolist())) == [*range(6)]
    assert (chosen != chosen[:, :1]).any()


@settings(max_examples=150)
@given(case=st.one_of(rich_cases, constrained_cases), n_drawn=st.integers(1, 8))
def test_trees_use_the_columns_that_they_drew(case, n_drawn):
    _, found = check(replace(case, plan=replace(case.plan, max_features_per_tree=n_drawn)))
    paths, starts = list(list_paths(found)), found["tree_start"].tolist()
    assert len(paths) == len(found["left"])
    for first, last in pairwise(starts):
        used = frozenset().union(*paths[first:last])
        assert len(used) <= n_drawn
    event("some node splits" if (found["left"] >= 0).any() else "no node splits")
