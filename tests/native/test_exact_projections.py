"""Projections are exact: no bit of a tree or an output depends on how many rows there are.

The core need not project every row on every hyperplane; bounds decide for most. A least weight
of leaves, however small, has every training row projected: the same trees must grow. A row that
is predicted alone is projected on one hyperplane at a time: it must get the same outputs.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from forests import assert_same_model
from lhtree import LHForestClassifier, LHTClassifier

N_ROWS = 5000  # enough for bounds to be used
N_COLUMNS = 17  # narrower tables are projected in full; one more than two times eight


def make_normal(rng):
    X = rng.normal(size=(N_ROWS, N_COLUMNS))
    return X, (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=N_ROWS) > 0.5).astype(int)


def make_distant(rng):
    X, y = make_normal(rng)
    return X * 10.0 ** rng.integers(-3, 4, N_COLUMNS) + 1e5 * rng.normal(size=N_COLUMNS), y


def make_integers(rng):
    X = rng.integers(0, 4, size=(N_ROWS, N_COLUMNS)).astype(float)
    return X, (X[:, :5].sum(axis=1) + rng.integers(0, 3, N_ROWS) > 8).astype(int)


def make_repeated(rng):
    X, y = make_normal(rng)
    return np.tile(X[:500], (10, 1)), np.tile(y[:500], 10)


def make_outliers(rng):
    X, y = make_normal(rng)
    X[rng.integers(0, N_ROWS, 20), rng.integers(0, N_COLUMNS, 20)] *= 1e6
    return X, y


def make_one_long_row(rng):
    X, y = make_normal(rng)
    X[7] *= 1e45  # its length is beyond single precision
    return X, y


def make_huge(rng):
    X, y = make_normal(rng)
    return X * 1e60, y  # lengths are beyond single precision


def make_long(rng):
    X, y = make_normal(rng)
    return X * 1e13, y  # some test rows are too long for bounds, others are not


def make_tiny(rng):
    X, y = make_normal(rng)
    return X * 1e-60, y


def make_noise(rng):
    X, y = make_normal(rng)
    return X, rng.permutation(y)


MAKERS = [
    make_normal, make_distant, make_integers, make_repeated, make_outliers, make_one_long_row,
    make_huge, make_long, make_tiny, make_noise,
]  # fmt: skip


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("beta", [0.0, 0.4])
def test_trees_are_those_of_rows_that_are_all_projected(maker, standardize, beta):
    X, y = maker(np.random.default_rng(0))
    options = {"beta": beta, "standardize": standardize, "gamma": 1}
    model = LHTClassifier(**options).fit(X, y)
    in_full = LHTClassifier(min_weight_fraction_leaf=1e-300, **options).fit(X, y)
    assert_same_model(model, in_full)


@pytest.mark.parametrize("contrast", ["mean", "standardized"])
def test_forests_of_weighted_float32_rows_are_those_of_rows_that_are_all_projected(contrast):
    rng = np.random.default_rng(1)
    X, y = make_normal(rng)
    options = {"preset": "paper", "contrast": contrast, "n_estimators": 3, "random_state": 0}
    weight = rng.integers(1, 4, len(y))
    X = X.astype(np.float32)
    model = LHForestClassifier(**options).fit(X, y, weight)
    in_full = LHForestClassifier(min_weight_fraction_leaf=1e-300, **options).fit(X, y, weight)
    assert_same_model(model, in_full)


@pytest.mark.parametrize("scale", [1e36, 3e36, 1e37])
def test_projections_beyond_single_precision_change_no_tree(scale):
    """Rows are short enough for bounds, but some projections overflow single precision."""
    rng = np.random.default_rng(1)
    along = rng.exponential(size=5000)
    X = (along[:, None] + 0.2 * rng.normal(size=(5000, 64))) * scale
    y = (rng.random(5000) < 0.2 + 0.6 * (along > 1)).astype(int)
    options = {"standardize": False, "gamma": 2, "max_depth": 6}
    model = LHTClassifier(**options).fit(X, y)
    assert_same_model(model, LHTClassifier(min_weight_fraction_leaf=1e-300, **options).fit(X, y))


@pytest.mark.parametrize(("dtype", "is_weighted"), [("f8", False), ("f8", True), ("f4", False)])
def test_tables_larger_than_a_cache_grow_the_trees_of_rows_that_are_all_projected(
    dtype, is_weighted
):
    # Small subtrees of such a table work on a copy of their rows.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(9000, 260 if dtype == "f8" else 520)).astype(dtype)
    assert X.nbytes > 1 << 24
    y = (np.abs(X[:, :3]).sum(axis=1) > 2).astype(int)
    weight = rng.integers(1, 4, len(y)) if is_weighted else None
    model = LHTClassifier(standardize=False).fit(X, y, weight)
    in_full = LHTClassifier(standardize=False, min_weight_fraction_leaf=1e-300).fit(X, y, weight)
    assert model.forest_.n_samples[model.forest_.left >= 0].min() < 200  # it is copied
    assert_same_model(model, in_full)


@pytest.mark.parametrize("is_holed", [False, True])
def test_tables_larger_than_a_cache_grow_the_trees_of_smaller_ones(is_holed):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(9000, 260)).astype(np.float32)
    y = (np.abs(X[:, :3]).sum(axis=1) > 2).astype(int)
    X[rng.random(X.shape) < 0.05 * is_holed] = np.nan
    weight = rng.integers(1, 4, len(y))
    model = LHTClassifier(standardize=False)
    wide, narrow = (clone(model).fit(X.astype(kind), y, weight) for kind in ("f8", "f4"))
    assert X.nbytes < 1 << 24 < 2 * X.nbytes
    assert_same_model(wide, narrow)


def assert_outputs_of_single_rows(forest, rows, **options):
    """Demand that rows get the same votes and leaves together and one by one."""
    many = (*forest.vote(rows, n_classes=2, **options), forest.apply(rows))
    single = [
        (*forest.vote(row, n_classes=2, **options), forest.apply(row)) for row in rows[:, None, :]
    ]
    for together, alone in zip(many, zip(*single, strict=True), strict=True):
        assert_array_equal(together, np.concatenate(alone))


@pytest.mark.parametrize("gamma", [1, 100])  # thresholds cut off pure rows, or halve a node
@pytest.mark.parametrize("n_columns", [16, 17, 300])
def test_many_rows_get_the_outputs_of_single_ones(n_columns, gamma):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, n_columns))
    y = (X[:, 0] + np.abs(X[:, 1]) + 0.2 * rng.normal(size=2000) > 1).astype(int)
    forest = LHTClassifier(gamma=gamma).fit(X, y).forest_
    assert_outputs_of_single_rows(forest, rng.normal(size=(700, n_columns)))


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("standardize", [True, False])
def test_rows_on_and_far_from_hyperplanes_get_the_outputs_of_single_ones(maker, standardize):
    # Training rows lie on thresholds; integers have several hyperplanes equally near; long and
    # short rows are beyond single precision.
    rng = np.random.default_rng(4)
    X, y = maker(rng)
    forest = LHTClassifier(standardize=standardize, gamma=1).fit(X, y).forest_
    near = X[:300] * (1 + 1e-7 * rng.normal(size=(300, N_COLUMNS)))
    scale, wide_scale = (10.0 ** rng.uniform(-x, x, size=(200, 1)) for x in (4, 240))
    rows = [X[:300], near, X[:200] * scale, X[:200] * wide_scale, np.zeros((2, N_COLUMNS))]
    assert_outputs_of_single_rows(forest, np.concatenate(rows))


def list_hyperplanes(model, row):
    """Return unit normals and offsets of the hyperplanes on the path of a row."""
    forest, path = model.forest_, model.decision_path(row[None])[0].indices
    split = path[forest.left[path] >= 0]
    weight = forest.weight[forest.start[split, None] + np.arange(N_COLUMNS)]
    return weight / forest.norm[split, None], forest.threshold[split] / forest.norm[split]


def move_between(row, normal, offset):
    """Move a row to where the two hyperplanes that are nearest are equally near."""
    gap = normal @ row - offset
    a, b = np.argsort(np.abs(gap))[:2]
    towards = np.sign(gap[a]) * normal[a], np.sign(gap[b]) * normal[b]
    excess = np.abs(gap[b]) - np.abs(gap[a])
    return row + (towards[0] - towards[1]) * excess / (2 - 2 * towards[0] @ towards[1])


def test_rows_between_hyperplanes_get_the_outputs_of_single_ones():
    rng = np.random.default_rng(7)
    X, y = make_normal(rng)
    model = LHTClassifier(standardize=False, gamma=1).fit(X, y)
    rows = []
    for row in rng.normal(size=(400, N_COLUMNS)):
        normal, offset = list_hyperplanes(model, row)
        if len(offset) >= 2:
            rows.append(move_between(row, normal, offset))
    assert len(rows) > 300
    assert_outputs_of_single_rows(model.forest_, np.array(rows))


def test_columns_with_large_offsets_get_the_outputs_of_single_rows():
    X, y = make_normal(np.random.default_rng(6))
    X[:, -1] += 1e9
    forest = LHTClassifier(standardize=False, gamma=1).fit(X, y).forest_
    assert_outputs_of_single_rows(forest, X[:500] + 0.5)


def test_votes_by_margin_and_out_of_bag_are_those_of_single_rows():
    X, y = make_normal(np.random.default_rng(5))
    forest = LHForestClassifier(4, preset="paper", random_state=0).fit(X, y).forest_
    assert_outputs_of_single_rows(forest, X[:200], by_margin=True)
    out_of_bag = np.full((4, 4), 0x5A5A_5A5A_5A5A_5A5A, dtype=np.uint64)  # half of 256 rows
    vote, distance, _ = forest.vote(X[:256], n_classes=2, out_of_bag=out_of_bag)
    is_out_of_bag = np.unpackbits(out_of_bag[0].view(np.uint8), bitorder="little").astype(bool)
    for some, full in zip((vote, distance), forest.vote(X[:256], n_classes=2), strict=False):
        assert_array_equal(some[is_out_of_bag], full[is_out_of_bag])
        assert not some[~is_out_of_bag].any()
