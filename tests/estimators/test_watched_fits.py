"""Fits that someone looks at: scorers, tolerance, lines of progress, callbacks."""

import os
import re
import signal
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_regressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer, make_scorer, mean_pinball_loss, roc_auc_score

from lhtree import LHBoostRegressor, LHForestClassifier, LHForestRegressor, load, save
from lhtree.data.frames import take_rows
from lhtree.estimators.boosting import scoring, watch
from lhtree.estimators.boosting.coverage import move_scores
from watched import NAMES, Recorder, assert_same, make, make_rows


def watch_fit(how, model, *data, **given):
    """Fit a model with a look at its rounds."""
    if how == "verbose":
        return model.set_params(verbose=1).fit(*data, **given)
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")
    return model.set_callbacks(Recorder()).fit(*data, **given)


@NAMES
@pytest.mark.parametrize("how", ["verbose", "callbacks"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_look_at_the_rounds_changes_nothing(name, how, is_weighted):
    X, y = make_rows(name)
    weight = np.random.default_rng(1).random(500) if is_weighted else None
    assert_same(make(name).fit(X, y, weight), watch_fit(how, make(name), X, y, weight))


@NAMES
@pytest.mark.parametrize("size", [1, 7, 40])
@pytest.mark.parametrize("tol", [0.0, 0.01])
def test_fits_in_chunks_stop_where_others_do(name, size, tol, monkeypatch):
    monkeypatch.setattr(watch.FitWatch, "begin", lambda *_: size)
    X, y = make_rows(name)
    stopping = {"early_stopping": True, "n_estimators": 200, "n_iter_no_change": 4, "tol": tol}
    expected = make(name, **stopping).fit(X, y)
    assert_same(expected, make(name, verbose=1, **stopping).fit(X, y))
    assert expected.n_iter_ < 195
    given = {"X_val": X[:100], "y_val": y[:100], "sample_weight_val": np.arange(100) % 3}
    expected = make(name, **stopping).fit(X[100:], y[100:], **given)
    assert_same(expected, make(name, verbose=1, **stopping).fit(X[100:], y[100:], **given))


def test_chunks_grow_with_the_speed_of_rounds(monkeypatch):
    sizes = []
    begin = watch.FitWatch.begin
    monkeypatch.setattr(
        watch.FitWatch, "begin", lambda *each: sizes.append(begin(*each)) or sizes[-1]
    )
    make("numbers", n_estimators=300, verbose=1).fit(*make_rows())
    assert sizes[:3] == [1, 2, 4]
    assert sum(sizes) >= 300


def test_tolerance_drops_rounds_that_gain_little():
    X, y = make_rows()
    stopping = {"early_stopping": True, "n_estimators": 300, "n_iter_no_change": 3}
    stopping["refit"] = False
    n_rounds = []
    for tol in (0.0, 0.001, 0.05, 1e9):
        model = make("numbers", tol=tol, **stopping).fit(X, y)
        n_rounds.append(model.n_iter_)
        score = model.validation_score_
        best = 0
        for number, each in enumerate(score):
            best = number if each > score[best] + tol else best
        assert model.n_iter_ == best
        assert len(score) == best + 4
    assert n_rounds == sorted(n_rounds, reverse=True)
    assert n_rounds[0] > n_rounds[2] > n_rounds[3] == 0


SCORERS = [
    ("two classes", "roc_auc"),
    ("two classes", "accuracy"),
    ("two classes", None),
    ("two classes", make_scorer(roc_auc_score, response_method="decision_function")),
    ("three classes", "neg_log_loss"),
    ("three classes", None),
    ("numbers", "neg_mean_absolute_error"),
    ("numbers", None),
    ("numbers", lambda estimator, X, y: -np.abs(estimator.predict(X) - y).max()),
    ("poisson", "neg_mean_poisson_deviance"),
    ("quantiles", lambda m, X, y: -mean_pinball_loss(y, m.predict(X)[:, 0], alpha=0.2)),
]


@pytest.mark.parametrize(("name", "given"), SCORERS)
@pytest.mark.parametrize("has_validation", [False, True])
def test_scores_are_those_of_a_scorer(name, given, has_validation):
    X, y = make_rows(name)
    model = make(name, scoring=given, n_estimators=60, n_iter_no_change=5)
    model.set_params(early_stopping=has_validation)
    if has_validation:
        model.fit(X[100:], y[100:], X_val=X[:100], y_val=y[:100])
        assert model.n_iter_ == np.argmax(model.validation_score_)
    else:
        model.fit(X, y)
        assert len(model.validation_score_) == 0
        assert model.n_iter_ == 60
    if hasattr(model, "_shift"):  # scores are those of quantiles that were not moved
        model.forest_ = move_scores(model.forest_, -np.array(model._shift))
    scorer = given if callable(given) else get_scorer(given) if given else None
    parts = [(model.train_score_, slice(100 * has_validation, None))]
    parts += [(model.validation_score_, slice(100))] * has_validation
    for scores, rows in parts:
        own = X[rows], y[rows]
        expected = model.score(*own) if scorer is None else scorer(model, *own)
        assert scores[model.n_iter_] == pytest.approx(expected, rel=1e-12)
        assert len(scores) == min(60, model.n_iter_ + 5) + 1


def test_a_scorer_gets_weights_and_labels():
    X, y = make_rows("two classes")
    weight, seen = np.random.default_rng(1).integers(0, 3, 500), []

    def score(estimator, X, y, sample_weight):
        seen.append((len(X), set(y), int(sample_weight.sum())))
        return estimator.score(X, y, sample_weight)

    make("two classes", scoring=score, n_estimators=3).fit(X, y, weight)
    assert seen == [(int(np.count_nonzero(weight)), {"a", "b"}, int(weight.sum()))] * 4


def test_a_scorer_may_predict_other_rows():
    X, y = make_rows()
    model = make("numbers", scoring=lambda m, *_: m.predict(X[:7]).sum(), n_estimators=5).fit(X, y)
    stages = [each.sum() for each in model.staged_predict(X[:7])]
    assert_array_equal(model.train_score_[1:], stages)


@pytest.mark.parametrize("kind", ["array", "list", "pandas", "polars"])
@pytest.mark.parametrize("stopping", [{}, {"early_stopping": True, "refit": False}])
def test_a_scorer_may_predict_some_of_its_rows(kind, stopping):
    X, y = make_rows()
    X[:, 4] = 10 * X[:, 4] + 3  # codes of categories are not their values
    others, weight = np.arange(7), np.arange(500) % 3
    table = X.tolist() if kind == "list" else X
    if kind in ("pandas", "polars"):
        color = [None if value != value else f"no. {value:.0f}" for value in X[:, 4]]
        columns = dict(zip("abcd", X[:, :4].T, strict=True)) | {"color": color}
        table = pytest.importorskip(kind).DataFrame(columns)
    apart = {"X_val": table[:100], "y_val": y[:100]} if stopping else {}

    def score(model, own, target, sample_weight=None):
        predicted = model.predict(own)
        position = np.arange(0, len(target), 9)
        assert_array_equal(model.predict(take_rows(own, position)), predicted[position])
        return model.predict(table[:7]).sum()

    model = make("numbers", scoring=score, n_estimators=5, **stopping)
    for given in ({}, apart):
        model.fit(table, y, weight, **given)
        stages = [each[others].sum() for each in model.staged_predict(table)]
        assert_array_equal(model.train_score_[1 : len(stages) + 1], stages)


def test_a_scorer_gets_rows_as_they_were_given():
    pd = pytest.importorskip("pandas")
    X, y = make_rows()
    frame, weight = pd.DataFrame(X, columns=list("abcde")), np.arange(500) % 2
    seen = []
    model = make("numbers", scoring=lambda _, X, y: seen.append(X) or 0.0, n_estimators=1)
    model.fit(frame, y, weight, X_val=frame[:9], y_val=y[:9])
    pd.testing.assert_frame_equal(seen[0], frame[1::2])
    pd.testing.assert_frame_equal(seen[1], frame[:9])


def test_a_scorer_finds_no_trees_of_an_earlier_fit():
    X, y = make_rows()
    model = make("numbers", scoring=lambda m, *_: float(hasattr(m, "forest_"))).fit(X, y)
    assert not model.fit(X, y).train_score_.any()


def test_held_out_rows_are_scored():
    X, y = make_rows("two classes")
    model = make("two classes", scoring="roc_auc", early_stopping=True, n_estimators=100)
    model.set_params(refit=False, validation_fraction=0.1, n_iter_no_change=10).fit(X, y)
    assert model.n_iter_ == np.argmax(model.validation_score_) < 90
    assert model.validation_score_[0] == 0.5
    assert model.forest_.weight[0] == 450


def test_many_training_rows_are_scored_in_part(monkeypatch):
    monkeypatch.setattr(scoring, "MOST_TRAINING_ROWS", 60)
    X, y = make_rows("three classes")
    sizes = []
    make("three classes", scoring=lambda m, X, y: sizes.append((len(X), len(set(y)))) or 0.0).fit(
        X, y
    )
    assert sizes == [(60, 3)] * 16


@pytest.mark.parametrize("given", ["nonsense", 3, ["accuracy"]])
def test_bad_scorers_are_refused(given):
    words = r"^scoring must be 'loss', None, a callable or a name .* lists, got "
    with pytest.raises(ValueError, match=words + re.escape(repr(given))):
        make("numbers", scoring=given).fit(*make_rows())


@pytest.mark.parametrize("found", [None, "high", 1j, np.ones(2)])
def test_scores_must_be_numbers(found):
    with pytest.raises(TypeError, match=r"^scoring=<.* must return a number, got "):
        make("numbers", scoring=lambda *_: found).fit(*make_rows())


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("numbers", "roc_auc", "LHBoostRegressor has none of the following attributes: "),
        ("numbers", "accuracy", "continuous targets; name another scorer, or 'loss'"),
        ("three classes", "recall", "Target is multiclass but average='binary'"),
    ],
)
def test_scorers_for_other_models_are_named(name, given, words):
    with pytest.raises(ValueError, match=f"^scoring='{given}' cannot score this model: .*{words}"):
        make(name, scoring=given).fit(*make_rows(name))


