"""What forests of classes learn from the rows that their estimators did not draw."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from forests import find_undrawn, read_shares
from lhtree import LHForestClassifier
from lhtree.training import averaging
from lhtree.training.forest_size import is_enough
from lhtree.training.shrinkage import STRENGTHS

STEP = 2.0**-16  # of the shares in leaves
UNCALIBRATED = 5e-7, 1.0


def vote_by_hand(model, X, estimators=None):
    """Return the mean shares of estimators that did not draw a row, and their number."""
    is_out = find_undrawn(model, len(X))[:estimators]
    n = is_out.sum(axis=0)
    total = (read_shares(model, X)[:estimators] * is_out[:, :, np.newaxis]).sum(axis=0)
    return total / np.maximum(n, 1)[:, np.newaxis], n


def to_proba(votes, calibration):
    """Return the probabilities of votes, as documented."""
    offset, exponent = calibration
    power = (votes + offset) ** exponent
    return power / power.sum(axis=1, keepdims=True)


def take_classes(table, n_classes):
    """Return the rows of so many classes."""
    X, y = table
    return X, np.array(["a", "b", "c"])[np.minimum(y, n_classes - 1)]


@pytest.fixture
def tables(noisy_labels, three_classes):
    """Return rows by the number of their classes."""
    return {1: (three_classes[0], np.zeros(400)), 2: noisy_labels, 3: three_classes}


# ---- votes ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "kind",
    [{}, {"bootstrap": True}, {"class_weight": "balanced_subsample"}, {"calibration": None}],
    ids=str,
)
def test_out_of_bag_votes_come_from_estimators_that_did_not_draw_a_row(tables, n_classes, kind):
    X, y = tables[n_classes]
    model = LHForestClassifier(40, oob_score=True, random_state=5, **kind).fit(X, y)
    votes, n = vote_by_hand(model, X)
    assert (n > 0).all()
    proba = to_proba(votes, getattr(model, "calibration_", UNCALIBRATED))
    assert_allclose(model.oob_decision_function_, proba, rtol=1e-9)
    assert model.oob_score_ == accuracy_score(y, votes.argmax(axis=1))
    assert model.oob_score_ < model.score(X, y)


def test_rows_of_weight_zero_have_no_votes_and_are_not_drawn(three_classes):
    X, y = three_classes
    weight = np.arange(400) % 3
    model = LHForestClassifier(30, oob_score=True, random_state=0).fit(X, y, weight)
    assert not set(np.concatenate(model.estimators_samples_)) - set(np.flatnonzero(weight))
    votes, n = vote_by_hand(model, X)
    counts = weight > 0
    assert (n[~counts] == 30).all()
    assert np.isnan(model.oob_decision_function_[~counts]).all()
    found = to_proba(votes, model.calibration_)
    assert_allclose(model.oob_decision_function_[counts], found[counts], rtol=1e-9)
    other = LHForestClassifier(30, oob_score=True, random_state=0)
    other.fit(X[counts], y[counts], weight[counts])
    assert_array_equal(other.oob_decision_function_, model.oob_decision_function_[counts])
    assert (other.oob_score_, other.calibration_[1]) == (model.oob_score_, model.calibration_[1])


def test_rows_that_every_estimator_drew_are_named_in_a_warning(three_classes):
    X, y = three_classes
    model = LHForestClassifier(2, oob_score=balanced_accuracy_score, random_state=0)
    with pytest.warns(UserWarning, match=r"^\d+ rows were drawn by every estimator.*use more est"):
        model.fit(X, y)
    votes, n = vote_by_hand(model, X)
    assert_array_equal(np.isnan(model.oob_decision_function_).all(axis=1), n == 0)
    expected = balanced_accuracy_score(y[n > 0], votes.argmax(axis=1)[n > 0])
    assert model.oob_score_ == expected


def test_a_single_class_has_votes_of_one(tables):
    model = LHForestClassifier(30, oob_score=True, random_state=0).fit(*tables[1])
    assert_array_equal(model.oob_decision_function_, np.ones((400, 1)))
    assert model.oob_score_ == 1


# ---- shrinkage --------------------------------------------------------------------------


def shrink_by_hand(tree, leaf, is_positive, drawn, strength):
    """Return the shrunken share of each leaf of a tree, from the rows that it drew."""
    total, count = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes)
    np.add.at(total, leaf[drawn], is_positive[drawn])
    np.add.at(count, leaf[drawn], 1)
    splits = np.flatnonzero(tree.left >= 0)
    for node in splits[::-1]:
        for side in (0, 1):
            total[node] += total[tree.left[node] + side]
            count[node] += count[tree.left[node] + side]
    share = total / count
    shrunken = share.copy()
    for node in splits:
        for child in (tree.left[node], tree.left[node] + 1):
            step = share[child] - share[node]
            shrunken[child] = shrunken[node] + step * count[node] / (count[node] + strength)
    return shrunken


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("strength", [0.0, 3.0, 1e300])
def test_shrinkage_pulls_shares_towards_those_of_the_nodes_above(
    three_classes, strength, bootstrap
):
    X, y = three_classes
    model = LHForestClassifier(4, shrinkage=strength, bootstrap=bootstrap, random_state=0)
    leaf = model.fit(X, y).apply(X)
    assert model.shrinkage_ == strength
    for k, tree in enumerate(model.trees_):
        drawn, is_leaf = model.estimators_samples_[k // 3], tree.left < 0
        expected = shrink_by_hand(tree, leaf[:, k], y == k % 3, drawn, strength)
        assert_allclose(tree.prediction[is_leaf, 0], expected[is_leaf], atol=2 * STEP)
    assert 0 <= model.forest_.value.min() <= model.forest_.value.max() <= 2**16


@pytest.mark.filterwarnings("ignore:.*drawn by every estimator:UserWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("most_rows", [5000, 150])
def test_out_of_bag_votes_choose_the_shrinkage(tables, n_classes, most_rows, monkeypatch):
    X, y = tables[n_classes]
    monkeypatch.setattr(averaging, "MOST_ROWS", most_rows)
    chosen = LHForestClassifier(40, random_state=0).fit(X, y)
    rows = slice(None, None, -(-len(y) // most_rows))
    errors = []
    for strength in STRENGTHS:
        model = LHForestClassifier(40, shrinkage=strength, random_state=0).fit(X, y)
        (few, half), (every, whole) = (vote_by_hand(model, X, t) for t in (20, 40))
        kept = np.flatnonzero(half > 0)
        kept = kept[np.isin(kept, np.arange(len(y))[rows])]
        few, every = (
            np.square(votes - np.eye(n_classes)[y]).sum(axis=1)[kept] for votes in (few, every)
        )
        # Per row: a constant, plus another one divided by the number of votes.
        gap = (1 / half[kept] - 1 / whole[kept]).sum()
        slope = max(0.0, (few - every).sum() / gap)
        errors.append((every - slope * (1 / whole[kept] - 1 / 40)).sum())
    assert chosen.shrinkage_ == STRENGTHS[int(np.argmin(errors))]
    if n_classes == 2:  # a third of the labels is random
        assert chosen.shrinkage_ > 0


def test_shrinkage_is_zero_where_nothing_can_choose_it(noisy_labels):
    X, y = noisy_labels
    drawn_whole = {"bootstrap": True, "max_samples": 50_000, "max_depth": 3}
    for kind in ({"max_samples": None}, {"n_estimators": 1}, drawn_whole):
        model = LHForestClassifier(**{"n_estimators": 3, "random_state": 0, **kind}).fit(X, y)
        assert model.shrinkage_ == 0


# ---- calibration ------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("most_rows", [5000, 150])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_calibration_minimises_the_log_loss_of_out_of_bag_votes(
    tables, n_classes, most_rows, is_weighted, monkeypatch
):
    X, y = tables[n_classes]
    monkeypatch.setattr(averaging, "MOST_ROWS", most_rows)
    weight = np.random.default_rng(0).integers(1, 4, len(y)) if is_weighted else np.ones(len(y))
    model = LHForestClassifier(30, random_state=0).fit(X, y, weight)
    offset, exponent = model.calibration_
    assert offset == 0.5 / 30
    votes, n = vote_by_hand(model, X)
    rows = np.arange(0, len(y), -(-len(y) // most_rows))
    rows = rows[n[rows] > 0]

    def measure_loss(exponent):
        proba = to_proba(votes[rows], (0.5 / n[rows, np.newaxis], exponent))
        return -np.average(np.log(proba[np.arange(len(rows)), y[rows]]), weights=weight[rows])

    best = minimize_scalar(measure_loss, bounds=(0.01, 20), method="bounded")
    assert exponent == pytest.approx(best.x, abs=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibration_keeps_labels_and_lowers_the_log_loss(tables, n_classes):
    X, y = tables[n_classes]
    is_train = np.arange(len(y)) % 3 != 0
    losses = {}
    models = {
        name: LHForestClassifier(60, calibration=name, random_state=0) for name in (None, "auto")
    }
    for name, model in models.items():
        proba = model.fit(X[is_train], y[is_train]).predict_proba(X[~is_train])
        losses[name] = -np.log(proba[np.arange(len(proba)), y[~is_train]]).mean()
        votes = read_shares(model, X[~is_train]).mean(axis=0)
        assert_allclose(proba, to_proba(votes, getattr(model, "calibration_", UNCALIBRATED)))
        assert_array_equal(model.predict(X[~is_train]), proba.argmax(axis=1))
    assert not hasattr(models[None], "calibration_")
    assert losses["auto"] < losses[None] + 0.01
    assert_array_equal(models["auto"].predict(X), models[None].predict(X))
    explicit = LHForestClassifier(60, calibration="oob", random_state=0)
    explicit.fit(X[is_train], y[is_train])
    assert_array_equal(explicit.predict_proba(X), models["auto"].predict_proba(X))


def test_without_out_of_bag_rows_nothing_is_calibrated(three_classes):
    X, y = three_classes
    model = LHForestClassifier(3, max_samples=None, random_state=0).fit(X, y)
    assert not hasattr(model, "calibration_")
    votes = read_shares(model, X).mean(axis=0)
    assert_allclose(model.predict_proba(X), to_proba(votes, UNCALIBRATED), rtol=1e-12)
    with pytest.raises(ValueError, match="calibration='oob' needs out-of-bag rows, but max_samp"):
        model.set_params(calibration="oob").fit(X, y)


def test_a_new_fit_forgets_the_calibration_and_votes_of_the_last(three_classes):
    X, y = three_classes
    model = LHForestClassifier(30, oob_score=True, random_state=0)
    model.fit(X, y, np.arange(400) % 7 > 0)
    model.set_params(max_samples=None, oob_score=False).fit(X, y)
    for name in ("calibration_", "oob_score_", "oob_decision_function_", "_position"):
        assert not hasattr(model, name)


# ---- the number of estimators -----------------------------------------------------------


def test_estimators_are_grown_although_no_row_that_is_looked_at_is_out_of_bag(monkeypatch):
    monkeypatch.setattr(averaging, "MOST_ROWS", 2)
    X = np.arange(60.0).reshape(-1, 1)
    model = LHForestClassifier("auto", max_estimators=1, max_samples=59, random_state=1)
    model.fit(X, X[:, 0] > 30)
    assert model.n_estimators_ == 1
    assert not hasattr(model, "calibration_")


def test_the_number_of_estimators_is_found_on_some_of_the_rows(three_classes, monkeypatch):
    X, y = three_classes
    monkeypatch.setattr(averaging, "MOST_ROWS", 150)
    model = LHForestClassifier("auto", shrinkage=0.0, random_state=0).fit(X, y)
    scores = []
    for t in range(20, model.n_estimators_ + 1, 20):
        votes, n = vote_by_hand(model, X, t)
        is_right = votes.argmax(axis=1)[::3] == y[::3]
        scores.append(is_right[n[::3] > 0].mean())
    assert is_enough(scores)
    assert not is_enough(scores[:-1])
