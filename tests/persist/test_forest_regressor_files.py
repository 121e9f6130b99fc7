"""Saving and loading forests of numbers: everything survives, and what is wrong is refused."""

import json
import pickle

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import lhtree
from boosted import make_frame
from lhtree import LHForestRegressor, load, save
from lhtree.persist.container import decode_file, encode_file

MODELS = {
    "plain": LHForestRegressor(8, random_state=0),
    "scored": LHForestRegressor(60, oob_score=True, max_depth=5, random_state=0),
    "bootstrap": LHForestRegressor(8, bootstrap=True, random_state=0),
    "all rows": LHForestRegressor(5, max_samples=None, random_state=0),
    "one": LHForestRegressor(1, max_leaf_nodes=4, random_state=0),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def fit(name, weight=None):
    frame, y = make_frame(200)
    return MODELS[name].fit(frame, y, weight), frame


def assert_same(copy, model, X):
    assert set(vars(copy)) == set(vars(model))
    assert copy.forest_.n_averaged == len(model.forest_)
    assert_array_equal(copy.predict(X), model.predict(X))
    assert_array_equal(copy.predict_quantiles(X), model.predict_quantiles(X))
    for name in ("oob_score_", "shrinkage_", "_seed", "_draw"):
        assert getattr(copy, name, None) == getattr(model, name, None)
    for name in ("oob_prediction_", "_position"):
        assert_array_equal(getattr(copy, name, None), getattr(model, name, None))
    assert_array_equal(copy.estimators_samples_[-1], model.estimators_samples_[-1])
    if hasattr(model, "_conformity"):
        assert_array_equal(copy.interval(X, 0.8), model.interval(X, 0.8))


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_saved_forest_is_the_same(name, is_weighted, path):
    weight = np.arange(200) % 4 if is_weighted else None
    model, X = fit(name, weight)
    save(model, path)
    assert_same(load(path), model, X)
    again = path.with_name("again.safetensors")
    save(load(path), again)
    assert again.read_bytes() == path.read_bytes()


def test_a_loaded_forest_goes_on(path):
    frame, y = make_frame(200)
    kind = {"shrinkage": 2.0, "random_state": 1, "warm_start": True}
    save(LHForestRegressor(6, **kind).fit(frame, y), path)
    model = load(path).set_params(n_estimators=9).fit(frame, y)
    long = LHForestRegressor(9, **kind).fit(frame, y)
    assert_array_equal(model.predict(frame), long.predict(frame))


def test_joblib_keeps_the_forest(path):
    model, X = fit("scored")
    joblib.dump(model, path)
    assert_same(joblib.load(path), model, X)


def test_the_rows_of_leaves_take_two_bytes_each(path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4))
    model = LHForestRegressor(20, random_state=0).fit(X, X.sum(axis=1) + rng.normal(size=5000))
    rows = model.leaf_rows_
    assert rows.rank.nbytes == 2 * 20 * 4000
    assert rows.size.nbytes == model.get_n_leaves()
    save(model, path)
    bare = len(pickle.dumps(model.forest_))
    errors = 3 * 8 * 5000 + 8 * 5000
    assert path.stat().st_size < bare + rows.rank.nbytes + rows.size.nbytes + errors + 20_000


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_fitted("n_averaged", 0), "n_averaged is not an integer from 1 up"),
        (set_fitted("n_averaged", 2**21), "n_averaged is not an integer"),
        (set_fitted("n_averaged", 7), "n_averaged is neither 1 nor the number of estimators"),
        (set_fitted("n_averaged", 1), "n_averaged is not the number of its estimators"),
        (lambda fitted, arrays: fitted.pop("n_averaged"), "'n_averaged' is missing"),
        (set_fitted("shrinkage_", -1.0), "shrinkage_ is not a finite number"),
        (set_fitted("_draw", [200, 300, False]), "draws more rows than there are"),
        (lambda fitted, arrays: arrays.pop("leaf_rows.rank"), "'leaf_rows_' is missing"),
        (set_array("leaf_rows.rank", lambda a: a[:-1]), "rank does not have one entry"),
        (set_array("leaf_rows.size", lambda a: 0 * a), "a leaf has no target"),
        (set_array("leaf_rows.target", lambda a: a[::-1].copy()), "targets are not ascending"),
        (lambda fitted, arrays: arrays.pop("conformity.scale"), "errors are not complete"),
        (set_array("conformity.scale", lambda a: a[:2]), "does not have four parts"),
        (set_array("conformity.scale", lambda a: -a), "step is not a number from 0 up"),
        (set_array("conformity.ratio", lambda a: a * np.inf), "an error is not finite"),
        (set_array("conformity.weight", lambda a: a * 0), "a weight is not positive"),
        (set_array("conformity.weight", lambda a: a[1:]), "not lists of one length"),
        (set_array("oob_prediction_", lambda a: a[:5]), "its oob_prediction_ is too short"),
    ],
)
def test_a_damaged_file_is_refused(change, message, path):
    model, _ = fit("scored")
    save(model, path)
    damage(path, change)
    with pytest.raises(ValueError, match=message):
        load(path)


def test_boosted_models_are_saved_without_a_number_of_averaged_trees(path):
    frame, y = make_frame(100)
    save(lhtree.LHBoostRegressor(n_estimators=3).fit(frame, y), path)
    description, _ = decode_file(path.read_bytes())
    assert "n_averaged" not in json.dumps(description)
