"""Parameters that limit how boosted trees grow: draws of rows and columns, bins, constraints."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from lhtree import LHBoostClassifier, LHBoostRegressor

KINDS = pytest.mark.parametrize("kind", [LHBoostClassifier, LHBoostRegressor])


@pytest.fixture
def rows():
    """Return 600 rows of six columns, the last two of noise, and two classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + X[:, 3] > 0).astype(int)


def fit(kind, rows, **parameters):
    """Return a small fitted model."""
    return kind(**{"n_estimators": 15, "random_state": 0, **parameters}).fit(*rows)


@KINDS
def test_max_features_draws_columns_for_each_node(kind, rows):
    model = fit(kind, rows, max_features=1, max_leaf_nodes=2, n_hyperplanes=0, n_estimators=40)
    column = model.forest_.column[model.forest_.column >= 0]
    assert set(column.tolist()) == set(range(6))  # also the noise, if nothing else was drawn
    assert len(set(fit(kind, rows, max_leaf_nodes=2, n_hyperplanes=0).forest_.column)) < 6
    for value in (3, 0.5, 0.55):
        same = fit(kind, rows, max_features=value)
        assert_array_equal(same.forest_.cut, fit(kind, rows, max_features=3).forest_.cut)
    assert_array_equal(fit(kind, rows, max_features=6).forest_.cut, fit(kind, rows).forest_.cut)


@KINDS
def test_max_bins_limits_the_thresholds_of_a_column(kind, rows):
    for max_bins in (2, 7, 255):
        forest = fit(kind, rows, max_bins=max_bins, n_hyperplanes=0).forest_
        of_split = forest.column[forest.column >= 0]
        for j in range(6):
            n_thresholds = len(np.unique(forest.threshold[of_split == j]))
            assert n_thresholds < max_bins
            assert n_thresholds > 7 or max_bins < 255 or j > 3
    X, y = rows
    dense = fit(kind, (np.round(X), y), max_bins=4)
    other = fit(kind, (sparse.csr_array(np.round(X)), y), max_bins=4)
    assert_array_equal(dense.forest_.value, other.forest_.value)


@KINDS
def test_subsample_draws_rows_in_each_round(kind, rows):
    half = fit(kind, rows, subsample=0.5)
    root = half.forest_.weight[half.forest_.tree_start[:-1]]
    assert np.all((root > 200) & (root < 400))
    assert len(set(root.tolist())) > 5
    whole = fit(kind, rows).forest_
    assert set(whole.weight[whole.tree_start[:-1]].tolist()) == {600}
    again = fit(kind, rows, subsample=0.5, n_jobs=2).forest_
    assert_array_equal(half.forest_.value, again.value)
