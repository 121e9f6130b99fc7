"""Saving and loading forests of classes: everything survives, and what is wrong is refused."""

import json
import pickle

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from boosted import make_frame
from forests import assert_same_model
from lhtree import LHForestClassifier, load, save
from lhtree.persist.container import decode_file, encode_file

LABELS = np.array(["few", "some", "ümany"])
MODELS = {
    "plain": LHForestClassifier(8, random_state=0),
    "scored": LHForestClassifier(60, oob_score=True, max_depth=5, random_state=0),
    "bootstrap": LHForestClassifier(8, bootstrap=True, calibration=None, random_state=0),
    "all rows": LHForestClassifier(5, max_samples=None, random_state=0),
    "one": LHForestClassifier(1, max_leaf_nodes=4, random_state=0),
    "balanced": LHForestClassifier(8, class_weight="balanced_subsample", random_state=0),
    "rising": LHForestClassifier(4, n_hyperplanes=0, monotonic_cst={"a": 1}, random_state=0),
    "paper": LHForestClassifier(4, preset="paper", random_state=0),
}
OF_FITS = ("calibration_", "oob_decision_function_", "_position", "classes_")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def make_classes(n_classes):
    frame, y = make_frame(200)
    code = np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)
    return frame, LABELS[code]


def fit(name, n_classes, weight=None):
    frame, y = make_classes(n_classes)
    return clone(MODELS[name]).fit(frame, y, weight), frame


def assert_same(copy, model, X):
    """Compare all that a fit leaves behind."""
    assert set(vars(copy)) == set(vars(model))
    assert_same_model(copy, model)
    assert copy.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert_array_equal(copy.predict(X), model.predict(X))
    for name in ("oob_score_", "shrinkage_", "n_classes_", "n_estimators_", "_seed", "_draw"):
        assert getattr(copy, name, None) == getattr(model, name, None)
    for name in OF_FITS:
        assert_array_equal(getattr(copy, name, None), getattr(model, name, None))


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_a_saved_forest_is_the_same(name, n_classes, is_weighted, path):
    if name == "rising" and n_classes == 3:
        pytest.skip("trends need a single score")
    weight = np.arange(200) % 4 if is_weighted else None
    model, X = fit(name, n_classes, weight)
    save(model, path)
    copy = load(path)
    assert_same(copy, model, X)
    assert_array_equal(copy.estimators_samples_[-1], model.estimators_samples_[-1])
    again = path.with_name("again.safetensors")
    save(copy, again)
    assert again.read_bytes() == path.read_bytes()
    joblib.dump(model, path)
    assert_same(joblib.load(path), model, X)


@pytest.mark.parametrize("n_estimators", ["auto", None, 30])
def test_calibration_shrinkage_and_number_of_estimators_survive(n_estimators, path):
    X, y = make_classes(3)
    model = LHForestClassifier(n_estimators, calibration="oob", max_samples=0.5, random_state=0)
    model.set_params(max_estimators=40, warm_start=True, max_depth=3).fit(X, y)
    save(model, path)
    copy = load(path)
    assert_same(copy, model, X)
    assert copy.n_estimators_ == model.n_estimators_
    assert_array_equal(copy.calibration_, model.calibration_)
    assert copy.shrinkage_ == model.shrinkage_


def test_a_forest_fitted_again_by_other_rules_is_saved(path):
    frame, y = make_classes(3)
    model, weight = clone(MODELS["scored"]), np.arange(200) % 4
    for rules in ({}, {"preset": "paper"}, {"preset": "accurate"}):
        for weight_of_fit in (weight, None):
            model.set_params(**rules).fit(frame, y, weight_of_fit)
            save(model, path)
            assert_same(load(path), model, frame)


def test_a_loaded_forest_goes_on(path):
    frame, y = make_classes(3)
    kind = {"shrinkage": 2.0, "random_state": 1, "warm_start": True}
    save(LHForestClassifier(6, **kind).fit(frame, y), path)
    model = load(path).set_params(n_estimators=9).fit(frame, y)
    long = LHForestClassifier(9, **kind).fit(frame, y)
    assert_same_model(model, long)
    assert_array_equal(model.predict_proba(frame), long.predict_proba(frame))


