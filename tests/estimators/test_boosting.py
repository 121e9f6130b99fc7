"""Boosted models as users meet them: tables of all kinds, weights, threads, memory."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lhtree import LHBoostClassifier, LHBoostRegressor

KINDS = pytest.mark.parametrize("kind", [LHBoostClassifier, LHBoostRegressor])
N_HYPERPLANES = pytest.mark.parametrize("n_hyperplanes", [0, 1, 3])


def make(kind, **parameters):
    """Return a small model of so many rounds: no rows are held out unless a test says so."""
    rounds = {"n_estimators": 12, "learning_rate": 0.1, "early_stopping": False}
    return kind(**{**rounds, "max_leaf_nodes": 31, "random_state": 0, **parameters})


@pytest.fixture
def rows():
    """Return 500 rows of five columns, and numbers that depend on three of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5)) * [1, 1e3, 1e-3, 1, 10] + [0, 0, 7, 0, 0]
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, np.sin(2 * z[:, 0]) + z[:, 1] * z[:, 2] + rng.normal(size=500) / 3


def to_target(kind, y):
    """Return classes for a classifier, numbers for a regressor."""
    return (y > 0).astype(int) if kind is LHBoostClassifier else y


def predict(model, X):
    """Return what a model says in most detail."""
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)


def assert_same(first, second):
    """Demand the same trees and scores."""
    for name, array in vars(first.forest_).items():
        if isinstance(array, np.ndarray):
            assert_array_equal(getattr(second.forest_, name), array, name)
    assert_array_equal(first.train_score_, second.train_score_)
    assert_array_equal(first.validation_score_, second.validation_score_)


@KINDS
@N_HYPERPLANES
def test_a_model_learns_its_training_rows(kind, n_hyperplanes, rows):
    X, y = rows
    model = make(kind, n_estimators=100, n_hyperplanes=n_hyperplanes)
    assert model.fit(X, to_target(kind, y)).score(X, to_target(kind, y)) > 0.97
    assert model.n_iter_ == len(model.trees_) == 100
    assert (np.diff(model.train_score_) >= 0).all()


@KINDS
def test_floats_of_both_widths_are_the_same_numbers(kind, rows):
    X, y = rows[0].astype(np.float32), to_target(kind, rows[1])
    narrow, wide = make(kind).fit(X, y), make(kind).fit(X.astype(np.float64), y)
    assert_same(narrow, wide)
    assert_array_equal(predict(narrow, X), predict(wide, X.astype(np.float64)))


@KINDS
def test_the_layout_of_a_table_changes_nothing(kind, rows):
    X, y = rows[0], to_target(kind, rows[1])
    expected = make(kind).fit(X, y)
    for table in (np.asfortranarray(X), X.tolist(), np.repeat(X, 2, axis=1)[:, ::2]):
        model = make(kind).fit(table, y)
        assert_same(model, expected)
        assert_array_equal(predict(model, table), predict(expected, X))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_frames_of_numbers_are_like_arrays(library, dtype, rows):
    module = pytest.importorskip(library)
    X, y = rows[0].astype(dtype), rows[1]
    columns = {f"c{j}": X[:, j] for j in range(X.shape[1])}
    frame = getattr(module, "table" if library == "pyarrow" else "DataFrame")(columns)
    model = make(LHBoostRegressor).fit(frame, y)
    assert list(model.feature_names_in_) == list(columns)
    expected = make(LHBoostRegressor).fit(X, y)
    assert_same(model, expected)
    assert_array_equal(model.predict(frame), expected.predict(X))


@N_HYPERPLANES
@pytest.mark.parametrize("n_others", [0, 3])
def test_a_column_missing_for_one_class_tells_the_classes_apart(n_hyperplanes, n_others):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1 + n_others))
    y = rng.integers(0, 2, 300)
    X[y == 1, 0] = np.nan
    model = make(LHBoostClassifier, n_hyperplanes=n_hyperplanes).fit(X, y)
    assert model.score(X, y) == 1.0
    fresh = rng.normal(size=(50, 1 + n_others))
    assert (model.predict(fresh) == 0).all()
    fresh[:, 0] = np.nan
    assert (model.predict(fresh) == 1).all()


@KINDS
def test_values_may_be_missing_anywhere(kind, rows):
    X, y = rows[0].copy(), to_target(kind, rows[1])
    rng = np.random.default_rng(1)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[:5] = np.nan
    X = np.column_stack([X, np.full(len(X), np.nan)])
    model = make(kind, n_estimators=60).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.feature_importances_[-1] == 0
    assert len(np.unique(predict(model, X[:5]))) == 1
    assert_array_equal(predict(model, X[:20].astype(object)), predict(model, X[:20]))


