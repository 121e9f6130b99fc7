"""The report: its numbers, its page in a real browser, and its file."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn import metrics as sk
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import NotFittedError

import lhtree.report
from lhtree import LHForestClassifier, LHTClassifier
from lhtree.explain import explain_rows, nearest_counterfactual, split_view
from lhtree.explain.values import describe_values
from lhtree.report import write_report
from lhtree.report.metrics import Answers, find_metrics
from lhtree.report.render import _format_percent
from lhtree.report.rows import choose_rows, round_to_sum

EVIL = "<script>alert(1)</script>"
EVIL_CLASS = "</script><img src=x onerror=alert(2)>"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WRONG = load_wine(as_frame=True).data.iloc[:, :2]
MINUS = "\N{MINUS SIGN}"
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="module")
def wine():
    data = load_wine(as_frame=True)
    return data.data, data.target_names[data.target]


@pytest.fixture(scope="module")
def model(wine):
    X, y = wine
    return LHTClassifier(beta=0.25).fit(X[::2], y[::2])


@pytest.fixture(scope="module")
def page(model, wine, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "wine.html"
    return write_report(model, *wine, path, max_rows=40)


@pytest.fixture(scope="module")
def evil_page(wine, tmp_path_factory):
    X, y = wine
    X = X.rename(columns={"proline": EVIL, "hue": "<!--", "ash": "a" * 200})
    y = np.where(y == "class_0", EVIL_CLASS, y)
    path = tmp_path_factory.mktemp("report") / "evil.html"
    model = LHForestClassifier(n_estimators=3, random_state=0).fit(X, y)
    return write_report(model, X, y, path, max_rows=6, title="</title>" + EVIL)


def read_data(path):
    text = Path(path).read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


# What the page says


@pytest.mark.parametrize("form", ["csr_array", "csc_array", "coo_array", "coo_matrix"])
def test_a_sparse_table_is_reported_without_a_dense_copy(form, tmp_path, monkeypatch):
    X = scipy.sparse.coo_array(scipy.sparse.random(200, 30, 0.1, random_state=0))
    y = np.ravel(X.sum(axis=1) > 1.5)
    model = LHTClassifier().fit(X, y)
    dense = write_report(model, X.toarray(), y, tmp_path / "dense.html", max_rows=3)
    most = []
    encode = type(model).encode_rows
    monkeypatch.setattr(type(model), "encode_rows", lambda m, x: most.append(x) or encode(m, x))
    monkeypatch.setattr(lhtree.report, "MOST_COUNTED", 20)
    table = getattr(scipy.sparse, form)(X)
    sparse = write_report(model, table, y, tmp_path / "sparse.html", max_rows=3)
    assert max(part.shape[0] for part in most) < 30
    assert f"{len(y):,} rows" in sparse.read_text(encoding="utf-8")
    assert dense.stat().st_size > 0


def test_metrics_are_scikit_learns():
    rng = np.random.default_rng(0)
    probability = rng.dirichlet([0.5] * 4, size=300)
    code = rng.integers(0, 4, 300)
    predicted = probability.argmax(axis=1)
    found = find_metrics(Answers(code, predicted, probability))
    assert found.accuracy == pytest.approx(sk.accuracy_score(code, predicted))
    assert found.log_loss == pytest.approx(sk.log_loss(code, probability))
    one_hot = np.eye(4)[code]
    assert found.brier == pytest.approx(np.square(probability - one_hot).sum(axis=1).mean())
    assert (found.confusion == sk.confusion_matrix(code, predicted)).all()
    precision, recall, f1, _ = sk.precision_recall_fscore_support(code, predicted)
    assert_allclose([found.precision, found.recall, found.f1], [precision, recall, f1])
    place = np.digitize(probability.max(axis=1), np.arange(0.1, 1, 0.1))
    gaps = [
        abs((predicted == code)[place == b].mean() - probability.max(axis=1)[place == b].mean())
        * (place == b).mean()
        for b in np.unique(place)
    ]
    assert found.reliability.error == pytest.approx(sum(gaps))


def test_the_page_has_the_metrics_of_all_rows(model, wine, page):
    X, y = wine
    text = page.read_text(encoding="utf-8")
    assert f"<b>{100 * model.score(X, y):.1f} %</b><span>accuracy on 178 rows" in text
    for name, count in zip(*np.unique(y, return_counts=True), strict=True):
        assert re.search(rf"{name.replace('_', '_<wbr>')}</th><td>{count}</td>", text)


def test_the_page_predicts_what_the_model_does_where_probabilities_are_equal(wine, tmp_path):
    X, y = wine
    model = LHForestClassifier(5, calibration="oob", random_state=0).fit(X, y)
    model.calibration_ = np.array([0.1, 0.0])  # all classes are as likely
    assert (model.predict_proba(X).argmax(axis=1) == 0).all()
    path = write_report(model, X, y, tmp_path / "equal.html", max_rows=20)
    text = path.read_text(encoding="utf-8")
    assert f"<b>{100 * model.score(X, y):.1f} %</b><span>accuracy on 178 rows" in text
    for row in read_data(path)["rows"]:
        label = model.classes_[row["predicted"]]
        assert label == model.predict(X.iloc[[row["number"]]])[0]


def test_one_hundred_percent_means_all():
    assert [_format_percent(value) for value in (0.9991, 0.9996, 1.0)] == [
        "99.9 %",
        ">99.9 %",
        "100.0 %",
    ]


def test_the_page_says_what_is_left_out(wine, model, page, tmp_path):
    text = page.read_text(encoding="utf-8")
    assert "Rows: 40 of 178 are explained" in text
    assert "the 10 strongest of 13" in text
    assert "Trees: the first" not in text
    path = write_report(model, *wine, tmp_path / "few.html", max_rows=3, max_trees=2)
    assert "Trees: the first 2 of 3 are shown" in path.read_text(encoding="utf-8")
    data = read_data(path)
    assert [tree["number"] for tree in data["trees"]] == [0, 1]
    assert len(data["rows"]) == 3


def test_contributions_add_up_in_whole_units_to_the_vote(model, wine, page):
    X, _ = wine
    data = read_data(page)
    number = [row["number"] for row in data["rows"]]
    explained = explain_rows(model, X.iloc[number])
    for i, row in enumerate(data["rows"]):
        for k, (base, features, values, n_other, other, vote) in enumerate(row["why"]):
            assert base + sum(values) + other == vote
            assert (other == 0) or n_other
            assert vote == round(10_000 * explained.vote[i, k])
            assert_allclose(values, 10_000 * explained.contribution[i, k, features], atol=1.0)
            rest = (
                explained.contribution[i, k].sum() - explained.contribution[i, k, features].sum()
            )
            assert other == pytest.approx(10_000 * rest, abs=1.5)  # base and vote are rounded too
            assert all(row["values"][str(j)].startswith(X.columns[j]) for j in features)


def test_distributions_and_leaves_are_those_of_the_rows(model, wine, page):
    X, y = wine
    data = read_data(page)
    leaf = model.apply(X)
    number = [row["number"] for row in data["rows"]]
    for tree in data["trees"]:
        assert tree["leaf"] == leaf[number, tree["number"]].tolist()
        for node, split in enumerate(tree["splits"]):
            if split is None:
                assert tree["left"][node] < 0
                continue
            view = split_view(model, tree["number"], node, X, y)
            threshold, _, rule, extremes, pure, (_, _, targets, rest) = split
            assert threshold == pytest.approx(view.threshold, rel=1e-4)
            assert_allclose(extremes, view.extremes, rtol=1e-4)
            assert rule == view.rule
            assert sum(targets) == view.is_target.sum()
            assert sum(rest) == (~view.is_target).sum()
            sides = [side for side, _ in pure]
            assert sides == {"both": ["left", "right"], "none": []}.get(
                view.pure_side, [view.pure_side]
            )


def test_counterfactuals_of_single_trees_are_the_proven_ones(model, wine, page):
    X, _ = wine
    for row in read_data(page)["rows"][:4]:
        answer = nearest_counterfactual(model, X.iloc[[row["number"]]])
        assert row["counterfactual"]["message"] == answer.message
        names = [name for name, *_ in row["counterfactual"]["changes"]]
        changed = {name for name, by in zip(X.columns, answer.change, strict=True) if by != 0}
        assert set(names) <= changed
        assert len(names) == min(len(changed), 10)


@pytest.mark.parametrize("max_rows", [1, 7, 50, 99, 100, 200])
def test_half_of_the_rows_explained_may_be_wrong_ones(max_rows):
    code = np.zeros(100, dtype=int)
    predicted = (np.arange(100) % 4 == 0).astype(int)  # 25 wrong
    chosen = choose_rows(code, predicted, max_rows)
    assert len(chosen) == min(max_rows, 100)
    assert len(set(chosen.tolist())) == len(chosen)
    n_wrong = int(predicted[chosen].sum())
    assert n_wrong == min(25, max(max_rows // 2, max_rows - 75))


def test_rounded_numbers_keep_their_sum():
    rng = np.random.default_rng(0)
    for _ in range(200):
        value = rng.normal(size=rng.integers(1, 12)) * 100
        total = round(value.sum())
        whole = round_to_sum(value, total)
        assert sum(whole) == total
        error = np.array(whole) - value
        assert np.abs(error).max() <= 1
        is_up = error > 0
        if is_up.any() and not is_up.all():  # the largest remainders are rounded up
            assert (value % 1)[is_up].min() >= (value % 1)[~is_up].max()


def test_a_forest_report_is_small_and_written_the_same_again(wine, tmp_path):
    X, y = load_digits(return_X_y=True)
    model = LHForestClassifier(n_estimators=10, random_state=0).fit(X, y)
    first = write_report(model, X, y, tmp_path / "a.html", max_rows=4)
    second = write_report(model, X, y, tmp_path / "b.html", max_rows=4)
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size < 1_000_000


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.arange(30.0).reshape(15, 2), np.repeat([False, True], [7, 8])),
        (np.arange(6.0).reshape(3, 2), np.array(["only"] * 3)),
        (np.zeros((4, 1)), np.array([3, 7, 3, 7])),
    ],
    ids=["two classes", "one class", "no split"],
)
def test_small_models_have_a_report(X, y, tmp_path):
    data = read_data(write_report(LHTClassifier().fit(X, y), X, y, tmp_path / "r.html"))
    assert len(data["rows"]) == len(y)
    assert data["classes"] == [str(label) for label in np.unique(y)]


def test_missing_values_add_nothing_and_are_named(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    X[::3, 1] = np.nan
    model = LHTClassifier().fit(X, y)
    data = read_data(write_report(model, X, y, tmp_path / "r.html"))
    for row in data["rows"]:
        assert ("1" in row["values"]) == (row["number"] % 3 != 0)
    assert describe_values(explain_rows(model, X), 3)[1] == "missing"


def test_categories_and_shrunk_shares_are_told_as_they_are(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=200), "colour": rng.choice(["red", "<b>"], 200)})
    y = np.where((X["colour"] == "red") ^ (rng.random(200) < 0.2), "yes", "no")
    model = LHForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    data = read_data(write_report(model, X, y, tmp_path / "r.html", max_rows=20))
    assert data["columns"] == model.column_names_
    assert data["isShrunk"] == (model.shrinkage_ > 0)
    for row in data["rows"]:
        assert row["values"]["1"] == f"colour = {X['colour'][row['number']]}"
        assert row["counterfactual"]["predicted"] in (None, 1 - row["predicted"])


# Its file


def test_names_with_html_are_escaped_in_the_file(evil_page):
    text = evil_page.read_text(encoding="utf-8")
    assert EVIL not in text
    assert "<img" not in text
    assert text.count("</script>") == 2
    assert text.count("<title>") == text.count("</title>") == 1
    data = read_data(evil_page)
    assert EVIL in data["columns"]
    assert EVIL_CLASS in data["classes"]


def test_the_page_allows_no_scripts_but_its_own(page):
    policy = re.search(r'Policy" content="([^"]*)"', page.read_text(encoding="utf-8"))[1]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_an_old_report_stays_until_the_new_one_is_complete(model, wine, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_):
        raise MemoryError("the new page is not complete")

    monkeypatch.setattr(lhtree.report, "render", fail)
    with pytest.raises(MemoryError):
        write_report(model, *wine, path, max_rows=1)
    assert path.read_text() == "old"
    monkeypatch.undo()
    write_report(model, *wine, path, max_rows=1)
    assert path.read_text().startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model": LHTClassifier()}, NotFittedError, "not fitted"),
        ({"model": None}, TypeError, "got NoneType"),
        ({"y": ["class_0"]}, ValueError, "one label for each of the 178 rows"),
        ({"y": ["class_9"] * 178}, ValueError, "y has class_9, but"),
        ({"X": WRONG}, ValueError, "feature names|columns"),
        ({"max_trees": 0}, ValueError, "max_trees must be .* got 0"),
        ({"max_rows": 1.5}, ValueError, "max_rows must be .* got 1.5"),
        ({"title": 3}, TypeError, "title must be a string or None, got 3"),
        ({"path": "no/such/folder/r.html"}, FileNotFoundError, "make no/such/folder first"),
        ({"path": "."}, IsADirectoryError, "is a folder"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_input_gets_one_sentence_and_no_file(
    model, wine, tmp_path, monkeypatch, change, error, message
):
    monkeypatch.chdir(tmp_path)
    arguments = {"model": model, "X": wine[0], "y": wine[1], "path": "r.html"} | change
    with pytest.raises(error, match=message):
        write_report(**arguments)
    assert list(tmp_path.iterdir()) == []


def test_without_jinja_the_import_names_the_extra():
    code = "import sys; sys.modules['jinja2'] = None; import lhtree.report"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: lhtree.report needs Jinja2: pip install 'lhtree[report]'." in run.stderr


# The page in a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not (CHROMIUM and DRIVER):
        pytest.skip("chromium and chromedriver are not installed")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (
        "headless=new",
        "no-sandbox",
        "disable-gpu",
        "disable-dev-shm-usage",
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        f"user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture
def visit(browser):
    """Open a page; at the end of the test nothing was complained of or asked for."""
    browser.get("about:blank")
    browser.get_log("browser"), browser.get_log("performance")

    def visit(path, place=""):
        browser.get("about:blank")
        browser.get(path.as_uri() + place)
        return browser

    yield visit
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert urls
    assert [url for url in urls if not url.startswith(("file:", "data:,", "about:"))] == []


def find(driver, selector):
    return driver.find_elements("css selector", selector)


def text_of(driver, selector):
    return find(driver, selector)[0].text


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
    assert "Split 0 of tree 0: class_0 against the rest" in detail.text
    names = [each.text for each in find(driver, "#tree-detail table.bars tbody th")]
    feature, weight, *_ = model.trees_[0].terms(0)
    order = np.argsort(-np.abs(weight), kind="stable")[:10]
    assert names == [wine[0].columns[feature[k]] for k in order]
    shown = [each.text for each in find(driver, "#tree-detail tbody tr td:nth-child(3)")]
    assert_allclose([float(text.replace(MINUS, "-")) for text in shown], weight[order], rtol=1e-3)
    assert "training rows" in detail.text
    assert find(driver, "#tree-detail svg .target")
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
        assert sum(shown[:-1]) == shown[-1] == round(10_000 * explained.vote[0, k])
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
