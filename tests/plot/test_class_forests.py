"""Pictures of forests of classes with constant leaves."""

import io

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from sklearn.datasets import load_wine

from class_forests import KINDS, fit_class_forest, make_rows
from lhtree import LHForestClassifier, plot
from lhtree.explain import explain_rows, split_table, split_view
from lhtree.explain.model_view import view_model
from lhtree.plot.boundary import compute_segments
from lhtree.plot.canvas import NEGATIVE, PALETTE, POSITIVE

MANY = ["two classes", "three classes"]


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def save(ax):
    """Draw a picture as a file: what cannot be drawn fails here."""
    ax.figure.savefig(io.BytesIO())


def list_splits(model, kind):
    """Return tree and node of the splits of a kind."""
    table = split_table(model)
    chosen = table[table["kind"] == kind]
    return list(zip(chosen["tree"].tolist(), chosen["node"].tolist(), strict=True))


@pytest.mark.parametrize("name", MANY)
def test_a_tree_shows_conditions_and_shares_of_its_class(name, ax):
    model, _ = fit_class_forest(name, max_depth=3)
    tree = model.trees_[1]
    plot.plot_tree(model, 1, ax=ax)
    assert ax.get_title() == "Tree 1: low against all other classes"
    boxes = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    assert len(boxes) == tree.n_nodes
    texts = [text.get_text().replace("\n", ", ") for text in ax.texts]
    for node in np.flatnonzero(tree.left < 0):
        assert any(text.startswith(f"leaf {node}, ") for text in texts)
    bars = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    width = {color: [] for color in (POSITIVE, NEGATIVE)}
    for color, widths in width.items():
        widths += [bar.get_width() for bar in bars if bar.get_facecolor() == to_rgba(color)]
    share = np.divide(width[POSITIVE], np.add(width[POSITIVE], width[NEGATIVE]))
    np.testing.assert_allclose(share, tree.prediction[:, 0], atol=1e-9)


@pytest.mark.parametrize("kind", ["number", "hyperplane"])
def test_a_split_counts_each_row_with_a_number_once_on_its_side(kind):
    model, _ = fit_class_forest("three classes")
    X, y = make_rows(3)
    notes = set()
    for tree, node in list_splits(model, kind)[:12]:
        ax = Figure(layout="constrained").subplots()
        plot.plot_split(model, tree, node, X, y, ax=ax)
        view = split_view(model, tree, node, X, y)
        has_number = ~np.isnan(view.projection)
        counts = {True: 0, False: 0}
        for bars, sign in zip(ax.containers, (1, -1), strict=True):
            assert all(sign * bar.get_height() >= 0 for bar in bars)
            for bar in bars:
                middle = bar.get_x() + bar.get_width() / 2
                counts[bool(middle >= view.threshold)] += abs(bar.get_height())
        for is_right, count in counts.items():
            assert count == np.count_nonzero(view.is_right[has_number] == is_right)
        label = ax.get_xlabel()
        assert f"left below c = {view.threshold:.4g} (gini: least Gini impurity)\nleft: " in label
        n_without = np.count_nonzero(~has_number)
        assert ("not drawn" in label) == (n_without > 0)
        if n_without:
            assert f"not drawn: {n_without} row" in label
        notes.add(n_without > 0)
        assert max(map(len, label.split("\n"))) < 80
        save(ax)
    assert notes == ({True, False} if kind == "number" else {False})


def test_a_split_by_categories_has_a_bar_per_side_and_class(ax):
    model, _ = fit_class_forest("two classes")
    X, y = make_rows(2)
    tree, node = list_splits(model, "category")[0]
    plot.plot_split(model, tree, node, X, y, ax=ax)
    view = split_view(model, tree, node, X, y)
    heights = [bars[0].get_height() for bars in ax.containers]
    expected = [
        sign * np.count_nonzero((view.is_right == side) & (view.is_positive == (sign > 0)))
        for side in (False, True)
        for sign in (1, -1)
    ]
    assert heights == expected
    left, right = (label.get_text() for label in ax.get_xticklabels())
    assert left.startswith("left:\ncolor ")
    assert right.startswith("right:\ncolor ")
    assert not [line for line in ax.lines if line.get_linestyle() == "--"]
    save(ax)