def test_scores_that_are_no_number_stop_a_fit():
    X, y = make_rows("two classes")
    model = make("two classes", scoring="roc_auc")
    one = y == "b"
    with pytest.warns(UndefinedMetricWarning), pytest.raises(ValueError, match="nan") as caught:
        model.fit(X, y, X_val=X[one], y_val=y[one])
    assert str(caught.value) == (
        "scoring='roc_auc' is nan for the validation rows; choose another, or give validation "
        "rows of which it is a number (for some scorers, of all classes)."
    )
    with pytest.raises(ValueError, match="is nan for the training rows; choose another"):
        make("numbers", scoring=lambda *_: np.nan).fit(*make_rows())


def test_models_with_scores_above_zero_are_saved(tmp_path):
    model = make("two classes", scoring="roc_auc").fit(*make_rows("two classes"))
    save(model, tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").train_score_, model.train_score_)
    with pytest.raises(ValueError, match="parameter scoring="):
        save(model.set_params(scoring=lambda *_: 0.0), tmp_path / "model")


def test_lines_of_progress_tell_rounds_scores_and_time(capfd):
    X, y = make_rows()
    model = make("numbers", verbose=1).fit(X[100:], y[100:], X_val=X[:100], y_val=y[:100])
    line = capfd.readouterr().err.splitlines()[-1]
    expected = r"\[lhtree\] 15 of 15 rounds, score (-\S+), validation (-\S+), \S+ s, 0\.0 s to go"
    found = re.fullmatch(expected, line)
    assert found
    last = model.train_score_[-1], model.validation_score_[-1]
    assert_allclose(list(map(float, found.groups())), last, rtol=1e-5)
    make("numbers").fit(X, y)
    assert capfd.readouterr().err == ""


@NAMES
def test_callbacks_get_every_round_and_may_stop(name):
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")
    X, y = make_rows(name)
    recorder = Recorder(last=6)
    model = make(name).set_callbacks(recorder).fit(X, y)
    n_rounds = 0 if name == "one class" else 6
    rounds = ["begin round", "end round"] * n_rounds
    assert recorder.calls == ["setup", "begin fit", *rounds, "end fit", "teardown"]
    assert_same(make(name, n_estimators=max(1, n_rounds)).fit(X, y), model)
    stages = list(model.staged_predict(X))
    for stage, prediction in zip(stages, recorder.predictions, strict=True):
        assert_array_equal(prediction, stage)


def test_a_callback_may_stop_a_fit_that_stops_early():
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")
    X, y = make_rows()
    model = make("numbers", early_stopping=True, learning_rate=1.0).set_callbacks(Recorder(6))
    model.fit(X, y)
    assert len(model.validation_score_) <= 7
    assert model.n_iter_ == np.argmax(model.validation_score_)


def test_an_exception_between_rounds_leaves_the_model_as_it_was():
    X, y = make_rows()
    model = make("numbers").fit(X, y)
    before = dict(vars(model))
    failing = model.set_params(scoring=lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        failing.fit(X, y)
    after = dict(vars(model), scoring="loss")
    assert all(after[name] is before[name] for name in before)


class Failing(Recorder):
    """Fails when a fit ends."""

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        """Fail at the end of the whole fit."""
        if context.task_name == "fit":
            raise ZeroDivisionError
        return False


@pytest.mark.parametrize(
    "model",
    [
        make("numbers"),
        LHForestClassifier(2),
        LHForestClassifier(2, preset="paper"),
        LHForestRegressor(2),
    ],
)
def test_a_callback_that_fails_at_the_end_leaves_the_model_as_it_was(model):
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")
    X, y = make_rows("numbers" if is_regressor(model) else "two classes")
    model.fit(X, y)
    before = dict(vars(model.set_callbacks(Failing())))
    with pytest.raises(ZeroDivisionError):
        model.fit(X, y)
    assert all(vars(model)[name] is before[name] for name in before)


def test_ctrl_c_ends_a_watched_fit():
    X = np.random.default_rng(0).normal(size=(50_000, 10))
    sent = []

    def interrupt():
        time.sleep(0.5)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    killer = threading.Thread(target=interrupt)
    killer.start()
    model = LHBoostRegressor(n_estimators=20_000, scoring=None, early_stopping=False, verbose=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, X[:, 0] * X[:, 1])
    delay = time.monotonic() - sent[0]
    killer.join()
    assert delay < 1.0
    assert not hasattr(model, "forest_")
