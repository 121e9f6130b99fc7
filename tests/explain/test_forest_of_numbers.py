"""Forests of numbers in words and pictures: their trees vote for numbers, nothing adds up."""

import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from boosted import make_frame
from lhtree import LHForestRegressor, plot
from lhtree.explain import rules, split_table
from lhtree.export import export_graphviz, export_text
from lhtree.report import write_report
from report_pages import read_data

TASK = "votes for a number; the prediction is the mean over all trees"


@pytest.fixture(scope="module")
def stump():
    """Return a forest of two stumps, which predict 1 and 3."""
    X = np.arange(10.0)[:, np.newaxis]
    kind = {"max_samples": None, "max_depth": 1, "shrinkage": 0.0}
    return LHForestRegressor(2, **kind).fit(X, np.where(X[:, 0] < 7, 1.0, 3.0)), X


def test_a_rule_says_what_a_leaf_predicts(stump):
    model, X = stump
    of_tree = (
        "  if x0 < 6.50 then prediction 1.00 (70.0% of the rows)\n"
        "  if x0 >= 6.50 then prediction 3.00 (30.0% of the rows)\n"
    )
    assert str(rules(model, X=X)) == (
        f"Tree 0: {TASK}\n{of_tree}Tree 1: {TASK}\n{of_tree}"
        "R2 of the rules against the model: 1.0000."
    )
    assert rules(model).start == ()


def test_texts_and_tables_show_predictions(stump):
    model, _ = stump
    text = export_text(model, tree=0)
    assert text.startswith(f"Tree 0: {TASK}\n|--- x0 < 6.50\n|   |--- value: 1.00")
    assert "value = 3.00" in export_graphviz(model, filled=True)
    assert split_table(model)["value"].tolist() == pytest.approx([1.6, 1.6])


def test_a_picture_shows_predictions_and_how_far_they_are_from_the_mean(stump):
    model, _ = stump
    ax = Figure(layout="constrained").subplots()
    plot.plot_tree(model, ax=ax)
    text = {each.get_text().replace(", ", "\n") for each in ax.texts}
    assert {"x0 < 6.5\n100% of rows\n1.600", "leaf 1\n70% of rows\n1.000"} <= text
    assert ax.get_title() == f"Tree 0: {TASK}"
    bars = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    widths = sorted(patch.get_width() for patch in bars)
    assert widths[1] / widths[2] == pytest.approx(0.6 / 1.4, rel=1e-5)
    named = [each.get_text() for each in ax.figure.findobj(Text)]
    assert {"above the mean", "below the mean"} <= set(named)


def test_a_report_speaks_of_means_and_shows_no_rounds(tmp_path):
    frame, y = make_frame(300)
    model = LHForestRegressor(60, oob_score=True, random_state=0).fit(frame, y)
    page = write_report(model, frame, y, tmp_path / "page.html", max_trees=2, max_rows=5)
    text, data = page.read_text(encoding="utf-8"), read_data(page)
    assert f"Each tree {TASK}; its splits are" in text
    assert "out-of-bag score in training" in text
    assert "earning curve" not in text
    assert data["kind"] == "averaged"
    for tree, shown in zip(model.trees_, data["trees"], strict=False):
        np.testing.assert_allclose(shown["predicted"], tree.prediction[:, 0], rtol=1e-4)
        np.testing.assert_allclose(np.ravel(shown["value"]), tree.value[:, 0], rtol=1e-3)
    for row in data["rows"]:
        (base, _, parts, _, others, score) = row["why"][0]
        assert base + sum(parts) + others == score
    assert not re.search(r"adds to the prediction", text.split("<script")[0])
