"""Pickles: small, and nothing is lost."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_array_equal
from sklearn.datasets import load_wine

import tables
from growing import grow
from lhtree import LHForestClassifier, LHTClassifier
from lhtree.model import ensemble_packing
from lhtree.model.packing import narrow, pack, unpack


def assert_survives(forest):
    arrays = dict(vars(forest))
    restored = unpack(pack(arrays))
    assert set(restored) == set(arrays)
    for name, array in arrays.items():
        assert restored[name].dtype == array.dtype, name
        assert_array_equal(restored[name], array, name)
        assert restored[name].flags.c_contiguous


@given(tables.real_tables(), tables.params, tables.weights)
def test_packed_trees_are_restored_bit_for_bit(table, params, kind):
    X, is_positive = table
    assert_survives(grow(X, is_positive, tables.make_weight(kind, len(X)), params).forest)


@pytest.mark.parametrize(
    "model",
    [
        LHTClassifier(max_depth=2),  # leaves with lines
        LHTClassifier(standardize=False),
        LHForestClassifier(n_estimators=5, preset="paper", random_state=0),
        LHForestClassifier(
            n_estimators=5, contrast="mean", random_state=0, shrinkage=3.0, bootstrap=True
        ),
    ],
)
def test_pickled_models_predict_the_same(model):
    X, y = load_wine(return_X_y=True)
    model.fit(X, y)
    assert_survives(model.forest_)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


def test_pickles_are_small():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 20)), rng.integers(0, 2, 3000)
    model = LHForestClassifier(n_estimators=5, contrast="standardized", random_state=0).fit(X, y)
    n_bytes = sum(array.nbytes for array in vars(model.forest_).values())
    assert len(pickle.dumps(model)) < 0.67 * n_bytes


def test_pickles_of_exact_forests_are_smaller_than_their_arrays():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 20)), rng.integers(0, 2, 3000)
    model = LHForestClassifier(n_estimators=5, shrinkage=0.0, random_state=0).fit(X, y)
    forest = model.forest_
    n_bytes = sum(array.nbytes for array in vars(forest).values() if hasattr(array, "nbytes"))
    packed = pickle.dumps(model)
    assert len(packed) < 0.5 * n_bytes
    # Whole leaves are repeated values: bits, instead of four bytes each.
    assert len(np.unique(forest.value)) < 20
    values = ensemble_packing.pack(forest)
    assert values["ensemble.value_index"].nbytes == len(forest.value)
    assert_array_equal(pickle.loads(packed).predict_proba(X), model.predict_proba(X))


def test_numbers_that_need_their_width_keep_it():
    assert narrow(np.array([1.0, 0.1])).dtype == np.float64
    assert narrow(np.array([1.0, 0.5])).dtype == np.float32
    assert narrow(np.array([1e300])).dtype == np.float64
    assert narrow(np.array([0, 255])).dtype == np.uint8
    assert narrow(np.array([-1, 127])).dtype == np.int8
    assert narrow(np.array([0, 2**16 - 1])).dtype == np.uint16
    assert narrow(np.array([-1, 255])).dtype == np.int16
    assert narrow(np.array([0, 2**16])).dtype == np.int32
    assert narrow(np.array([0, 2**40])).dtype == np.int64


def test_standard_deviations_too_small_for_floats_keep_their_digits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) * [1, 1e-60]
    model = LHForestClassifier(
        8, preset="paper", standardize=False, max_features_per_tree=1, max_samples=1.0,
        random_state=0,
    )  # fmt: skip
    roots = [tree.terms(0) for tree in model.fit(X, X[:, 0] + 1e60 * X[:, 1] > 0).trees_]
    columns = [int(feature[0]) for feature, *_ in roots]
    assert columns[0] == 0  # a tree with floats comes before those that need more
    assert 1 in columns
    for feature, _, _, std in roots:
        exact = X[:, feature[0]].std()
        assert std[0] == pytest.approx(exact, rel=1e-7 if feature[0] == 0 else 1e-14)
