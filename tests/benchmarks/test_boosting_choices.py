"""What is measured of boosting's defaults, and the page that is made of it."""

from argparse import Namespace

import numpy as np
import pytest

from benchmarks import data
from benchmarks.kinds import boosting_choices
from benchmarks.kinds.choices import DEFAULT, KEY
from benchmarks.report import boosting_choices as page
from lhtree import LHBoostRegressor
from lhtree.estimators.boosting import params


def test_large_tables_have_one_split_after_the_first_of_all(monkeypatch):
    tables = {
        "large": data.Description("choose", 30_000, 9),
        "small": data.Description("choose", 9, 9),
        "other": data.Description("judge", 9, 9),
    }
    monkeypatch.setattr(data, "list_tables", lambda: tables)
    jobs = boosting_choices.list_jobs(Namespace(seeds=2))
    assert list(jobs[0]) == list(KEY)
    assert len(jobs) == 3 * len(boosting_choices.VARIANTS)
    places = list(dict.fromkeys((job["data"], job["split"]) for job in jobs))
    assert places == [("large", 0), ("small", 0), ("small", 1)]


@pytest.mark.parametrize("variant", boosting_choices.VARIANTS[1:], ids="-".join)
def test_every_value_is_a_parameter_or_takes_the_place_of_a_constant(variant):
    settings, constants = boosting_choices.resolve(*variant, np.zeros((2, 100)))
    assert settings.keys() <= LHBoostRegressor().get_params().keys()
    assert constants.keys() <= vars(params).keys()
    assert settings or any(vars(params)[name] != value for name, value in constants.items())


@pytest.mark.parametrize(
    ("variant", "settings", "constants"),
    [
        (DEFAULT, {}, {}),
        (("refit", "False"), {"refit": False}, {}),
        (("max_terms", "4"), {"max_terms": 40}, {}),
        (("most_rate", "0.1"), {}, {"MOST_RATE": 0.1}),
        (("leaves", "0.5"), {}, {"LEAVES": 7, "LEAVES_OF_MANY_ROWS": 15}),
    ],
)
def test_a_value_is_what_the_name_says(variant, settings, constants):
    assert boosting_choices.resolve(*variant, np.zeros((2, 100))) == (settings, constants)


@pytest.fixture
def found():
    """Return lines in which every value is a percent better than the default."""
    made = []
    for name in ("a", "b", "regression/c", "regression/d"):
        for choice, value in boosting_choices.VARIANTS:
            loss = 0.5 if (choice, value) == DEFAULT else 0.51 * np.exp(-0.01) - page.ADDED
            scores = {"log_loss": loss, "accuracy": 0.9}
            if data.is_of_numbers(name):
                scores = {"rmse": loss + page.ADDED if choice != "default" else 0.51}
            line = dict(zip(KEY, (name, 0, choice, value), strict=True))
            made.append({**line, **scores, "cpu_s": 0.5, "build": "new"})
    return made


def test_the_page_compares_every_value_with_the_default(found):
    text = page.make_page(found)
    row = "-1.00 ± 0.00 | -1.00 ± 0.00 | +0.00 ± 0.00 | 4/0/0 | 1.00 |"
    assert text.count(row) == len(boosting_choices.VARIANTS) - 1
    assert "Default: 0.05; 0.025 for numbers with 600 rounds." in text


def test_the_page_says_which_default_the_first_lines_have(found):
    first = [{**line, "build": page.FIRST_BUILD} for line in found]
    text = page.make_page(first)
    assert "Default: 0.05 (now 0.025 for numbers)." in text
    assert page.OF_FIRST_BUILD in text
    assert page.make_page([*first, *found]) == page.make_page(found)


def test_a_value_without_lines_has_a_row_that_says_so(found):
    text = page.make_page([line for line in found if line["value"] != "sqrt"])
    assert "| sqrt | not measured |  |  |  |  |" in text
    assert "Not measured." in page.make_page([x for x in found if x["choice"] != "subsample"])
