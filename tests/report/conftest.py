"""Models and pages for the tests of reports."""

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
