"""What is measured of the exact engine's constants, and the page that is made of it."""

import json
import re

import numpy as np
import pytest

from benchmarks import engine_choices, lines
from benchmarks.report import engine
from lhtree.estimators.boosting import params as boosting_params
from lhtree.training.plan import BoostingPlan

ROOT = engine_choices.REPOSITORY
CONSTANTS = [choice for choice in engine_choices.CHOICES if choice.path]
TABLES = ["a", "b", "regression/c", "regression/d", engine_choices.CURVES]


@pytest.mark.parametrize("choice", CONSTANTS, ids=lambda choice: choice.name)
def test_every_constant_is_in_the_sources_once_and_has_the_default(choice):
    for value in choice.values[1:]:
        for path, old, new in choice.edit(value):
            text = (ROOT / path).read_text(encoding="utf-8")
            assert new in engine_choices.replace_once(text, old, new, path)
            assert old != new


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


def test_curves_are_the_same_each_time():
    X, y = engine_choices.make_curves(50, 20)
    assert np.array_equal(X, engine_choices.make_curves(50, 20)[0])
    assert np.ptp(np.log10(np.abs(X))) > 6
    assert set(y.tolist()) == {0, 1}


def start_made_up(started):
    """Return a worker that measures nothing: every value is a point better than the default."""

    def start(core, stack):
        started.append(core.name)

        def do(job):
            is_number = job["data"].startswith("regression/")
            score = 80.0 + job["split"] + (job["choice"] != "default")
            return {"measure": "R2" if is_number else "accuracy", "score": score, "cpu_s": 0.5}

        return do

    return start


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder whose cores are there, for tables that are made up."""
    monkeypatch.setattr(engine_choices, "list_tables", lambda: TABLES)
    monkeypatch.setattr(engine_choices, "read_table", lambda name: ([], []))
    for name in engine_choices.VARIANTS:
        (tmp_path / ("-".join(name) + ".so")).touch()
    return tmp_path


def test_a_second_start_skips_what_is_there(folder):
    out, started = folder / "lines.jsonl", []
    jobs = engine_choices.list_jobs(out)
    assert len(jobs) == len(TABLES) * 3 * len(engine_choices.VARIANTS)
    engine_choices.run(jobs[:-1], out, folder, start_made_up(started))
    cores = {engine_choices.build_core(folder, each).name for each in engine_choices.VARIANTS}
    assert sorted(started) == sorted(cores)  # each once
    with out.open("a") as file:
        file.write('{"half of a li')
    lines.mend(out)
    assert engine_choices.list_jobs(out) == jobs[-1:]
    engine_choices.run(jobs[-1:], out, folder, start_made_up(started))
    assert len(started) == len(cores) + 1
    assert engine_choices.list_jobs(out) == []
    assert all(json.loads(line) for line in out.read_text().splitlines())


def test_changed_sources_are_measured_anew_and_mixed_with_none(folder, monkeypatch):
    out = folder / "lines.jsonl"
    jobs = engine_choices.list_jobs(out)
    monkeypatch.setattr(engine_choices, "identify_sources", lambda: "older")
    engine_choices.run(jobs, out, folder, start_made_up([]))
    assert engine_choices.list_jobs(out) == []
    monkeypatch.setattr(engine_choices, "identify_sources", lambda: "newer")
    assert engine_choices.list_jobs(out) == jobs
    engine_choices.run(jobs[:7], out, folder, start_made_up([]))
    found = engine.choose_newest(lines.read(out, *engine_choices.KEY, "sources"))
    assert len(found) == 7
    assert {line["sources"] for line in found} == {"newer"}


def test_the_page_says_where_its_lines_are_of_an_engine_before_todays(folder):
    out = folder / "lines.jsonl"
    engine_choices.run(engine_choices.list_jobs(out), out, folder, start_made_up([]))
    found = lines.read(out, *engine_choices.KEY)
    remark = "The engine has changed since."
    assert remark not in engine.make_page(found)
    for line in found:
        del line["sources"]  # as in lines of version 0.1
    assert remark in engine.make_page(found)


def test_settings_share_the_core_of_the_default(folder):
    core = engine_choices.build_core(folder, ("n_hyperplanes", "3"))
    assert core == engine_choices.build_core(folder, engine_choices.DEFAULT)


def test_the_page_compares_every_value_with_the_default(folder):
    out = folder / "lines.jsonl"
    engine_choices.run(engine_choices.list_jobs(out), out, folder, start_made_up([]))
    page = engine.make_page(lines.read(out, *engine_choices.KEY))
    assert "| **20** | 81.00 |  | 81.00 |  |  | 1.00 | 81.0 |" in page
    row = "| {} | 82.00 | +1.00 ± 0.00 | 82.00 | +1.00 ± 0.00 | 4/0/0 | 1.00 | 82.0 |"
    assert row.format(12) in page
    n_values = len(engine_choices.VARIANTS) - 1
    assert len(re.findall(r"\| 4/0/0 \|", page)) == n_values


def test_a_value_without_all_splits_of_a_table_has_no_part_of_it(folder):
    out = folder / "lines.jsonl"
    engine_choices.run(engine_choices.list_jobs(out)[:-3], out, folder, start_made_up([]))
    found = lines.read(out, *engine_choices.KEY)
    choice = engine_choices.CHOICES[-1]
    own = engine.summarize(found, choice.name, f"{choice.values[-1]:g}")
    assert list(own) == TABLES[:-1]