def test_leaves_of_one_class_take_a_byte_each(path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    y = np.sin(2 * X).sum(axis=1) > 0
    kind = {"calibration": None, "n_hyperplanes": 0, "random_state": 0}
    sizes = {}
    for shrinkage in (0.0, 10.0):  # shares of 0 and 1, and shares in between
        model = LHForestClassifier(20, **kind, shrinkage=shrinkage).fit(X, y)
        save(model, path)
        sizes[shrinkage] = path.stat().st_size
    assert sizes[10.0] - sizes[0.0] > 0.5 * model.get_n_leaves()
    assert len(pickle.dumps(model)) < sizes[10.0] + 5_000


def damage(path, change):
    """Write a saved model with changed description or arrays."""
    description, arrays = decode_file(path.read_bytes())
    description.pop("digest", None)
    arrays = dict(arrays)
    change(description["fitted"], arrays)
    path.write_bytes(b"".join(bytes(part) for part in encode_file(description, arrays)))


def set_fitted(name, value):
    return lambda fitted, arrays: fitted.update({name: value})


def set_array(name, make):
    return lambda fitted, arrays: arrays.update({name: make(arrays[name])})


def set_first(value):
    """Return a function that changes the first entry of an array."""

    def change(array):
        changed = array.astype(np.int64)
        changed[0] = value
        return changed

    return change


def add_array(name, array):
    return lambda fitted, arrays: arrays.update({name: array})


def to_pair(*numbers):
    return {"dtype": "float64", "values": list(numbers)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_fitted("n_averaged", 0), "n_averaged is not an integer from 1 up"),
        (set_fitted("n_averaged", 2**21), "n_averaged is not an integer"),
        (set_fitted("n_averaged", 7), "n_averaged is neither 1 nor the number of estimators"),
        (set_fitted("n_averaged", 180), "n_averaged is neither 1 nor the number of estimators"),
        (set_fitted("n_averaged", 1), "n_averaged is not the number of its estimators"),
        (lambda fitted, arrays: fitted.pop("n_averaged"), "'n_averaged' is missing"),
        (set_fitted("power", 15), "a leaf has no share of a class"),
        (set_fitted("origin", 1.0), "its scores do not start from 0"),
        (set_array("ensemble.base", set_first(1)), "its scores do not start from 0"),
        (set_array("ensemble.value", set_first(-1)), "a leaf has no share of a class"),
        (set_array("ensemble.value", set_first(2**16 + 1)), "a leaf has no share of a class"),
        (set_array("ensemble.value_index", set_first(10**6)), "a leaf has an unknown value"),
        (set_array("ensemble.value_index", lambda a: a[1:]), "value does not have one entry per"),
        (set_array("ensemble.base", lambda a: a[:1]), "trees do not have 3 scores|neither 1 nor"),
        (set_array("ensemble.n_nodes", lambda a: a[3:]), "bits|a node has no parent"),
        (set_fitted("n_classes_", 2), "its n_classes_ is not the number of its labels"),
        (set_fitted("n_classes_", 0), "its n_classes_ is not an integer from 1 up"),
        (set_fitted("shrinkage_", -1.0), "shrinkage_ is not a finite number"),
        (set_fitted("_seed", -1), "its _seed is not an integer from 0 up"),
        (set_fitted("_draw", [200, 300, False]), "draws more rows than there are"),
        (set_fitted("_draw", [200, 300]), "does not have three parts"),
        (set_fitted("calibration_", to_pair(0.1)), "calibration_ is not a pair of numbers"),
        (set_fitted("calibration_", to_pair(-0.1, 1.0)), "calibration_ is negative or not fin"),
        (set_fitted("calibration_", [0.1, 1.0]), "its calibration_ "),
        (set_fitted("_standardized", True), "unknown attribute '_standardized'"),
        (set_array("oob_decision_function_", lambda a: a[:, :2]), "another number of columns"),
        (set_array("oob_decision_function_", lambda a: a + np.inf), "is not finite"),
        (set_array("oob_decision_function_", lambda a: a[:, 0]), "is not a matrix of float64"),
        (add_array("_position", np.arange(5)), "_position does not have one entry for each row"),
        (add_array("_position", np.arange(200)[::-1].copy()), "is not ascending from 0 up"),
        (add_array("_position", np.arange(200.0)), "is not a list of int64"),
        (add_array("leaf_rows.rank", np.arange(5)), "it has the unknown array 'leaf_rows.rank'"),
        (add_array("forest.left", np.arange(5)), "it has the unknown array 'forest.left'"),
    ],
)
def test_a_damaged_file_is_refused(change, message, path):
    model, _ = fit("scored", 3)
    save(model, path)
    damage(path, change)
    words = f"^{path.name} cannot be loaded as a model: .*{message}"
    with pytest.raises(ValueError, match=words):
        load(path)


def test_labels_and_trees_of_other_numbers_of_classes_are_refused(path):
    model, _ = fit("plain", 2)
    save(model, path)

    def change(fitted, arrays):
        fitted["n_classes_"] = 3
        fitted["classes_"]["values"].append("zzz")

    damage(path, change)
    with pytest.raises(ValueError, match="its trees do not have 3 scores"):
        load(path)


def test_a_file_says_by_which_rules_its_trees_grew(path):
    for name, is_exact in (("plain", True), ("paper", False)):
        save(fit(name, 3)[0], path)
        description, arrays = decode_file(path.read_bytes())
        assert ("n_averaged" in json.dumps(description)) is is_exact
        assert ("ensemble.value" in arrays) is is_exact
        assert ("forest.value" in arrays) is not is_exact
