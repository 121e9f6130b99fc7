"""The pages of reports about boosted models, in a real browser."""

import re

import numpy as np
import pytest

from boosted import make_frame
from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.explain import explain_rows
from lhtree.report import write_report
from report_pages import EVIL, EVIL_CLASS, MINUS, find, read_data, text_of


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return for several kinds of targets a model, rows, targets and the path of a report."""
    folder = tmp_path_factory.mktemp("report")
    X, y = make_frame()
    X = X.rename(columns={"a": EVIL, "b": "b" * 200})
    labels = np.array(["no", EVIL_CLASS, "yes"])[np.digitize(y, [-1, 1])]
    made = {}
    for name, model, target in (
        ("numbers", LHBoostRegressor(n_estimators=4, early_stopping=True, random_state=0), y),
        ("classes", LHBoostClassifier(n_estimators=4), labels),
        ("two", LHBoostClassifier(n_estimators=4), y > 0),
        ("no tree", LHBoostClassifier(n_estimators=4), np.zeros(len(y))),
    ):
        path = write_report(model.fit(X, target), X, target, folder / f"{name}.html", max_rows=6)
        made[name] = model, X, target, path
    return made


@pytest.mark.parametrize("name", ["numbers", "classes", "two"])
def test_every_node_can_be_opened_and_says_what_it_adds(name, pages, visit):
    model, _, _, path = pages[name]
    driver = visit(path, "#tree-2-0")
    driver.find_element("xpath", "//button[text()='Expand all']").click()
    tree = model.trees_[2]
    assert len(find(driver, "[data-node]")) == tree.n_nodes
    assert find(driver, "#tree-class") == []
    for node in (0, int(tree.left[0]), tree.n_nodes - 1):
        driver = visit(path, f"#tree-2-{node}")
        kind = "Leaf" if tree.left[node] < 0 else "Split"
        assert f"{kind} {node} of tree 2: adds to" in text_of(driver, "#tree-detail h3")
        text = text_of(driver, "#tree-detail").replace(MINUS, "-")
        value = tree.value[node]
        change = value[np.abs(value).argmax()]
        if abs(change) >= 1e-3:
            assert f"{change:+.4g}"[:6] in text
        assert ("Left: " in text) == (tree.left[node] >= 0)
        if name == "two":
            assert re.search(r"[+-][\d.e-]+ to the log-odds of True", text)


@pytest.mark.parametrize("name", ["numbers", "classes", "two", "no tree"])
def test_the_numbers_of_a_why_page_add_up_to_the_score(name, pages, visit):
    model, X, _, path = pages[name]
    data = read_data(path)
    row = data["rows"][3]
    driver = visit(path, f"#why-{row['number']}")
    k = row["predicted"] if data["classes"] else 0
    unit = 10 ** data["digits"]
    texts = [each.text for each in find(driver, "#contributions td.number")]
    shown = [round(unit * float(text.replace(MINUS, "-"))) for text in texts]
    score = explain_rows(model, X.iloc[[row["number"]]]).score[0, k]
    assert sum(shown[:-1]) == shown[-1] == round(unit * score)
    title = text_of(driver, "#contributions h3")
    assert title == f"What adds up to the {' '.join(data['outputs'][k].split())}"
    if name == "numbers":
        assert text_of(driver, ".verdict").endswith(("too high.", "too low."))
        assert find(driver, "#why-class") == find(driver, "#counterfactual") == []
    else:
        assert find(driver, "#counterfactual")


def test_a_model_without_trees_says_so(pages, visit):
    driver = visit(pages["no tree"][3], "#trees")
    assert "The model has no trees" in text_of(driver, "#tree")


@pytest.mark.parametrize("place", ["#summary", "#trees", "#importances", "#why"])
@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_pages_fit_a_narrow_window(name, place, pages, visit):
    path = pages[name][3]
    driver = visit(path)
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        visit(path, place)
        width = driver.execute_script("return document.documentElement.scrollWidth")
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert width <= 400
    assert find(driver, "img") == []
