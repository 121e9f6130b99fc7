"""Pictures of boosted models."""

import io
import re

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text

from boosted import CLASSIFIERS, NAMES, fit_boosted
from lhtree import LHBoostClassifier, LHBoostRegressor, plot
from lhtree.explain import class_importances, explain_rows
from lhtree.explain.model_view import view_model
from lhtree.plot.boundary import compute_segments
from lhtree.plot.canvas import FAINT, choose_decimals

WITH_TREES = [name for name in NAMES if name != "one class"]


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def read_labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


@pytest.mark.parametrize("name", WITH_TREES)
def test_a_tree_shows_conditions_fractions_and_changes(name, ax):
    model, _ = fit_boosted(name)
    tree = model.trees_[0]
    plot.plot_tree(model, max_nodes=1000, ax=ax)
    boxes = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    assert len(boxes) == tree.n_nodes
    texts = [re.split("\n|, (?=[0-9.]+% of)", text.get_text()) for text in ax.texts]
    nodes = [text for text in texts if any(" of rows" in line for line in text)]
    assert len(nodes) == tree.n_nodes
    titles = {text[0] for text in nodes}
    assert {f"leaf {node}" for node in np.flatnonzero(tree.left < 0)} <= titles
    assert all(len(line) <= 27 for text in nodes for line in text[:1])
    ax.figure.savefig(io.BytesIO())


def test_a_leaf_shows_what_it_adds_by_number_bar_and_colour(ax):
    X = np.arange(10.0)[:, np.newaxis]
    kind = {"n_estimators": 1, "learning_rate": 1.0, "max_leaf_nodes": 2, "l2_regularization": 0.0}
    model = LHBoostRegressor(**kind).fit(X, np.where(X[:, 0] < 7, 1.0, 3.0))
    plot.plot_tree(model, ax=ax)
    text = {each.get_text().replace(", ", "\n") for each in ax.texts}
    minus = "\N{MINUS SIGN}"
    assert {
        "x0 < 6.5\n100%\n+0.000".replace("100%", "100% of rows"),
        f"leaf 1\n70% of rows\n{minus}0.600",
        "leaf 2\n30% of rows\n+1.400",
    } <= text
    assert ax.get_title() == "Tree 0: adds to the prediction"
    boxes = {patch.get_gid(): patch for patch in ax.patches if patch.get_gid()}
    assert boxes["leaf 1"].get_edgecolor() != boxes["leaf 2"].get_edgecolor()
    widths = sorted(patch.get_width() for patch in ax.patches if not patch.get_gid())
    assert widths[1] / widths[2] == pytest.approx(0.6 / 1.4, rel=1e-6)
    assert widths[2] == pytest.approx(0.4 * boxes["leaf 1"].get_width())  # from the middle on


def test_weights_of_a_boosted_tree_have_a_panel_of_its_splits(ax):
    model, _ = fit_boosted("numbers")
    plot.plot_weights(model, estimator=3, n_splits=100, ax=ax)
    tree = model.trees_[3]
    split = np.flatnonzero(tree.left >= 0)
    assert len(ax.containers) == len(split)
    assert "tree 3" in [text.get_text() for text in ax.texts]
    names = read_labels(ax)
    for bars, node in zip(ax.containers, split, strict=True):
        bar = {name: patch for name, patch in zip(names, bars, strict=True) if patch.get_width()}
        described = tree.split(node)
        if tree.column[node] >= 0:
            assert list(bar) == [model.column_names_[tree.column[node]]]
            continue
        expected = described.coefficient / np.abs(described.coefficient[0]) * plot.weights.BAR
        for j, width in zip(described.feature, expected, strict=True):
            assert bar[model.column_names_[j]].get_width() == pytest.approx(width)
    row = names.index("color")
    of_color = [bars[row] for bars in ax.containers if bars[row].get_width()]
    assert of_color
    assert {bar.get_facecolor() for bar in of_color} == {to_rgba(FAINT)}


@pytest.mark.parametrize("name", NAMES)
def test_importances_are_those_of_the_model(name, ax):
    model, _ = fit_boosted(name)
    plot.plot_importances(model, ax=ax)
    widths = [bar.get_width() for bar in ax.containers[0]]
    np.testing.assert_allclose(widths, np.sort(model.feature_importances_)[::-1])
    assert ax.get_xlabel() == "fraction of the lowered loss"
    if name in CLASSIFIERS:
        plot.plot_importances(model, model.classes_[-1], ax=ax)
        widths = [bar.get_width() for bar in ax.containers[1]]
        np.testing.assert_allclose(widths, np.sort(class_importances(model)[-1])[::-1])


