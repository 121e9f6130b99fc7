"""Models and pages for the tests of reports."""

import json
import shutil

import numpy as np
import pytest
from sklearn.datasets import load_wine

from lhtree import LHForestClassifier, LHTClassifier
from lhtree.report import write_report
from report_pages import EVIL, EVIL_CLASS


@pytest.fixture(scope="session")
def wine():
    """Return Wine as a frame, and its labels as text."""
    data = load_wine(as_frame=True)
    return data.data, data.target_names[data.target]


@pytest.fixture(scope="session")
def model(wine):
    """Return a tree fitted on every second row."""
    X, y = wine
    return LHTClassifier(beta=0.25).fit(X[::2], y[::2])


@pytest.fixture(scope="session")
def page(model, wine, tmp_path_factory):
    """Return the path of a report on all rows."""
    path = tmp_path_factory.mktemp("report") / "wine.html"
    return write_report(model, *wine, path, max_rows=40)


@pytest.fixture(scope="session")
def evil_page(wine, tmp_path_factory):
    """Return the path of a report whose names contain HTML."""
    X, y = wine
    X = X.rename(columns={"proline": EVIL, "hue": "<!--", "ash": "a" * 200})
    y = np.where(y == "class_0", EVIL_CLASS, y)
    path = tmp_path_factory.mktemp("report") / "evil.html"
    model = LHForestClassifier(n_estimators=3, random_state=0).fit(X, y)
    return write_report(model, X, y, path, max_rows=6, title="</title>" + EVIL)


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Return a browser without a screen."""
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
    """Open a page; after the test, the browser has logged no errors and loaded nothing else."""
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
