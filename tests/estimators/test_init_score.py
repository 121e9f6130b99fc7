"""Scores that rows begin with: exposures, models on top of others, bad offsets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

from lhtree import LHBoostClassifier, LHBoostRegressor

N = 1500
LOSSES = ["squared_error", "absolute_error", "poisson", "gamma", "two classes", "three classes"]


def make_rows(loss):
    """Return rows, their targets and offsets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    offset = rng.normal(size=(N, 3) if loss == "three classes" else N)
    signal = np.sin(2 * X[:, 0])
    if loss == "two classes":
        return X, rng.random(N) < 1 / (1 + np.exp(-offset - signal)), offset
    if loss == "three classes":
        p = softmax(offset + np.c_[signal, -signal, 0 * signal], axis=1)
        return X, (p.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1), offset
    if loss == "poisson":
        return X, rng.poisson(np.exp(offset + signal)).astype(float), offset
    if loss == "gamma":
        return X, rng.gamma(3, np.exp(offset + signal) / 3), offset
    return X, offset + signal + rng.normal(size=N) / 5, offset


def make(loss, **parameters):
    """Return a small model of so many rounds: no rows are held out unless a test says so."""
    rounds = {"n_estimators": 15, "learning_rate": 0.1, "early_stopping": False}
    parameters = {**rounds, "random_state": 0, **parameters}
    if "classes" in loss:
        return LHBoostClassifier(**parameters)
    return LHBoostRegressor(loss, **parameters)


