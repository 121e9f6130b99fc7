"""Models that held-out rows stopped, and that grow anew from all rows."""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from lhtree import load, save
from watched import NAMES, Recorder, assert_same, make, make_rows

STOPPED = {"early_stopping": True, "n_estimators": 200, "n_iter_no_change": 5}


def assert_same_forest(first, second, shift=0):
    """Demand the same trees and importances, and scores that start `shift` higher."""
    for name, array in vars(first.forest_).items():
        if isinstance(array, np.ndarray):
            expected = array + shift if name == "base" else array
            assert_array_equal(getattr(second.forest_, name), expected, name)
    assert first.n_iter_ == second.n_iter_


def count_rounds(first, n_rows, n_held_out):
    """Return as many rounds for all rows as a model has for those that trained it."""
    return math.floor(first.n_iter_ * n_rows / (n_rows - n_held_out) + 0.5)


@NAMES
@pytest.mark.parametrize("learning_rate", ["auto", 0.3])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_refitted_model_is_that_of_all_rows(name, learning_rate, is_weighted):
    X, y = make_rows(name)
    weight = np.random.default_rng(1).random(500) if is_weighted else None
    rates = {"learning_rate": learning_rate}
    first = make(name, refit=False, **STOPPED, **rates).fit(X, y, weight)
    n_rounds = count_rounds(first, 500, 100)
    assert (n_rounds > first.n_iter_ > 1) == (name != "one class")
    expected = make(name, n_estimators=max(1, n_rounds), **rates).fit(X, y, weight)
    for refit in ("auto", True):
        model = make(name, refit=refit, **STOPPED, **rates).fit(X, y, weight)
        # Held-out rows move quantiles, so that they cover other rows.
        shift = getattr(first, "_shift", 0)
        assert_same_forest(expected, model, shift)
        assert_array_equal(model.train_score_, first.train_score_)
        assert_array_equal(model.validation_score_, first.validation_score_)
        if not np.any(shift):
            assert_array_equal(model.predict(X), expected.predict(X))


@pytest.mark.parametrize("fraction", [0.1, 0.37, 0.5])
def test_rounds_grow_with_the_rows(fraction):
    X, y = make_rows()
    given = {**STOPPED, "validation_fraction": fraction}
    first = make("numbers", refit=False, **given).fit(X, y)
    n_held_out = math.ceil(500 * fraction)
    assert first.forest_.weight[0] == 500 - n_held_out
    model = make("numbers", **given).fit(X, y)
    assert model.n_iter_ == len(model.trees_) == count_rounds(first, 500, n_held_out)
    assert model.forest_.weight[0] == 500


def test_a_refitted_model_has_no_more_rounds_than_it_may():
    X, y = make_rows()
    model = make("numbers", early_stopping=True, n_estimators=7).fit(X, y)
    assert model.n_iter_ == 7
    assert_same_forest(make("numbers", n_estimators=7).fit(X, y), model)


def test_rows_of_weight_zero_do_not_count():
    X, y = make_rows()
    weight = np.arange(500) % 5 > 0
    first = make("numbers", refit=False, **STOPPED).fit(X, y, weight)
    model = make("numbers", **STOPPED).fit(X, y, weight)
    assert model.n_iter_ == count_rounds(first, 400, 80)
    assert model.forest_.weight[0] == 400


@pytest.mark.parametrize("name", ["numbers", "two classes", "three classes", "poisson"])
def test_offsets_and_sparse_tables_are_refitted(name):
    X, y = make_rows(name)
    X = np.nan_to_num(X)
    offset = np.random.default_rng(1).normal(size=(500, 3) if name == "three classes" else 500)
    for table in (X, csr_array(X)):
        model = make(name, categorical_features=None, **STOPPED).fit(table, y, init_score=offset)
        expected = make(name, categorical_features=None, n_estimators=model.n_iter_)
        assert_same_forest(expected.fit(table, y, init_score=offset), model)


def test_validation_rows_of_the_caller_stay_apart():
    X, y = make_rows()
    given = {"X_val": X[:100], "y_val": y[:100]}
    for refit in (True, "auto"):
        model = make("numbers", refit=refit, **STOPPED).fit(X[100:], y[100:], **given)
        assert model.n_iter_ == np.argmax(model.validation_score_)
        assert model.forest_.weight[0] == 400


def test_a_warm_start_is_not_refitted():
    X, y = make_rows()
    model = make("numbers", warm_start=True, **STOPPED).fit(X, y)
    assert_same(make("numbers", refit=False, **STOPPED).fit(X, y), model)


def test_a_refit_of_a_warm_start_is_refused():
    model = make("numbers", warm_start=True, refit=True)
    words = r"^refit=True grows the model anew, and warm_start=True goes on with it; set one of"
    with pytest.raises(ValueError, match=words):
        model.fit(*make_rows())
    assert not hasattr(model, "forest_")


@NAMES
def test_a_refitted_model_cannot_go_on(name):
    X, y = make_rows(name)
    model = make(name, **STOPPED).fit(X, y)
    if model.n_iter_ == 0:
        return
    with pytest.raises(ValueError, match=r"^warm_start=True cannot continue a model that"):
        model.set_params(warm_start=True, n_estimators=300).fit(X, y)


@pytest.mark.parametrize("refit", [True, "auto"])
def test_a_model_that_a_callback_stopped_is_not_refitted(refit):
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")
    X, y = make_rows()
    recorder = Recorder(last=6)
    model = make("numbers", refit=refit, **STOPPED).set_callbacks(recorder).fit(X, y)
    assert model.n_iter_ == 6
    assert model.forest_.weight[0] == 400
    assert_array_equal(recorder.predictions[-1], model.predict(X))


@NAMES
@pytest.mark.parametrize("how", ["verbose", "callbacks"])
def test_a_look_at_the_rounds_changes_no_refit(name, how):
    X, y = make_rows(name)
    model = make(name, **STOPPED)
    if how == "verbose":
        model.set_params(verbose=1)
    else:
        pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")
        model.set_callbacks(Recorder())
    assert_same(make(name, **STOPPED).fit(X, y), model.fit(X, y))


def test_scores_of_a_scorer_stay_those_of_the_first_model():
    X, y = make_rows("two classes")
    given = {**STOPPED, "scoring": "roc_auc"}
    first = make("two classes", refit=False, **given).fit(X, y)
    model = make("two classes", **given).fit(X, y)
    assert_array_equal(model.train_score_, first.train_score_)
    assert_array_equal(model.validation_score_, first.validation_score_)
    assert model.n_iter_ == count_rounds(first, 500, 100)


def test_a_line_of_progress_tells_of_the_refit(capfd):
    model = make("numbers", verbose=1, **STOPPED).fit(*make_rows())
    lines = capfd.readouterr().err.splitlines()
    best = int(np.argmax(model.validation_score_))
    wanted = f"[lhtree] best round: {best}; refit: {model.n_iter_} rounds on all rows"
    assert lines[-1] == wanted
    make("numbers", verbose=1, refit=False, **STOPPED).fit(*make_rows())
    assert "refit" not in capfd.readouterr().err


def test_files_keep_refitted_models(tmp_path):
    X, y = make_rows("two classes")
    model = make("two classes", **STOPPED).fit(X, y)
    save(model, tmp_path / "model")
    copy = load(tmp_path / "model")
    assert_same(model, copy)
    assert copy.get_params()["refit"] == "auto"
    assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
