"""Weights of rows and of classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs

import reference
from forests import assert_same_model
from lhtree import LHForestClassifier, LHTClassifier
from lhtree.data.weights import resolve_sample_weight


def test_a_weight_of_zero_is_an_absent_row(blobs):
    X, y = blobs
    weight = np.ones(300)
    weight[::3] = 0
    for model in (LHTClassifier(), LHForestClassifier(3, random_state=0)):
        a = clone(model).fit(X, y, sample_weight=weight)
        b = clone(model).fit(X[weight > 0], y[weight > 0])
        assert_same_model(a, b)


def test_the_mean_of_the_positive_weights_is_one():
    weight = resolve_sample_weight(np.array([0.0, 1.5, 4.5, 0.0]), 4)
    assert_array_equal(weight, [0.0, 0.5, 1.5, 0.0])


def test_a_class_of_weight_zero_is_absent():
    X, y = make_blobs(300, n_features=3, centers=4, cluster_std=4.0, random_state=0)
    names = np.array(["d", "b", "a", "c"])[y]
    is_kept = names != "b"
    for model in (LHTClassifier(), LHForestClassifier(3, random_state=0)):
        expected = clone(model).fit(X[is_kept], names[is_kept]).predict(X)
        weighted = clone(model).fit(X, names, sample_weight=is_kept)
        assert_array_equal(weighted.classes_, ["a", "c", "d"])
        assert_array_equal(weighted.predict(X), expected)
        by_class = clone(model).set_params(class_weight={"b": 0}).fit(X, names)
        assert_array_equal(by_class.classes_, ["a", "c", "d"])
        assert "b" not in by_class.predict(X)


@pytest.mark.parametrize("value", [0.1, 0.3, 2.5, 1e-30])
def test_one_weight_for_all_is_none(blobs, value):
    X, y = blobs
    for model in (LHTClassifier(), LHForestClassifier(3, random_state=0)):
        a, b = (clone(model).fit(X, y, sample_weight=w) for w in (np.full(300, value), None))
        assert_same_model(a, b)


def test_fractions_count_weighted_rows(blobs):
    X, y = blobs
    model = LHTClassifier(min_samples_split=0.1, standardize=False)
    copies = np.repeat(np.arange(300), 3)
    a = clone(model).fit(X, y, sample_weight=np.full(300, 3))
    b = clone(model).fit(X[copies], y[copies])
    assert_array_equal(a.forest_.left, b.forest_.left)
    assert a.get_n_leaves() < LHTClassifier(standardize=False).fit(X, y).get_n_leaves()


def test_integer_max_samples_is_a_number_of_rows(blobs):
    X, y = blobs
    model = LHForestClassifier(3, max_samples=70, random_state=0).fit(X, y)
    assert all(tree.n_samples[0] == 70 for tree in model.trees_)


def test_fractional_weights_mean_one():
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.1, 1, len(X))
    a = LHTClassifier(gamma=3).fit(X, y, sample_weight=weight)
    b = LHTClassifier(gamma=3).fit(X, y, sample_weight=weight * 2.0**-800)
    assert_allclose(a.trees_[0].weight_sum[0], len(X))
    assert_array_equal(a.predict_proba(X), b.predict_proba(X))


def test_class_weight_multiplies_sample_weight(blobs):
    X, y = blobs
    weight = np.random.default_rng(1).integers(1, 3, 300)
    factor = {0: 1, 1: 2, 2: 5}
    a = LHTClassifier(class_weight=factor).fit(X, y, sample_weight=weight)
    b = LHTClassifier(standardize=False)
    mean, std = reference.standardization(X, weight.astype(float))
    Z = (X - mean) / std  # class weights leave the units alone
    b.fit(Z, y, sample_weight=weight * np.array([1, 2, 5])[y])
    assert_array_equal(a.forest_.left, b.forest_.left)
    assert_allclose(a.forest_.weight_sum, b.forest_.weight_sum)


def test_balanced_classes_weigh_alike(blobs):
    X, y = blobs
    X, y = X[80:], y[80:]  # 20, 100, 100 rows
    tree = LHTClassifier(class_weight="balanced").fit(X, y).trees_[0]
    assert_allclose(tree.value[0], 1 / 3)
    assert_allclose(tree.weight_sum[0], 220)
    model = LHForestClassifier(3, class_weight="balanced_subsample", random_state=0).fit(X, y)
    assert_allclose([tree.value[0] for tree in model.trees_], 1 / 3)
