"""A row of integer weight w counts like w copies of it, also in nodes of many rows.

The same tree grows from few rows with large weights and from their many copies, bit for bit
where sums are exact, although the core reads the columns of large nodes in another way.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from lhtree import LHForestClassifier

FEW = 6500  # rows of a small node
MANY = 1 << 13  # rows above which a node is large; see column_room.hpp


def make_table(rng, is_holed):
    X = rng.integers(-4, 5, size=(FEW, 6)).astype(float)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.integers(-2, 3, FEW) > 1).astype(int)
    X[:, 3] += 2**23  # so far from 0 that its sums are taken about another origin
    if is_holed:
        X[rng.random(X.shape) < 0.1] = np.nan
        X[:, 5] = np.nan  # a column without a value
    return X, y


def copy_rows(X, y, weight, most):
    """Return copies of the rows, each of them with a weight of at most `most`."""
    n_copies = -(-weight // most)
    place = np.repeat(np.arange(len(y)), n_copies)
    is_last = np.r_[place[1:] != place[:-1], True]
    left = (weight - most * (n_copies - 1))[place]
    assert len(place) > MANY
    return X[place], y[place], np.where(is_last, left, most)


@pytest.mark.parametrize("criterion", ["gini", "purity"])
@pytest.mark.parametrize(
    ("contrast", "is_holed", "dtype"),
    [("mean", False, "f4"), ("mean", True, "f8"), ("standardized", True, "f4"),
     ("fisher", False, "f8")],
)  # fmt: skip
def test_copies_of_rows_grow_the_tree_of_their_weights(contrast, is_holed, dtype, criterion):
    rng = np.random.default_rng(0)
    X, y = make_table(rng, is_holed)
    X = X.astype(dtype)
    weight = rng.integers(5, 16, len(y))
    model = LHForestClassifier(
        1, contrast=contrast, criterion=criterion, max_features=4, standardize=False, max_depth=5,
        max_samples=1.0, shrinkage=0, voting="margin", random_state=0,
    )  # fmt: skip
    few = model.fit(X, y, weight).forest_
    for most in (1, 2):  # without weights, and with small ones
        many = model.fit(*copy_rows(X, y, weight, most)).forest_
        assert many.left.size > 8
        for name in ("left", "feature", "weight", "threshold", "center", "value", "norm"):
            assert_array_equal(getattr(many, name), getattr(few, name), name)
