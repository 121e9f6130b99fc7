"""Importances by class, and pairs of features."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from lhtree import LHForestClassifier, LHTClassifier
from lhtree.explain import (
    class_importances,
    interactions,
)


def test_class_importances_are_those_of_the_trees_of_each_class(wine):
    X, y = wine
    model = LHForestClassifier(n_estimators=3, preset="paper", random_state=0).fit(X, y)
    importance = class_importances(model)
    assert importance.shape == (3, 13)
    assert_allclose(importance.sum(axis=1), 1)
    expected = np.mean([tree.compute_importances() for tree in model.trees_[1::3]], axis=0)
    assert_allclose(importance[1], expected)
    assert_allclose(importance.mean(axis=0), model.feature_importances_)
    two = LHTClassifier().fit(X, y == 1)
    assert_array_equal(*class_importances(two))
    assert not class_importances(LHTClassifier(max_depth=0).fit(X, y)).any()


def test_interactions_count_splits_that_use_both(wine):
    X, y = wine
    model = LHTClassifier(beta=0.6).fit(X, y)
    table = interactions(model)
    assert_allclose(table["strength"].sum(), 1)
    assert np.all(np.diff(table["strength"]) <= 0)
    splits = [(tree, node) for tree in model.trees_ for node in np.flatnonzero(tree.left >= 0)]
    columns = [set(X.columns[tree.terms(node)[0]]) for tree, node in splits]
    strength = []
    for _, row in table.iterrows():
        pair = {row["feature_1"], row["feature_2"]}
        assert row["n_splits"] == sum(pair <= named for named in columns)
        total = 0.0
        for tree, node in splits:
            feature, weight, _, std = tree.terms(node)
            size = dict(zip(X.columns[feature], np.abs(weight) * std, strict=True))
            if pair <= set(size):
                importance = [size[name] / sum(size.values()) for name in pair]
                total += np.prod(importance) * tree.weight_sum[node] / tree.weight_sum[0]
        strength.append(total)
    assert_allclose(table["strength"], np.array(strength) / sum(strength))
    assert len(interactions(model, n_pairs=2)) == 2


def test_a_model_of_single_columns_has_no_interactions(wine):
    assert len(interactions(LHTClassifier(beta=1.0).fit(*wine))) == 0
