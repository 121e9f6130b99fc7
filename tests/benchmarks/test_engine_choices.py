"""What is measured of the exact engine's constants, and the page that is made of it."""

import re
from argparse import Namespace

import numpy as np
import pytest

from benchmarks import data, lines, run
from benchmarks.kinds import choices, engine_choices
from benchmarks.report import engine_choices as page
from benchmarks.report import summary
from lhtree.estimators.boosting import params as boosting_params
from lhtree.training.plan import BoostingPlan

CONSTANTS = [choice for choice in engine_choices.CHOICES if choice.path]
TABLES = ["a", "b", "regression/c", "regression/d", engine_choices.CURVES]


@pytest.mark.parametrize("choice", CONSTANTS, ids=lambda choice: choice.name)
def test_every_constant_is_in_the_sources_once_and_has_the_default(choice):
    text = (lines.REPOSITORY / choice.path).read_text(encoding="utf-8")
    default, *others = map(choice.declare, choice.values)
    for other in others:
        assert other in engine_choices.replace_once(text, default, other, choice.path)


def test_settings_have_the_defaults_of_the_estimators():
    default = {choice.name: choice.values[0] for choice in engine_choices.CHOICES}
    X = np.zeros((2, 100))
    model = engine_choices.make_model(X, is_number=True, choice="max_terms", value="2")
    assert default["n_hyperplanes"] == model.n_hyperplanes
    assert default["shrinkage"] == BoostingPlan.__dataclass_fields__["shrinkage"].default
    assert default["max_terms"] == 2
    assert model.max_terms == 20


def test_a_text_that_does_not_occur_once_is_refused():
    assert engine_choices.replace_once("one two", "two", "three", "file") == "one three"
    with pytest.raises(ValueError, match="file has 'four' 0 times instead of once"):
        engine_choices.replace_once("one two", "four", "three", "file")
    with pytest.raises(ValueError, match="file has 'two' 2 times instead of once"):
        engine_choices.replace_once("two two", "two", "three", "file")


def test_shrinkage_reaches_the_plan(monkeypatch):
    monkeypatch.setattr(boosting_params, "BoostingPlan", BoostingPlan)  # and put it back
    engine_choices.make_model(np.zeros((2, 2)), is_number=True, choice="shrinkage", value="0.6")
    plan = vars(boosting_params)["BoostingPlan"](
        n_rounds=1, learning_rate=0.1, l2_regularization=1.0, max_leaf_nodes=2
    )
    assert plan.shrinkage == 0.6


@pytest.fixture
def found():
    """Return lines in which every value is a point better than the default."""
    made = []
    for name in TABLES:
        is_number = name.startswith("regression/")
        for split in range(engine_choices.N_SPLITS):
            for choice, value in engine_choices.VARIANTS:
                score = 80.0 + split + (choice != "default")
                made.append(
                    {"data": name, "split": split, "choice": choice, "value": value,
                     "measure": "R2" if is_number else "accuracy", "score": score, "cpu_s": 0.5,
                     "build": "new", "commit": "abc"}
                )  # fmt: skip
    return made


def test_splits_and_values_of_the_tables_to_choose_by_are_listed(monkeypatch):
    tables = {
        "a": data.Description("choose", 9, 9),
        "b": data.Description("judge", 9, 9),
    }
    monkeypatch.setattr(data, "list_tables", lambda: tables)
    jobs = engine_choices.list_jobs(Namespace(seeds=3))
    assert len(jobs) == 2 * 3 * len(engine_choices.VARIANTS)
    assert {job["data"] for job in jobs} == {"a", engine_choices.CURVES}
    assert tuple(jobs[0].values()) == (engine_choices.CURVES, 0, *choices.DEFAULT)


def test_lines_of_other_sources_are_measured_anew_and_mixed_with_none(found, tmp_path):
    out, kind = tmp_path / "lines.jsonl", run.KINDS["engine_choices"]
    jobs = [{name: line[name] for name in choices.KEY} for line in found]
    for line in found[:-1]:
        lines.append(out, {**line, "build": "older"})
    assert run.drop_done(jobs, out, kind) == jobs
    for line in found[:7]:
        lines.append(out, {**line, "build": lines.compute_build()})
    assert run.drop_done(jobs, out, kind) == jobs[7:]
    newest = summary.choose_newest(lines.read(out, *choices.KEY, "build"), "grid_bits")
    assert len(newest) == 7


def test_settings_share_the_core_of_the_default(tmp_path):
    (tmp_path / "default-.so").touch()
    core = engine_choices.build_core(tmp_path, ("n_hyperplanes", "3"))
    assert core == engine_choices.build_core(tmp_path, choices.DEFAULT)


def test_the_page_compares_every_value_with_the_default(found):
    text = page.make_page(found)
    assert "| **20** | 81.00 |  | 81.00 |  |  | 1.00 | 81.0 |" in text
    row = "| {} | 82.00 | +1.00 ± 0.00 | 82.00 | +1.00 ± 0.00 | 4/0/0 | 1.00 | 82.0 |"
    assert row.format(12) in text
    n_values = len(engine_choices.VARIANTS) - 1
    assert len(re.findall(r"\| 4/0/0 \|", text)) == n_values


def test_a_value_without_all_splits_of_a_table_has_no_part_of_it(found):
    choice = engine_choices.CHOICES[-1]
    own = page.summarize(found[:-3], choice.name, f"{choice.values[-1]:g}")
    assert list(own) == TABLES[:-1]