@pytest.mark.parametrize("name", NAMES)
def test_contributions_lead_from_the_mean_to_the_score(name, ax):
    model, X = fit_boosted(name)
    plot.plot_contributions(model, X.iloc[[7]], n_features=3, ax=ax)
    explained = explain_rows(model, X.iloc[[7]])
    k = len(explained.output_names) // 2
    if name in CLASSIFIERS:
        k = list(model.classes_).index(model.predict(X.iloc[[7]])[0])
    ends = ax.containers[0]
    assert ends[0].get_width() == pytest.approx(explained.base[k])
    assert ends[1].get_width() == pytest.approx(explained.score[0, k])
    labels = read_labels(ax)
    assert labels[0] == "mean in training"
    assert labels[-1] in explained.output_names[k]
    ax.figure.savefig(io.BytesIO())


def test_changes_are_seen_beside_a_large_base(ax):
    X = np.arange(100.0)[:, np.newaxis]
    kind = {"n_estimators": 20, "learning_rate": 0.1, "l2_regularization": 0.3}
    kind["early_stopping"] = False
    model = LHBoostRegressor(**kind).fit(X, 1000 + X[:, 0])
    plot.plot_contributions(model, X[:1], ax=ax)
    low, high = ax.get_xlim()
    assert 900 < low < 1000 < 1040 < high < 1100
    ends = ax.containers[0]
    assert ends[0].get_width() > 1000
    other = Figure().subplots()
    plot.plot_contributions(model.fit(X, X[:, 0]), X[:1], ax=other)
    assert other.get_xlim()[0] <= 0


def test_contributions_name_the_category_and_the_unit(ax):
    model, X = fit_boosted("two classes", labels=["no", "yes"])
    plot.plot_contributions(model, X.iloc[[4]], "no", ax=ax)
    assert f"color = {X['color'][4]}" in read_labels(ax)
    assert ax.get_title().startswith("Why no: log-odds \N{MINUS SIGN}")
    assert ax.get_xlabel() == "log-odds of no"


def test_segments_of_a_boosted_tree_separate_the_sides_of_their_nodes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2)) * [1, 100] + [0, 1000]
    kind = {"n_estimators": 5, "early_stopping": False, "l2_regularization": 0.3}
    model = LHBoostRegressor(**kind).fit(X, X[:, 0] + X[:, 1] / 100 > 10)
    low, high = X.min(axis=0), X.max(axis=0)
    n_segments = 0
    for tree in model.trees_:
        for segment in compute_segments(view_model(model), tree, low, high):
            along = np.diff(segment, axis=0)[0] / [1, 100]  # columns in like units
            across = 1e-5 * np.array([-along[1], along[0]]) / np.linalg.norm(along) * [1, 100]
            sides = segment.mean(axis=0) + [[1], [-1]] * across
            leaf = model.apply(sides)[:, tree.number]
            assert leaf[0] != leaf[1]
            n_segments += 1
    assert n_segments > 10


def test_a_boundary_has_regions_for_classes_and_shades_for_numbers(ax):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2))
    model = LHBoostClassifier(n_estimators=5).fit(X, X[:, 0] > 0)
    plot.plot_boundary(model, X, X[:, 0] > 0, estimator=4, resolution=20, ax=ax)
    assert ax.images[0].get_array().shape == (20, 20)
    assert set(np.unique(ax.images[0].get_array())) == {0, 1}
    assert sum(isinstance(each, LineCollection) for each in ax.collections) == 1
    model, other = LHBoostRegressor(n_estimators=5).fit(X, X[:, 0]), Figure().subplots()
    plot.plot_boundary(model, X, X[:, 0], resolution=20, ax=other)
    low, high = other.images[0].get_array().min(), other.images[0].get_array().max()
    assert -3 < low < -0.1 < 0.1 < high < 3
    assert any(text.get_text().startswith("predicted") for text in other.figure.findobj(Text))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m, X: plot.plot_tree(m, 99), ValueError, "tree must be .* got 99"),
        (
            lambda m, X: plot.plot_weights(m, 1),
            TypeError,
            "class_label is for .* leave",
        ),
        (lambda m, X: plot.plot_weights(m, estimator=12), ValueError, "estimator .* got 12"),
        (lambda m, X: plot.plot_contributions(m, X[:1], 1), ValueError, "predicts numbers; leave"),
        (lambda m, X: plot.plot_importances(m, 1), ValueError, "predicts numbers; leave"),
        (lambda m, X: plot.plot_boundary(m, X, X["a"]), ValueError, "two numeric columns.* has 5"),
        (lambda m, X: plot.plot_split(m, 0, 0, X, X["a"]), TypeError, "no positive class"),
    ],
)
def test_what_a_model_of_numbers_lacks_is_refused_in_one_sentence(call, error, message):
    model, X = fit_boosted("numbers")
    with pytest.raises(error, match=message):
        call(model, X)


def test_numbers_have_about_four_digits():
    assert [choose_decimals([x]) for x in (0.7, 1.0, 9.99, 12, 152.1, 1e9, 1e-3, 0)] == [
        3, 3, 3, 2, 1, 0, 6, 3,
    ]  # fmt: skip
