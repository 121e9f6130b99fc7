"""The speed benchmark: what it runs, how it goes on, and what its page says."""

import json

import pytest

pytest.importorskip("tqdm")
pytest.importorskip("threadpoolctl")

from benchmarks import speed, speed_jobs, speed_report


def make_line(job, **numbers):
    return {
        **job, **numbers, "job": json.dumps(job), "build": "b", "cpu": "c", "cores": 2,
        "load": 0.1, "python": "3", "versions": {"lhtree": "0"}, "at": "now",
    }  # fmt: skip


def test_the_bars_are_measured_first_and_nothing_twice():
    jobs = speed_jobs.list_jobs()
    assert len({json.dumps(job) for job in jobs}) == len(jobs)
    assert {job["task"] for job in jobs} == set(speed_jobs.TASKS)
    assert [job["model"] for job in jobs[:4]] == ["LHT paper", "LHT default", "RF", "LightGBM"]


def test_a_second_start_skips_what_is_there_and_a_budget_ends_a_run(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(speed, "run_job", lambda job, limit: ran.append(job) or {"fit_s": 1.0})
    jobs, out = speed_jobs.list_jobs()[:3], tmp_path / "speed.jsonl"
    speed.run(jobs, out, 0.0)
    assert ran == []
    speed.run(jobs[:2], out, 60.0)
    with out.open("a") as file:
        file.write('{"half')  # what a kill leaves
    speed.run(jobs, out, 60.0)
    assert ran == jobs
    assert len(out.read_text().splitlines()) == 3
    monkeypatch.setattr(speed_jobs, "find_build", lambda: "another")
    speed.run(jobs[:1], out, 60.0)
    assert ran[3:] == jobs[:1]


def test_a_job_that_fails_is_told_and_one_that_is_too_slow_leaves_a_line(
    tmp_path, monkeypatch, capsys
):
    answers = [{"error": "Absent: no data"}, {"error": "took longer than 1 s"}]
    monkeypatch.setattr(speed, "run_job", lambda job, limit: answers.pop(0))
    out = tmp_path / "speed.jsonl"
    speed.run(speed_jobs.list_jobs()[:2], out, 60.0)
    assert "skipped: synth synth50k LHT paper 1: Absent: no data" in "".join(capsys.readouterr())
    assert len(out.read_text().splitlines()) == 1


def test_one_measurement_has_all_its_numbers(monkeypatch):
    job = speed_jobs.make_job("growth", "synth50k", "LHT paper", 1, rows=500, columns=25, depth=3)
    line = speed_jobs.measure(job)
    assert line["depth"] <= 3
    assert line["X_mb"] == 0.1
    assert line["fit_s"] > 0
    table = speed_jobs.load_table(job)
    asked = speed_jobs.ask(speed_jobs.make_job_model(job).fit(table.X, table.y), table)
    assert asked["accuracy"] > 0.5
    assert asked["bulk_rows"] == 500


def test_the_least_time_of_several_rounds_counts():
    first = {"job": "a", "build": "new", "fit_s": 2.0, "bulk_s": 1.0, "model_mb": 3.0}
    second = {"job": "a", "build": "new", "fit_s": 1.0, "bulk_s": 2.0, "model_mb": 3.5}
    other = {"job": "b", "build": "new", "both_ms": 5.0}
    found = speed_report.Lines([{**first, "build": "old", "fit_s": 0.5}, first, other, second])
    assert found.all == [{**second, "bulk_s": 1.0}, other]


def test_the_page_says_which_bars_hold(tmp_path):
    def make(task, model, threads, **numbers):
        return make_line(speed_jobs.make_job(task, "synth50k", model, threads), **numbers)

    common = {
        "bulk_s": 0.1,
        "one_ms": 0.1,
        "memory_mb": 30.0,
        "X_mb": 16.0,
        "model_mb": 10.0,
        "arrays_mb": 15.0,
    }
    found = [
        make("synth", "LHT paper", 1, fit_s=2.0, **common),
        make("synth", "LightGBM", 1, fit_s=5.0, **common),
        make("synth", "RF", 1, fit_s=15.0, **{**common, "model_mb": 20.0}),
        make_line(
            speed_jobs.make_job("synth", "synth50k", "YDF", 1), error="took longer than 9 s"
        ),
        make_line(
            speed_jobs.make_job("synth", "synth50k", "XGBoost", 1), error="took longer than 9 s"
        ),
        make("synth", "XGBoost", 1, fit_s=7.0, **common),  # another round
    ]
    for n in (25_000, 50_000, 100_000):
        job = speed_jobs.make_job(
            "growth", "synth50k", "LHT paper", 1, rows=n, columns=50, depth=10
        )
        memory = {"X_mb": 1, "memory_mb": 2, "arrays_mb": 0.5}
        line = make_line(job, fit_s=(n / 1e5) ** 1.5, rows_in_splits=9.0 * n, **memory)
        found.append({**line, "depth": 7})
    lines, out = tmp_path / "lines.jsonl", tmp_path / "speed.md"
    lines.write_text("".join(json.dumps(line) + "\n" for line in found))
    speed_report.write(lines, out)
    page = out.read_text()
    assert "paper rules, 1 thread, against LightGBM | at least 2 | 2.5 | holds |" in page
    assert "paper rules, 1 thread, against RF | at least 10 | 7.5 | falls short |" in page
    assert "growth over rows, depth 10, LHT paper: exponent | at most 1.1 | 1.5 | falls" in page
    assert "LHT paper, of 1.1 X and its pickle | at most 1 | 1.087 | falls short |" in page
    assert "LHT paper, of 1.1 X and the model's arrays | at most 1 | 0.9202 | holds |" in page
    assert "LHT paper, beyond 1.1 X and the model's arrays, in MB, at worst | at most 0 |" in page
    assert "LHT paper: times smaller than RF's | at least 4 | 2 | falls short |" in page
    assert "MNIST, paper settings, 2 threads, against LightGBM | at least 1 |  | not me" in page
    assert "| synth50k | 1 | **2** |  | 15 |  |  | 7 | 5 |  | > limit |" in page
    assert "| LHT paper | 10 | 25000 | 50 | 0.125 | 7 | 9 | 2 |" in page