@KINDS
def test_values_may_be_missing_at_prediction_only(kind, rows):
    X, y = rows[0], to_target(kind, rows[1])
    model = make(kind).fit(X, y)
    holed = X.copy()
    holed[::2, 0] = np.nan
    expected = predict(model, X)
    assert np.isfinite(predict(model, holed)).all()
    assert_array_equal(predict(model, holed)[1::2], expected[1::2])
    assert (predict(model, holed)[::2] != expected[::2]).any()
    with pytest.raises(ValueError, match="infinity"):
        model.predict(np.where(np.isnan(holed), np.inf, holed))


def make_frame(library, n=600):
    """Return a frame with two columns of categories, and numbers that depend on them."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    colour = np.array(["red", "green", "blue", None], dtype=object)[rng.integers(0, 4, n)]
    frame = pd.DataFrame({"size": rng.normal(size=n), "colour": colour})
    frame["shop"] = [f"shop {k}" for k in rng.integers(0, 20, n)]
    y = frame["size"] + 2.0 * (frame["colour"] == "red") - 3.0 * frame["colour"].isna()
    y += frame["shop"].str[5:].astype(int) % 3 + rng.normal(size=n) / 10
    if library == "polars":
        frame = pytest.importorskip("polars").from_pandas(frame)
    return frame, y.to_numpy()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_are_told_apart(library):
    frame, y = make_frame(library)
    model = make(LHBoostRegressor, n_estimators=100).fit(frame, y)
    assert model.score(frame, y) > 0.98
    assert len(model.forest_.codes) > 50
    assert_array_equal(model.forest_.columns.n_codes, [0, 3, 20])
    assert model.feature_importances_.min() > 0.1


def test_frames_of_both_libraries_give_the_same_model():
    models = []
    for library in ("pandas", "polars"):
        frame, y = make_frame(library)
        models.append(make(LHBoostRegressor).fit(frame, y))
    assert_same(*models)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_unknown_categories_count_as_missing(library):
    frame, y = make_frame("pandas")
    model = make(LHBoostRegressor).fit(frame, y)
    unknown, missing = frame.copy(), frame.copy()
    unknown.loc[::2, "colour"] = "violet"
    missing.loc[::2, "colour"] = None
    if library == "polars":
        pl = pytest.importorskip("polars")
        unknown, missing = pl.from_pandas(unknown), pl.from_pandas(missing)
    assert_array_equal(model.predict(unknown), model.predict(missing))


def test_only_unknown_categories_are_worth_a_warning():
    frame, y = make_frame("pandas")
    model = make(LHBoostRegressor).fit(frame, y)
    with pytest.warns(UserWarning, match="only unknown categories in the column 'shop'"):
        found = model.predict(frame.assign(shop="elsewhere"))
    assert np.isfinite(found).all()


def test_categories_missing_at_prediction_only_have_an_answer():
    frame, y = make_frame("pandas")
    model = make(LHBoostRegressor).fit(frame.fillna({"colour": "red"}), y)
    assert np.isfinite(model.predict(frame)).all()


def test_the_rarest_of_many_categories_count_as_one():
    pd = pytest.importorskip("pandas")
    number = np.repeat(np.arange(400), np.where(np.arange(400) < 254, 3, 1))
    frame = pd.DataFrame({"k": [f"k{i:03}" for i in number], "x": np.arange(len(number)) % 7.0})
    y = np.sin(number * 1.7) * (number < 254)
    model = make(LHBoostRegressor, n_estimators=60).fit(frame, y)
    assert model.columns_.categories[0].n_columns == 255
    assert len(model.columns_.categories[0].merged) == 146
    assert model.score(frame, y) > 0.9
    rare = frame[number >= 254].assign(x=0.0)
    assert len(np.unique(model.predict(rare))) == 1
    assert make(LHBoostRegressor, max_categories=5).fit(frame, y).forest_.columns.n_codes[0] == 5


def test_columns_of_an_array_may_be_categories(rows):
    X, y = np.round(rows[0]), rows[1]
    model = make(LHBoostRegressor, categorical_features=[0, 3]).fit(X, y)
    assert (model.forest_.columns.n_codes > 0).tolist() == [True, False, False, True, False]
    assert not np.isin(model.forest_.feature, [0, 3]).any()  # numbers only in hyperplanes


@KINDS
@pytest.mark.parametrize("to_sparse", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_sparse_tables_are_like_dense_ones(kind, to_sparse, is_weighted, rows):
    X, y = rows[0].copy(), to_target(kind, rows[1])
    rng = np.random.default_rng(1)
    X[rng.random(X.shape) < 0.6] = 0.0
    weight = rng.random(len(X)) if is_weighted else None
    for stops in (False, True):
        dense = make(kind, early_stopping=stops).fit(X, y, weight)
        model = make(kind, early_stopping=stops).fit(to_sparse(X), y, weight)
        assert_same(model, dense)
        assert_array_equal(predict(model, to_sparse(X)), predict(dense, X))
        assert_array_equal(model.apply(to_sparse(X)), dense.apply(X))


@KINDS
@pytest.mark.parametrize("min_samples_leaf", [1, 20])
def test_weights_are_copies(kind, min_samples_leaf, rows):
    X, y = rows[0], to_target(kind, rows[1])
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    model = make(kind, min_samples_leaf=min_samples_leaf)
    weighted = clone(model).fit(X, y, weight)
    copied = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_array_equal(predict(weighted, X), predict(copied, X))
    assert_array_equal(weighted.forest_.weight, copied.forest_.weight)


@KINDS
@pytest.mark.parametrize("is_whole", [False, True])
def test_rows_of_weight_zero_are_absent(kind, is_whole, rows):
    X, y = rows[0], to_target(kind, rows[1])
    weight = np.random.default_rng(1).integers(0, 4, len(X)) * (1.0 if is_whole else 0.3)
    kept = weight > 0
    X = np.where(kept[:, np.newaxis], X, 1e9)
    expected = make(kind).fit(X[kept], y[kept], weight[kept])
    assert_same(make(kind).fit(X, y, weight), expected)


def test_class_weights_move_predictions(rows):
    X, y = rows[0], rows[1] > 1
    count = [
        make(LHBoostClassifier, class_weight=each).fit(X, y).predict(X).sum()
        for each in ({True: 0.1}, None, {True: 10.0})
    ]
    assert count[0] < count[1] < count[2]
    balanced = make(LHBoostClassifier, n_estimators=1, class_weight="balanced").fit(X, y)
    assert balanced.forest_.base[0] == pytest.approx(0, abs=2**24 * 0.01)  # log-odds


@KINDS
def test_threads_change_nothing(kind, rows):
    X = np.tile(rows[0], (40, 1)) + np.linspace(0, 1, 20_000)[:, np.newaxis]
    y = to_target(kind, np.tile(rows[1], 40))
    models = [make(kind, n_jobs=n, early_stopping=True).fit(X, y) for n in (1, 2, None)]
    for model in models[1:]:
        assert_same(models[0], model)
        assert_array_equal(predict(models[0], X), predict(model, X))


def test_a_single_class_is_certain(rows):
    X = rows[0]
    model = make(LHBoostClassifier).fit(X, np.full(len(X), "yes"))
    assert_array_equal(model.predict_proba(X[:3]), np.ones((3, 1)))
    assert_array_equal(model.predict_log_proba(X[:3]), np.zeros((3, 1)))
    assert (model.predict(X) == "yes").all()
    assert (model.n_iter_, model.get_depth(), model.get_n_leaves()) == (0, 0, 0)
    assert_array_equal(model.train_score_, [0.0])
    assert model.apply(X).shape == (len(X), 0)
    assert model.decision_path(X)[0].shape == (len(X), 0)
    assert not model.feature_importances_.any()
    assert make(LHBoostClassifier, early_stopping=True).fit(X, np.ones(len(X))).n_iter_ == 0


@pytest.mark.parametrize("value", [0.0, 3.25, -7.0, 0.1, 1e300, -1.7e308, 5e-324])
def test_a_constant_target_is_predicted(value, rows):
    X = rows[0]
    model = make(LHBoostRegressor).fit(X, np.full(len(X), value))
    assert (model.predict(X) == value).all()
    assert_array_equal(model.train_score_, np.zeros(13))


@KINDS
@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_rows_are_enough(kind, n, rows):
    X, y = rows[0][:n], to_target(kind, rows[1])[:n]
    model = make(kind, n_estimators=200, l2_regularization=0.3).fit(X, y)
    assert_allclose(model.predict(X), y, atol=1e-4)


@KINDS
def test_constant_columns_leave_the_mean(kind, rows):
    X, y = np.full((500, 3), 3.0), to_target(kind, rows[1])
    model = make(kind).fit(X, y)
    assert model.get_depth() == 0
    assert not model.feature_importances_.any()
    if kind is LHBoostRegressor:
        assert_allclose(model.predict(X), y.mean(), atol=1e-4)
    else:
        assert_allclose(model.predict_proba(X)[:, 1], y.mean(), atol=1e-6)


@KINDS
@pytest.mark.parametrize("power", [-1000, 1000])
def test_the_unit_of_columns_does_not_matter(kind, power, rows):
    X, y = rows[0], to_target(kind, rows[1])
    expected = make(kind).fit(X, y)
    scaled = np.ldexp(X, power)
    model = make(kind).fit(scaled, y)
    assert_array_equal(predict(model, scaled), predict(expected, X))


@pytest.mark.parametrize("power", [-1000, 1000])
def test_the_unit_of_targets_does_not_matter(power, rows):
    X, y = rows
    model = make(LHBoostRegressor).fit(X, np.ldexp(y, power))
    assert_array_equal(
        model.predict(X), np.ldexp(make(LHBoostRegressor).fit(X, y).predict(X), power)
    )


@KINDS
def test_far_away_numbers_are_placed(kind, rows):
    X, y = rows[0].copy(), to_target(kind, rows[1])
    X[0, 0], X[1, 1] = 999_999_999, -1e308
    model = make(kind, n_estimators=60).fit(X, y)
    assert model.score(X, y) > 0.8
    assert np.isfinite(predict(model, X * [1, 0, 1, 1, 1e290])).all()


@KINDS
def test_importances_sum_to_one(kind, rows):
    X, y = rows[0], to_target(kind, rows[1])
    for n_hyperplanes in (0, 2):
        importance = make(kind, n_hyperplanes=n_hyperplanes).fit(X, y).feature_importances_
        assert importance.sum() == pytest.approx(1)
        assert (importance > 0).sum() >= 3
        assert importance[:3].min() > importance[3:].max()


@KINDS
def test_models_clone_pickle_and_search(kind, rows):
    X, y = rows[0], to_target(kind, rows[1])
    model = make(kind, max_leaf_nodes=7)
    copy = pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    assert_same(copy, clone(model).fit(X, y))
    assert_array_equal(predict(copy, X), predict(model.fit(X, y), X))
    search = GridSearchCV(model, {"learning_rate": [0.01, 0.3], "n_hyperplanes": [0, 1]}, cv=3)
    assert search.fit(X, y).best_params_["learning_rate"] == 0.3
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    assert pipeline.score(X, y) > 0.4


def make_classes(rows, n_classes, names=None):
    """Return rows and classes by quantiles of their numbers."""
    X, y = rows
    y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    return X, y if names is None else np.array(names)[y]


@pytest.mark.parametrize("n_classes", [3, 7])
@N_HYPERPLANES
def test_many_classes_are_learned(n_classes, n_hyperplanes, rows):
    X, y = make_classes(rows, n_classes)
    model = make(LHBoostClassifier, n_estimators=200, n_hyperplanes=n_hyperplanes).fit(X, y)
    assert model.score(X, y) > 0.97
    assert model.n_iter_ == len(model.trees_) == 200  # one tree per round
    assert model.train_score_[0] == pytest.approx(-np.log(n_classes), abs=1e-3)
    assert model.train_score_[-1] > model.train_score_[0] / 3


def test_probabilities_of_many_classes_are_those_of_the_scores(rows):
    X, y = make_classes(rows, 4, ["c", "a", "d", "b"])
    model = make(LHBoostClassifier).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    score, proba = model.decision_function(X), model.predict_proba(X)
    assert score.shape == proba.shape == (500, 4)
    assert_allclose(proba.sum(axis=1), 1, rtol=1e-14)
    share = np.exp(score)
    assert_allclose(proba, share / share.sum(axis=1, keepdims=True), rtol=1e-12)
    assert_allclose(model.predict_log_proba(X), np.log(proba), rtol=1e-9)
    assert_array_equal(model.predict(X), model.classes_[score.argmax(axis=1)])
    loss = -np.log(proba[np.arange(500), np.searchsorted(model.classes_, y)]).mean()
    assert -model.train_score_[-1] == pytest.approx(loss, abs=1e-6)


def test_the_first_of_equal_scores_is_predicted():
    X, y = np.zeros((9, 1)), np.arange(9) % 3
    model = make(LHBoostClassifier).fit(X, y)
    assert len(np.unique(model.decision_function(X))) == 1
    assert (model.predict(X) == 0).all()


@pytest.mark.parametrize("min_samples_leaf", [1, 20])
def test_weights_of_many_classes_are_copies(min_samples_leaf, rows):
    X, y = make_classes(rows, 5)
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    model = make(LHBoostClassifier, min_samples_leaf=min_samples_leaf)
    weighted = clone(model).fit(X, y, weight)
    copied = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_same(weighted, copied)
    balanced = clone(model).set_params(class_weight="balanced").fit(X[y != 1], y[y != 1])
    assert np.ptp(balanced.forest_.base) < 2**24 * 0.01


def test_many_classes_of_sparse_tables_and_threads_are_the_same(rows):
    X, y = make_classes(rows, 5)
    X = np.tile(np.where(np.abs(X) < 1, 0.0, X), (20, 1))
    y = np.tile(y, 20)
    expected = make(LHBoostClassifier, n_jobs=1, early_stopping=True).fit(X, y)
    for n_jobs, table in ((2, X), (1, sparse.csr_array(X)), (7, sparse.csr_array(X))):
        model = make(LHBoostClassifier, n_jobs=n_jobs, early_stopping=True).fit(table, y)
        assert_same(model, expected)
        assert_array_equal(predict(model, table), predict(expected, X))


def test_probabilities_are_those_of_the_log_odds(rows):
    X, y = rows[0], np.where(rows[1] > 0, "yes", "no")
    model = make(LHBoostClassifier).fit(X, y)
    score = model.decision_function(X)
    proba = model.predict_proba(X)
    assert_allclose(proba[:, 1], 1 / (1 + np.exp(-score)), rtol=1e-12)
    assert_allclose(proba.sum(axis=1), 1, rtol=1e-15)
    assert_allclose(model.predict_log_proba(X), np.log(proba), rtol=1e-9)
    assert_array_equal(model.predict(X), np.where(score > 0, "yes", "no"))


@KINDS
def test_a_model_that_is_not_fitted_says_so(kind, rows):
    for use in (
        lambda m: m.predict(rows[0]),
        lambda m: m.trees_,
        lambda m: m.feature_importances_,
    ):
        with pytest.raises(NotFittedError, match=f"This {kind.__name__} instance is not fitted"):
            use(kind())


@KINDS
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_ends_a_fit_at_once_and_leaves_the_model_alone(kind, n_jobs, rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 30))
    model = make(kind, n_jobs=n_jobs, n_estimators=20_000).set_params(early_stopping=False)
    fitted = make(kind, n_jobs=n_jobs).fit(rows[0], to_target(kind, rows[1]))
    before = dict(vars(fitted))
    for each in (model, fitted.set_params(n_estimators=20_000, early_stopping=False)):
        sent = []

        def interrupt(sent=sent):
            time.sleep(0.5)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        killer = threading.Thread(target=interrupt)
        killer.start()
        with pytest.raises(KeyboardInterrupt):
            each.fit(X, to_target(kind, X[:, 0] * X[:, 1] + rng.normal(size=len(X))))
        delay = time.monotonic() - sent[0]
        killer.join()
        assert delay < 1.0  # 0.2 s wanted; the margin is for a busy machine
    assert not hasattr(model, "forest_")
    after = dict(vars(fitted), n_estimators=12)
    assert set(after) == set(before)
    assert all(after[name] is before[name] or after[name] == before[name] for name in before)


def test_warnings_of_numpy_stay_off(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        huge = make(LHBoostRegressor).fit(rows[0], rows[1] * 1e300)
    assert huge.train_score_[0] == -np.inf  # half the mean of squares


MEASURED = """
import sys
import numpy as np
import pandas as pd
from lhtree import {kind}

