"""Shrinkage: the values of small nodes move towards those above them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import reference
from forests import make_out_of_bag, take_rows
from lhtree import LHForestClassifier, check_forest
from lhtree.training import local, shrinkage

# Trees of floating point numbers.
OLD = {"contrast": "standardized", "random_state": 0}


def shrink_plainly(tree, strength):
    """Return the values of one tree, node by node from the root."""
    value = tree.value.copy()
    for node in np.flatnonzero(tree.left >= 0):
        factor = tree.weight_sum[node] / (tree.weight_sum[node] + strength)
        for child in (tree.left[node], tree.left[node] + 1):
            step = tree.value[child] - tree.value[node]
            value[child] = value[node] + factor * step
    return value


@pytest.mark.parametrize("strength", [1.0, 30.0])
def test_values_move_towards_those_above(three_classes, strength):
    X, y = three_classes
    plain = LHForestClassifier(4, shrinkage=0, **OLD).fit(X, y)
    model = LHForestClassifier(4, shrinkage=strength, **OLD).fit(X, y)
    assert model.shrinkage_ == strength
    check_forest(model.forest_)
    for before, after in zip(plain.trees_, model.trees_, strict=True):
        expected = shrink_plainly(before, strength)
        assert_allclose(after.value, expected, rtol=0, atol=1e-15)
        assert ((after.value >= 0) & (after.value <= 1)).all()
        assert_array_equal(after.threshold, before.threshold)
    plain.forest_ = shrinkage.shrink(plain.forest_, strength)
    assert_array_equal(plain.predict_proba(X), model.predict_proba(X))


def compute_out_of_bag_error(strength, X, y, n_estimators):
    """Return squared errors of out-of-bag votes, row by row."""
    model = LHForestClassifier(n_estimators, **OLD, shrinkage=strength, oob_score=True)
    return np.square(model.fit(X, y).oob_decision_function_ - np.eye(2)[y]).sum(axis=1)


@pytest.mark.parametrize("voting", ["membership", "margin"])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_votes_under_several_strengths_are_those_of_shrunk_forests(noisy_labels, voting, kind):
    X, y = noisy_labels
    X = kind(np.round(X))  # leaves of equal rows have values between 0 and 1
    model = LHForestClassifier(4, **OLD, max_depth=4, voting=voting).fit(X, y)
    how = {"n_classes": 2, "by_margin": voting == "margin", "n_trees_per_estimator": 1}
    bits = take_rows(make_out_of_bag(model, X, y), 4).bits
    found = model.forest_.vote_shrunk(X, (0.0, 1.0, 30.0), out_of_bag=bits, **how)
    for strength, *sums in zip((0.0, 1.0, 30.0), *found, strict=True):
        shrunk = shrinkage.shrink(model.forest_, strength)
        for part, expected in zip(sums, shrunk.vote(X, out_of_bag=bits, **how), strict=True):
            assert_array_equal(part, expected)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_votes_under_several_strengths_do_not_depend_on_chunks_of_rows(
    noisy_labels, kind, monkeypatch
):
    X, y = noisy_labels
    X = kind(X)
    model = LHForestClassifier(10, **OLD).fit(X, y)
    rows = take_rows(make_out_of_bag(model, X, y), 10)

    def vote_shrunk():
        return list(rows.vote_shrunk(model.forest_, model.voting_, shrinkage.STRENGTHS, 5))

    ((_, whole),) = vote_shrunk()
    monkeypatch.setattr(local, "MOST_AT_ONCE", 64)
    chunks = vote_shrunk()
    assert [chunk.stop - chunk.start for chunk, _ in chunks] == [64] * 9 + [24]
    by_kind = zip(*(votes for _, votes in chunks), strict=True)
    for joined, votes in zip(whole, by_kind, strict=True):
        assert_array_equal(np.concatenate(votes, axis=1), joined)


@pytest.mark.filterwarnings("ignore:.*drawn by every estimator:UserWarning")
def test_out_of_bag_votes_choose_the_shrinkage(noisy_labels):
    X, y = noisy_labels
    model = LHForestClassifier(40, **OLD).fit(X, y)
    is_out = np.ones((40, len(y)), dtype=bool)
    for i in range(40):
        is_out[i, reference.draw_rows(model._seed, i, 600, 480, False)[0]] = False
    half, whole = is_out[:20].sum(axis=0), is_out.sum(axis=0)
    kept = half > 0
    errors = []
    for strength in shrinkage.STRENGTHS:
        few, every = (compute_out_of_bag_error(strength, X, y, t)[kept] for t in (20, 40))
        # Per row: a constant, plus another one divided by the number of votes.
        slope = (few - every).sum() / (1 / half[kept] - 1 / whole[kept]).sum()
        errors.append((every - slope * (1 / whole[kept] - 1 / 40)).sum())
    chosen = shrinkage.STRENGTHS.index(model.shrinkage_)
    assert chosen == np.argmin(errors)
    assert model.shrinkage_ > 0  # labels are noisy_labels


def test_shrinkage_is_zero_where_nothing_can_choose_it(noisy_labels):
    X, y = noisy_labels
    assert LHForestClassifier(10, preset="paper").fit(X, y).shrinkage_ == 0
    assert LHForestClassifier(10, max_samples=None).fit(X, y).shrinkage_ == 0
    assert LHForestClassifier(1).fit(X, y).shrinkage_ == 0
    all_drawn = LHForestClassifier(2, bootstrap=True, max_samples=50_000, random_state=0)
    assert all_drawn.fit(X, y).shrinkage_ == 0


def test_shrinkage_helps_where_labels_are_noisy(noisy_labels):
    X, y = noisy_labels
    fit = {
        name: LHForestClassifier(60, oob_score=True, random_state=0, shrinkage=name).fit(X, y)
        for name in (0, "auto")
    }
    assert fit["auto"].oob_score_ > fit[0].oob_score_ + 0.01


def test_the_error_counts_rows_by_their_weight():
    proba, y_encoded = np.array([[0.2, 0.8], [0.6, 0.4]]), np.array([1, 1], dtype=np.int32)
    error = shrinkage.measure_error(proba, y_encoded)
    assert_allclose(error, [0.08, 0.72])
    same = (np.array([1, 2]),) * 2
    for weight in ([1.0, 1.0], [3.0, 1.0]):
        found = shrinkage.extrapolate_error((error, error), same, 2, np.array(weight))
        assert_allclose(found, weight @ error)
