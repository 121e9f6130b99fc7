"""Ensembles whose trees take turns: each adds to one score, as in forests of classes."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from lhtree import LHForestClassifier
from lhtree.model import ensemble_packing
from lhtree.model.ensemble import Ensemble


def make_rows(seed):
    """Return rows of numbers, with gaps, and of categories, and numbers that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 4))
    X[rng.random(400) < 0.2, 1] = np.nan
    X[:, 3] = rng.integers(0, 9, 400)
    y = X[:, 0] + np.nan_to_num(X[:, 1]) + X[:, 3] % 3
    return X, y + rng.normal(size=400) / 4


@pytest.fixture(scope="module")
def forest():
    """Return a forest of three classes, in whose estimators trees take turns."""
    X, y = make_rows(0)
    model = LHForestClassifier(4, categorical_features=[3], shrinkage=0.0, random_state=0)
    return model.fit(X, np.digitize(y, [-1, 1])).forest_


def test_trees_of_forests_take_turns(forest):
    X = make_rows(1)[0]
    leaf, total = forest.apply(X), np.zeros((len(X), 3), dtype=np.int64)
    for k, tree in enumerate(forest):
        assert tree.output == k % 3
        total[:, k % 3] += tree.node_value[leaf[:, k], 0]
    assert_array_equal(forest.sum_values(X), total)
    assert_array_equal(forest.score(X), total / 4 / 2**16)
    parts = (forest.take(first, last) for first, last in pairwise((0, 3, 9, 12)))
    assert_array_equal(sum(part.sum_values(X) for part in parts), total)
    assert_array_equal(pickle.loads(pickle.dumps(forest)).sum_values(X), total)
    with pytest.raises(ValueError, match=r"do not have one tree per output|n_averaged"):
        forest.take(1, 3)


@pytest.mark.parametrize(
    ("name", "alter", "words"),
    [
        ("value_index", lambda a: a[1:], "value does not have one entry per leaf"),
        ("value_index", lambda a: a[:0], "value does not have one entry per leaf"),
        ("value_index", lambda a: a.astype(int) * 0 - 1, "a leaf has an unknown value"),
        ("value_index", lambda a: a.astype(int) + 40, "a leaf has an unknown value"),
        ("value_index", lambda a: a.astype(float), "is not a list of int32"),
        ("value", lambda a: a[:1], "a leaf has an unknown value"),
        ("base", lambda a: np.zeros(5, np.int8), "do not have one tree per output"),
    ],
)
def test_values_that_do_not_fit_their_leaves_are_refused(name, alter, words, forest):
    packed = ensemble_packing.pack(forest)
    packed[f"ensemble.{name}"] = alter(packed[f"ensemble.{name}"])
    with pytest.raises(ValueError, match=words):
        Ensemble.from_packed(packed, forest.power, forest.origin, forest.n_averaged)
