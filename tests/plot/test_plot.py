"""Pictures: what is drawn, on which axes, and with which words."""

import io
import re
import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import NotFittedError

from lhtree import LHForestClassifier, LHTClassifier, plot
from lhtree.explain import explain_rows, split_view
from lhtree.explain.histogram import count_projections
from lhtree.explain.model_view import view_model
from lhtree.plot.boundary import compute_segments
from lhtree.plot.layout import lay_out

UGLY = [
    "$\\bad{x$ & <b>",
    "line\nbreak",
    "ä" * 70,
    "",
    "_under_",
    "%d \\frac",
    "a$",
    "b",
    "c",
    "d",
]


@pytest.fixture(scope="module")
def wine():
    data = load_wine(as_frame=True)
    return data.data, data.target_names[data.target]


@pytest.fixture(scope="module")
def model(wine):
    return LHTClassifier().fit(*wine)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return LHTClassifier().fit(X, y)


@pytest.fixture
def ax():
    return Figure().subplots()


def draw_all(model, X, y, two, two_X):
    """Return a call for each picture, given the axes."""
    return {
        "weights": lambda ax: plot.plot_weights(model, ax=ax),
        "tree": lambda ax: plot.plot_tree(model, ax=ax),
        "split": lambda ax: plot.plot_split(model, 0, 0, X, y, ax=ax),
        "importances": lambda ax: plot.plot_importances(model, ax=ax),
        "contributions": lambda ax: plot.plot_contributions(model, X[:1], ax=ax),
        "boundary": lambda ax: plot.plot_boundary(two, two_X, y, resolution=20, ax=ax),
    }


@pytest.fixture(scope="module")
def calls(model, wine):
    X, y = wine
    two = X[["alcohol", "hue"]]
    return draw_all(model, X, y, LHTClassifier().fit(two, y), two)


NAMES = ["weights", "tree", "split", "importances", "contributions", "boundary"]


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_drawn_on_the_axes_given_and_on_no_others(calls, name, ax):
    assert calls[name](ax) is ax
    assert ax.has_data() or ax.patches
    assert ax.figure.axes == [ax]
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", NAMES)
def test_without_axes_a_picture_gets_one_new_figure(calls, name):
    ax = calls[name](None)
    assert [plt.figure(number) for number in plt.get_fignums()] == [ax.figure]


@pytest.mark.parametrize("name", NAMES)
def test_names_and_labels_are_text_whatever_they_hold(name):
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, len(UGLY))), columns=UGLY)
    y = np.array(["$\\bad$", "<i>no</i>\n", "é" * 80])[np.argsort(np.argsort(X.iloc[:, 0])) // 30]
    model = LHTClassifier().fit(X, y)
    two = X.iloc[:, :2]
    figure = Figure(layout="constrained")
    ax = figure.subplots()
    draw_all(model, X, y, LHTClassifier().fit(two, y), two)[name](ax)
    figure.savefig(io.BytesIO())  # formulas would be parsed, and refused, here
    words = [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)]
    assert all("\n\n" not in word for word in words)
    assert max(len(line) for word in words for line in word.split("\n")) < 100


def test_weights_have_a_bar_for_each_feature_of_each_split(model, wine, ax):
    plot.plot_weights(model, ax=ax)
    n_splits = [np.count_nonzero(tree.left >= 0) for tree in model.trees_]
    assert len(ax.containers) == sum(n_splits)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(wine[0].columns)
    texts = [text.get_text() for text in ax.texts]
    assert [text for text in texts if text.startswith("class_")] == [
        "class_0",
        "class_1",
        "class_2",
    ]
    proline = list(wine[0].columns).index("proline")
    widths = [bar.get_width() for bar in ax.containers[0]]
    assert np.argmax(np.abs(widths)) == proline
    _, weight, *_ = model.trees_[0].terms(0)
    np.testing.assert_allclose(widths, plot.weights.BAR * weight)