def get_scores(model, X):
    """Return the raw scores."""
    return model.forest_.score(X).squeeze()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_model_learns_what_the_offsets_leave(loss):
    X, y, offset = make_rows(loss)
    model = make(loss, n_estimators=60).fit(X, y, init_score=offset)
    score = get_scores(model, X)
    if loss == "three classes":
        score = score[:, 0] - score[:, 1]
    assert np.corrcoef(score, np.sin(2 * X[:, 0]))[0, 1] > (0.5 if "classes" in loss else 0.85)
    blind = make(loss, n_estimators=60).fit(X, y)
    assert model.train_score_[0] > blind.train_score_[0]
    assert model.train_score_[-1] > blind.train_score_[-1]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_model_with_offsets_starts_with_the_best_constant(loss):
    X, y, offset = make_rows(loss)
    weight = np.random.default_rng(1).integers(1, 4, N)
    model = make(loss, n_estimators=1).fit(X, y, weight, init_score=offset)
    start = model.forest_.to_raw(model.forest_.base)
    mean = np.average(y, weights=weight)
    if loss == "poisson":
        expected = np.log(mean / np.average(np.exp(offset), weights=weight))
    elif loss == "gamma":
        expected = np.log(np.average(y * np.exp(-offset), weights=weight))
    elif loss == "absolute_error":
        expected = np.median(np.repeat(y - offset, weight))
    elif loss == "squared_error":
        expected = np.average(y - offset, weights=weight)
    elif loss == "two classes":
        p = 1 / (1 + np.exp(-offset - start))
        expected = start + np.average(y - p, weights=weight)  # at the best, no gradient is left
    else:
        p = softmax(offset + start, axis=1)
        expected = start + np.average(np.eye(3)[y] - p, axis=0, weights=weight)
    assert_allclose(start, np.ravel(expected), atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_equal_offsets_move_the_start_alone(loss):
    X, y, offset = make_rows(loss)
    expected = make(loss).fit(X, y)
    offset = np.broadcast_to([1.0, 2.0, -3.0] if offset.ndim > 1 else 0.75, offset.shape)
    model = make(loss).fit(X, y, init_score=offset)
    start = [each.forest_.to_raw(each.forest_.base) for each in (model, expected)]
    moved = start[0] + offset[0] - start[1]
    assert_allclose(moved - moved.mean(), 0, atol=1e-5)
    # The last bits of the start may decide a split.
    assert_allclose(model.train_score_, expected.train_score_, rtol=0.03)


@pytest.mark.parametrize("loss", LOSSES)
def test_offsets_of_zero_are_none(loss):
    X, y, offset = make_rows(loss)
    model = make(loss).fit(X, y, init_score=np.zeros_like(offset))
    assert_array_equal(get_scores(model, X), get_scores(make(loss).fit(X, y), X))


@pytest.mark.parametrize("loss", LOSSES)
def test_training_goes_on_where_another_model_ended(loss):
    X, y, _ = make_rows(loss)
    first = make(loss, n_estimators=30).fit(X, y)
    second = make(loss, n_estimators=30).fit(X, y, init_score=get_scores(first, X))
    assert second.train_score_[0] == pytest.approx(first.train_score_[-1], abs=0.01)
    assert second.train_score_[-1] > first.train_score_[-1]


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_of_weight_zero_and_threads_change_nothing(loss):
    X, y, offset = make_rows(loss)
    weight = np.arange(N) % 3
    kept = weight > 0
    expected = make(loss, n_jobs=1).fit(X[kept], y[kept], weight[kept], init_score=offset[kept])
    model = make(loss, n_jobs=2).fit(X, y, weight, init_score=np.where(weight == 0, 9, offset.T).T)
    assert_array_equal(get_scores(model, X), get_scores(expected, X))


@pytest.mark.parametrize("loss", LOSSES)
def test_validation_rows_have_offsets_of_their_own(loss):
    X, y, offset = make_rows(loss)
    validation = {"X_val": X[1000:], "y_val": y[1000:], "init_score_val": offset[1000:]}
    model = make(loss, n_estimators=400, early_stopping=True).fit(
        X[:1000], y[:1000], init_score=offset[:1000], **validation
    )
    assert 0 < model.n_iter_ < 390
    same = {"X_val": X[:1000], "y_val": y[:1000], "init_score_val": offset[:1000]}
    model = make(loss).fit(X[:1000], y[:1000], init_score=offset[:1000], **same)
    assert_allclose(model.validation_score_, model.train_score_, rtol=1e-14)


def test_held_out_rows_keep_their_offsets():
    X, y, offset = make_rows("poisson")
    model = make("poisson", early_stopping=True, n_estimators=300).fit(X, y, init_score=offset)
    blind = make("poisson", early_stopping=True, n_estimators=300).fit(X, y)
    assert model.validation_score_.max() > blind.validation_score_.max() + 0.1


def test_a_constant_target_may_have_offsets():
    X, _, offset = make_rows("squared_error")
    model = make("squared_error").fit(X, np.full(N, 7.0), init_score=offset)
    assert model.train_score_[0] == pytest.approx(-offset.var() / 2, rel=1e-6)
    assert make("squared_error").fit(X, np.full(N, 1e300), init_score=offset).n_iter_ == 15
    certain = make("two classes").fit(X, np.ones(N), init_score=offset)
    assert_array_equal(certain.predict_proba(X[:2]), [[1.0], [1.0]])


BAD = [
    (
        {"init_score": np.zeros(3)},
        r"^init_score must have one entry per row of X, shape \(1500,\)",
    ),
    ({"init_score": np.full(N, np.nan)}, "^init_score must be finite, got nan; leave out"),
    ({"init_score": np.ones((N, 2))}, "^init_score must have 1 column, one for each .*, got 2"),
    ({"init_score": np.full(N, 1e30)}, r"^init_score must lie within ±.* got 1e\+30; give it"),
    ({"init_score": np.ma.array(np.ones(N), mask=[True] * N)}, "^init_score is masked in 1500"),
    ({"init_score": ["a"] * N}, "^init_score must be an array of numbers: could not"),
    ({"init_score_val": np.ones(5)}, "^init_score_val needs X_val and y_val; give them, too"),
    ({"X_val": 1, "init_score": np.ones(N)}, "^init_score needs init_score_val where there is X"),
    ({"X_val": 1, "init_score_val": np.ones(5)}, "^init_score_val needs init_score where there"),
    (
        {"X_val": 1, "init_score": np.ones(N), "init_score_val": np.ones(4)},
        r"^init_score_val must have one entry per row of X_val, shape \(5,\)",
    ),
]


@pytest.mark.parametrize(("given", "words"), BAD)
def test_bad_offsets_are_refused(given, words):
    X, y, _ = make_rows("squared_error")
    if "X_val" in given:
        given = {**given, "X_val": X[:5], "y_val": y[:5]}
    with pytest.raises((TypeError, ValueError), match=words):
        make("squared_error").fit(X, y, **given)


def test_many_classes_need_a_column_each():
    X, y, offset = make_rows("three classes")
    with pytest.raises(ValueError, match=r"^init_score must have 3 columns, .* got 1\.$"):
        make("three classes").fit(X, y, init_score=offset[:, 0])
