"""The page of a report in a real browser."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from lhtree.explain import explain_rows
from report_pages import EVIL, EVIL_CLASS, MINUS, find, read_data, text_of


def test_all_pages_open_by_their_links(page, visit):
    driver = visit(page)
    for name in ("Trees", "Importances", "Why this prediction", "Summary"):
        driver.find_element("link text", name).click()
        shown = [each for each in find(driver, "section") if each.is_displayed()]
        assert [each.find_element("tag name", "h2").text for each in shown] == [name]
        assert text_of(driver, "nav [aria-current]") == name


def test_a_click_on_a_node_shows_its_weights(model, wine, page, visit):
    driver = visit(page, "#trees")
    node = find(driver, '[data-node="0"] > .node')[0]
    node.click()
    detail = find(driver, "#tree-detail")[0]
    assert "Split 0 of tree 0: class_0 against all other classes" in detail.text
    names = [each.text for each in find(driver, "#tree-detail table.bars tbody th")]
    feature, weight, *_ = model.trees_[0].terms(0)
    order = np.argsort(-np.abs(weight), kind="stable")[:10]
    assert names == [wine[0].columns[feature[k]] for k in order]
    shown = [each.text for each in find(driver, "#tree-detail tbody tr td:nth-child(3)")]
    assert_allclose([float(text.replace(MINUS, "-")) for text in shown], weight[order], rtol=1e-3)
    assert "training rows" in detail.text
    assert find(driver, "#tree-detail svg .positive")
    find(driver, '[data-node="1"] > .node')[0].click()
    assert "Leaf 1 of tree 0" in detail.text
    links = [each.text for each in find(driver, "#tree-detail .rows a")]
    rows = [row["number"] for row in read_data(page)["rows"]]
    here = [k for k in rows if model.apply(wine[0].iloc[[k]])[0, 0] == 1]
    assert [int(text.split(":")[0]) for text in links] == here


def test_a_keyboard_user_reaches_every_node(model, page, visit):
    from selenium.webdriver.common.keys import Keys

    driver = visit(page, "#trees")
    for _ in range(30):
        driver.switch_to.active_element.send_keys(Keys.TAB)
        if driver.switch_to.active_element.get_attribute("role") == "treeitem":
            break
    assert driver.switch_to.active_element.get_attribute("data-node") == "0"
    seen = set()
    for _ in range(model.trees_[0].n_nodes):
        item = driver.switch_to.active_element
        node = int(item.get_attribute("data-node"))
        seen.add(node)
        kind = "Leaf" if model.trees_[0].left[node] < 0 else "Split"
        assert f"{kind} {node} of tree 0" in text_of(driver, "#tree-detail h3")
        item.send_keys(Keys.ARROW_DOWN)
    assert seen == set(range(model.trees_[0].n_nodes))
    driver.switch_to.active_element.send_keys(Keys.HOME)
    driver.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
    assert len(find(driver, "[data-node]")) == 1
    driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert driver.switch_to.active_element.get_attribute("data-node") == "1"
    assert len(find(driver, '[role="treeitem"][tabindex="0"]')) == 1


def test_the_class_and_the_tree_can_be_chosen(model, page, visit):
    from selenium.webdriver.support.select import Select

    driver = visit(page, "#trees")
    Select(find(driver, "#tree-class")[0]).select_by_visible_text("class_2")
    assert "of tree 2: class_2" in text_of(driver, "#tree-detail h3")
    driver = visit(page, "#tree-1-2")
    assert "2 of tree 1: class_1" in text_of(driver, "#tree-detail h3")
    assert Select(find(driver, "#tree-class")[0]).first_selected_option.text == "class_1"
    driver.find_element("xpath", "//button[text()='Collapse all']").click()
    assert len(find(driver, "[data-node]")) == 1
    driver.find_element("xpath", "//button[text()='Expand all']").click()
    assert len(find(driver, "[data-node]")) == model.trees_[1].n_nodes


def test_the_numbers_of_a_why_page_add_up_to_the_vote(model, wine, page, visit):
    from selenium.webdriver.support.select import Select

    X, _ = wine
    number = read_data(page)["rows"][7]["number"]
    driver = visit(page, f"#why-{number}")
    explained = explain_rows(model, X.iloc[[number]])
    predicted = model.predict(X.iloc[[number]])[0]
    assert f"Row {number} is" in text_of(driver, ".verdict")
    for k, label in enumerate(model.classes_):
        if k:
            Select(find(driver, "#why-class")[0]).select_by_visible_text(label)
        else:
            chosen = Select(find(driver, "#why-class")[0])
            assert chosen.first_selected_option.text == predicted
            chosen.select_by_visible_text(label)
        texts = [each.text for each in find(driver, "#contributions td.number")]
        shown = [round(10_000 * float(text.replace(MINUS, "-"))) for text in texts]
        assert sum(shown[:-1]) == shown[-1] == round(10_000 * explained.score[0, k])
    assert "prediction becomes" in text_of(driver, "#counterfactual")
    driver.find_element("xpath", "//button[contains(text(), 'Next')]").click()
    follower = read_data(page)["rows"][8]["number"]
    assert f"Row {follower} is" in text_of(driver, ".verdict")
    assert driver.current_url.endswith(f"#why-{follower}")


def test_names_with_html_are_shown_as_text(evil_page, visit):
    driver = visit(evil_page)
    assert driver.title == "</title>" + EVIL
    assert text_of(driver, "h1") == "</title>" + EVIL
    assert EVIL_CLASS in text_of(driver, "#page-summary")
    for place, expected in (("#importances", EVIL), ("#trees", EVIL_CLASS), ("#why", EVIL_CLASS)):
        driver = visit(evil_page, place)
        assert expected in text_of(driver, "main")
        assert find(driver, "img") == []
    assert len(find(driver, "script")) == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["#summary", "#trees", "#importances", "#why"])
def test_pages_fit_a_narrow_window_in_both_colour_schemes(evil_page, visit, scheme, place):
    driver = visit(evil_page)
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        visit(evil_page, place)
        width = driver.execute_script("return document.documentElement.scrollWidth")
        colours = driver.execute_script(
            "const style = getComputedStyle(document.documentElement);"
            "return [style.color, style.backgroundColor];"
        )
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert width <= 400
    ink, paper = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours)
    assert (ink < paper) == (scheme == "light")
