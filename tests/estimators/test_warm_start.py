"""Boosted models that go on growing."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone

from lhtree import load, save
from watched import NAMES, Recorder, assert_same, make, make_rows


@NAMES
@pytest.mark.parametrize("look", [{}, {"verbose": 1}])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_rounds_in_two_fits_are_those_of_one(name, look, is_weighted):
    X, y = make_rows(name)
    weight = np.random.default_rng(1).random(500) if is_weighted else None
    expected = make(name, n_estimators=20).fit(X, y, weight)
    model = make(name, n_estimators=8, warm_start=True, **look).fit(X, y, weight)
    first = model.forest_
    model.set_params(n_estimators=20).fit(X, y, weight)
    assert_same(expected, model)
    if name != "one class":
        assert_same(model, clone(model).fit(X, y, weight))  # a clone starts anew
        assert model.forest_ is not first
    assert_same(model, model.fit(X, y, weight))  # nothing is left to do


@pytest.mark.parametrize("name", ["numbers", "two classes", "three classes", "poisson"])
def test_offsets_validation_rows_and_sparse_tables_go_on(name):
    X, y = make_rows(name)
    X = np.nan_to_num(X)
    offset = np.random.default_rng(1).normal(size=(500, 3) if name == "three classes" else 500)
    for table in (X, csr_array(X)):
        given = {"X_val": table[:100], "y_val": y[:100], "init_score_val": offset[:100]}
        given["init_score"] = offset[100:]
        parameters = {"categorical_features": None, "early_stopping": False}
        expected = make(name, n_estimators=20, **parameters).fit(table[100:], y[100:], **given)
        model = make(name, n_estimators=8, warm_start=True, **parameters)
        model.fit(table[100:], y[100:], **given).set_params(n_estimators=20)
        assert_same(expected, model.fit(table[100:], y[100:], **given))


def test_scorers_go_on():
    X, y = make_rows("two classes")
    expected = make("two classes", scoring="roc_auc").fit(X, y)
    model = make("two classes", scoring="roc_auc", warm_start=True, n_estimators=7).fit(X, y)
    assert_same(expected, model.set_params(n_estimators=15).fit(X, y))


def test_a_model_from_a_file_goes_on(tmp_path):
    X, y = make_rows()
    expected = make("numbers", random_state=None, subsample=0.5, warm_start=True).fit(X, y)
    save(expected, tmp_path / "model")
    model = load(tmp_path / "model")
    for each in (expected, model):
        each.set_params(n_estimators=30).fit(X, y)
    assert_same(expected, model)
    assert model.n_iter_ == 30


def test_a_seed_is_drawn_once():
    X, y = make_rows()
    random_state = np.random.RandomState(3)
    expected = make("drawn", random_state=np.random.RandomState(3)).fit(X, y)
    model = make("drawn", random_state=random_state, n_estimators=6, warm_start=True).fit(X, y)
    assert_same(expected, model.set_params(n_estimators=15).fit(X, y))


def test_early_stopping_goes_on_from_the_best_round():
    X, y = make_rows()
    model = make("numbers", early_stopping=True, n_estimators=300, n_iter_no_change=3)
    model.set_params(warm_start=True).fit(X, y)
    n_rounds, scores = model.n_iter_, model.validation_score_
    patient = clone(model).set_params(n_iter_no_change=12).fit(X, y)
    model.set_params(n_iter_no_change=12).fit(X, y)
    assert_same(patient, model)
    assert model.n_iter_ >= n_rounds
    assert_array_equal(model.validation_score_[: len(scores)], scores)


def test_later_rounds_may_have_other_parameters():
    X, y = make_rows()
    model = make("numbers", warm_start=True).fit(X, y)
    first = model.forest_
    model.set_params(n_estimators=25, learning_rate=0.5, max_leaf_nodes=4, max_bins=20)
    model.fit(X, y)
    assert_array_equal(model.forest_.value[: len(first.value)], first.value)
    assert [tree.n_leaves for tree in model.trees_[15:]] == [4] * 10
    assert (np.diff(model.train_score_) > 0).all()


def test_callbacks_stop_a_fit_that_goes_on():
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")
    X, y = make_rows()
    model = make("numbers", warm_start=True, n_estimators=4).fit(X, y)
    recorder = Recorder(last=3)
    model.set_params(n_estimators=15).set_callbacks(recorder).fit(X, y)
    assert_same(make("numbers", n_estimators=7).fit(X, y), model)
    assert_array_equal(recorder.predictions[-1], model.predict(X))


def test_lines_count_the_rounds_before(capfd):
    X, y = make_rows()
    model = make("numbers", warm_start=True, n_estimators=4).fit(X, y)
    model.set_params(n_estimators=6, verbose=1).fit(X, y)
    assert "[lhtree] 6 of 6 rounds, " in capfd.readouterr().err


CHANGES = [
    ({"n_estimators": 3}, None, "^n_estimators=3 must be at least 15, the number of rounds that"),
    ({"loss": "poisson"}, None, "^loss='poisson' cannot continue a model .* loss='squared_error'"),
    ({"loss": "absolute_error"}, None, "^loss='absolute_error' cannot continue a model that was"),
    ({}, lambda X, y: (X[:, :4], y), "continues on the rows, .* but the columns or their categ"),
    ({"categorical_features": None}, None, "but the columns or their categories have changed"),
    ({"early_stopping": True}, None, "but the rows to train on have changed; give the same again"),
    ({}, lambda X, y: (X * 2, y), "but the columns or their categories have changed"),
    ({}, lambda X, y: (X[:400], y[:400]), "but the rows to train on have changed"),
    ({}, lambda X, y: (X, y, np.arange(500) % 2 + 1), "but the rows to train on have changed"),
    ({}, lambda X, y: (X, y * 2), "but the targets have changed"),
    ({}, lambda X, y: (X, y[::-1]), "but `scoring`, or the training rows and their loss, have ch"),
    ({"scoring": None}, None, None),
]


@pytest.mark.parametrize(("parameters", "change", "words"), CHANGES)
def test_what_cannot_change_is_refused(parameters, change, words):
    X, y = make_rows()
    model = make("numbers", warm_start=True).fit(X, y)
    model.set_params(**{"n_estimators": 20, **parameters})
    before = dict(vars(model))
    data = (X, y) if change is None else change(X, y)
    if words is None:
        model.fit(*data)
        return
    if data[0].shape[1] < 5:
        model.set_params(categorical_features=None)
        before["categorical_features"] = None
    with pytest.raises(ValueError, match=words):
        model.fit(*data)
    assert vars(model) == before


def test_a_table_by_columns_can_continue():
    X, y = make_rows()
    by_columns = np.asfortranarray(X)
    model = make("numbers", warm_start=True, n_estimators=3).fit(by_columns, y)
    model.set_params(n_estimators=6).fit(by_columns, y)
    long = make("numbers", n_estimators=6).fit(X, y)
    assert_array_equal(model.predict(X), long.predict(X))


def test_other_quantiles_cannot_continue():
    X, y = make_rows()
    model = make("quantiles", warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"^quantile=0\.5 cannot continue .*\[0\.2, 0\.5, 0\.8\]"):
        model.set_params(quantile=0.5).fit(X, y)


def test_other_classes_cannot_continue():
    X, y = make_rows("three classes")
    model = make("three classes", warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="but the classes have changed; give the same again"):
        model.fit(X, np.where(y == "a", "z", y))


def test_validation_rows_must_be_there_in_all_fits():
    X, y = make_rows()
    model = make("numbers", warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="but whether there are validation rows has changed"):
        model.fit(X, y, X_val=X[:9], y_val=y[:9])
    model = make("numbers", warm_start=True).fit(X, y, X_val=X[:9], y_val=y[:9])
    with pytest.raises(ValueError, match="the validation rows and their loss, have changed"):
        model.fit(X, y, X_val=X[:8], y_val=y[:8])


def test_without_a_warm_start_a_fit_starts_anew():
    X, y = make_rows()
    model = make("numbers").fit(X, y)
    assert_same(model.fit(X[:300], y[:300]), make("numbers").fit(X[:300], y[:300]))
