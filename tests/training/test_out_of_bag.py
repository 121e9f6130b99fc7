"""Out-of-bag votes: those of the estimators that did not draw a row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.metrics import balanced_accuracy_score

import reference
from forests import make_out_of_bag, take_rows
from growing import read_tree
from lhtree import LHForestClassifier
from lhtree.training import out_of_bag


def test_out_of_bag_votes_come_from_estimators_that_did_not_draw_a_row(blobs):
    X, y = blobs
    kind = {"contrast": "standardized", "random_state": 5}
    model = LHForestClassifier(40, **kind, oob_score=True).fit(X, y)
    seed = np.random.RandomState(5).randint(2**31 - 1)
    is_out = np.ones((40, 300), dtype=bool)
    for i in range(40):
        is_out[i, reference.draw_rows(seed, i, 300, 240, False)[0]] = False
    for row in (0, 17, 299):
        estimators = np.flatnonzero(is_out[:, row])
        numbers = (3 * estimators[:, np.newaxis] + [0, 1, 2]).ravel()
        sums = sum(vote_by_tree(model, X[row : row + 1], number) for number in numbers)
        n = len(estimators)
        score = sums[0] / n + 1e-6 * (1 + (s := sums[1] / n) / (1 + abs(s))) / 2
        assert_allclose(model.oob_decision_function_[row], score / score.sum(), rtol=1e-9)
    predicted = model.oob_decision_function_.argmax(axis=1)
    assert model.oob_score_ == np.mean(predicted == y)


def vote_by_tree(model, X, number):
    """Return vote and signed distance of one tree for one row, by class."""
    tree, forest = model.trees_[number], model.forest_
    plain = read_tree(tree)
    Z = (X - forest.column_mean) / forest.column_std
    result = np.zeros((2, model.n_classes_))
    membership, distance = reference.membership(plain, Z)[0], reference.distance(plain, Z)[0]
    result[:, tree.positive_class] = membership, (2 * membership - 1) * distance
    return result


def test_out_of_bag_score_takes_a_metric_and_says_what_is_missing(blobs):
    X, y = blobs
    model = LHForestClassifier(30, oob_score=balanced_accuracy_score, random_state=0).fit(X, y)
    assert 0.5 < model.oob_score_ < 1
    with pytest.warns(UserWarning, match="rows were drawn by every estimator"):
        model = LHForestClassifier(2, oob_score=True, random_state=0).fit(X, y)
    assert np.isnan(model.oob_decision_function_).any(axis=1).mean() > 0.3
    weight = np.arange(300) % 2
    model = LHForestClassifier(30, oob_score=True, bootstrap=True, random_state=0)
    model.fit(X, y, sample_weight=weight)
    assert np.isnan(model.oob_decision_function_[weight == 0]).all()
    assert np.isfinite(model.oob_decision_function_[weight == 1]).all()


def test_out_of_bag_votes_are_at_the_positions_of_their_rows():
    X, y = load_wine(return_X_y=True)
    weight = (np.arange(len(y)) % 7 != 0).astype(float)
    model = LHForestClassifier(
        40, class_weight={0: 0, 1: 1, 2: 1}, standardize=False, oob_score=True, random_state=0
    )  # class weights do not change the units of the columns
    votes = model.fit(X, y, weight).oob_decision_function_
    counts = (weight > 0) & (y != 0)
    model.set_params(class_weight=None)
    expected = model.fit(X[counts], y[counts]).oob_decision_function_
    assert np.isnan(votes[~counts]).all()
    assert_array_equal(votes[counts], expected)


def test_a_new_fit_forgets_old_out_of_bag_votes(blobs):
    X, y = blobs
    model = LHForestClassifier(30, oob_score=True, random_state=0).fit(X, y)
    model.set_params(oob_score=False).fit(X[:250], y[:250])
    assert not hasattr(model, "oob_score_")
    assert not hasattr(model, "oob_decision_function_")


@pytest.mark.parametrize(("most_rows", "step"), [(None, 1), (400, 1), (134, 3), (58, 7)])
def test_a_sample_of_the_rows_is_evenly_spread(blobs, most_rows, step):
    X, y = np.tile(blobs[0], (2, 1))[:400], np.tile(blobs[1], 2)[:400]
    model = LHForestClassifier(5, preset="paper", random_state=0).fit(X, y)
    is_out = np.ones((5, 400), dtype=bool)
    for i in range(5):
        is_out[i, reference.draw_rows(model._seed, i, 400, 320, False)[0]] = False
    votes = make_out_of_bag(model, X, y)
    rows = take_rows(votes, 5, most_rows)
    assert_array_equal(rows.table.X, X[::step])
    assert_array_equal(rows.y_encoded, y[::step])
    assert_array_equal(rows.count_voters(), is_out[:, ::step].sum(axis=0))
    assert_array_equal(rows.count_voters(2), is_out[:2, ::step].sum(axis=0))
    every = take_rows(votes, 5).vote(model.forest_, model.voting_)
    for some, whole in zip(rows.vote(model.forest_, model.voting_), every, strict=True):
        assert_array_equal(some, whole[::step])


def test_estimators_are_grown_although_no_row_of_the_sample_is_out_of_bag(monkeypatch):
    monkeypatch.setattr(out_of_bag, "MOST_ROWS", 2)
    X = np.arange(60.0).reshape(-1, 1)
    y = X[:, 0] > 30
    model = LHForestClassifier("auto", max_estimators=1, max_samples=59, random_state=1)
    model.set_params(preset="paper").fit(X, y)
    rows = take_rows(make_out_of_bag(model, X, y), 1, most_rows=2)
    assert rows.has_voters
    assert not rows.count_voters().any()