def test_a_split_is_drawn_for_rows_of_one_class_and_for_none(ax):
    model, _ = fit_class_forest("two classes")
    X, y = make_rows(2)
    tree, node = list_splits(model, "number")[0]
    plot.plot_split(model, tree, node, X[y == "low"], y[y == "low"], ax=ax)
    assert [line.get_marker() for line in ax.lines].count("v") == 2  # at no place
    tree, node = max(list_splits(model, "number"), key=lambda each: each[1])
    away = np.setdiff1d(np.arange(len(X)), split_view(model, tree, node, X, y).row)
    empty = Figure(layout="constrained").subplots()
    plot.plot_split(model, tree, node, X.iloc[away], y[away], ax=empty)
    save(empty)


def test_weights_have_a_panel_for_each_class(ax):
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = LHForestClassifier(4, random_state=0).fit(X, y)
    plot.plot_weights(model, estimator=2, n_splits=2, ax=ax)
    texts = [text.get_text() for text in ax.texts]
    assert [text for text in texts if text.startswith("class ")] == [
        "class 0", "class 1", "class 2",
    ]  # fmt: skip
    one = Figure(layout="constrained").subplots()
    plot.plot_weights(model, 1, estimator=2, ax=one)
    tree = model.trees_[2 * 3 + 1]
    assert len(one.containers) == min(6, np.count_nonzero(tree.left >= 0))
    assert one.texts[0].get_text() == "class 1"


def test_of_two_classes_only_the_second_has_weights(ax):
    model, _ = fit_class_forest("two classes")
    with pytest.raises(ValueError, match=r"label='high' has no tree.*give class_label=.*'low'"):
        plot.plot_weights(model, "high", ax=ax)
    plot.plot_weights(model, "low", estimator=5, ax=ax)
    assert ax.texts[0].get_text() == "low"


@pytest.mark.parametrize("name", MANY)
def test_importances_and_contributions_say_what_they_are_fractions_of(name, ax):
    model, X = fit_class_forest(name)
    plot.plot_importances(model, ax=ax)
    assert ax.get_xlabel() == "fraction of the lowered impurity"
    plot.plot_importances(model, "low", ax=ax)
    assert ax.get_xlabel() == "fraction of the changes of the vote"
    assert ax.get_title() == "Importance of features, trees of low"
    plot.plot_contributions(model, X.iloc[[8]], "low", ax=ax)
    vote = explain_rows(model, X.iloc[[8]]).score[0, 1]
    assert ax.get_title() == f"Why low: vote {vote:.3f}"
    assert ax.get_xlabel() == "vote for low"
    assert ax.get_yticklabels()[0].get_text() == "fraction in training"


def test_segments_of_a_boundary_separate_the_sides_of_their_nodes_by_class(ax):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2)) * [1, 100]
    y = (X[:, 0] + X[:, 1] / 100 > 0).astype(int) + (X[:, 1] > 50)
    model = LHForestClassifier(2, max_depth=4, random_state=0).fit(X, y)
    low, high = X.min(axis=0), X.max(axis=0)
    n_segments = 0
    for tree in model.trees_:
        for segment in compute_segments(view_model(model), tree, low, high):
            along = np.diff(segment, axis=0)[0] / [1, 100]  # columns in like units
            if np.linalg.norm(along) < 1e-3:
                continue
            across = 1e-4 * np.array([-along[1], along[0]]) / np.linalg.norm(along) * [1, 100]
            leaf = model.apply(segment.mean(axis=0) + [[1], [-1]] * across)[:, tree.number]
            assert leaf[0] != leaf[1]
            n_segments += 1
    assert n_segments > 10
    plot.plot_boundary(model, X, y, estimator=1, resolution=20, ax=ax)
    lines = [each for each in ax.collections if isinstance(each, LineCollection)]
    assert [tuple(each.get_color()[0]) for each in lines] == [
        to_rgba(color) for color in PALETTE[:3]
    ]


def test_a_single_class_has_pictures():
    model, X = fit_class_forest("one class")
    for draw in (plot.plot_tree, plot.plot_weights, plot.plot_importances):
        save(draw(model, ax=Figure().subplots()))
    assert KINDS["one class"] == model.n_classes_
    assert plot.plot_contributions(model, X.iloc[[0]], ax=Figure().subplots()).get_title()
