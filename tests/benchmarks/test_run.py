"""The runner through its command: a small run, killed and resumed; its workers and its lines."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import lines, models, run
from benchmarks.report import summary
from jobs import burn

ROOT = Path(__file__).parents[2]
NAMES = ["wine", "wdbc", "digits", "balance_scale"]
MODELS = [models.PAPER, models.DEFAULTS, "RF"]


def make_arguments(out, datasets=NAMES, names=MODELS, n_seeds=3):
    return [
        "accuracy", "--datasets", *datasets, "--models", *names, "--seeds", str(n_seeds),
        "--out", str(out), "--offline",
    ]  # fmt: skip


def run_command(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, env={**os.environ, "LHTREE_DATA": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Return the lines of a run that was killed with SIGKILL, spoilt, and started again."""
    out = tmp_path_factory.mktemp("lines") / "accuracy.jsonl"
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.run", *make_arguments(out)], cwd=ROOT,
        env={**os.environ, "LHTREE_DATA": ""},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and len(lines.read(out)) < 3:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    n_before = len(lines.read(out))
    with out.open("ab") as file:
        file.write(b'{"data":"wine","model":"RF","se')  # what a kill in mid-write leaves
    run_command("benchmarks.run", *make_arguments(out))
    return out, n_before


def test_a_killed_run_goes_on_where_it_stopped(measured):
    out, n_before = measured
    found = [json.loads(text) for text in out.read_text().splitlines()]
    keys = [(x["data"], x["model"], x["seed"]) for x in found if "data" in x]
    assert n_before >= 3
    assert len(keys) == len(set(keys)) == len(NAMES) * len(MODELS) * 3
    assert [x["run"] for x in found if "data" not in x] == [1, 2]
    assert sum(x["run"] == 1 for x in found if "data" in x) >= n_before
    assert "Nothing to do" in run_command("benchmarks.run", *make_arguments(out)).stdout


def test_accuracies_are_plausible(measured):
    found = lines.read(measured[0])
    results = summary.summarize(found)
    for name, least in [("wine", 94), ("wdbc", 93), ("digits", 95), ("balance_scale", 78)]:
        for model in MODELS:
            if (name, model) == ("wdbc", models.PAPER):  # one tree: see docs/results/README.md
                continue
            assert results[name, model].accuracy > least, (name, model)
            assert results[name, model].n_seeds == 3
    assert all(0 < line["log_loss"] < 1.5 for line in found if line["model"] != models.PAPER)
    assert all(0 < line["ece"] < 0.3 for line in found if line["model"] != models.PAPER)


def test_the_report_shows_what_the_lines_hold(measured, tmp_path):
    options = ["--results", str(measured[0].parent), "--out", str(tmp_path)]
    run_command("benchmarks.report", "accuracy", *options)
    text = (tmp_path / "accuracy.md").read_text(encoding="utf-8")
    result = summary.summarize(lines.read(measured[0]))["digits", "RF"]
    assert f"{result.accuracy:.1f}{summary.PM}{result.std:.1f}" in text.replace("*", "")
    assert "Over the 4 data sets" in text
    assert f"| {models.DEFAULTS} |" in text
    assert "protein" in (tmp_path / "paper.md").read_text(encoding="utf-8")
    for name in ("ranks.svg", "time.svg", "paper.svg"):
        assert (tmp_path / name).stat().st_size < 150_000


def test_absent_data_are_skipped_with_a_message(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("LHTREE_DATA", "")
    monkeypatch.setenv("LHTREE_CACHE", str(tmp_path))
    assert run.main(make_arguments(tmp_path / "x.jsonl", ["protein"])) == 0
    assert "skipped: protein: set LHTREE_DATA" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["accuracy", "--datasets", "iris"], "No data set is called 'iris'"),
        (["speed", "--tasks", "flight"], "No job has task 'flight'; there are .*'synth'"),
    ],
)
def test_unknown_names_are_refused(arguments, message):
    with pytest.raises(SystemExit, match=message):
        run.main(arguments)


@pytest.mark.parametrize("kind", [kind for kind in run.KINDS if kind != "dask"])
def test_every_kind_lists_its_jobs_once(kind, capsys):
    assert run.main([kind, "--list"]) == 0
    jobs = capsys.readouterr().out.splitlines()
    assert len(jobs) == len(set(jobs)) >= 10


