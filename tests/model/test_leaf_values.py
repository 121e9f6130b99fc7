"""A leaf's constant is stored once: in `value`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine

from lhtree import Forest, LHForestClassifier, LHTClassifier
from lhtree.training.shrinkage import shrink

MODELS = [
    LHTClassifier(max_depth=2),  # leaves with lines
    LHTClassifier(criterion="gini", standardize=False),
    LHForestClassifier(3, contrast="standardized", random_state=0, shrinkage=5.0),
]


@pytest.fixture(scope="module", params=MODELS, ids=str)
def forest(request):
    """Return the forest of a fitted model."""
    return request.param.fit(*load_wine(return_X_y=True)).forest_


def replace_arrays(forest, **arrays):
    """Return a forest with other arrays."""
    return Forest(**{**vars(forest), **arrays})


def test_leaves_have_the_threshold_zero(forest):
    is_leaf = forest.left < 0
    assert_array_equal(forest.threshold[is_leaf], 0.0)
    assert (forest.value[is_leaf] > 0).any()


def test_a_leaf_with_a_threshold_is_refused(forest):
    with pytest.raises(ValueError, match="a leaf has a threshold"):
        replace_arrays(forest, threshold=np.where(forest.left < 0, forest.value, forest.threshold))


def test_the_value_of_a_leaf_decides_its_output(forest):
    X, _ = load_wine(return_X_y=True)
    constant = np.linspace(0, 1, len(forest.left))
    slopes = np.repeat(forest.left < 0, np.diff(forest.start))
    changed = replace_arrays(forest, value=constant, weight=np.where(slopes, 0.0, forest.weight))
    leaf = changed.apply(X)
    assert_array_equal(leaf, forest.apply(X))
    expected = np.zeros((len(X), 3))
    for k, positive_class in enumerate(forest.positive_class):
        expected[:, positive_class] += constant[forest.tree_start[k] + leaf[:, k]]
    assert_allclose(changed.vote(X, n_classes=3)[0], expected, rtol=1e-12)


def test_shrinkage_changes_values_only(forest):
    shrunk = shrink(forest, 10.0)
    for name, array in vars(shrunk).items():
        is_same = np.array_equal(array, getattr(forest, name))
        assert is_same is (name != "value"), name
