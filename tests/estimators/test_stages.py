"""Predictions after each round."""

import itertools
import time
from copy import copy
from types import GeneratorType

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from boosted import FORESTS, NAMES, fit_boosted
from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.model import ensemble
from lhtree.model.ensemble_parts import TREE_ARRAYS, join_trees


def shorten(model, n_rounds):
    """Return the model of the first rounds."""
    short = copy(model)
    short.forest_ = model.forest_.take(0, n_rounds)
    return short


@pytest.mark.parametrize("n_leaves", [1, 3 * 200, 2**21])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in FORESTS])
def test_stages_are_the_predictions_of_the_first_rounds(name, n_leaves, monkeypatch):
    monkeypatch.setattr(ensemble, "STAGED_LEAVES", n_leaves)
    model, X = fit_boosted(name)
    of_classes = ("staged_predict_proba", "staged_decision_function")
    for method in ("staged_predict", *of_classes * hasattr(model, "classes_")):
        stages = list(getattr(model, method)(X))
        assert len(stages) == model.n_iter_
        for n_rounds, stage in enumerate(stages, start=1):
            short = shorten(model, n_rounds)
            assert_array_equal(stage, getattr(short, method.removeprefix("staged_"))(X))


def test_stages_of_sparse_rows_are_those_of_dense_ones():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 6)) < 0.6, 0.0, rng.normal(size=(300, 6)))
    model = LHBoostRegressor(n_estimators=9, n_hyperplanes=2).fit(X, X.sum(axis=1))
    stages = zip(model.staged_predict(X), model.staged_predict(csr_array(X)), strict=True)
    for dense, sparse in stages:
        assert_array_equal(dense, sparse)


def test_stages_come_one_by_one():
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = LHBoostClassifier(n_estimators=10).fit(X, X[:, 0] > 0)
    first, second = itertools.islice(model.staged_predict_proba(X), 2)
    assert (first != second).any()
    assert isinstance(model.staged_decision_function(X), GeneratorType)


def test_all_stages_cost_one_walk():
    X = np.random.default_rng(0).normal(size=(2000, 5))
    model = LHBoostRegressor(n_estimators=1000, early_stopping=False, max_leaf_nodes=4)
    model.fit(X, X[:, 0] * X[:, 1])
    start = time.perf_counter()
    model.predict(X)
    walk = time.perf_counter() - start
    start = time.perf_counter()
    assert sum(1 for _ in model.staged_predict(X)) == 1000
    assert time.perf_counter() - start < 50 * walk + 1  # 1000 walks would be 500 on average


@pytest.mark.parametrize("name", NAMES)
def test_trees_that_are_cut_and_joined_are_the_same(name):
    forest = fit_boosted(name)[0].forest_
    cuts = sorted({0, 1 % (len(forest) + 1), len(forest) // 2, len(forest)})
    parts = [vars(forest.take(*pair)) for pair in itertools.pairwise(cuts)] or [vars(forest)]
    joined = join_trees(parts)
    for each in TREE_ARRAYS:
        assert_array_equal(joined[each], getattr(forest, each))
        assert joined[each].dtype == getattr(forest, each).dtype
