"""The exact engine: bins, sums, cuts and boosting, equal to the reference bit for bit."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import reference_exact
from lhtree import _core


@dataclass(frozen=True)
class BoostingPlan:
    """What the core is asked to boost."""

    n_rounds: int = 4
    learning_rate: float = 0.1
    l2_regularization: float = 1.0
    least_hessian: float = 1.0
    max_leaf_nodes: int = 8
    max_depth: int = 99
    seed: int = 0
    n_hyperplanes: int = 0
    n_drawn: int = 3
    shrinkage: float = 0.3


COLUMNS = {
    "real": lambda rng, n: rng.normal(size=n),
    "small integers": lambda rng, n: rng.integers(-3, 4, n),
    "constant": lambda rng, n: np.full(n, 7.0),
    "huge": lambda rng, n: rng.normal(size=n) * 1e300,
    "widest": lambda rng, n: rng.choice([-1.7e308, 0.0, 1.7e308], n),
    "denormal": lambda rng, n: rng.integers(0, 3, n) * 5e-324,
    "many zeros": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.normal(size=n)),
    "sentinels": lambda rng, n: np.where(rng.random(n) < 0.1, 999999999.0, rng.integers(9, 99, n)),
    "far from zero": lambda rng, n: 1e8 + 1e-3 * rng.normal(size=n),
    "signed zeros": lambda rng, n: rng.choice([-0.0, 0.0], n),
}


@st.composite
def tables(draw):
    """Tables of nasty columns, with gaps and duplicated rows."""
    n = draw(st.one_of(st.integers(1, 40), st.integers(300, 700)))
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = np.column_stack([COLUMNS[kind](rng, n) for kind in kinds]).astype(np.float64)
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.0, 0.1, 0.9]))] = np.nan
    if draw(st.booleans()):
        X = np.repeat(X, 2, axis=0)  # rows with conflicting targets
    return X


def bin_by_reference(X):
    """Return the bins of a table and the thresholds of its columns."""
    bins = [reference_exact.make_bins(column[~np.isnan(column)]) for column in X.T]
    code = [reference_exact.to_bins(b, column) for b, column in zip(bins, X.T, strict=True)]
    return np.column_stack(code), [b.threshold for b in bins]


def place_by_reference(X):
    """Return a table on the grids of its columns."""
    columns = []
    for column in X.T:
        present = column[~np.isnan(column)]
        grid = reference_exact.Grid(0, 0.0, 0, 0)
        if len(present):
            grid = reference_exact.make_grid(present, [1] * len(present))
        columns.append(reference_exact.to_grid(grid, column))
    return np.column_stack(columns)


def make_table(X):
    """Return a table as the reference sees it."""
    code, threshold = bin_by_reference(X)
    n_bins = [len(each) + 1 for each in threshold]
    return reference_exact.Table(code, n_bins, place_by_reference(X))


@given(X=tables())
def test_grids_are_those_of_the_reference(X):
    for table in (X, X[::-1]):
        z = _core.place_table(np.ascontiguousarray(table), 1)
        assert_array_equal(z, place_by_reference(table))


@given(X=tables())
def test_bins_are_those_of_the_reference(X):
    code, threshold = bin_by_reference(X)
    for table in (X, X[::-1]):  # whatever the order of rows
        found, all_thresholds, start = _core.bin_table(np.ascontiguousarray(table), 1)
        assert_array_equal(found if table is X else found[::-1], code)
        for j, expected in enumerate(threshold):
            assert_array_equal(all_thresholds[start[j] : start[j + 1]], expected)


@given(X=tables())
def test_threads_and_floats_change_no_bin(X):
    assert_array_equal(_core.bin_table(X, 1)[0], _core.bin_table(X, 3)[0])
    single = np.clip(X, -3e38, 3e38).astype(np.float32)
    as_double = single.astype(np.float64)
    for from_float, from_double in zip(
        _core.bin_table(single, 1), _core.bin_table(as_double, 1), strict=True
    ):
        assert_array_equal(from_float, from_double)


def assert_same_trees(arrays, trees):
    """Demand the nodes of the reference, to the bit."""
    assert len(arrays["tree_start"]) == len(trees) + 1
    for k, nodes in enumerate(trees):
        part = slice(*arrays["tree_start"][k : k + 2])
        is_split = np.array([node.left >= 0 for node in nodes])
        assert_array_equal(arrays["left"][part], [node.left for node in nodes])
        assert_array_equal(arrays["n_samples"][part], [len(node.rows) for node in nodes])
        for name in ("column", "missing_left", "gain", "threshold"):
            expected = np.array([getattr(node, name) for node in nodes])
            assert_array_equal(arrays[name][part][is_split], expected[is_split], name)
        for i, node in zip(range(part.start, part.stop), nodes, strict=True):
            terms = slice(*arrays["term_start"][i : i + 2])
            has_terms = node.left >= 0 and node.hyperplane is not None
            assert (terms.stop > terms.start) == has_terms
            if has_terms:
                assert_array_equal(arrays["feature"][terms], node.hyperplane.column)
                assert_array_equal(arrays["weight"][terms], node.hyperplane.weight)
                assert_array_equal(arrays["fill"][terms], node.hyperplane.fill)
            elif node.left >= 0:
                assert arrays["cut"][i] == node.cut


plans = st.builds(
    BoostingPlan,
    learning_rate=st.sampled_from([0.1, 0.3, 1.0]),
    l2_regularization=st.sampled_from([0.0, 1.0, 3.5]),
    max_leaf_nodes=st.integers(1, 12),
    max_depth=st.sampled_from([0, 1, 3, 99]),
    seed=st.integers(0, 3),
    n_hyperplanes=st.integers(0, 1),
    n_drawn=st.integers(1, 4),
    shrinkage=st.sampled_from([0.0, 0.05, 0.3]),
)


@given(X=tables(), plan=plans, seed=st.integers(0, 2**32 - 1))
def test_boosting_squared_error_is_the_reference(X, plan, seed):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=len(X)) * rng.choice([1e-3, 1.0, 1e9])
    grid = reference_exact.make_grid(target, [1] * len(X))
    y = reference_exact.to_grid(grid, target)
    table = make_table(X)
    trees, score = reference_exact.boost_squared(table, y, **settings_of(plan))
    start = np.full(len(y), reference_exact.round_mean(y))
    arrays, found = boost(table, y, start, "squared_error", plan)
    assert_same_trees(arrays, trees)
    assert_array_equal(found, score)


@given(X=tables(), plan=plans, seed=st.integers(0, 2**32 - 1))
def test_boosting_log_loss_is_the_reference(X, plan, seed):
    assume(len(X) > 1)
    y = np.random.default_rng(seed).integers(0, 2, len(X))
    y[:2] = 0, 1  # both classes
    table = make_table(X)
    trees, score = reference_exact.boost_logistic(table, y, **settings_of(plan))
    start = np.full(len(y), reference_exact.start_logistic(y))
    arrays, found = boost(table, y, start, "log_loss", plan)
    assert_same_trees(arrays, trees)
    assert_array_equal(found, score)


def settings_of(plan):
    """Return a plan as arguments of the reference."""
    return {
        "n_rounds": plan.n_rounds,
        "rate": plan.learning_rate,
        "l2": plan.l2_regularization,
        "max_leaf_nodes": plan.max_leaf_nodes,
        "max_depth": plan.max_depth,
        "seed": plan.seed,
        "n_hyperplanes": plan.n_hyperplanes,
        "n_drawn": plan.n_drawn,
        "shrinkage": plan.shrinkage,
    }


def boost(table, y, score, loss, plan):
    """Boost natively."""
    return _core.boost(
        np.ascontiguousarray(table.codes),
        np.array(table.n_bins, dtype=np.int32),
        np.ascontiguousarray(table.z, dtype=np.int32),
        y.astype(np.int64),
        score.astype(np.int64),
        loss,
        plan,
    )


def test_the_order_of_rows_changes_no_tree():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 4)), rng.integers(-(2**29), 2**29, 20_000)
    order = rng.permutation(len(X))
    plan, results = BoostingPlan(n_hyperplanes=1), []
    for rows in (np.arange(len(X)), order):
        some = np.ascontiguousarray(X[rows])
        code, _, start = _core.bin_table(some, 1)
        table = reference_exact.Table(code, np.diff(start) + 1, _core.place_table(some, 1))
        zeros = np.zeros(len(X), dtype=np.int64)
        results.append(boost(table, y[rows], zeros, "squared_error", plan))
    (trees, score), (other_trees, other_score) = results
    assert len(trees["feature"]) > 0
    for name, array in trees.items():
        assert_array_equal(array, other_trees[name], name)
    assert_array_equal(score[order], other_score)


def test_exp_and_log_are_right_to_the_last_bits():
    x = np.random.default_rng(0).uniform(-700, 700, 100_000)
    error = np.abs(reference_exact.exp(x) - np.exp(x)) / np.spacing(np.exp(x))
    assert error.max() <= 2
    y = np.exp(x)
    error = np.abs(reference_exact.log(y) - np.log(y)) / np.spacing(np.abs(np.log(y)))
    assert error.max() <= 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_bins": [0]}, "n_bins must lie from 1 to 255"),
        ({"n_bins": [2]}, "a bin is out of range"),
        ({"y": np.zeros(2, dtype=np.int64)}, "y must have one entry per row"),
        ({"loss": "huber"}, "loss is unknown"),
    ],
)
def test_the_core_refuses_what_does_not_fit(changes, message):
    changes = dict(changes)
    codes, n_bins = np.array([[0], [1], [4]], dtype=np.uint8), changes.pop("n_bins", [4])
    arguments = {
        "table": reference_exact.Table(codes, n_bins, codes),
        "y": np.zeros(3, dtype=np.int64),
        "score": np.zeros(3, dtype=np.int64),
        "loss": "squared_error",
        "plan": BoostingPlan(),
    }
    with pytest.raises(ValueError, match=message):
        boost(**(arguments | changes))
