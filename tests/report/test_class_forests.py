"""Reports of forests of classes with constant leaves: their data, and their pages."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from class_forests import KINDS, fit_class_forest, make_rows
from lhtree.explain import explain_rows, split_view
from lhtree.model.ensemble_splits import CategorySplit
from lhtree.report import write_report
from report_pages import MINUS, find, read_data, text_of

NAMES = ["two classes", "three classes"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return for each number of classes a model, rows, labels and the path of a report."""
    folder = tmp_path_factory.mktemp("report")
    made = {}
    for name, n_classes in KINDS.items():
        model, _ = fit_class_forest(name, max_depth=4)
        X, y = make_rows(n_classes)
        made[name] = (
            model,
            X,
            y,
            write_report(model, X, y, folder / f"{n_classes}.html", max_rows=8),
        )
    return made


@pytest.mark.parametrize("name", KINDS)
def test_the_trees_of_the_page_are_those_of_the_model(name, pages):
    model, X, _, path = pages[name]
    data = read_data(path)
    assert (data["kind"], data["has_votes"]) == ("shares", True)
    first = int(name == "two classes")
    n_trees = model.n_classes_ - first
    leaf = model.apply(X)
    assert len(data["trees"]) == len(model.trees_)
    for each, tree in zip(data["trees"], model.trees_, strict=True):
        assert each["estimator"] == tree.number // n_trees
        assert each["positive_class"] == tree.number % n_trees + first
        assert_allclose(each["share"], tree.prediction[:, 0], rtol=1e-4)
        assert_allclose(each["fraction"], tree.fraction, rtol=1e-3)
        number = [row["number"] for row in data["rows"]]
        assert each["leaf"] == leaf[number, tree.number].tolist()
        assert [cut is None for cut in each["cuts"]] == (tree.left < 0).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_distributions_are_those_of_the_rows(name, pages):
    model, X, y, path = pages[name]
    for each, tree in zip(read_data(path)["trees"][:4], model.trees_, strict=False):
        for node in np.flatnonzero(tree.left >= 0):
            drawn, pure, counts = each["cuts"][node]
            view = split_view(model, tree.number, node, X, y)
            for side, (positive, negative) in enumerate(counts):
                here = view.is_positive[view.is_right == side]
                assert (positive, negative) == (here.sum(), (~here).sum())
            sides = {"both": 2, "none": 0}.get(view.pure_side, 1)
            assert len(pure) == sides
            for side, is_positive in pure:
                here = view.is_positive[view.is_right == (side == "right")]
                assert np.all(here == is_positive)
            assert (drawn is None) == np.isnan(view.projection).all()
            if drawn is None:
                continue
            threshold, extremes, (_, _, positive, negative) = drawn
            assert threshold == pytest.approx(view.threshold, rel=1e-4)
            shown = np.array([np.nan if value is None else value for value in extremes])
            assert_allclose(shown, view.extremes, rtol=1e-4)
            has_number = ~np.isnan(view.projection)
            assert sum(positive) == view.is_positive[has_number].sum()
            assert sum(negative) == (~view.is_positive[has_number]).sum()
    kinds = {type(tree.split(0)) for tree in model.trees_}
    assert CategorySplit in kinds


@pytest.mark.parametrize("name", NAMES)
def test_contributions_add_up_to_the_vote(name, pages):
    model, X, _, path = pages[name]
    data = read_data(path)
    unit = 10 ** data["digits"]
    assert unit == 10_000
    explained = explain_rows(model, X)
    for row in data["rows"]:
        for k, (base, _, parts, _, others, score) in enumerate(row["why"]):
            assert base + sum(parts) + others == score
            assert score == round(unit * explained.score[row["number"], k])
        assert row["counterfactual"]["predicted"] != row["predicted"]


def test_the_words_of_the_page_are_those_of_votes(pages):
    text = pages["three classes"][3].read_text(encoding="utf-8")
    assert "Each tree votes for a class, or against it; its splits are by single columns" in text
    assert "How much of the lowered impurity is due to each feature" in text
    assert "for the trees of each class" in text
    assert "lowered loss" not in text


@pytest.mark.parametrize("name", KINDS)
def test_every_node_can_be_opened_and_says_its_share(name, pages, visit):
    model, _, _, path = pages[name]
    number = len(model.trees_) - 1
    tree = model.trees_[number]
    driver = visit(path, f"#tree-{number}-0")
    driver.find_element("xpath", "//button[text()='Expand all']").click()
    assert len(find(driver, "[data-node]")) == tree.n_nodes
    label = {"three classes": "middle", "two classes": "low", "one class": "high"}[name]
    assert text_of(driver, "#tree-class option:checked") == label
    for node in sorted({0, int(max(tree.left[0], 0)), tree.n_nodes - 1}):
        driver = visit(path, f"#tree-{number}-{node}")
        kind = "Leaf" if tree.left[node] < 0 else "Split"
        title = f"{kind} {node} of tree {number}: {label} against all other classes"
        assert text_of(driver, "#tree-detail h3") == title
        text = text_of(driver, "#tree-detail")
        share = float(re.search(rf"share of {label}: [<>]?([\d.]+) %", text)[1])
        assert share == pytest.approx(100 * tree.prediction[node, 0], abs=0.5)
        assert ("Left: " in text) == (tree.left[node] >= 0)
        cut = read_data(path)["trees"][number]["cuts"][node]
        assert len(find(driver, "#tree-detail figure")) == (cut is not None and cut[0] is not None)


@pytest.mark.parametrize("name", NAMES)
def test_a_why_page_leads_to_the_vote_on_a_scale_to_one(name, pages, visit):
    model, X, _, path = pages[name]
    data = read_data(path)
    row = data["rows"][3]
    driver = visit(path, f"#why-{row['number']}")
    texts = [each.text for each in find(driver, "#contributions td.number")]
    shown = [round(10_000 * float(text.replace(MINUS, "-"))) for text in texts]
    score = explain_rows(model, X.iloc[[row["number"]]]).score[0, row["predicted"]]
    assert sum(shown[:-1]) == shown[-1] == round(10_000 * score)
    label = model.classes_[row["predicted"]]
    assert text_of(driver, "#contributions h3") == f"What adds up to the vote for {label}"
    bars = find(driver, "#contributions td.bar rect")
    assert float(bars[-1].get_attribute("width")) == pytest.approx(100 * score, abs=0.5)


@pytest.mark.parametrize("place", ["#summary", "#tree-1-0", "#importances", "#why"])
def test_pages_fit_a_narrow_window(place, pages, visit):
    path = pages["three classes"][3]
    driver = visit(path)
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        visit(path, place)
        width = driver.execute_script("return document.documentElement.scrollWidth")
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert width <= 400