def test_a_budget_ends_a_run_and_another_round_repeats_it(tmp_path, monkeypatch, capsys):
    def do_jobs(jobs, work, kind, prepare):
        yield from ((job, {"fit_s": 1.0}) for job in jobs)

    monkeypatch.setattr(run, "do_jobs", do_jobs)
    out = tmp_path / "speed.jsonl"
    command = ["speed", "--tasks", "synth", "--threads", "1", "--out", str(out)]
    assert run.main([*command, "--budget-minutes", "0"]) == 0
    assert lines.read(out) == []
    assert "The budget is spent; 6 measurements are left." in capsys.readouterr().out
    for _ in range(2):
        assert run.main(command) == 0
        assert len(lines.read(out)) == 6
    assert run.main([*command, "--again"]) == 0
    assert len(lines.read(out)) == 12
    monkeypatch.setattr(lines, "compute_build", lambda: "another")
    assert run.main(command) == 0
    assert len(lines.read(out)) == 18


def test_a_job_that_fails_is_reported_and_leaves_no_line(tmp_path, monkeypatch, capsys):
    results = iter([run.Failed("no memory"), run.OverLimit(), {"fit_s": 1.0}])
    monkeypatch.setattr(run, "do_jobs", lambda jobs, *_, **__: ((j, next(results)) for j in jobs))
    out = tmp_path / "a.jsonl"
    jobs = [{"data": "wine", "model": "RF", "seed": seed} for seed in range(3)]
    assert run.run(jobs, out, run.KINDS["accuracy"]) == 1
    assert "failed: data wine, model RF, seed 0: no memory" in capsys.readouterr().out
    found = lines.read(out)
    assert [line["seed"] for line in found] == [1, 2]
    assert found[0]["over_s"] == 1500


def test_a_job_over_its_limit_is_a_line_and_is_tried_again_with_a_higher_one(tmp_path, capsys):
    out = tmp_path / "a.jsonl"
    lines.append(out, {"data": "wine", "model": "RF", "seed": 0, "over_s": 5.0, "run": 1})
    result = summary.summarize(lines.read(out))["wine", "RF"]
    assert summary.format_result(result) == "not run: over the time limit"
    arguments = make_arguments(out, ["wine"], ["RF"], 1)
    assert run.main([*arguments, "--limit", "5"]) == 0
    assert "Nothing to do" in capsys.readouterr().out
    run_command("benchmarks.run", *arguments, "--limit", "50")
    assert summary.summarize(lines.read(out))["wine", "RF"].n_seeds == 1


@pytest.mark.parametrize("is_fresh", [False, True])
def test_a_job_that_fails_or_exceeds_its_time_spoils_no_other(is_fresh):
    jobs = [{"what": w} for w in ("burn", "raise", "die", "fine", "fine")]
    results = {}
    for job, result in run.do_jobs(jobs, burn, run.Kind("jobs", limit=1, is_fresh=is_fresh)):
        results.setdefault(job["what"], []).append(result)
    assert [type(x) for x in results["burn"]] == [run.OverLimit]
    assert str(results["raise"][0]) == "ValueError: no such thing"
    assert "exit code 3" in str(results["die"][0])
    assert results["fine"] == ["fine", "fine"]


SLEEPER = """
import os, pathlib, time

def sleep(job):
    pathlib.Path(job["path"]).write_text(str(os.getpid()))
    time.sleep(600)
"""
STARTER = """
import sys

if __name__ == "__main__":
    from benchmarks import run
    from sleeper import sleep

    list(run.do_jobs([{"path": sys.argv[1]}], sleep, run.Kind("sleeper")))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs processes that can be killed")
def test_workers_end_with_the_run_that_started_them(tmp_path):
    path = tmp_path / "pid"
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    (tmp_path / "starter.py").write_text(STARTER)
    with subprocess.Popen(
        [sys.executable, tmp_path / "starter.py", path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])},
    ) as process:
        wait_until(lambda: path.exists() and path.read_text())
        process.kill()
    worker = int(path.read_text())
    wait_until(lambda: not is_running(worker))


def wait_until(is_met, seconds=60):
    deadline = time.monotonic() + seconds
    while not is_met():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid):
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.parametrize("kind", run.KINDS)
def test_committed_lines_have_todays_names(kind):
    found = lines.read(lines.RESULTS / f"{kind}.jsonl")
    assert len(found) >= 10
    fields = set().union(*found)
    assert not fields & {"members", "n_members", "ask_s", "same_answers", "job", "kind", "table"}
    names = {line["model"] for line in found if "model" in line}
    assert not any(name.startswith("LHT ") for name in names)
