"""A model as if-then rules."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from hand_made import make_hand_made_model
from lhtree import LHForestClassifier, LHTClassifier, check_forest
from lhtree.explain import rules
from lhtree.explain.rules import shorten
from lhtree.explain.wording import Term

COMPARE = {"<": np.less, ">=": np.greater_equal, ">": np.greater, "<=": np.less_equal}


def evaluate(rule, X):
    """Return which rows fulfil a rule, and its output for all rows."""
    fulfils = np.ones(len(X), dtype=bool)
    for condition in rule.conditions:
        score = sum(term.weight * X[term.feature] for term in condition.terms)
        fulfils &= COMPARE[condition.comparison](score, condition.threshold)
    line = sum((term.weight * X[term.feature] for term in rule.membership.terms), 0 * X.iloc[:, 0])
    return fulfils, np.clip(line + rule.membership.constant, 0, 1)


@pytest.mark.parametrize("settings", [{}, {"max_depth": 2}, {"beta": 1.0}], ids=str)
def test_rules_are_the_model(settings, wine):
    X = wine[0] + 1e-7 * np.random.default_rng(0).normal(size=(178, 13))  # off the hyperplanes
    model = LHTClassifier(**settings).fit(*wine)
    votes = np.zeros((len(X), 3))
    n_fulfilled = np.zeros((len(X), 3), dtype=int)
    for rule in rules(model):
        fulfils, membership = evaluate(rule, X)
        votes[fulfils, int(rule.positive_class)] = membership[fulfils]
        n_fulfilled[:, int(rule.positive_class)] += fulfils
    assert_array_equal(n_fulfilled, 1)
    assert_allclose(votes, model.forest_.vote(np.ascontiguousarray(X), n_classes=3)[0], atol=1e-9)


def test_rules_of_a_hand_made_tree_read_well():
    model = make_hand_made_model(standardize=True)
    text = str(rules(model, units="standardized"))
    assert text == (
        "Tree 0: yes against all other classes\n"
        "  if x0 - 0.50*x1 < 1.00 then yes: 0.00 (4 rows)\n"
        "  if x0 - 0.50*x1 >= 1.00 then yes: -0.50*x1 + 0.25*x0 + 0.50, 0.75 on average (4 rows)"
    )
    raw = rules(model)[0].conditions[0]
    assert raw.terms == (Term("x0", 0.5), Term("x1", -0.125))
    assert raw.threshold == 3.5


def test_a_condition_on_one_feature_is_solved_and_the_tightest_is_kept():
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    model = LHTClassifier(standardize=False).fit(X, [0, 1, 1, 0, 0, 0])
    conditions = [rule.conditions for rule in rules(model)]
    for listed in conditions:
        kinds = [condition.comparison in ("<", "<=") for condition in listed]
        assert len(kinds) == len(set(kinds))
        assert all(condition.terms == (Term("x0", 1.0),) for condition in listed)
    frame = [
        [COMPARE[c.comparison](x, c.threshold) for c in listed]
        for listed in conditions for x in X[:, 0]
    ]  # fmt: skip
    assert sum(all(row) for row in frame) == 6


def test_dropped_terms_are_counted_and_their_cost_is_reported(wine):
    X, y = wine
    model = LHForestClassifier(n_estimators=5, preset="paper", random_state=0).fit(X, y)
    whole = rules(model, X=X)
    assert whole.agreement == 1.0
    assert whole.n_dropped == 0
    assert len(whole) == model.get_n_leaves()
    short = rules(model, min_weight=0.6, X=X)
    weight = np.concatenate([model.trees_[0].terms(0)[1]])
    kept = np.count_nonzero(np.abs(weight) >= 0.6 * np.abs(weight).max())
    assert len(short[0].conditions[0].terms) == kept < len(weight)
    assert 0.5 < short.agreement < 1.0
    assert 0 < short.n_dropped < short.n_terms
    assert f"{short.n_dropped} of {short.n_terms} terms were dropped" in str(short)
    assert "below 0.6 times the largest" in str(short)
    assert f"agree with the model on {short.agreement:.2%}" in str(short)
    assert rules(model, min_weight=0.6).agreement is None


def test_the_agreement_is_that_of_the_shortened_rules(wine):
    X = wine[0] + 1e-7 * np.random.default_rng(0).normal(size=(178, 13))
    model = LHTClassifier(max_depth=2).fit(*wine)
    votes = np.zeros((len(X), 3))
    for rule in rules(model, min_weight=0.5):
        fulfils, membership = evaluate(rule, X)
        votes[fulfils, int(rule.positive_class)] = membership[fulfils]
    forest = shorten(model.forest_, 0.5)
    check_forest(forest)
    assert_allclose(votes, forest.vote(np.ascontiguousarray(X), n_classes=3)[0], atol=1e-9)


def test_a_row_at_the_center_takes_the_same_side_without_small_terms(wine):
    model = LHTClassifier().fit(*wine)
    short = shorten(model.forest_, 0.9)
    for tree, other in zip(model.forest_, short, strict=True):
        for node in np.flatnonzero(tree.left >= 0):
            _, weight, center, _ = tree.terms(node)
            _, kept, kept_center, _ = other.terms(node)
            before = weight @ center - tree.threshold[node]
            assert_allclose(kept @ kept_center - other.threshold[node], before, atol=1e-12)


@pytest.mark.parametrize(("make", "message"), [
    (lambda m: rules(m, min_weight=2), "min_weight must be a number from 0 to 1, got 2"),
    (lambda m: rules(m, min_weight="0"), "min_weight must be a number from 0 to 1, got '0'"),
    (lambda m: rules(m, min_weight=np.nan), "min_weight must be a number"),
    (lambda m: rules(m, units="metric"), "units must be one of raw, standardized, got 'metric'"),
    (lambda m: rules(m, X=[[1.0]]), "1 feature"),
])  # fmt: skip
def test_bad_input_gets_a_clear_message(make, message):
    model = LHTClassifier().fit(*load_iris(return_X_y=True))
    with pytest.raises(ValueError, match=message):
        make(model)


def test_only_fitted_models_have_rules():
    with pytest.raises(NotFittedError):
        rules(LHTClassifier())
    with pytest.raises(TypeError, match="model must be a fitted"):
        rules(None)
