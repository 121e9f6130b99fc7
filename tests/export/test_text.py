"""Trees as text and as Graphviz's DOT."""

import io
import re
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError

from hand_made import make_hand_made_model
from lhtree import LHForestClassifier, LHTClassifier
from lhtree.explain import rules
from lhtree.export import export_graphviz, export_text


def test_text_of_a_hand_made_tree():
    model = make_hand_made_model()
    assert export_text(model, n_features=1, show_weights=True) == (
        "Tree 0: yes against all other classes\n"
        "|--- x0 + (1 more) < 1.00\n"
        "|   |--- value: 0.00, weight: 4.00\n"
        "|--- x0 + (1 more) >= 1.00\n"
        "|   |--- value: 0.75, membership: -0.50*x1 + (1 more) + 0.50, weight: 4.00"
    )
    renamed = export_text(
        model, feature_names=["a", "b"], class_names=["N", "Y"], spacing=1, decimals=1
    )
    assert renamed.splitlines()[:2] == [
        "Tree 0: Y against all other classes",
        "|- a - 0.5*b < 1.0",
    ]


def test_text_lists_every_node_once():
    model = LHTClassifier().fit(*load_wine(return_X_y=True))
    lines = export_text(model, max_depth=100).splitlines()
    n_nodes = len(model.forest_.left)
    # Every leaf has a line of its own, every node but a root the line of its condition.
    assert len(lines) == 3 + model.get_n_leaves() + n_nodes - 3
    assert export_text(model, tree=1).startswith("Tree 1: 1 against all other classes")
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


@pytest.mark.parametrize("n_classes", [2, 3])
def test_texts_of_a_forest_of_classes_show_shares_of_a_class(n_classes):
    X, y = load_iris(return_X_y=True)
    y = np.array(["first", "second", "third"])[np.minimum(y, n_classes - 1)]
    model = LHForestClassifier(4, max_depth=2, shrinkage=0.0, random_state=0).fit(X, y)
    texts = export_text(model).split("Tree ")[1:]
    assert len(texts) == len(model.trees_)
    for number, (text, tree) in enumerate(zip(texts, model.trees_, strict=True)):
        name = model.classes_[number % 3] if n_classes == 3 else "second"
        assert text.startswith(f"{number}: votes for {name}, or against it\n")
        leaves = re.findall(r"value: (\S+)", text)
        shares = tree.prediction[tree.left < 0, 0]
        np.testing.assert_allclose(sorted(map(float, leaves)), np.sort(shares), rtol=0.05)
    assert re.search(
        r"value: 1.00, fraction of rows: 0\.\d+\n", export_text(model, show_weights=True)
    )
    drawn = export_graphviz(model, tree=0, filled=True)
    pure = "#0072b2" if n_classes == 3 else "#e69f00"  # the colour of the tree's class
    assert re.search(rf'value = 1.00", fillcolor="{pure}"', drawn)
    assert re.search(r'value = 0.00", fillcolor="#ffffff"', drawn)


def test_what_is_not_a_file_gets_a_clear_message():
    model = LHTClassifier().fit(*load_iris(return_X_y=True))
    with pytest.raises(TypeError, match="out_file must be a path, an open file or None, got 3"):
        export_graphviz(model, 3)


@pytest.mark.parametrize(("write", "message"), [
    (lambda m: export_text(m, tree=9), "tree must be an integer from 0 to 2, got 9"),
    (lambda m: export_text(m, feature_names=["a"]), "feature_names must list 4 names"),
    (lambda m: export_text(m, class_names="abc"), "class_names must list 3 names, got 'abc'"),
    (lambda m: export_text(m, decimals=-1), "decimals must be an integer from 0 to 17"),
    (lambda m: export_text(m, max_depth=-1), "max_depth must be an integer from 0"),
    (lambda m: export_text(m, spacing=0), "spacing must be an integer from 1"),
    (lambda m: export_graphviz(m, n_features=0), "n_features must be an integer from 1"),
    (lambda m: export_graphviz(m, max_depth=1.5), "max_depth must be an integer from 0"),
])  # fmt: skip
def test_bad_input_gets_a_clear_message(write, message):
    model = LHTClassifier().fit(*load_iris(return_X_y=True))
    with pytest.raises(ValueError, match=message):
        write(model)


@pytest.mark.parametrize("write", [export_text, export_graphviz])
def test_only_fitted_models_are_written(write):
    with pytest.raises(NotFittedError):
        write(LHTClassifier())
    with pytest.raises(TypeError, match="model must be a fitted"):
        write(None)