def test_weights_of_one_class_and_of_what_fits(digits, ax):
    plot.plot_weights(digits, class_label=8, n_features=5, n_splits=3, ax=ax)
    assert len(ax.containers) == 3
    assert len(ax.get_yticklabels()) == 5
    n_hidden = np.count_nonzero(digits.trees_[8].left >= 0) - 3
    assert f"{n_hidden} further splits are not shown. 59 features" in ax.get_xlabel()


def test_weights_choose_the_features_with_the_largest_weights(model, ax):
    plot.plot_weights(model, class_label="class_0", n_features=2, n_splits=1, ax=ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["flavanoids", "proline"]


def test_a_tree_without_a_split_has_a_panel_that_says_so(ax):
    plot.plot_weights(LHTClassifier().fit([[0.0], [0.0], [0.0]], [0, 1, 2]), ax=ax)
    assert [text.get_text() for text in ax.texts].count("no\nsplit") == 3


def test_a_tree_shows_each_node_with_its_rows_and_value(model, ax):
    plot.plot_tree(model, 1, ax=ax)
    tree = model.trees_[1]
    boxes = {patch.get_gid(): patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)}
    assert set(boxes) == {
        f"{'leaf' if left < 0 else 'split'} {node}" for node, left in enumerate(tree.left)
    }
    texts = [text.get_text().replace("\n", ", ") for text in ax.texts]
    assert f"split 0, 178 rows, {tree.value[0]:.0%}" in texts
    assert ax.get_title() == "Tree 1: class_1 against all other classes"
    assert not any("Cut" in text for text in texts)
    widths = [boxes[f"leaf {node}"].get_linewidth() for node in np.flatnonzero(tree.left < 0)]
    assert min(widths) > boxes["split 0"].get_linewidth()


@pytest.mark.parametrize("max_nodes", [1, 2, 3, 10, 60])
def test_a_large_tree_is_cut_at_a_depth_and_says_so(digits, ax, max_nodes):
    plot.plot_tree(digits, 9, max_nodes=max_nodes, ax=ax)
    drawn = [patch.get_gid() for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    assert 1 <= len(drawn) <= max(max_nodes, 1)
    note = next(text.get_text() for text in ax.texts if "Cut" in text.get_text())
    assert f"{len(drawn)} of 61 nodes" in note
    hidden = [re.fullmatch(r"\+ (\d+) nodes", text.get_text()) for text in ax.texts]
    assert sum(int(match[1]) for match in hidden if match) == 61 - len(drawn)


def test_no_node_of_a_tree_covers_another_and_parents_are_in_the_middle(digits):
    for tree in digits.trees_:
        layout = lay_out(tree, 1000)
        for depth in range(layout.depth.max() + 1):
            assert np.diff(layout.x[layout.depth == depth]).min(initial=1) >= 1 - 1e-9
        split = np.flatnonzero(tree.left >= 0)
        middle = (layout.x[tree.left[split]] + layout.x[tree.left[split] + 1]) / 2
        np.testing.assert_allclose(layout.x[split], middle, atol=1e-9)


def test_a_chain_of_many_nodes_is_laid_out_without_recursion(ax):
    X = np.arange(3000.0)[:, np.newaxis] ** 2
    model = LHTClassifier(gamma=1).fit(X, np.arange(3000) % 2)
    assert model.get_depth() > 1000
    layout = lay_out(model.trees_[0], 10**6)
    assert len(layout.node) == model.trees_[0].n_nodes
    plot.plot_tree(model, ax=ax)


def test_a_split_counts_each_row_once_on_its_side(model, wine, ax):
    X, y = wine
    plot.plot_split(model, 1, 0, X, y, ax=ax)
    view = split_view(model, 1, 0, X, y)
    positive, negative = ([bar.get_height() for bar in bars] for bars in ax.containers)
    assert sum(positive) == view.is_positive.sum()
    assert -sum(negative) == (~view.is_positive).sum()
    left = sum(
        abs(bar.get_height())
        for bars in ax.containers
        for bar in bars
        if bar.get_x() + bar.get_width() / 2 < view.threshold
    )
    assert left == (~view.is_right).sum()
    marks = sorted(line.get_xdata()[0] for line in ax.lines if line.get_marker() in "^v")
    np.testing.assert_allclose(marks, sorted(view.extremes))
    assert "N3" in ax.get_xlabel()


@pytest.mark.parametrize("threshold", [0.0, 1e-300, 1 + 2**-52, -7e8])
def test_bins_keep_the_sides_of_a_threshold_apart(threshold):
    near = np.array([np.nextafter(threshold, -np.inf), threshold, threshold + 1, threshold - 1])
    extremes = np.array([near.min(), near.max()] * 2)
    bins = count_projections(near, np.ones(4, dtype=bool), threshold, extremes, 7)
    n_left = np.flatnonzero(bins.edge == threshold).item()
    assert bins.positive[:n_left].sum() == 2
    assert bins.positive[n_left:].sum() == 2


def test_importances_are_sorted_and_say_what_is_not_shown(model, ax):
    plot.plot_importances(model, n_features=4, ax=ax)
    widths = [bar.get_width() for bar in ax.containers[0]]
    np.testing.assert_allclose(widths, np.sort(model.feature_importances_)[::-1][:4])
    assert "9 less important features are not shown" in ax.get_xlabel()


def test_a_category_is_one_feature_with_its_value(ax):
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=80), "colour": rng.choice(["red", "blue"], 80)})
    model = LHTClassifier().fit(X, X["colour"] == "red")
    for label in (None, True):
        plot.plot_importances(model, label, ax=ax)
        assert [label.get_text() for label in ax.get_yticklabels()] == ["colour", "size"]
        assert sum(bar.get_width() for bar in ax.containers[-1]) == pytest.approx(1)
    plot.plot_contributions(model, X.iloc[[0]], ax=ax)
    assert f"colour = {X['colour'][0]}" in [label.get_text() for label in ax.get_yticklabels()]


