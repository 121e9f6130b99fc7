"""Cases of forests on the exact engine: tables, targets and plans, and both ways to grow them."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from exact import boosting, forests, trees
from exact.columns import learn_columns
from lhtree import _core
from lhtree.training.boosting_rows import Rows, learn_rows
from lhtree.training.targets import Weights, place_numbers
from native.test_exact_engine import (
    COLUMNS,
    GAPS,
    WEIGHTS,
    assert_same_trees,
    check_sums,
    draw_constraints,
    make_ensemble,
    make_large_table,
    make_table,
    seeds,
    sort_targets,
    tables,
)

NUMBERS = {
    "real": lambda rng, n: rng.normal(size=n),
    "small integers": lambda rng, n: rng.integers(-3, 4, n),
    "constant": lambda rng, n: np.full(n, 0.1),
    "two values": lambda rng, n: rng.integers(0, 2, n),
    "one that is far": lambda rng, n: np.where(np.arange(n) == n // 2, 1e5, rng.normal(size=n)),
    "heavy tails": lambda rng, n: np.exp(rng.normal(size=n) * 3),
    "huge": lambda rng, n: rng.normal(size=n) * 1e300,
    "far from zero": lambda rng, n: 1e8 + 1e-3 * rng.normal(size=n),
}
CLASSES = {  # their number, and the class of each row
    "one class": (1, lambda rng, n: np.zeros(n)),
    "two": (2, lambda rng, n: rng.integers(0, 2, n)),
    "two, one is rare": (2, lambda rng, n: rng.random(n) < 0.05),
    "one of two": (2, lambda rng, n: np.full(n, rng.integers(0, 2))),
    "three": (3, lambda rng, n: rng.integers(0, 3, n)),
    "one without rows": (4, lambda rng, n: rng.choice([0, 1, 3], n)),
    "ever rarer ones": (5, lambda rng, n: np.minimum(rng.geometric(0.6, n) - 1, 4)),
    "many": (12, lambda rng, n: rng.integers(0, 12, n)),
}
RICH_CLASSES = ["two", "three", "ever rarer ones", "many"]
KINDS = [*sorted(NUMBERS), *sorted(CLASSES), *RICH_CLASSES]


@dataclass(frozen=True)
class Case:
    """Rows of which a forest grows."""

    X: np.ndarray
    n_codes: np.ndarray
    weight: np.ndarray | None
    y: np.ndarray  # on the grid of the target, or classes
    score: np.ndarray  # [n_rows, 1], the start
    plan: forests.Plan

    def take(self, rows):
        """Return a case with some of the rows, or copies of them."""
        arrays = {name: getattr(self, name) for name in ("X", "y", "weight", "score")}
        return replace(self, **{k: each[rows] for k, each in arrays.items() if each is not None})


def place(X, n_codes, weight, target, plan):
    """Return a case whose targets are real numbers; pruning is in units of their variance."""
    placed = place_numbers(target, Weights(weight), None, np.zeros(0))
    score = np.tile(placed.scale.base, (len(X), 1))
    price = plan.ccp_alpha * float(placed.training.astype(np.float64).var())
    return Case(X, n_codes, weight, placed.training, score, replace(plan, ccp_alpha=price))


def place_codes(X, n_codes, weight, y, plan):
    """Return a case whose targets are classes."""
    score = np.zeros((len(X), 1), dtype=np.int64)
    return Case(X, n_codes, weight, y.astype(np.int32), score, plan)


def place_weights(plan, weight, n):
    """Return a plan, and weights that are in fine units if the unit of the plan is large."""
    is_coarse = weight is None or weight.max() < 4
    if is_coarse and plan.balance and plan.unit_weight > 1:
        weight = np.ones(n, dtype=np.int64) if weight is None else weight
        return plan, weight * plan.unit_weight
    if is_coarse:  # a larger unit would leave no split
        plan = replace(plan, unit_weight=1)
    return (plan if weight is not None else replace(plan, weight_shift=0)), weight


def settle(plan, weight, n, share):
    """Return a plan for a table: draws, and a unit of weights; few nodes of many rows.

    Limits of weights are multiples of the unit. Balanced weights are rounded: they may add up
    to more.
    """
    n_draws = max(1, int(share * n))
    heaviest = n_draws * (1 if weight is None else int(weight.max())) + n * plan.balance
    shift = max(plan.weight_shift, heaviest.bit_length() - 31)
    if n > 100:  # the reference is slow
        plan = replace(plan, n_estimators=1, max_depth=min(plan.max_depth, 6))
    return replace(
        plan,
        n_draws=n_draws,
        weight_shift=shift,
        min_split_weight=plan.min_split_weight * plan.unit_weight,
        min_weight=max(1, plan.min_weight * plan.unit_weight),
    )


def make_case(table, kind, plan, share, seed, *, is_sorted=False, is_constrained=False):
    """Return a case with targets of a kind, which depend on the columns if they are sorted."""
    X, n_codes, weight = table
    n_classes, draw = CLASSES[kind] if kind in CLASSES else (0, NUMBERS[kind])
    plan = replace(plan, n_classes=n_classes, balance=plan.balance and n_classes > 0)
    target = draw(np.random.default_rng(seed), len(X)).astype(np.float64)
    if is_sorted or is_constrained:
        target = sort_targets(X, target, seed)
    plan, weight = place_weights(plan, weight, len(X))
    plan = settle(plan, weight, len(X), share)
    if is_constrained:
        plan = draw_constraints(plan, n_codes, plan.n_trees, seed)
    return (place_codes if n_classes else place)(X, n_codes, weight, target, plan)


PLANS: dict[str, list[Any]] = {
    "n_estimators": [1, 2, 3],
    "seed": [0, 1, 2, 3],
    "first_estimator": [0, 0, 7],
    "bootstrap": [False, True],
    "balance": [False, True],
    "max_features": [0, 0, 1, 2, 4],
    "max_features_per_tree": [0, 0, 0, 0, 1, 2, 3, 5],
    "axis_splits": [True] * 4 + [False],
    "n_hyperplanes": [*range(8)],
    "hyperplane_interval": [1, 1, 2, 3],
    "term_price": [0.0, 0.0, 0.5, 3.0],
    "shrinkage": [0.0, 0.05, 0.3],
    "max_depth": [np.iinfo(np.int64).max] + [99] * 9 + [0, 1, 3, 4],
    "max_leaf_nodes": [0] * 10 + [1, 2, 5, 12, 30],
    "min_split_weight": [2] * 8 + [5, 20],
    "min_weight": [0, 0, 0, 0, 1, 3],
    "min_fraction": [0.0] * 16 + [0.01, 0.04, 0.1, 1 / 3, 0.5],
    "ccp_alpha": [0.0] * 10 + [1e-9, 1e-3, 0.01, 0.02, 0.1],
    "unit_weight": [1, 2**16, 2**16],
    "weight_shift": [0, 0, 0, 2],
}
SHARES = [1.0, 1.0, 1.0, 0.63, 0.1]  # of rows that an estimator draws
plans = st.builds(forests.Plan, **{k: st.sampled_from(each) for k, each in PLANS.items()})
cases = st.builds(
    make_case,
    tables,
    st.sampled_from(KINDS),
    plans,
    st.sampled_from(SHARES),
    seeds,
    is_sorted=st.booleans(),
    is_constrained=st.booleans(),
)


def draw_case(seed, *, kinds=KINDS, is_constrained=False):
    """Return a case all of whose choices are drawn evenly, unlike those of Hypothesis.

    Most of them grow trees of some size.
    """
    rng = np.random.default_rng([seed, 3])
    n = rng.integers(10, 90) if rng.random() < 0.8 else rng.integers(300, 700)
    of_columns = rng.choice(sorted(COLUMNS), rng.integers(2, 9)).tolist()
    of_table = GAPS[rng.integers(len(GAPS))], WEIGHTS[rng.integers(len(WEIGHTS))]
    table = make_table(rng, n, of_columns, *of_table, is_doubled=rng.random() < 0.3)
    plan = forests.Plan(**{k: each[rng.integers(len(each))] for k, each in PLANS.items()})
    is_sorted, share = rng.random() < 0.6, rng.choice(SHARES)
    options = {"is_sorted": is_sorted, "is_constrained": is_constrained}
    return make_case(table, str(rng.choice(kinds)), plan, share, seed, **options)


rich_cases = seeds.map(draw_case)
constrained_cases = seeds.map(partial(draw_case, is_constrained=True))


# ---- growing --------------------------------------------------------------------------------


def grow(case, *, n_threads=1, is_sparse=False, raw=None):
    """Grow natively; `raw` makes tables to read in place of stored grid values."""
    options = {"wants_z": raw is None, "n_threads": n_threads, "max_bins": 255}
    X = csr_array(case.X) if is_sparse else case.X
    columns, encoded = learn_rows(X, case.weight, None, case.n_codes, **options)
    raw = None if raw is None else raw(case.X)
    of_rows = {"y": case.y, "weight": case.weight, "score": case.score, "raw": raw}
    rows = Rows(**vars(encoded), **of_rows)
    return columns, _core.grow_averaged(columns, rows, case.plan, n_threads, None)


def grow_by_reference(case):
    """Return the columns and the trees of the reference."""
    columns = learn_columns(case.X, case.weight, case.n_codes)
    rows = boosting.Rows(case.X, case.y.astype(np.int64), case.weight, case.score)
    return columns, forests.grow(columns, rows, case.plan)


def assert_same_arrays(first, second):
    """Demand equal trees."""
    assert sorted(first) == sorted(second)
    for name, array in first.items():
        assert_array_equal(second[name], array, name)


def make_forest(columns, found, case):
    """Return trees as a model: those of an estimator add to one score each."""
    score = np.zeros((len(case.X), case.plan.n_trees), dtype=np.int64)
    return make_ensemble(columns, {"trees": found}, replace(case, score=score))


def check(case):
    """Demand the trees of the reference, and that rows walk down them as there."""
    learned, expected = grow_by_reference(case)
    columns, found = grow(case)
    assert_same_trees(found, expected)
    assert found["value"].shape[1] == 1
    n_trees = case.plan.n_trees
    score = np.zeros((len(case.X), n_trees), dtype=np.int64)
    for i, tree in enumerate(expected):
        k = i % n_trees
        trees.add_values(tree, learned, case.X, score[:, k : k + 1])
    check_sums(make_forest(columns, found, case), case.X, score)
    return columns, found


# ---- cases of their own ---------------------------------------------------------------------


def make_signal(X, n_codes, seed):
    """Return targets that depend on sums of columns, on a category, and on gaps."""
    rng = np.random.default_rng(seed)
    numbers = np.nan_to_num(X[:, np.flatnonzero(n_codes == 0)])
    signal = numbers[:, :3].sum(axis=1) + np.isnan(X[:, 1]) + np.nan_to_num(X[:, 3]) % 3
    return signal + 0.1 * rng.normal(size=len(X))


def make_large_case(n, seed, **changes):
    """Return a case of many rows of numbers, a column of categories, and gaps.

    Of classes, each but the last two has half the rows of the one before it.
    """
    X, n_codes, _ = make_large_table(n, seed)
    plan = forests.Plan(n_estimators=2, n_draws=n, n_hyperplanes=3, seed=seed)
    plan, signal = replace(plan, **changes), make_signal(X, n_codes, seed)
    if not plan.n_classes:
        return place(X, n_codes, None, signal, plan)
    borders = np.quantile(signal, 1 - 0.5 ** np.arange(1, plan.n_classes))
    return place_codes(X, n_codes, None, np.searchsorted(borders, signal), plan)


def make_plain_case(X, y, weight=None, **changes):
    """Return a case of numbers whose targets are integers already, and whose start is 0."""
    X, y = np.array(X, dtype=np.float64), np.array(y, dtype=np.int32)
    plan = replace(forests.Plan(n_estimators=3, n_draws=len(X)), **changes)
    score = np.zeros((len(X), 1), dtype=np.int64)
    return Case(X, np.zeros(X.shape[1], dtype=np.int32), weight, y, score, plan)
