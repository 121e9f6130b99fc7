"""The reference of boosting does what its definition promises."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from exact import arithmetic, boosting, columns, hyperplanes, losses, trees, weights

PLAN = boosting.Plan(n_rounds=2, n_hyperplanes=3, max_leaf_nodes=6, learning_rate=0.3)
LOSSES = ["squared_error", "log_loss", "classes"]
N_CLASSES = 4
N_CODES = [0, 0, 4, 0]


def make_table(seed, n=60):
    """Return a table with numbers, few values, categories and zeros, some of them missing."""
    rng = np.random.default_rng(seed)
    zeros = np.where(rng.random(n) < 0.6, 0.0, rng.normal(size=n))
    X = np.column_stack([rng.normal(size=n), rng.integers(-2, 3, n), rng.integers(0, 6, n), zeros])
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def make_target(loss, X, seed):
    """Return targets that depend on the columns."""
    rng = np.random.default_rng(seed)
    signal = np.nan_to_num(X[:, 0] + X[:, 1] - X[:, 3]) + 0.3 * rng.normal(size=len(X))
    y = (signal > 0).astype(np.int64)
    y[:2] = 0, 1  # both classes
    if loss == "classes":
        y = np.digitize(signal, [-1, 0, 1])
        y[:N_CLASSES] = np.arange(N_CLASSES)
    return np.round(signal * 1e6).astype(np.int64) if loss == "squared_error" else y


def boost(X, y, weight, loss, plan=PLAN, validation=None, held_out=None):
    """Learn the columns of a table and boost."""
    chosen = slice(None) if held_out is None else held_out == 0
    learned = columns.learn_columns(X[chosen], None if weight is None else weight[chosen], N_CODES)
    rows = boosting.Rows(X, y, weight, held_out=held_out)
    name, n_outputs = ("log_loss", N_CLASSES) if loss == "classes" else (loss, 1)
    return learned, boosting.boost(learned, rows, validation, name, plan, n_outputs)


def strip_rows(boosted):
    """Return the trees without the numbers of the rows."""
    return [[replace(node, rows=None) for node in tree] for tree in boosted.trees]


seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=8)
@given(seed=seeds, min_weight=st.sampled_from([0.0, 7.0]))
def test_a_weight_counts_like_copies(loss, seed, min_weight):
    X = make_table(seed)
    y, weight = make_target(loss, X, seed), np.random.default_rng(seed).integers(1, 8, len(X))
    plan = replace(PLAN, min_weight=min_weight)
    learned, weighted = boost(X, y, weight, loss, plan)
    copies = np.repeat(np.arange(len(X)), weight)
    ones = np.ones(len(copies), dtype=np.int64)
    learned_from_copies, copied = boost(X[copies], y[copies], ones, loss, plan)
    assert repr(learned) == repr(learned_from_copies)
    assert strip_rows(weighted) == strip_rows(copied)
    assert_array_equal(weighted.training_score[copies], copied.training_score)
    assert weighted.training_loss == copied.training_loss


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=8)
@given(seed=seeds)
def test_the_order_of_rows_changes_nothing(loss, seed):
    X = make_table(seed, n=300)
    y, weight = make_target(loss, X, seed), np.random.default_rng(seed).integers(1, 4, len(X))
    order = np.random.default_rng(seed).permutation(len(X))
    learned, boosted = boost(X, y, weight, loss)
    other, shuffled = boost(X[order], y[order], weight[order], loss)
    assert repr(learned) == repr(other)
    assert strip_rows(boosted) == strip_rows(shuffled)


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=8)
@given(seed=seeds)
def test_rows_walk_to_the_leaves_that_they_made(loss, seed):
    X = make_table(seed, n=300)
    y = make_target(loss, X, seed)
    learned, boosted = boost(X, y, None, loss, validation=boosting.Rows(X, y))
    for tree in boosted.trees:
        at = trees.walk(tree, learned, X)
        for k, node in enumerate(tree):
            if node.left < 0:
                assert_array_equal(np.flatnonzero(at == k), node.rows)
            else:
                below = np.concatenate([tree[node.left].rows, tree[node.left + 1].rows])
                assert_array_equal(np.sort(below), node.rows)
    assert_array_equal(boosted.validation_score, boosted.training_score)
    assert boosted.held_out_loss == boosted.training_loss


@pytest.mark.parametrize("loss", LOSSES)
def test_fractional_weights_of_one_size_are_no_weights(loss):
    X = make_table(0)
    y = make_target(loss, X, 0)
    units, unit = weights.to_units(np.full(len(X), 0.3))
    assert_array_equal(units, np.full(len(X), 1 << 16))
    _, scaled = boost(X, y, units, loss, replace(PLAN, unit_weight=unit))
    _, plain = boost(X, y, None, loss)
    assert_array_equal(scaled.training_score, plain.training_score)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("subsample", [1.0, 0.5])
def test_rows_held_out_change_no_tree(loss, subsample):
    X = make_table(6, n=120)
    y = make_target(loss, X, 6)
    held_out = (np.arange(len(X)) % 4 == 3).astype(np.uint8)
    plan = replace(PLAN, subsample=subsample)
    _, boosted = boost(X, y, None, loss, plan, held_out=held_out)
    X[held_out > 0], y[held_out > 0] = 9.0, 0
    _, other = boost(X, y, None, loss, plan, held_out=held_out)
    assert strip_rows(other) == strip_rows(boosted)
    assert other.training_loss == boosted.training_loss
    assert other.held_out_loss != boosted.held_out_loss


@pytest.mark.parametrize("loss", LOSSES)
def test_each_round_draws_its_own_rows(loss):
    X = make_table(7, n=400)
    y = make_target(loss, X, 7)
    _, boosted = boost(X, y, None, loss, replace(PLAN, subsample=0.5))
    first, second = (set(tree[0].rows.tolist()) for tree in boosted.trees)
    assert 160 < len(first) < 240
    assert 160 < len(second) < 240
    assert 70 < len(first & second) < 130
    _, boosted = boost(X, y, None, loss, replace(PLAN, subsample=1e-9))
    assert len(boosted.trees[0][0].rows) == 400  # none were drawn


def test_a_tree_separates_some_classes_from_the_others():
    subsets = [tuple(losses.draw_subset(key, 3)) for key in range(600)]
    assert len(set(subsets)) == 6  # all but none and all
    assert min(subsets.count(subset) for subset in set(subsets)) > 60
    loss, y = losses.make_loss("log_loss", 3), np.arange(9) % 3
    score = np.random.default_rng(0).integers(-(2**25), 2**25, (9, 3))
    g, h, _, p = loss.compute_gradients(score, y, None, 5)
    share = np.exp(score / 2**24)
    share /= share.sum(axis=1, keepdims=True)
    assert p / 2**22 == pytest.approx(share, abs=2**-22)
    is_positive = losses.draw_subset(5, 3)
    of_subset = share[:, is_positive].sum(axis=1)
    assert g / 2**22 == pytest.approx(of_subset - is_positive[y], abs=2**-20)
    assert h / 2**17 == pytest.approx(of_subset * (1 - of_subset), abs=2**-16)


def test_leaves_of_many_classes_are_newton_steps_of_each():
    y, weight = np.array([0, 0, 1, 2, 2, 2]), np.array([1, 2, 1, 1, 3, 1])
    loss, score = losses.make_loss("log_loss", 3), np.zeros((6, 3), dtype=np.int64)
    gradients = loss.compute_gradients(score, y, None, 0)
    values = loss.compute_values(gradients, y, weight, np.arange(6), gradients[2], 0.0)
    of_class = np.bincount(y, weights=weight) / weight.sum()
    expected = (of_class - 1 / 3) / (1 / 3 * 2 / 3) * 2 / 3
    assert np.array(values) / 2**24 == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_the_start_of_many_classes_gives_their_shares():
    y, weight = np.array([0, 1, 1, 2]), np.array([1, 2, 2, 5])
    start = np.array(losses.make_loss("log_loss", 3).start(y, weight)) / 2**24
    assert np.exp(start) / np.exp(start).sum() == pytest.approx([0.1, 0.4, 0.5], rel=1e-6)


def test_losses_of_many_classes_are_minus_logarithms():
    loss, y = losses.make_loss("log_loss", 3), np.arange(30) % 3
    score = np.random.default_rng(0).integers(-(2**27), 2**27, (30, 3))
    f = score / 2**24
    expected = np.log(np.exp(f).sum(axis=1)) - f[np.arange(30), y]
    assert loss.compute_losses(score, y).astype(float) / 2**24 == pytest.approx(expected, abs=1e-6)
    far = np.array([[0, 2**50, 0]])
    assert loss.compute_losses(far, np.array([0])).tolist() == [2**50]


def test_light_rows_keep_a_unit_and_absent_rows_go():
    units, unit = weights.to_units([0.0, 1e-9, 1.5])
    assert unit == 1 << 16
    assert_array_equal(units, [1, 2 << 16])
    assert weights.to_units([0, 2, 3])[0].tolist() == [2, 3]


def test_zero_is_zero_on_the_grid_and_has_a_bin():
    X = make_table(1, n=500)
    X[:, 0] += 5.0 - np.nanmin(X[:, 0])  # zero lies outside
    learned = columns.learn_columns(X)
    codes, z = columns.encode(learned, np.zeros((1, X.shape[1])))
    assert codes.tolist() == [[column.zero_bin for column in learned]]
    assert z.tolist() == [[learned[0].grid.low, 0, 0, 0]]


def test_bins_follow_weights_and_heavy_values_are_alone():
    x = np.arange(1000.0)
    weight = np.where(x == 500, 100_000, 1).astype(np.int64)
    thresholds = columns.make_bins(x, weight)
    assert {499.5, 500.5} <= set(thresholds.tolist())
    assert columns.MOST_BINS - 9 < len(thresholds) + 1 <= columns.MOST_BINS
    copies = np.repeat(x, weight)
    ones = np.ones(len(copies), dtype=np.int64)
    assert_array_equal(columns.make_bins(copies, ones), thresholds)


def test_patience_ends_rounds_that_help_nothing():
    X = make_table(2)
    y = make_target("log_loss", X, 2)
    plan = replace(PLAN, n_rounds=50, learning_rate=1.0, patience=2)
    _, boosted = boost(X, y, None, "log_loss", plan, validation=boosting.Rows(X, 1 - y))
    assert len(boosted.trees) == 2  # the other classes: every round makes it worse
    assert len(boosted.held_out_loss) == len(boosted.training_loss) == 3


def test_boosting_goes_on_where_it_stopped():
    X = make_table(3)
    y = make_target("log_loss", X, 3)
    learned, whole = boost(X, y, None, "log_loss", replace(PLAN, n_rounds=4))
    _, first = boost(X, y, None, "log_loss")
    rows = boosting.Rows(X, y, score=first.training_score)
    rest = boosting.boost(learned, rows, None, "log_loss", replace(PLAN, first_round=2))
    assert strip_rows(first) + strip_rows(rest) == strip_rows(whole)


def test_one_round_of_squared_error_is_a_regression_tree():
    X = make_table(4)
    y = make_target("squared_error", X, 4) >> 4  # 22 bits: no rounding of residuals
    plan = boosting.Plan(n_rounds=1, learning_rate=1.0, l2_regularization=0.0)
    learned, boosted = boost(X, y, None, "squared_error", plan)
    at = trees.walk(boosted.trees[0], learned, X)
    for leaf in np.unique(at):
        mean = y[at == leaf].mean()
        assert boosted.training_score[at == leaf] == pytest.approx(mean, abs=0.5001)


def test_missing_alone_can_split():
    x = np.where(np.arange(40) < 15, np.nan, 1.0)
    y = np.isnan(x).astype(np.int64)
    learned = columns.learn_columns(x[:, None])
    tree = boosting.boost(
        learned, boosting.Rows(x[:, None], y), None, "log_loss", boosting.Plan(n_rounds=1)
    ).trees[0]
    assert (len(tree), tree[0].threshold, tree[0].missing_left) == (3, np.inf, False)


def test_a_plane_separates_what_one_column_cannot():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] + X[:, 1] > 0).astype(np.int64)
    learned = columns.learn_columns(X)
    plan = boosting.Plan(n_rounds=1, n_hyperplanes=1)
    tree = boosting.boost(learned, boosting.Rows(X, y), None, "log_loss", plan).trees[0]
    plane = tree[0].hyperplane
    assert plane is not None
    assert plane.weights[0] == pytest.approx(plane.weights[1], rel=0.3)


def test_parts_are_halves_and_quarters():
    parts = hyperplanes.list_parts(list("abcde"), 7)
    assert ["".join(part) for part in parts] == ["abcde", "ab", "cde", "a", "b", "c", "de"]


def test_exp_and_log_are_right_to_the_last_bits():
    x = np.random.default_rng(0).uniform(-700, 700, 100_000)
    error = np.abs(arithmetic.exp(x) - np.exp(x)) / np.spacing(np.exp(x))
    assert error.max() <= 2
    y = np.exp(x)
    error = np.abs(arithmetic.log(y) - np.log(y)) / np.spacing(np.abs(np.log(y)))
    assert error.max() <= 4