@pytest.mark.parametrize("label", [None, "class_2"])
def test_contributions_lead_from_the_base_to_the_vote(model, wine, ax, label):
    X, _ = wine
    plot.plot_contributions(model, X.iloc[[70]], label, n_features=4, ax=ax)
    k = 1 if label is None else 2
    explained = explain_rows(model, X.iloc[[70]])
    ends = ax.containers[0]
    steps = [bars[0] for bars in ax.containers[1:]]
    assert ends[0].get_width() == pytest.approx(explained.base[k])
    assert ends[1].get_width() == pytest.approx(explained.score[0, k], abs=1e-12)
    at = ends[0].get_width()
    for bar in steps:
        assert bar.get_x() == pytest.approx(at)
        at = bar.get_x() + bar.get_width()
    assert at == pytest.approx(ends[1].get_width(), abs=1e-12)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[0] == "fraction in training"
    assert labels[-2:] == ["9 other features", "vote"]


def test_a_row_of_a_frame_and_a_plain_row_are_explained_alike(model, wine):
    X, y = wine
    titles = {
        plot.plot_contributions(model, x, ax=Figure().subplots()).get_title()
        for x in (X.iloc[[3]], X.iloc[3])
    }
    plain = LHTClassifier().fit(X.to_numpy(), y)
    titles.add(plot.plot_contributions(plain, X.to_numpy()[3], ax=Figure().subplots()).get_title())
    assert titles == {"Why class_0: vote 1.000"}


def test_segments_of_hyperplanes_separate_the_sides_of_their_nodes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2)) * [1, 100]
    y = (X[:, 0] + X[:, 1] / 100 > 0).astype(int) + (X[:, 1] > 50)
    model = LHTClassifier().fit(X, y)
    low, high = 2 * X.min(axis=0), 2 * X.max(axis=0)
    for tree in model.trees_:
        for segment in compute_segments(view_model(model), tree, low, high):
            along = np.diff(segment, axis=0)[0] / [1, 100]  # columns in like units
            across = 1e-6 * np.array([-along[1], along[0]]) / np.linalg.norm(along) * [1, 100]
            sides = segment.mean(axis=0) + [[1], [-1]] * across
            leaf = model.apply(sides)[:, tree.number]
            assert leaf[0] != leaf[1]


