"""Rules, text and Graphviz: nodes in words."""

import io
import shutil
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError

from hand_made import make_hand_made_model
from lhtree import LHForestClassifier, LHTClassifier, check_forest
from lhtree.explain import rules
from lhtree.explain.rules import shorten
from lhtree.explain.wording import Condition, Form, Term, format_number
from lhtree.export import export_graphviz, export_text


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True, as_frame=True)


COMPARE = {"<": np.less, ">=": np.greater_equal, ">": np.greater, "<=": np.less_equal}


def evaluate(rule, X):
    """Return which rows fulfil a rule, and what it answers for all rows."""
    fulfils = np.ones(len(X), dtype=bool)
    for condition in rule.conditions:
        score = sum(term.weight * X[term.feature] for term in condition.terms)
        fulfils &= COMPARE[condition.comparison](score, condition.threshold)
    line = sum((term.weight * X[term.feature] for term in rule.membership.terms), 0 * X.iloc[:, 0])
    return fulfils, np.clip(line + rule.membership.constant, 0, 1)


@pytest.mark.parametrize("settings", [{}, {"max_depth": 2}, {"beta": 1.0}], ids=str)
def test_rules_are_the_model(settings, wine):
    X = wine[0] + 1e-7 * np.random.default_rng(0).normal(size=(178, 13))  # off the planes
    model = LHTClassifier(**settings).fit(*wine)
    votes = np.zeros((len(X), 3))
    n_fulfilled = np.zeros((len(X), 3), dtype=int)
    for rule in rules(model):
        fulfils, membership = evaluate(rule, X)
        votes[fulfils, int(rule.target)] = membership[fulfils]
        n_fulfilled[:, int(rule.target)] += fulfils
    assert_array_equal(n_fulfilled, 1)
    assert_allclose(votes, model.forest_.vote(np.ascontiguousarray(X), n_classes=3)[0], atol=1e-9)