def read(name):
    text = open("/proc/self/status").read()
    return int(text[text.index(name) + 6 :].split()[0]) / 1024

rng = np.random.default_rng(0)
n, d = {shape}  # 60 MB in doubles
X = np.empty((n, d), dtype="{dtype}", order="{order}")
for start in range(0, n, 5000):
    X[start : start + 5000] = rng.normal(size=(min(5000, n - start), d))
y = X[:, 0] > 0
if {is_frame}:
    X = pd.DataFrame(X)
{kind}(n_estimators=2).fit(X[:500], y[:500])
open("/proc/self/clear_refs", "w").write("5")
before = read("VmRSS:")
{kind}(n_estimators=5, n_hyperplanes={n_hyperplanes}, early_stopping={stops}, n_jobs=1).fit(X, y)
print((read("VmHWM:") - before) / (n * d * 8 / 2**20))
"""
TALL, WIDE = (250_000, 30), (75_000, 105)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
@KINDS
@pytest.mark.parametrize(
    ("n_hyperplanes", "stops", "table", "most"),
    [
        (0, False, {"shape": WIDE}, 0.35),
        (0, True, {"shape": WIDE}, 0.35),  # rows held out are not copied
        (1, False, {"shape": WIDE}, 0.5),
        (1, True, {"shape": WIDE}, 0.5),
        (3, True, {"shape": TALL}, 0.7),
        (1, False, {"shape": TALL, "dtype": "float32"}, 0.7),
        (1, False, {"shape": WIDE, "order": "F"}, 0.5),
        (1, True, {"shape": WIDE, "is_frame": True}, 0.5),
    ],
)
def test_a_fit_takes_little_memory_beside_its_rows(kind, n_hyperplanes, stops, table, most):
    table = {"dtype": "float64", "order": "C", "is_frame": False} | table
    text = MEASURED.format(kind=kind.__name__, n_hyperplanes=n_hyperplanes, stops=stops, **table)
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < most


@pytest.mark.parametrize("kind", ["rows", "columns", "floats", "frame"])
def test_a_large_table_grows_the_trees_of_one_with_stored_grid_values(kind, monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3000, 9)).astype(np.float32).astype(np.float64)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 2])
    model = LHBoostRegressor(n_estimators=5, early_stopping=True, random_state=0).fit(X, y)
    monkeypatch.setattr("lhtree.training.boosting_rows.SMALL_TABLE", 0)
    forms = {
        "rows": X,
        "columns": np.asfortranarray(X),
        "floats": X.astype(np.float32),
        "frame": pd.DataFrame(dict(enumerate(X.T))),
    }
    other = clone(model).fit(forms[kind], y)
    assert len(other.forest_.cut) > 0
    assert_array_equal(other.predict(X), model.predict(X))
    assert_array_equal(other.forest_.cut, model.forest_.cut)


def test_class_weights_of_any_size_are_scaled_or_refused():
    X, y = np.arange(40.0)[:, None], np.arange(40) % 3 > 0
    plain = LHBoostClassifier(n_estimators=3).fit(X, y).predict_proba(X)
    equal = LHBoostClassifier(n_estimators=3, class_weight={False: 0.01, True: 0.01}).fit(X, y)
    assert_array_equal(equal.predict_proba(X), plain)
    for weights in ({False: 1e308, True: 1e308}, {False: 1e250, True: 1.0}):
        with pytest.raises(ValueError, match="class_weight must have positive values below 1e"):
            LHBoostClassifier(class_weight=weights).fit(X, y, np.full(40, 1e59))


def test_a_class_of_weight_zero_is_absent():
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    model = LHBoostClassifier(n_estimators=3, class_weight={0: 0.0}).fit(X, y)
    assert model.classes_.tolist() == [1]
    assert_array_equal(model.predict_proba(X), np.ones((40, 1)))


@pytest.mark.parametrize("seed", range(10))
def test_every_class_keeps_a_training_row(seed):
    X, y = np.arange(20.0)[:, None], np.arange(20) == 0
    model = LHBoostClassifier(early_stopping=True, n_estimators=3, random_state=seed).fit(X, y)
    assert model.predict_proba(X)[:, 1].mean() < 0.3


def test_validation_targets_beyond_those_of_training_count_as_they_are():
    X, y = np.arange(50.0)[:, None], np.arange(50.0)
    model = LHBoostRegressor(n_estimators=5).fit(X, y, X_val=X, y_val=y + 1000)
    expected = -((y + 1000 - y.mean()) ** 2).mean() / 2
    assert model.validation_score_[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_depth": 2**63},
        {"min_samples_leaf": 10**30},
        {"n_iter_no_change": 10**30, "early_stopping": True},
        {"learning_rate": 1.7e308, "n_estimators": 1, "max_depth": 1},
    ],
)
def test_parameters_of_any_size_are_taken(parameters):
    X, y = np.zeros((40, 1)), np.arange(40) % 2
    weight = np.linspace(0.1, 1.0, 40)
    for own in (None, weight):
        model = LHBoostClassifier(**parameters).fit(X, y, own)
        assert np.isfinite(model.predict_proba(X)).all()
