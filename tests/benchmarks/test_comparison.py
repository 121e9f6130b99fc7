"""Boosting and its peers: what is measured, in which form, what is skipped, what the page says."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks import data, lines, models, run
from benchmarks.data import Description
from benchmarks.kinds import comparison
from benchmarks.models import BOOST
from benchmarks.report import comparison as page_of_boosting
from benchmarks.report.comparison import collect, compute_win_share

TABLES = {
    "wine": Description("judge", 178, 13),
    "regression/a": Description("judge", 20_000, 5),
    "letter": Description("choose", 20_000, 16, is_given=True),
}


@pytest.fixture
def tables(monkeypatch):
    """Stand in for tables that need not be there."""
    monkeypatch.setattr(data, "list_tables", lambda: TABLES)


def list_jobs(*arguments):
    options = run.parse(["comparison", "--seeds", "3", *arguments])
    return run.select(comparison.list_comparison(options), options)


def test_jobs_are_for_first_seeds_and_small_tables_to_judge_by_first(tables):
    jobs = list_jobs()
    keys = list(dict.fromkeys((job["seed"], job["data"]) for job in jobs))
    assert keys[:3] == [(0, "wine"), (0, "regression/a"), (0, "letter")]
    assert (1, "wine") in keys
    assert (1, "regression/a") not in keys
    assert {job["model"] for job in jobs if job["data"] == "letter" and job["seed"]} == {
        *comparison.OURS
    }
    assert {job["data"] for job in jobs if job["threads"] == 2} == {"regression/a", "letter"}
    assert {job["model"] for job in jobs if job["threads"] == 2} == {BOOST}
    assert all(job["role"] == TABLES[job["data"]].role for job in jobs)


def test_models_roles_and_threads_are_as_the_command_line_says(tables):
    jobs = list_jobs("--models", "RF", "LHForest, n_estimators=3", "--threads", "1", "2")
    assert {(job["model"], job["threads"]) for job in jobs} == {
        (model, n) for model in ("RF", "LHForest, n_estimators=3") for n in (1, 2)
    }
    assert {job["data"] for job in list_jobs("--roles", "choose")} == {"letter"}
    with pytest.raises(ValueError, match="No model is called 'Oracle'"):
        list_jobs("--models", "Oracle")


def do_here(jobs, work, kind, prepare):
    """Return made-up results; the first peer fails with the second seed."""
    assert kind.is_fresh
    for job in jobs:
        if job["model"] == "LightGBM" and job["seed"] == 1:
            yield job, run.Failed("ValueError: not\n today")
        else:
            yield job, {"right": 9, "test": 10, "cpu_s": 1.0}


def test_a_second_start_skips_what_is_there_and_what_failed(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "do_jobs", do_here)
    out, kind = tmp_path / "comparison.jsonl", run.KINDS["comparison"]
    jobs = list_jobs("--models", "LightGBM", "RF", BOOST)
    run.run(jobs[:3], out, kind)
    with out.open("a") as file:
        file.write('{"half of a li')
    lines.mend(out)
    left = run.drop_done(jobs, out, kind)
    assert left == jobs[3:]
    run.run(left, out, kind)
    assert run.drop_done(jobs, out, kind, stale=True) == []
    found = lines.read(out, *comparison.KEY)
    assert len(found) == len(jobs)
    failed = [line for line in found if "error" in line]
    assert {(x["model"], x["seed"], x["error"]) for x in failed} == {
        ("LightGBM", 1, "ValueError: not today")
    }
    monkeypatch.setattr(lines, "compute_build", lambda: "another")
    assert run.drop_done(jobs, out, kind) == []
    stale = run.drop_done(jobs, out, kind, stale=True)
    assert stale == [job for job in jobs if job["model"] == BOOST]


# ---- Frames


def make_frames():
    X = pd.DataFrame({"t": ["b", "a", None, "b"], "x": [1.0, 2, 3, np.nan]}, index=[3, 1, 2, 0])
    X["t"] = X["t"].astype(object)
    return X, pd.DataFrame({"t": pd.Series(["c", "a"], dtype=object), "x": [5.0, 6]})


@pytest.mark.parametrize("name", [*comparison.OURS, *comparison.PEERS])
def test_frames_are_converted_to_what_a_model_is_made_for(name):
    X, X_test = models.convert(name, *make_frames())
    form = models.get_library(name).form
    if form == "codes":
        np.testing.assert_array_equal(X, [[1, 1], [0, 2], [np.nan, 3], [1, np.nan]])
        np.testing.assert_array_equal(X_test, [[-1, 5], [0, 6]])
    elif form == "categories":
        assert X["t"].cat.codes.tolist() == [1, 0, -1, 1]
        assert X_test["t"].cat.codes.tolist() == [-1, 0]
        assert X["t"].dtype == X_test["t"].dtype
    elif form == "words":
        assert X["t"].tolist() == ["b", "a", "", "b"]
    else:
        pd.testing.assert_frame_equal(X, make_frames()[0])


def test_columns_with_too_many_categories_are_codes_for_histgb():
    X = pd.DataFrame({"t": [f"{i:03d}" for i in range(300)]}, dtype=object)
    assert models.convert("HistGB", X, X)[0]["t"].tolist() == list(range(300))
    assert str(models.convert("XGBoost", X, X)[0]["t"].dtype) == "category"


@pytest.mark.parametrize("name", ["RF", "HistGB", BOOST])
@pytest.mark.parametrize("kind", ["frames", "regression"])
def test_a_measurement_has_scores_times_and_bytes(name, kind, tmp_path, monkeypatch):
    monkeypatch.setenv("LHTREE_DATA", str(tmp_path))
    monkeypatch.setattr(comparison, "SHORT", 0.01)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=120), "t": rng.choice(["a", "b"], 120)})
    number = frame["x"] + (frame["t"] == "a")
    frame["target"] = number if kind == "regression" else np.where(number > 0.5, "yes", "no")
    (tmp_path / kind).mkdir()
    frame.to_parquet(tmp_path / kind / "a.parquet")
    line = comparison.measure({"data": f"{kind}/a", "model": name, "seed": 0, "threads": 1})
    assert (line["n"], line["m"], line["test"]) == (96, 2, 24)
    assert line["k"] == (0 if kind == "regression" else 2)
    assert min(line["cpu_s"], line["fit_s"], line["bulk_s"], line["bytes"]) > 0
    assert line["rmse"] < 1 if kind == "regression" else line["right"] > 15
    assert json.loads(json.dumps(line)) == line
    again = comparison.measure({"data": f"{kind}/a", "model": name, "seed": 1, "threads": 1})
    assert set(again) == set(line) - {"memory_mb", "bytes", "bulk_rows", "bulk_s", "bulk_wall_s",
                                      "one_ms"}  # fmt: skip
    two = comparison.measure({"data": f"{kind}/a", "model": name, "seed": 0, "threads": 2})
    assert {"fit_s", "bulk_wall_s"} < set(two) < set(line)


def test_calibration_error_is_the_gap_between_confidence_and_accuracy():
    # bins of 1/15: two rows at 0.9 (half right), two at 0.55 (half right)
    confidence = np.array([0.9, 0.9, 0.55, 0.55])
    is_right = np.array([True, False, True, False])
    error = comparison.compute_calibration_error(confidence, is_right)
    assert error == pytest.approx((2 * 0.4 + 2 * 0.05) / 4)


def test_columns_of_probabilities_go_to_their_classes():
    class Model:
        classes_ = np.array([2, 0])

        def predict_proba(self, X):
            return np.tile([0.75, 0.25], (len(X), 1))

    line = comparison.score(Model(), np.zeros((4, 1)), np.array([2, 2, 2, 0]), 3)
    assert line["right"] == 3
    assert line["log_loss"] == pytest.approx(-(3 * np.log(0.75) + np.log(0.25)) / 4, abs=1e-5)


# ---- The page


def make_line(name, model, value, seed=0, **more):
    field = "rmse" if data.is_of_numbers(name) else "accuracy"
    fields = {"role": "judge", "threads": 1, "log_loss": 1 - value, field: value, **more}
    return {"data": name, "model": model, "seed": seed, **fields}


FOUND = [
    *[make_line("wine", model, value) for model, value in [(BOOST, 0.8), ("RF", 0.9)]],
    make_line("wine", "RF", 0.7, seed=1),  # a seed that not all have
    make_line("seeds", BOOST, 0.5),
    make_line("seeds", "RF", 0.5),
    make_line("sonar", BOOST, 0.5),
    {"data": "sonar", "model": "RF", "seed": 0, "threads": 1, "role": "judge", "over_s": 600.0},
    make_line("magic", BOOST, 0.5),  # a table that not all have
    make_line("rice", "RF", 0.9, role="choose"),
    make_line("regression/a", BOOST, 2.0),
    make_line("regression/a", "RF", 3.0),
    {"data": "regression/a", "model": "OQBoost", "seed": 0, "threads": 1, "role": "judge",
     "error": "cannot | do it"},
]  # fmt: skip


def test_scores_are_those_of_tables_and_seeds_that_all_models_have():
    scores = collect(FOUND, "accuracy")
    assert scores.models == [BOOST, "RF"]
    assert scores.tables == ["seeds", "sonar", "wine"]
    np.testing.assert_array_equal(scores.values, [[50, 50], [50, np.nan], [80, 90]])
    np.testing.assert_array_equal(scores.get_ranks(is_loss=False), [[1.5, 1.5], [1, 2], [2, 1]])
    assert compute_win_share(scores, BOOST, "RF", is_loss=False) == pytest.approx(0.5)


def test_a_model_that_cannot_do_a_task_has_no_rank():
    assert collect(FOUND, "rmse").models == [BOOST, "RF"]
    means, n = page_of_boosting.compute_mean_ranks(FOUND, "rmse", "judge")
    assert means == {BOOST: 1.0, "RF": 2.0}
    assert n == 1


def test_costs_are_compared_by_geometric_means_of_common_tables():
    ratio = page_of_boosting.compare_costs({"a": 2.0, "b": 8.0, "c": 9.0}, {"a": 1.0, "b": 1.0})
    assert ratio.mean == pytest.approx(4.0)
    assert ratio[1:] == (8.0, "b", 2)
    assert page_of_boosting.compare_costs({}, {"a": 1.0}) is None


def test_the_page_says_what_was_measured_and_what_is_missing():
    page = page_of_boosting.make_page(FOUND)
    assert "| RF | **1.50** | **1.50** | 2.00 |" in page
    assert f"| {BOOST} | **1.50** | **1.50** | **1.00** |" in page
    assert "| RF | 50 % | 50 % | 100 % |" in page
    assert "| RF | over the limit of 600 s | sonar |" in page
    assert "| OQBoost | cannot / do it | regression/a |" in page
    assert "| accuracy on mnist | 98.0 minus one deviation | 98.3 |  | not measured |" in page
    assert "| sonar | judge | 50.00 | failed |" in page


@pytest.mark.parametrize(
    "row",
    [
        "| fit time against LightGBM | at most 1.5 | 1.0 | 2.00 | not met |",
        "| largest of these ratios | at most 5 |  | 4.0 on b | met |",
        "| size of the file against LightGBM | at most 1.5 | 0.5 | 0.50 | met |",
        "| gain of a second thread | at least 1.7 | 1.9 | 1.80 over 1 tables | met |",
        "| accuracy on letter | 97.0 minus one deviation | 97.5 | 96.50\N{NO-BREAK SPACE}±"
        "\N{NO-BREAK SPACE}0.71 (2 seeds) | met |",
        "| mean rank of accuracy | within 0.3 of the best booster | first | "
        "2.00 on 1 tables, LightGBM 1.00 | not met |",
    ],
)
def test_goals_say_whether_they_are_met(row):
    found = [
        make_line("a", BOOST, 0.5, cpu_s=1.0, bytes=10, fit_s=1.8),
        make_line("a", BOOST, 0.5, threads=2, fit_s=1.0),
        make_line("b", BOOST, 0.5, cpu_s=4.0, role="choose"),
        make_line("a", "LightGBM", 0.7, cpu_s=1.0, bytes=20, fit_s=9.0),
        make_line("b", "LightGBM", 0.7, cpu_s=1.0, role="choose"),
        make_line("letter", BOOST, 0.96, role="choose"),
        make_line("letter", BOOST, 0.97, seed=1, role="choose"),
    ]
    assert row in page_of_boosting.make_page(found)