def test_rules_of_a_hand_made_tree_read_well():
    model = make_hand_made_model(standardize=True)
    text = str(rules(model, units="standardized"))
    assert text == (
        "Tree 0: yes against the rest\n"
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


def test_dropped_terms_are_counted_and_their_cost_is_told(wine):
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
    assert f"{short.n_dropped} of {short.n_terms} terms below 0.6" in str(short)
    assert f"agree with the model on {short.agreement:.2%}" in str(short)
    assert rules(model, min_weight=0.6).agreement is None


def test_shortened_rules_are_what_the_agreement_speaks_of(wine):
    X = wine[0] + 1e-7 * np.random.default_rng(0).normal(size=(178, 13))
    model = LHTClassifier(max_depth=2).fit(*wine)
    votes = np.zeros((len(X), 3))
    for rule in rules(model, min_weight=0.5):
        fulfils, membership = evaluate(rule, X)
        votes[fulfils, int(rule.target)] = membership[fulfils]
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


def test_text_of_a_hand_made_tree():
    model = make_hand_made_model()
    assert export_text(model, n_features=1, show_weights=True) == (
        "Tree 0: yes against the rest\n"
        "|--- x0 + (1 more) < 1.00\n"
        "|   |--- share of yes: 0.00, weight: 4.00\n"
        "|--- x0 + (1 more) >= 1.00\n"
        "|   |--- share of yes: 0.75, membership: -0.50*x1 + (1 more) + 0.50, weight: 4.00"
    )
    renamed = export_text(
        model, feature_names=["a", "b"], class_names=["N", "Y"], spacing=1, decimals=1
    )
    assert renamed.splitlines()[:2] == ["Tree 0: Y against the rest", "|- a - 0.5*b < 1.0"]


def test_text_lists_every_node_once(wine):
    model = LHTClassifier().fit(*wine)
    lines = export_text(model, max_depth=100).splitlines()
    n_nodes = len(model.forest_.left)
    # Every leaf has a line of its own, every node but a root the line of its condition.
    assert len(lines) == 3 + model.get_n_leaves() + n_nodes - 3
    assert export_text(model, tree=1).startswith("Tree 1: 1 against the rest")
    cut = export_text(model, max_depth=0)
    assert "truncated branch of depth" in cut
    assert len(cut.splitlines()) < len(lines)


def test_a_chain_of_a_thousand_splits_is_written_without_recursion():
    X = np.arange(2500.0)[:, np.newaxis] ** 2
    model = LHTClassifier(gamma=1).fit(X, np.arange(2500) % 2)
    assert model.get_depth() > 1000
    lines = export_text(model, max_depth=10**6).splitlines()
    assert len(lines) == 1 + model.get_n_leaves() + len(model.forest_.left) - 1
    assert len(rules(model)) == model.get_n_leaves()
    assert export_graphviz(model).count("->") == len(model.forest_.left) - 1


def test_graphviz_draws_every_node_and_edge():
    X, y = load_iris(return_X_y=True)
    model = LHTClassifier().fit(X, y)
    text = export_graphviz(model, filled=True, rounded=True, rotate=True, node_ids=True)
    n_nodes = len(model.forest_.left)
    assert text.count("samples = ") == n_nodes
    assert text.count("->") == n_nodes - 3
    assert "rankdir=LR" in text
    assert 'style="filled, rounded"' in text
    assert "node #0" in text
    assert "fillcolor" not in export_graphviz(model)
    cut = export_graphviz(model, tree=1, max_depth=1)
    assert cut.count("(...)") == cut.count("->") - 2 > 0


def test_graphviz_escapes_names_and_is_accepted_by_dot(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = LHTClassifier(max_depth=2).fit(X, y)
    names = ['quo"te', "back\\slash", "<b>html</b>", "new\nline"]
    text = export_graphviz(model, feature_names=names, class_names=['a"', "}", "->"])
    assert 'quo\\"te' in text
    assert "back\\\\slash" in text
    path = tmp_path / "tree.dot"
    assert export_graphviz(model, path, feature_names=names) is None
    buffer = io.StringIO()
    export_graphviz(model, buffer, feature_names=names)
    assert buffer.getvalue() == path.read_text(encoding="utf-8")
    if not shutil.which("dot"):
        pytest.skip("Graphviz is not installed")
    run = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count('class="node"') == len(model.forest_.left)
    assert "&lt;b&gt;html&lt;/b&gt;" in run.stdout


@pytest.mark.parametrize(("value", "decimals", "text"), [
    (1.0, 2, "1.00"), (-1234.567, 1, "-1234.6"), (0.003184, 2, "0.0032"), (0.5, 2, "0.50"),
    (0.0, 2, "0.00"), (1e9, 2, "1.00e+09"), (3e-7, 1, "3.0e-07"), (0.25, 0, "0"),
])  # fmt: skip
def test_numbers_keep_their_digits(value, decimals, text):
    assert format_number(value, decimals) == text


def test_forms_write_signs_once():
    form = Form((Term("a", -1.0), Term("b", 2.0), Term("c", -0.25)), -3.0)
    assert form.format() == "-a + 2.00*b - 0.25*c - 3.00"
    assert form.format(n_terms=1) == "-a + (2 more) - 3.00"
    assert Form((), -0.5).format() == "-0.50"
    assert str(Condition(form.terms[1:2], "<=", 4.0)) == "2.00*b <= 4.00"


@pytest.mark.parametrize(("ask", "message"), [
    (lambda m: rules(m, min_weight=2), "min_weight must be a number from 0 to 1, got 2"),
    (lambda m: rules(m, min_weight="0"), "min_weight must be a number from 0 to 1, got '0'"),
    (lambda m: rules(m, min_weight=np.nan), "min_weight must be a number"),
    (lambda m: rules(m, units="metric"), "units must be one of raw, standardized, got 'metric'"),
    (lambda m: rules(m, X=[[1.0]]), "1 feature"),
    (lambda m: export_text(m, tree=9), "tree must be an integer from 0 to 2, got 9"),
    (lambda m: export_text(m, feature_names=["a"]), "feature_names must list 4 names"),
    (lambda m: export_text(m, class_names="abc"), "class_names must list 3 names, got 'abc'"),
    (lambda m: export_text(m, decimals=-1), "decimals must be an integer from 0 to 17"),
    (lambda m: export_text(m, max_depth=-1), "max_depth must be an integer from 0"),
    (lambda m: export_text(m, spacing=0), "spacing must be an integer from 1"),
    (lambda m: export_graphviz(m, n_features=0), "n_features must be an integer from 1"),
    (lambda m: export_graphviz(m, max_depth=1.5), "max_depth must be an integer from 0"),
])  # fmt: skip
def test_bad_input_gets_a_sentence(ask, message):
    model = LHTClassifier().fit(*load_iris(return_X_y=True))
    with pytest.raises(ValueError, match=message):
        ask(model)


def test_a_file_that_is_none_gets_a_sentence():
    model = LHTClassifier().fit(*load_iris(return_X_y=True))
    with pytest.raises(TypeError, match="out_file must be a path, an open file or None, got 3"):
        export_graphviz(model, 3)


@pytest.mark.parametrize("write", [rules, export_text, export_graphviz])
def test_only_fitted_models_are_written(write):
    with pytest.raises(NotFittedError):
        write(LHTClassifier())
    with pytest.raises(TypeError, match="model must be a fitted"):
        write(None)
