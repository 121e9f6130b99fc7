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
    for bootstrap in (False, True):
        model = LHForestClassifier(3, max_samples=70, bootstrap=bootstrap, random_state=0)
        model.fit(X, y)
        assert all(model.forest_.weight[tree.first_node] == 70 for tree in model.trees_)
        assert {len(rows) for rows in model.estimators_samples_} == {70}
    model = LHForestClassifier(3, preset="paper", max_samples=70, random_state=0).fit(X, y)
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
    kind = {"class_weight": "balanced_subsample", "shrinkage": 0.0, "random_state": 0}
    model = LHForestClassifier(3, preset="paper", **kind).fit(X, y)
    assert_allclose([tree.value[0] for tree in model.trees_], 1 / 3)
    # Of all rows, the weights are the same; of some, they are balanced among those.
    for name, max_samples in (("balanced", None), ("balanced_subsample", 0.4)):
        kind = {"max_samples": max_samples, "class_weight": name, "random_state": 0}
        model = LHForestClassifier(9, **kind, max_depth=0, shrinkage=0.0).fit(X, y)
        assert_allclose([tree.prediction[0, 0] for tree in model.trees_], 1 / 3, atol=2e-5)
        drawn = model.forest_.weight / (220 << 16)
        assert_allclose(drawn, 1.0 if max_samples is None else 0.4, rtol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_hyperplanes", [0, 3])
def test_a_weight_is_a_number_of_copies_in_forests(blobs, n_classes, n_hyperplanes):
    X, y = blobs
    y = np.minimum(y, n_classes - 1)
    weight = np.random.default_rng(2).integers(0, 4, 300)
    kind = {"max_samples": None, "shrinkage": 1.0, "random_state": 0}
    model = LHForestClassifier(3, **kind, n_hyperplanes=n_hyperplanes)
    a = clone(model).fit(X, y, weight)
    b = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    for name in ("left", "weight", "value", "threshold", "coefficient", "cut"):
        assert_array_equal(getattr(a.forest_, name), getattr(b.forest_, name), name)


@pytest.mark.parametrize("class_weight", [{0: 1, 1: 2}, "balanced", "balanced_subsample"])
def test_weights_of_classes_and_copies_agree_in_forests(blobs, class_weight):
    X, y = blobs
    weight = np.random.default_rng(2).integers(0, 4, 300)
    kind = {"max_samples": None, "max_depth": 2, "shrinkage": 1.0, "random_state": 0}
    model = LHForestClassifier(3, **kind, class_weight=class_weight)
    a = clone(model).fit(X, y, weight)
    b = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    # Weights are rounded to multiples of 2**-16.
    assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("heaviest", [10**4, 10**7])
def test_estimators_balance_classes_beside_a_heavy_row(heaviest):
    X = np.arange(1000.0)[:, np.newaxis]
    y, weight = (X[:, 0] >= 900).astype(int), np.ones(1000)
    weight[0] = heaviest  # a bootstrap sample may have it many times
    kind = {"class_weight": "balanced_subsample", "bootstrap": True, "max_samples": 100}
    model = LHForestClassifier(5, **kind, shrinkage=0.0, random_state=0).fit(X, y, weight)
    shares = [
        tree.fraction[tree.left < 0] @ tree.prediction[tree.left < 0, 0] for tree in model.trees_
    ]
    assert_allclose(shares, 0.5, atol=1e-3)
    assert model.score(X, y) > 0.95


def test_class_weight_multiplies_sample_weight_in_forests(blobs):
    X, y = blobs
    weight = np.random.default_rng(1).uniform(0.5, 2, 300)
    model = LHForestClassifier(4, max_depth=2, shrinkage=0.0, random_state=0)
    a = clone(model).set_params(class_weight={1: 2, 2: 5}).fit(X, y, weight)
    b = clone(model).fit(X, y, weight * np.array([1, 2, 5])[y])
    assert_array_equal(a.forest_.left, b.forest_.left)
    assert_allclose(a.forest_.value, b.forest_.value, atol=4)
    assert_allclose(a.forest_.weight, b.forest_.weight, rtol=1e-4)
    plain = clone(model).fit(X, y, weight)
    assert not np.array_equal(a.forest_.value, plain.forest_.value)
    balanced = clone(model).set_params(class_weight="balanced").fit(X[80:], y[80:])
    by_hand = clone(model).set_params(class_weight={0: 5.0}).fit(X[80:], y[80:])
    assert_array_equal(balanced.predict_proba(X), by_hand.predict_proba(X))
