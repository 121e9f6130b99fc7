"""Trees of large tables are those that the same rows grow in any other way.

Large tables take paths of their own through the core: their rows are read by several trees at
once, and sums of children come from sums of their parents. None of it may change a tree. Two
ways around these paths exist: rows with weights, which count like copies of the rows, and a
least weight of leaves, however small.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from forests import assert_same_model
from lhtree import LHForestClassifier, LHTClassifier

LARGE = 1 << 25  # bytes from which on a table is large
NAMES = ("left", "threshold_kind", "threshold", "weight", "center", "std", "extremes", "value")


def make_clusters(rng, n_rows, n_columns):
    """Return small integers in clusters: purity cuts off many rows, few, or none."""
    center = rng.integers(-3, 4, size=(9, n_columns))
    cluster = rng.integers(0, 9, n_rows)
    X = center[cluster] + rng.integers(-3, 4, size=(n_rows, n_columns))
    y = cluster % 3
    is_wrong = rng.random(n_rows) < 0.02
    return X.astype(float), np.where(is_wrong, rng.integers(0, 3, n_rows), y)


def make_slab(rng, n_rows, n_columns):
    """Return rows of which purity cuts off a twelfth; others are cut half-way."""
    X = rng.integers(-1, 2, size=(n_rows, n_columns)).astype(float)
    X[:, 0] = rng.integers(0, 100, n_rows)
    y = (rng.random(n_rows) * 200 < 50 + X[:, 0]).astype(int)
    return X, np.where(X[:, 0] >= 92, 0, y)


def make_numbers(rng, n_rows, n_columns):
    X = rng.normal(size=(9, n_columns))[rng.integers(0, 9, n_rows)]
    X += rng.normal(size=(n_rows, n_columns))
    return X, (X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n_rows) > 0.5).astype(int)


def is_large(X):
    return X.shape[0] * (-(-X.shape[1] // 8) * 8) * X.itemsize >= LARGE


@pytest.mark.parametrize(
    ("maker", "gamma"), [(make_clusters, 2), (make_clusters, 200), (make_slab, 2000)]
)
@pytest.mark.parametrize(("n_columns", "dtype"), [(24, "f8"), (33, "f8"), (50, "f4"), (120, "f8")])
def test_copies_of_rows_grow_the_trees_of_their_weights(n_columns, dtype, maker, gamma):
    rng = np.random.default_rng(n_columns)
    n_rows = LARGE // (n_columns * np.dtype(dtype).itemsize) // 8
    X, y = maker(rng, n_rows, n_columns)
    X = X.astype(dtype)
    weight = rng.integers(5, 16, n_rows)
    copies = np.repeat(X, weight, axis=0)
    assert is_large(copies)
    assert not is_large(X)
    model = LHTClassifier(standardize=False, gamma=gamma, max_depth=12)
    few = model.fit(X, y, weight).forest_
    many = model.fit(copies, np.repeat(y, weight)).forest_
    assert many.left.size > 60
    for name in NAMES:
        assert_array_equal(getattr(many, name), getattr(few, name), name)


def fit_both(X, y, **options):
    """Return a model of a large table, and one whose rows are all projected and summed."""
    options = {"max_depth": 12, "gamma": 50} | options
    model = LHTClassifier(**options).fit(X, y)
    return model, LHTClassifier(min_weight_fraction_leaf=1e-300, **options).fit(X, y)


def add_offsets(X, rng):
    return X * 10.0 ** rng.integers(-3, 4, X.shape[1]) + 1e4 * rng.normal(size=X.shape[1])


def add_outliers(X, rng):
    X = X.copy()
    X[rng.integers(0, len(X), 30), rng.integers(0, X.shape[1], 30)] *= 1e5
    return X


def make_partly_constant(X, rng):
    X = X.copy()
    X[X[:, 3] > 0, 4] = 0.1  # constant in many nodes, not in their parents
    return X


@pytest.mark.parametrize(
    "change", [lambda X, rng: X, add_offsets, add_outliers, make_partly_constant]
)
@pytest.mark.parametrize("standardize", [True, False])
def test_sums_of_children_are_those_of_their_rows(change, standardize):
    rng = np.random.default_rng(0)
    X, y = make_numbers(rng, 180_000, 20)
    X = change(X, rng)
    assert is_large(X)
    model, in_full = fit_both(X, y, standardize=standardize)
    forest, other = model.forest_, in_full.forest_
    assert_array_equal(forest.left, other.left)
    assert_array_equal(forest.n_samples, other.n_samples)
    for name in ("threshold", "weight", "center", "std", "extremes"):
        assert_allclose(getattr(forest, name), getattr(other, name), rtol=1e-6, atol=1e-9,
                        err_msg=name)  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_outliers_that_were_cut_off_leave_no_trace(seed):
    """Pure rows with outliers are cut off: the others lie much closer together than before."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns = 90_000, 48
    X = 0.3 * rng.normal(size=(n_rows, n_columns))
    X[:, 0] = rng.uniform(-3, 3, n_rows)
    y = (rng.random(n_rows) < 0.5 + 0.12 * X[:, 0]).astype(int)
    pure = rng.choice(np.flatnonzero(np.arange(n_rows) % (n_rows // 1024)), 1000, replace=False)
    X[:, 5] = rng.normal(size=n_rows) + 0.06 * y
    X[pure, 0] = 3.4
    y[pure] = 1
    X[pure[:20], 5] = np.repeat([1e12, -1e12], 10) * np.tile(1 + rng.random(10), 2)
    assert is_large(X)
    model, in_full = fit_both(
        X, y, standardize=False, contrast="standardized", gamma=600, max_depth=4
    )
    assert_array_equal(model.forest_.n_samples, in_full.forest_.n_samples)
    assert_allclose(model.forest_.std, in_full.forest_.std, rtol=1e-6)


def test_training_rows_reach_the_leaves_they_grew():
    rng = np.random.default_rng(1)
    X, y = make_numbers(rng, 180_000, 20)
    model = LHTClassifier(max_depth=12).fit(X, y)
    leaf, count = np.unique(model.apply(X)[:, 0], return_counts=True)
    assert_array_equal(model.forest_.n_samples[leaf], count)


@pytest.mark.parametrize("n_rows", [700, 110_000])
def test_the_number_of_threads_changes_no_tree(n_rows):
    """One thread grows several trees at once; for four threads there are too few trees."""
    X, y = make_clusters(np.random.default_rng(2), n_rows, 40)
    X += 0.1  # sums are rounded
    assert is_large(X) == (n_rows > 700)
    model = LHForestClassifier(3, preset="paper", max_depth=8, random_state=0)
    one = clone(model).set_params(n_jobs=1).fit(X, y)
    assert_same_model(clone(model).set_params(n_jobs=4).fit(X, y), one)


def test_progress_counts_trees_that_grow_at_once(capfd):
    X, y = make_clusters(np.random.default_rng(3), 110_000, 40)
    assert is_large(X)
    LHForestClassifier(2, preset="paper", max_depth=3, n_jobs=1, verbose=1).fit(X, y)
    assert "2 of 2 estimators" in capfd.readouterr().err
