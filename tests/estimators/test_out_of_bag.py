"""Out-of-bag votes: those of the members that left a row out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.metrics import balanced_accuracy_score

import reference
from lhtree import LHForestClassifier


def test_out_of_bag_votes_come_from_members_that_left_a_row_out(blobs):
    X, y = blobs
    model = LHForestClassifier(40, oob_score=True, random_state=5).fit(X, y)
    seed = np.random.RandomState(5).randint(2**31 - 1)
    left_out = np.ones((40, 300), dtype=bool)
    for i in range(40):
        left_out[i, reference.draw_rows(seed, i, 300, 240, False)[0]] = False
    for row in (0, 17, 299):
        members = np.flatnonzero(left_out[:, row])
        numbers = (3 * members[:, np.newaxis] + [0, 1, 2]).ravel()
        sums = sum(votes_of_tree(model, X[row : row + 1], number) for number in numbers)
        n = len(members)
        score = sums[0] / n + 1e-6 * (1 + (s := sums[1] / n) / (1 + abs(s))) / 2
        assert_allclose(model.oob_decision_function_[row], score / score.sum(), rtol=1e-9)
    predicted = model.oob_decision_function_.argmax(axis=1)
    assert model.oob_score_ == np.mean(predicted == y)


def votes_of_tree(model, X, number):
    """Return vote and signed distance of one tree for one row, by class."""
    tree, forest = model.trees_[number], model.forest_
    terms = [tree.terms(node) for node in range(tree.n_nodes)]
    plain = reference.Tree(
        tree.left, tree.threshold, tree.share, tree.n_samples, tree.weight_sum, tree.rule,
        tree.extremes, *map(list, zip(*terms, strict=True)),
    )  # fmt: skip
    Z = (X - forest.column_mean) / forest.column_deviation
    result = np.zeros((2, model.n_classes_))
    member, distance = reference.membership(plain, Z)[0], reference.distance(plain, Z)[0]
    result[:, tree.target] = member, (2 * member - 1) * distance
    return result


def test_out_of_bag_score_takes_a_metric_and_says_what_is_missing(blobs):
    X, y = blobs
    model = LHForestClassifier(30, oob_score=balanced_accuracy_score, random_state=0).fit(X, y)
    assert 0.5 < model.oob_score_ < 1
    with pytest.warns(UserWarning, match="rows were seen by every member"):
        model = LHForestClassifier(2, oob_score=True, random_state=0).fit(X, y)
    assert np.isnan(model.oob_decision_function_).any(axis=1).mean() > 0.3
    weight = np.arange(300) % 2
    model = LHForestClassifier(30, oob_score=True, bootstrap=True, random_state=0)
    model.fit(X, y, sample_weight=weight)
    assert np.isnan(model.oob_decision_function_[weight == 0]).all()
    assert np.isfinite(model.oob_decision_function_[weight == 1]).all()


def test_out_of_bag_votes_stand_where_their_rows_do():
    X, y = load_wine(return_X_y=True)
    weight = (np.arange(len(y)) % 7 != 0).astype(float)
    model = LHForestClassifier(
        40, class_weight={0: 0, 1: 1, 2: 1}, standardize=False, oob_score=True, random_state=0
    )  # class weights change no units, so columns are left as they are
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
