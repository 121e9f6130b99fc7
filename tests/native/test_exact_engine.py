"""The exact engine: columns, sums, splits and boosting, equal to the reference bit for bit."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from exact import arithmetic, boosting
from exact.columns import encode, learn_columns
from lhtree import _core
from lhtree.model.ensemble import Ensemble
from lhtree.training.boosting_rows import Rows, encode_rows, learn_rows

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
    "categories": lambda rng, n: np.minimum(rng.geometric(0.3, n) - 1, 11),
}
N_CODES = 12  # of a column of categories; some may not occur
seeds = st.integers(0, 2**32 - 1)


def count_codes(kinds):
    """Return the number of codes of each column; 0 for numbers."""
    return np.array([N_CODES * (kind == "categories") for kind in kinds], dtype=np.int32)


GAPS = [0.0, 0.0, 0.1, 0.9]  # shares of missing values
WEIGHTS = [
    lambda rng, n: None,
    lambda rng, n: rng.integers(1, 4, n),
    lambda rng, n: 1 + np.floor(np.asarray(rng.exponential(2**16, n))).astype(np.int64),
    lambda rng, n: rng.integers(1, 2**29, n),
]


def make_table(rng, n, kinds, gaps, weigh, *, is_doubled):
    """Return a table of nasty columns, with gaps, and weights: X, n_codes, weight.

    Each row may be there twice, with conflicting targets.
    """
    X = np.column_stack([COLUMNS[kind](rng, n) for kind in kinds]).astype(np.float64)
    X[rng.random(X.shape) < gaps] = np.nan
    if is_doubled:
        X = np.repeat(X, 2, axis=0)
    return X, count_codes(kinds), weigh(rng, len(X))


tables = st.builds(
    make_table,
    seeds.map(np.random.default_rng),
    st.one_of(st.integers(1, 40), st.integers(300, 700)),
    st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=5),
    st.sampled_from(GAPS),
    st.sampled_from(WEIGHTS),
    is_doubled=st.booleans(),
)


def hold_out(n, share, seed):
    """Return flags of rows held out at random, but for one; None for a share of zero."""
    if share == 0:
        return None
    rng = np.random.default_rng(seed)
    flags = (rng.random(n) < share).astype(np.uint8)
    flags[rng.integers(n)] = 0
    return flags


def learn(X, n_codes, weight, held_out=None, n_threads=1, max_bins=255):
    """Learn and encode a table natively."""
    options = {"max_bins": max_bins, "wants_z": True, "n_threads": n_threads}
    return learn_rows(X, weight, held_out, n_codes, **options)


shares = st.sampled_from([0.0, 0.2, 0.8])  # of rows held out


@given(table=tables, share=shares, seed=seeds, max_bins=st.sampled_from([255, 254, 40, 5, 3, 2]))
def test_columns_are_those_of_the_reference(table, share, seed, max_bins):
    X, n_codes, weight = table
    held_out = hold_out(len(X), share, seed)
    kept = slice(None) if held_out is None else held_out == 0
    expected = learn_columns(X[kept], None if weight is None else weight[kept], n_codes, max_bins)
    codes, z = encode(expected, X)
    for order in (slice(None), slice(None, None, -1)):  # whatever the order of rows
        rows, own, flags = (
            None if each is None else np.ascontiguousarray(each[order])
            for each in (X, weight, held_out)
        )
        found, encoded = learn(rows, n_codes, own, flags, max_bins=max_bins)
        assert_array_equal(encoded.bin[order], codes)
        assert_array_equal(encoded.z[order], z)
        for j, column in enumerate(expected):
            bounds = slice(*found.threshold_start[j : j + 2])
            assert_array_equal(found.threshold[bounds], column.thresholds)
            assert len(column.thresholds) < max_bins
            assert (found.fill[j], found.has_gaps[j]) == (column.fill, column.has_gaps)


@given(table=tables, share=shares, seed=seeds)
def test_threads_and_float32_change_no_column(table, share, seed):
    X, n_codes, weight = table
    held_out = hold_out(len(X), share, seed)
    single = np.clip(X, -3e38, 3e38).astype(np.float32)
    columns, encoded = learn(single.astype(np.float64), n_codes, weight, held_out)
    for rows, n_threads in ((single, 1), (single.astype(np.float64), 3)):
        others, other = learn(rows, n_codes, weight, held_out, n_threads)
        assert_array_equal(other.bin, encoded.bin)
        assert_array_equal(other.z, encoded.z)
        for name, array in vars(columns).items():
            assert_array_equal(getattr(others, name), array, name)


plans = st.builds(
    boosting.Plan,
    n_rounds=st.just(3),
    learning_rate=st.sampled_from([0.1, 0.3, 1.0]),
    rate_growth=st.sampled_from([0.0, 0.05]),
    most_rate=st.sampled_from([0.37, 1.0]),
    subsample=st.sampled_from([1.0, 1.0, 0.9, 0.5, 1e-9]),
    l2_regularization=st.sampled_from([0.0, 1.0, 3.5]),
    min_hessian=st.sampled_from([0.0, 1.0, 5.0]),
    min_weight=st.sampled_from([0, 0, 3, 40]),
    unit_weight=st.sampled_from([1, 2**16]),
    max_leaf_nodes=st.integers(2, 12),
    max_depth=st.sampled_from([1, 3, 99]),
    max_features=st.sampled_from([0, 0, 1, 2, 4]),
    seed=st.integers(0, 3),
    first_round=st.sampled_from([0, 7]),
    n_hyperplanes=st.sampled_from([0, 1, 3, 7]),
    max_terms=st.integers(2, 5),
    shrinkage=st.sampled_from([0.0, 0.05, 0.3]),
    min_gain=st.sampled_from([0.0, 0.0, 0.5, 4.0]),
    hyperplane_interval=st.sampled_from([1, 1, 2, 3]),
)
LOSSES = [
    ("squared_error", 1),
    ("log_loss", 1),
    *(("log_loss", k) for k in range(2, 6)),
    ("poisson", 1),
    ("gamma", 1),
    *(("quantile", k) for k in (1, 2, 5)),
]


@dataclass(frozen=True)
class Case:
    """Rows to boost on; the last of them may be a table of their own, for validation."""

    X: np.ndarray
    n_codes: np.ndarray
    weight: np.ndarray | None
    loss: str
    y: np.ndarray
    score: np.ndarray  # [n_rows, n_outputs], before the first round
    plan: boosting.Plan
    held_out: np.ndarray | None = None
    n_validation: int = 0

    def cut(self):
        """Return raw values, target, weight, score and flags of both tables."""
        n = len(self.X) - self.n_validation
        for part in (slice(0, n), slice(n, None)):
            arrays = self.X, self.y, self.weight, self.score, self.held_out
            yield [None if each is None else np.ascontiguousarray(each[part]) for each in arrays]

    def take(self, rows):
        """Return a case with some of the rows, or copies of them."""
        arrays = {name: getattr(self, name) for name in ("X", "y", "weight", "score", "held_out")}
        taken = {name: each[rows] for name, each in arrays.items() if each is not None}
        return replace(self, **taken)


def draw_levels(rng, n):
    """Return ascending levels of quantiles, common or extreme ones."""
    levels = [0.5, 0.1, 0.9, 0.25, 1 / 3, 0.999, 1e-9, 1 - 2**-53]
    return tuple(sorted(rng.choice(levels, n, replace=False).tolist()))


def draw_positive(rng, n, least):
    """Return positive integers, or zeros among them, small or large or both."""
    y = np.floor(np.exp(rng.normal(size=n) * rng.choice([0.1, 1.0, 5.0]) + rng.choice([0, 9])))
    y *= rng.random(n) < rng.choice([1.0, 0.2])
    return np.maximum(np.clip(y, least, 2**31 - 1), rng.random(n) < 0.1)


def draw_constraints(plan, n_codes, n_outputs, seed):
    """Return a plan with trends of some columns and groups of columns, or with one of both."""
    rng, n = np.random.default_rng([seed, 1]), len(n_codes)
    has_trends, has_groups = rng.choice([[1, 0], [0, 1], [1, 1]])
    if has_trends and n_outputs == 1:
        trends = np.where(n_codes > 0, 0, rng.integers(-1, 2, n))
        plan = replace(plan, monotonic_cst=tuple(trends.tolist()))
    if has_groups:
        groups = [rng.permutation(n)[: rng.integers(1, n + 1)] for _ in range(rng.integers(1, 4))]
        rest = np.setdiff1d(np.arange(n), np.concatenate(groups))
        groups += [rest] * (len(rest) > 0)
        plan = replace(plan, interaction_cst=tuple(tuple(each.tolist()) for each in groups))
    return plan


def sort_targets(X, y, seed):
    """Return targets in another order: they rise and fall with the columns, and some noise."""
    rng = np.random.default_rng([seed, 2])
    signal = rng.normal(size=len(X)) * rng.choice([0.0, 0.3])
    for x in X.T:
        rank = np.where(np.isnan(x), rng.normal(), np.argsort(np.argsort(x)) / len(x))
        signal = signal + rng.normal() * np.sin(rng.uniform(0, 9) * rank)
    result = np.empty_like(y)
    result[np.argsort(signal)] = np.sort(y)
    return result


def make_case(table, loss, plan, seed, share=0.0, n_validation=0, *, is_constrained=False):
    """Return a case with integer targets and scores before the first round."""
    X, n_codes, weight = table
    name, n_outputs = loss
    if is_constrained:
        plan = draw_constraints(plan, n_codes, n_outputs, seed)
    rng = np.random.default_rng(seed)
    if weight is None:  # a larger unit would leave no split
        plan = replace(plan, unit_weight=1)
    if name == "log_loss":
        y = rng.integers(0, max(2, n_outputs), len(X))
        score = rng.integers(-(2**25), 2**25, (len(X), n_outputs))
    elif name == "quantile":
        y = rng.integers(-(2**30), 2**30, len(X)) // rng.choice([1, 2**12, 2**29])
        score = rng.integers(-(2**30), 2**30, (len(X), n_outputs)) // rng.choice([1, 2**29])
        plan = replace(plan, levels=draw_levels(rng, n_outputs))
    elif name in ("poisson", "gamma"):
        y = draw_positive(rng, len(X), least=int(name == "gamma"))
        score = np.full((len(X), 1), rng.choice([0, 8 << 24, 13 << 24]))
        score += rng.integers(-(2**26), 2**26, score.shape) * rng.choice([0, 1, 8])
    else:
        y = rng.integers(-(2**30), 2**30, len(X)) // rng.choice([1, 2**12, 2**29])
        score = np.zeros((len(X), 1), dtype=np.int64)
    if is_constrained:
        y = sort_targets(X, y, seed)
    n_validation = min(n_validation, len(X) - 1)
    n = len(X) - n_validation
    held_out = hold_out(n, share, seed)
    if held_out is not None:
        held_out = np.append(held_out, np.zeros(n_validation, dtype=np.uint8))
    score = score.astype(np.int64)
    return Case(X, n_codes, weight, name, y.astype(np.int32), score, plan, held_out, n_validation)


losses = st.sampled_from(LOSSES)
of_cases = tables, losses, plans, seeds, shares, st.sampled_from([0, 0, 7, 20])
cases = st.builds(make_case, *of_cases, is_constrained=st.booleans())
constrained_cases = st.builds(make_case, *of_cases, is_constrained=st.just(True))


def deepen(plan):
    """Return a plan of large trees."""
    large = {"max_leaf_nodes": 20, "max_depth": 99, "max_features": 0}
    return replace(plan, **large, min_gain=0.0, min_weight=0, min_hessian=0.0)


deep_cases = st.builds(
    make_case,
    tables,
    st.sampled_from([each for each in LOSSES if each[1] == 1]),
    plans.map(deepen),
    seeds,
    is_constrained=st.just(True),
)


def boost(case, *, n_threads=1, is_sparse=False, raw=None):
    """Boost natively; `raw` makes tables to read in place of stored grid values."""
    options = {"wants_z": raw is None, "n_threads": n_threads}
    to_rows = csr_array if is_sparse else np.asarray
    (X, y, weight, score, held_out), (X_val, *validation) = case.cut()
    columns, encoded = learn_rows(
        to_rows(X), weight, held_out, case.n_codes, max_bins=255, **options
    )
    rows = Rows(
        **vars(encoded),
        y=y,
        weight=weight,
        score=score,
        held_out=held_out,
        raw=None if raw is None else raw(X),
    )
    encoded = encode_rows(to_rows(X_val), columns, **options)
    y, weight, score, _ = validation
    other = Rows(
        **vars(encoded),
        y=y,
        weight=weight,
        score=score,
        raw=None if raw is None else raw(X_val),
    )
    return columns, _core.boost(columns, rows, other, case.loss, case.plan, n_threads)


def boost_by_reference(case):
    """Boost the same rows by the reference."""
    rows, validation = (boosting.Rows(*arrays) for arrays in case.cut())
    chosen = rows.is_trained
    weight = None if rows.weight is None else rows.weight[chosen]
    columns = learn_columns(rows.X[chosen], weight, case.n_codes)
    n_outputs = case.score.shape[1]
    validation = validation if case.n_validation else None
    return boosting.boost(columns, rows, validation, case.loss, case.plan, n_outputs)


def assert_same_trees(arrays, trees):
    """Demand the nodes of the reference, to the bit."""
    assert len(arrays["tree_start"]) == len(trees) + 1
    nodes = [node for tree in trees for node in tree]
    for name in ("left", "column", "weight"):
        assert_array_equal(arrays[name], [getattr(node, name) for node in nodes], name)
    values = [node.values for node in nodes if node.left < 0]
    assert_array_equal(arrays["value"], np.array(values).reshape(arrays["value"].shape))
    assert len(arrays["value"]) == len(values)
    splits = [node for node in nodes if node.left >= 0]
    is_split = arrays["left"] >= 0
    assert_array_equal(arrays["gain"][is_split], [node.gain for node in splits])
    numbers = [n for n in splits if n.column >= 0 and not n.codes]
    categories = [node for node in splits if node.codes]
    planes = [node.hyperplane for node in splits if node.column < 0]
    assert_array_equal(arrays["threshold"], [node.threshold for node in numbers])
    is_number = is_split & (arrays["column"] >= 0)
    assert_array_equal(
        arrays["missing_left"][is_number],
        [node.missing_left and not node.codes for node in splits if node.column >= 0],
    )
    words = [
        [sum(1 << (c & 63) for c in n.codes if c >> 6 == w) for w in range(4)] for n in categories
    ]
    assert_array_equal(arrays["codes"], np.array(words, dtype=np.uint64).reshape(-1, 4))
    terms = [
        (j, w, f) for p in planes for j, w, f in zip(p.columns, p.weights, p.fills, strict=True)
    ]
    found = zip(arrays["feature"], arrays["coefficient"], arrays["fill"], strict=True)
    assert [tuple(map(int, term)) for term in found] == terms
    assert_array_equal(np.diff(arrays["term_start"]), [len(plane.columns) for plane in planes])
    assert_array_equal(arrays["cut"], [plane.cut for plane in planes])


@given(case=cases)
def test_boosting_is_the_reference(case):
    expected = boost_by_reference(case)
    columns, found = boost(case)
    event("some node splits" if (found["trees"]["left"] >= 0).any() else "no node splits")
    event("some split is a hyperplane" if len(found["trees"]["cut"]) else "no hyperplane")
    assert_same_trees(found["trees"], expected.trees)
    assert_array_equal(found["score"], expected.training_score)
    assert_array_equal(found["training_loss"], [float(each) for each in expected.training_loss])
    assert_array_equal(found["validation_loss"], [float(each) for each in expected.held_out_loss])
    if case.n_validation:
        assert_array_equal(found["validation_score"], expected.validation_score)
    check_walk(columns, found, case)


@settings(max_examples=200)
@given(case=constrained_cases)
def test_constrained_boosting_is_the_reference(case):
    expected = boost_by_reference(case)
    columns, found = boost(case)
    assert_same_trees(found["trees"], expected.trees)
    assert_array_equal(found["score"], expected.training_score)
    check_walk(columns, found, case)


@pytest.mark.parametrize("seed", range(12))
def test_bends_gaps_and_overlapping_groups_are_those_of_the_reference(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(250, 5))
    bend = (X[:, 0] + X[:, 1] - 0.3) ** 2 + (X[:, 2] - X[:, 3]) ** 2
    is_missing = rng.random(len(X)) < 0.2
    X[is_missing, 4] = np.nan  # which lowers the target, where it may only rise, or the reverse
    trends = rng.choice([-1, 1], 5)
    slope = X[:, :4] @ trends[:4]
    plan = boosting.Plan(
        n_hyperplanes=3,
        max_terms=3,
        max_leaf_nodes=9,
        min_weight=0,
        l2_regularization=float(seed % 2),
        monotonic_cst=tuple(trends.tolist()),
        interaction_cst=((0, 1), (1, 2, 4), (2, 3, 0), (1, 3))[: seed % 2 * 4],
    )
    name = ("squared_error", "poisson", "quantile")[seed % 3]
    table = X, np.zeros(5, dtype=np.int32), None
    case = make_case(table, (name, 1), plan, seed)
    y = np.maximum(1, 2**16 * (bend + slope + 19 + 3 * is_missing * rng.choice([-1, 1])))
    case = replace(case, y=y.astype(np.int32), score=np.zeros_like(case.score))
    assert_same_trees(boost(case)[1]["trees"], boost_by_reference(case).trees)
    columns, found = boost(case)
    check_trends(make_ensemble(columns, found, case), case, seed)
    check_paths(found["trees"], case)


@pytest.mark.parametrize("n", range(2, 40))
def test_sides_that_differ_by_rounding_alone_are_no_split(n):
    x = np.repeat(np.arange(5.0), 3 * np.array([1, n, 2, n + 1, 7]))
    plan = boosting.Plan(l2_regularization=0.0, min_weight=0, monotonic_cst=(1,))
    table = x[:, None], np.zeros(1, dtype=np.int32), None
    case = make_case(table, ("squared_error", 1), plan, 0)
    case = replace(case, y=np.tile(np.array([1, 3, 3], dtype=np.int32), len(x) // 3))
    trees = boost_by_reference(case).trees
    assert [len(tree) for tree in trees] == [1] * plan.n_rounds
    assert_same_trees(boost(case)[1]["trees"], trees)


def make_ensemble(columns, found, case):
    """Return the trees of a boosted case as a model."""
    trees = {name: array for name, array in found["trees"].items() if name != "gain"}
    return Ensemble(
        columns=columns.without_bins(),
        base=np.zeros(case.score.shape[1], dtype=np.int64),
        power=0,
        origin=0.0,
        importance=np.zeros(len(columns.n_codes)),
        **trees,
    )


def check_walk(columns, found, case):
    """Demand that training rows take the same path in a prediction."""
    ensemble = make_ensemble(columns, found, case)
    score = np.concatenate([found["score"], found["validation_score"]])
    check_sums(ensemble, case.X, score - case.score)


def check_sums(ensemble, X, expected):
    """Demand sums of leaves, also of few rows: these are not walked as a block."""
    assert_array_equal(ensemble.sum_values(X), expected)
    few = [ensemble.sum_values(X[first : first + 16]) for first in range(0, min(len(X), 96), 16)]
    assert_array_equal(np.concatenate(few), expected[:96])


def check_trends(ensemble, case, seed):
    """Demand that scores of rows with another value in one column are in order."""
    rng = np.random.default_rng(seed)
    for j in np.flatnonzero(case.plan.monotonic_cst).tolist():
        X = case.X[rng.integers(0, len(case.X), 200)]
        pair = np.concatenate([case.X[:, j], [-1.7e308, 1.7e308, 0.0]])
        pair = np.sort(rng.choice(pair[~np.isnan(pair)], (2, len(X))), axis=0)
        below, above = X.copy(), X.copy()
        below[:, j], above[:, j] = pair
        rise = ensemble.sum_values(above) - ensemble.sum_values(below)
        assert (rise * case.plan.monotonic_cst[j] >= 0).all()


@settings(max_examples=200)
@given(case=deep_cases, seed=seeds)
def test_scores_never_fall_where_they_must_rise(case, seed):
    columns, found = boost(case)
    check_trends(make_ensemble(columns, found, case), case, seed)


def list_paths(trees):
    """Return the columns of all splits above each node, and its own."""
    starts, number = trees["tree_start"], -1
    for first, last in pairwise(starts.tolist()):
        above = {0: frozenset()}
        for k in range(last - first):
            left, column = int(trees["left"][first + k]), int(trees["column"][first + k])
            if left < 0:
                continue
            used = {column}
            if column < 0:
                number += 1
                used = trees["feature"][slice(*trees["term_start"][number : number + 2])].tolist()
            above[left] = above[left + 1] = above[k] | set(used)
        yield from above.values()


def check_paths(trees, case):
    """Demand that the columns of each path are in one group."""
    groups = [set(each) for each in case.plan.interaction_cst or [range(len(case.n_codes))]]
    assert all(any(path <= group for group in groups) for path in list_paths(trees))


@given(case=constrained_cases)
def test_columns_of_a_path_are_in_one_group(case):
    check_paths(boost(case)[1]["trees"], case)


@given(case=cases, n_validation=st.integers(0, 20), tolerance=st.sampled_from([0.0, 1e3, 1e7]))
def test_patience_is_that_of_the_reference(case, n_validation, tolerance):
    n_validation = min(n_validation, len(case.X) - 1)
    plan = replace(case.plan, n_rounds=6, patience=2, learning_rate=1.0, tolerance=tolerance)
    held_out = None if case.held_out is None else case.held_out.copy()
    if held_out is not None:
        held_out[0] = 0  # a row to train on
    case = replace(case, plan=plan, n_validation=n_validation, held_out=held_out)
    expected = boost_by_reference(case)
    _, found = boost(case)
    losses_of_rows = [float(each) for each in expected.held_out_loss]
    assert_array_equal(found["validation_loss"], losses_of_rows)
    assert_array_equal(found["score"], expected.training_score)
    best = boosting.find_best_round(losses_of_rows, tolerance)
    assert_same_trees(found["trees"], expected.trees[:best])


def assert_same_result(first, second):
    """Demand equal trees, scores and losses."""
    for name, array in first["trees"].items():
        assert_array_equal(second["trees"][name], array, name)
    for name in ("score", "validation_score", "training_loss", "validation_loss"):
        assert_array_equal(second[name], first[name], name)


ORDERS = {"rows": np.ascontiguousarray, "columns": np.asfortranarray}


@given(case=cases, order=st.sampled_from(sorted(ORDERS)), n_threads=st.sampled_from([1, 3]))
def test_grid_values_made_of_raw_rows_are_like_stored_ones(case, order, n_threads):
    raw = ORDERS[order]
    assert_same_result(boost(case)[1], boost(case, raw=raw, n_threads=n_threads)[1])
    single = replace(case, X=np.clip(case.X, -3e38, 3e38).astype(np.float32).astype(np.float64))
    floats = boost(single, raw=lambda X: raw(X, dtype=np.float32))[1]
    assert_same_result(boost(single)[1], floats)


@given(table=tables, share=shares, seed=seeds)
def test_tables_by_columns_are_like_those_by_rows(table, share, seed):
    X, n_codes, weight = table
    held_out = hold_out(len(X), share, seed)
    columns, encoded = learn(X, n_codes, weight, held_out)
    for rows in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        others, other = learn(rows, n_codes, weight, held_out)
        assert_array_equal(other.bin, encoded.bin)
        assert_array_equal(other.z, encoded.z)
        for name, array in vars(columns).items():
            assert_array_equal(getattr(others, name), array, name)


@given(case=cases, n_threads=st.sampled_from([2, 7]))
def test_threads_change_nothing(case, n_threads):
    assert_same_result(boost(case)[1], boost(case, n_threads=n_threads)[1])


@given(case=cases)
def test_sparse_tables_are_like_dense_ones(case):
    numbers = np.where(np.isnan(case.X), 0.0, case.X) + 0.0
    case = replace(case, X=numbers, n_codes=np.zeros_like(case.n_codes))
    assert_same_result(boost(case)[1], boost(case, is_sparse=True)[1])


@given(case=cases)
def test_rows_held_out_in_place_are_like_rows_elsewhere(case):
    plan = replace(case.plan, subsample=1.0)  # rows are drawn by their numbers
    order = np.arange(len(case.X))
    n = len(order) - case.n_validation
    flags = np.zeros(n) if case.held_out is None else case.held_out[:n]
    order = np.concatenate([order[:n][flags == 0], order[:n][flags > 0], order[n:]])
    n_validation = len(order) - int(np.count_nonzero(flags == 0))
    moved = replace(case.take(order), plan=plan, held_out=None, n_validation=n_validation)
    _, first = boost(replace(case, plan=plan))
    _, second = boost(moved)
    for name, array in first["trees"].items():
        assert_array_equal(second["trees"][name], array, name)
    for name in ("training_loss", "validation_loss"):
        assert_array_equal(second[name], first[name], name)


def test_products_of_a_block_fit_a_word():
    # 128 rows at the low end of 12 bits about the mean: their squares reach 2**31.
    x = np.concatenate([np.zeros(128), np.full(200, (1 - 1e-5) * 328 / 200)])
    X = np.column_stack([x, np.random.default_rng(0).normal(size=len(x))])
    plan = boosting.Plan(n_hyperplanes=1, max_terms=2, min_weight=0)
    for order in (slice(None), np.random.default_rng(1).permutation(len(x))):
        table = X[order], np.zeros(2, dtype=np.int32), None
        case = make_case(table, ("squared_error", 1), plan, 0)
        assert_same_trees(boost(case)[1]["trees"], boost_by_reference(case).trees)


def make_large_table(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 9))
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 3] = rng.integers(0, N_CODES, n)
    n_codes = np.zeros(9, dtype=np.int32)
    n_codes[3] = N_CODES
    return X, n_codes, None


@pytest.mark.parametrize("loss", [LOSSES[0], LOSSES[1], LOSSES[4]])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_large_tables_do_not_depend_on_threads_or_the_order_of_rows(loss, is_weighted):
    table = make_large_table(40_000, 0)
    plan = boosting.Plan(n_rounds=3, max_leaf_nodes=31, n_hyperplanes=3, max_terms=6, min_weight=0)
    case = make_case(table, loss, plan, 0, share=0.2)
    signal = np.nan_to_num(case.X[:, :3]).sum(axis=1) + case.X[:, 3] % 3
    if loss[0] == "squared_error":  # random targets would leave hyperplanes nothing to find
        case = replace(case, y=(signal * 2**20).astype(np.int32))
    if is_weighted:
        case = replace(case, weight=np.arange(len(case.X)) % 3 + 1)
    order = np.random.default_rng(1).permutation(len(case.X))
    _, expected = boost(case)
    assert len(expected["trees"]["feature"]) > 0
    assert len(expected["trees"]["codes"]) > 0
    assert_same_result(expected, boost(case, n_threads=3)[1])
    _, other = boost(case.take(order), n_threads=2)
    other["score"] = other["score"][np.argsort(order)]
    assert_same_result(expected, other)
    for raw in ORDERS.values():
        assert_same_result(expected, boost(case, raw=raw, n_threads=2)[1])
    drawing = replace(case, plan=replace(plan, subsample=0.6))
    assert_same_result(boost(drawing)[1], boost(drawing, n_threads=3)[1])


@pytest.mark.parametrize("loss", [LOSSES[0], LOSSES[1], LOSSES[4]])
def test_packed_sums_of_large_tables_are_those_of_weighted_rows(loss):
    table = make_large_table(40_000, 2)
    plan = boosting.Plan(n_rounds=3, max_leaf_nodes=60, n_hyperplanes=1, max_terms=4, min_weight=0)
    case = make_case(table, loss, plan, 3)
    weighted = replace(case, weight=np.ones(len(case.X), dtype=np.int64))  # never packed
    for n_threads in (1, 3):
        assert_same_result(boost(weighted)[1], boost(case, n_threads=n_threads)[1])


@given(
    table=tables, loss=losses, plan=plans, seed=seeds, share=shares, is_constrained=st.booleans()
)
def test_weights_are_copies(table, loss, plan, seed, share, is_constrained):
    X, n_codes, _ = table
    weight = np.random.default_rng(seed).integers(1, 4, len(X))
    plan = replace(plan, unit_weight=1, min_weight=0, subsample=1.0)  # copies are drawn apart
    case = make_case((X, n_codes, None), loss, plan, seed, share, is_constrained=is_constrained)
    _, weighted = boost(replace(case, weight=weight))
    _, copied = boost(case.take(np.repeat(np.arange(len(X)), weight)))
    for name, array in weighted["trees"].items():
        assert_array_equal(copied["trees"][name], array, name)
    for name in ("training_loss", "validation_loss"):
        assert_array_equal(copied[name], weighted[name], name)


def test_exp_and_log_are_those_of_the_reference():
    x = np.random.default_rng(0).uniform(-701, 701, 20_000)
    y = np.exp(np.clip(x, -700, 700))
    assert_array_equal([_core.compute_exp(v) for v in x.tolist()], arithmetic.exp(x))
    assert_array_equal([_core.compute_log(v) for v in y.tolist()], arithmetic.log(y))
