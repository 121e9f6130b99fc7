"""The pages of the benchmarks: what they say of lines, and that committed ones are up to date."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import lines, models
from benchmarks.kinds import speed
from benchmarks.report import __main__ as report
from benchmarks.report import accuracy as report_accuracy
from benchmarks.report import speed as report_speed
from benchmarks.report import summary

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def write_lines(path, found):
    path.write_text("".join(json.dumps(line) + "\n" for line in found), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("accuracy", "accuracy.md"),
        ("accuracy", "paper.md"),
        ("speed", "speed.md"),
        ("robustness", "robustness.md"),
        ("probabilities", "probabilities.md"),
        ("boosting", "boosting.md"),
        ("engine_speed", "../design/engine-speed.md"),
        ("engine_choices", "../design/engine-choices.md"),
        ("boosting_choices", "../design/boosting-choices.md"),
    ],
)
def test_committed_pages_are_made_from_committed_lines(page, name, tmp_path):
    out = tmp_path / "results"
    report.main([page, "--out", str(out)])
    committed = (RESULTS / name).read_text(encoding="utf-8")
    assert (out / name).read_text(encoding="utf-8") == committed


def test_times_of_boosting_are_compared_with_lightgbms():
    names = (speed.PEER_OF_BOOSTS, *speed.BOOSTS)
    found = [
        {"data": name, "fit_s": dict(zip(names, (2.0, own, 4.0, 8.0), strict=True))}
        for name, own in (("a", 1.0), ("b", 4.0))
    ]
    page = report_speed.make_engine_page(found)
    assert "| b | 2.00 | 2.00 | 2.00 | 4.00 |" in page
    assert "| geometric mean |  | 1.00 | 2.00 | 4.00 |" in page


def test_tables_of_scaling_are_written_between_their_marks(tmp_path):
    marks = "\n".join(
        f"% table: {name}\n\nold\n\n% end\n" for name in ("overhead", "equal", "memory")
    )
    page = tmp_path / "scaling.md"
    page.write_text(marks, encoding="utf-8")
    report.main(["scaling", "--out", str(tmp_path / "results")])
    text = page.read_text(encoding="utf-8")
    assert "old" not in text
    assert "| LHForest, n_estimators=16, max_depth=10 | 1 | 100,000 | 11 |" in text
    assert "| LHForest, preset paper | million integers | no |" in text
    with pytest.raises(ValueError, match="'overhead' 0 times, not once"):
        report_speed.replace_table("", "overhead", "")


def test_a_report_of_nothing_says_what_to_do(tmp_path):
    with pytest.raises(SystemExit, match=r"has no lines: run python -m benchmarks\.run accuracy"):
        report.main(["accuracy", "--results", str(tmp_path), "--out", str(tmp_path)])


def test_ranks_share_ties_and_wins_need_a_margin():
    table = np.array([[90.0, 90.0, 80.0], [50.0, 60.0, 70.0]])
    np.testing.assert_array_equal(summary.rank(table), [[1.5, 1.5, 3], [3, 2, 1]])
    np.testing.assert_array_equal(summary.rank(table, is_loss=True)[0], [2.5, 2.5, 1])
    assert summary.count_wins(np.array([0.1, 0.04, -1])) == (1, 1, 1)
    assert summary.compute_critical_difference(4, 20) == pytest.approx(1.049, abs=1e-3)


def test_means_are_compared_on_shared_seeds():
    made = [
        {"data": "wine", "model": model, "seed": seed, "accuracy": accuracy}
        for model, seed, accuracy in [("A", 0, 0.5), ("A", 1, 1), ("B", 1, 0.8), ("B", 2, 0)]
    ]
    names, table = summary.compare(made, ["A", "B"])
    assert names == ["wine"]
    np.testing.assert_array_equal(table, [[100, 80]])


def test_the_std_of_a_given_split_is_that_of_a_bootstrap():
    line = {
        "data": "satimage",
        "model": "RF",
        "seed": 0,
        "accuracy": 0.91,
        "test": 2000,
        "cpu_s": 1,
    }
    random = np.random.default_rng(0)
    is_right = np.arange(2000) < 1820
    drawn = [100 * is_right[random.integers(0, 2000, 2000)].mean() for _ in range(2000)]
    std = summary.summarize([line])["satimage", "RF"].std
    assert std == pytest.approx(np.std(drawn), rel=0.06)


@pytest.mark.parametrize(
    ("accuracy", "check"), [(97.0, "above"), (96.5, "within"), (95.9, "below")]
)
def test_a_result_is_compared_with_the_papers(accuracy, check):
    result = summary.Result(accuracy, 1.0, 10, 1.0)
    assert report_accuracy.check_paper(result, (97.0, 1.0)) == check
    assert report_accuracy.check_paper(None, (97.0, 1.0)) == "not run"


def test_labels_are_moved_apart_and_keep_their_order():
    places = summary.spread(np.array([1.0, 1.1, 1.1, 5.0]), 0.5)
    assert np.diff(places).min() > 0.5 - 1e-6
    assert abs(places[:3].mean() - 3.2 / 3) < 1e-6
    assert places[3] == 5.0


def test_the_page_of_robustness_has_means_over_splits():
    found = [
        {"task": "oob", "n_estimators": 100, "data": name, "seed": seed, "result": {"test": value}}
        for name, seed, value in (("wine", 0, 0.5), ("wine", 1, 1.0), ("seeds", 0, 0.9))
    ]
    text = report_accuracy.make_robustness_page(found)
    assert "| wine | 100 | 2 | 75.00 |" in text
    assert "| **mean** | 100 | 3 | 80.00 |" in text
    assert report_accuracy.TITLES["holes"] not in text


def test_out_of_bag_accuracy_agrees_with_that_of_held_out_rows():
    found = lines.read(lines.RESULTS / "robustness.jsonl")
    gap = [line["result"]["difference"] for line in found if line.get("task") == "oob"]
    assert len(gap) > 50
    assert abs(np.mean(gap)) < 0.01


def test_the_least_time_of_several_rounds_counts():
    first = {"task": "a", "build": "new", "fit_s": 2.0, "bulk_s": 1.0, "model_mb": 3.0}
    second = {"task": "a", "build": "new", "fit_s": 1.0, "bulk_s": 2.0, "model_mb": 3.5}
    other = {"task": "b", "build": "new", "both_ms": 5.0}
    found = report_speed.Measured([{**first, "build": "old", "fit_s": 0.5}, first, other, second])
    assert found.all == [{**second, "bulk_s": 1.0}, other]


def make_speed_lines():
    common = {
        "bulk_s": 0.1, "one_ms": 0.1, "memory_mb": 30.0, "X_mb": 16.0, "model_mb": 10.0,
        "arrays_mb": 15.0,
    }  # fmt: skip
    numbers = [
        (models.PAPER, {"fit_s": 2.0, **common}),
        ("LightGBM", {"fit_s": 5.0, **common}),
        ("RF", {"fit_s": 15.0, **common, "model_mb": 20.0}),
        ("YDF", {"over_s": 9.0}),
        ("XGBoost", {"over_s": 9.0}),
        ("XGBoost", {"fit_s": 7.0, **common}),  # another round
    ]
    yield {"run": 1, "cpu": "c", "cores": 2, "python": "3", "versions": {}, "build": "b"}
    for model, more in numbers:
        job = speed.make_job("synth", "synth50k", model, 1)
        yield {**job, **more, "run": 1, "at": "now", "load": 0.1}
    for n in (25_000, 50_000, 100_000):
        job = speed.make_job(
            "growth", "synth50k", models.PAPER, 1, rows=n, columns=50, max_depth=10
        )
        more = {"X_mb": 1, "memory_mb": 2, "arrays_mb": 0.5, "depth": 7, "rows_in_splits": 9.0 * n}
        yield {**job, **more, "fit_s": (n / 1e5) ** 1.5, "run": 1, "at": "now", "load": 0.1}


@pytest.mark.parametrize(
    "row",
    [
        "fit, synth50k, 1 thread, against LightGBM | at least 2 | 2.5 | met |",
        "fit, synth50k, 1 thread, against RF | at least 10 | 7.5 | not met |",
        "exponent of the fit time over rows, depth 10 | at most 1.1 | 1.5 | not met |",
        "memory of the fit, synth50k, of 1.1 X and its pickle | at most 1 | 1.087 | not met |",
        "memory of the fit, synth50k, of 1.1 X and the model's arrays | at most 1 | 0.9202 |",
        "pickle, synth50k: times smaller than RF's | at least 4 | 2 | not met |",
        "fit, mnist, 2 threads, against LightGBM (table 6) | at least 1 |  | not measured |",
    ],
)
def test_a_goal_names_its_model_and_says_whether_it_is_met(tmp_path, row):
    report_speed.write(write_lines(tmp_path / "speed.jsonl", make_speed_lines()), tmp_path)
    page = (tmp_path / "speed.md").read_text(encoding="utf-8")
    assert f"| {models.PAPER}: {row}" in page


def test_tables_of_speed_have_the_best_in_bold_and_name_limits(tmp_path):
    report_speed.write(write_lines(tmp_path / "speed.jsonl", make_speed_lines()), tmp_path)
    page = (tmp_path / "speed.md").read_text(encoding="utf-8")
    assert "| synth50k | 1 | **2** |  | 15 |  |  | 7 | 5 |  | > limit |" in page
    assert f"| {models.PAPER} | 10 | 25000 | 50 | 0.125 | 7 | 9 | 2 |" in page
    assert "## ONNX" not in page


def test_the_fastest_peer_is_named_with_its_settings():
    jobs = [speed.make_job("table3", "satimage", peer, 1) for peer in ("RF", "XGBoost")]
    found = [{**job, "fit_s": s, "build": "b"} for job, s in zip(jobs, (0.3, 0.6), strict=True)]
    fastest = report_speed.select_fastest(report_speed.Measured(found), "fit_s", "satimage", 1)
    assert fastest == ("RF (table 6)", 0.3)