@pytest.mark.parametrize("preset", ["accurate", "paper"])
def test_a_boundary_has_points_of_each_class_and_segments_of_each_tree(wine, ax, preset):
    X, y = wine
    two = X[["alcohol", "hue"]]
    model = LHForestClassifier(n_estimators=3, preset=preset, random_state=0).fit(two, y)
    plot.plot_boundary(model, two, y, estimator=2, resolution=30, ax=ax)
    assert [len(line.get_xdata()) for line in ax.lines] == [59, 71, 48]
    assert sum(isinstance(each, LineCollection) for each in ax.collections) == 3
    assert ax.images[0].get_array().shape == (30, 30)


def test_the_regions_of_a_boundary_are_predictions_even_without_pandas(wine, ax, monkeypatch):
    pl = pytest.importorskip("polars")
    X, y = pl.DataFrame(wine[0][["alcohol", "hue"]].to_dict("list")), wine[1]
    model = LHTClassifier().fit(X, y)
    monkeypatch.setitem(sys.modules, "pandas", None)
    plot.plot_boundary(model, X, y, resolution=30, ax=ax)
    left, right, bottom, top = ax.images[0].get_extent()
    middle = (np.arange(30) + 0.5) / 30
    across, up = np.meshgrid(left + middle * (right - left), bottom + middle * (top - bottom))
    grid = pl.DataFrame({"alcohol": across.ravel(), "hue": up.ravel()})
    shown = model.classes_[ax.images[0].get_array().ravel()]
    np.testing.assert_array_equal(shown, model.predict(grid))


def test_two_classes_share_the_tree_of_the_second(ax):
    X = np.arange(20.0)[:, np.newaxis] + [0.0, 0.5]
    model = LHTClassifier().fit(X, X[:, 0] > 9)
    plot.plot_tree(model, ax=ax)
    assert ax.get_title() == "Tree 0: class True against all other classes"
    with pytest.raises(ValueError, match=r"label=False has no tree.*give class_label="):
        plot.plot_weights(model, class_label=False)
    plot.plot_importances(model, False, ax=ax)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m, X, y: plot.plot_tree(LHTClassifier()), NotFittedError, "not fitted"),
        (lambda m, X, y: plot.plot_tree("model"), TypeError, "got str"),
        (lambda m, X, y: plot.plot_tree(m, 3), ValueError, "tree must be .* 0 to 2, got 3"),
        (lambda m, X, y: plot.plot_tree(m, max_nodes=0), ValueError, "max_nodes .* got 0"),
        (lambda m, X, y: plot.plot_tree(m, ax=3), TypeError, "ax must be"),
        (lambda m, X, y: plot.plot_weights(m, "x"), ValueError, "'x' is not a class"),
        (lambda m, X, y: plot.plot_weights(m, estimator=1), ValueError, "estimator .* got 1"),
        (lambda m, X, y: plot.plot_split(m, 0, 1, X, y), ValueError, "is a leaf"),
        (lambda m, X, y: plot.plot_split(m, 0, 0, X, y[1:]), ValueError, "one label for each"),
        (lambda m, X, y: plot.plot_importances(m, 5), ValueError, "5 is not a class"),
        (lambda m, X, y: plot.plot_contributions(m, X), ValueError, "x must be one row"),
        (lambda m, X, y: plot.plot_boundary(m, X, y), ValueError, "two numeric columns"),
    ],
)
def test_bad_input_gets_one_clear_sentence(model, wine, call, error, message):
    with pytest.raises(error, match=message):
        call(model, *wine)
    assert plt.get_fignums() == []


def test_without_matplotlib_the_import_names_the_extra():
    code = "import sys; sys.modules['matplotlib'] = None; import lhtree; import lhtree.plot"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: lhtree.plot needs matplotlib: pip install 'lhtree[plot]'." in run.stderr
