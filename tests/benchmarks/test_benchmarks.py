"""The benchmarks through their commands: a small run, killed and resumed, and its report."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import (
    accuracy,
    cells,
    figures,
    lines,
    models,
    paper,
    report,
    robustness,
    summary,
    tune,
    workers,
)
from jobs import burn
from lhtree import LHForestClassifier

ROOT = Path(__file__).parents[2]
NAMES = ["wine", "wdbc", "digits", "balance_scale"]
MODELS = ["LHT paper", "LHT default", "RF"]


def make_command(out, datasets=NAMES, names=MODELS, n_seeds=3):
    return [
        sys.executable, "-m", "benchmarks.accuracy", "--datasets", *datasets,
        "--models", *names, "--seeds", str(n_seeds), "--out", str(out), "--offline",
    ]  # fmt: skip


def run_command(*arguments, **options):
    done = subprocess.run(
        *arguments, cwd=ROOT, env={**os.environ, "LHTREE_DATA": ""},
        capture_output=True, text=True, check=False, **options,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Return the lines of a run that was killed with SIGKILL, spoilt, and started again."""
    out = tmp_path_factory.mktemp("lines") / "accuracy.jsonl"
    with subprocess.Popen(
        make_command(out), cwd=ROOT, env={**os.environ, "LHTREE_DATA": ""},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and len(lines.read(out)) < 3:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    n_before = len(lines.read(out))
    with out.open("ab") as file:
        file.write(b'{"data":"wine","model":"RF","se')  # what a kill in mid-write leaves
    run_command(make_command(out))
    return out, n_before


def test_a_killed_run_goes_on_where_it_stopped(measured):
    out, n_before = measured
    found = [json.loads(text) for text in out.read_text().splitlines()]
    keys = [(x["data"], x["model"], x["seed"]) for x in found if "data" in x]
    assert n_before >= 3
    assert len(keys) == len(set(keys)) == len(NAMES) * len(MODELS) * 3
    runs = [x["run"] for x in found if "data" not in x]
    assert runs == [1, 2]
    assert sum(x["run"] == 1 for x in found if "data" in x) >= n_before
    assert "Nothing to do" in run_command(make_command(out)).stdout


def test_accuracies_are_plausible(measured):
    results = summary.summarize(lines.read(measured[0]))
    for name, least in [("wine", 94), ("wdbc", 93), ("digits", 95), ("balance_scale", 78)]:
        for model in MODELS:
            result = results[name, model]
            if (name, model) == ("wdbc", "LHT paper"):  # one tree: see docs/results/README.md
                continue
            assert result.accuracy > least, (name, model)
            assert result.n_seeds == 3
            assert 0 < result.log_loss < 1.5
            assert 0 < result.ece < 0.3


def test_the_report_tells_what_the_lines_hold(measured, tmp_path):
    options = ["--lines", str(measured[0]), "--out", str(tmp_path)]
    run_command([sys.executable, "-m", "benchmarks.report", *options])
    text = (tmp_path / "accuracy.md").read_text()
    result = summary.summarize(lines.read(measured[0]))["digits", "RF"]
    assert f"{result.accuracy:.1f}{cells.PM}{result.deviation:.1f}" in text.replace("*", "")
    assert "Over the 4 data sets" in text
    assert "| LHT default |" in text
    assert "protein" in (tmp_path / "paper.md").read_text()
    for name in ("ranks.svg", "time.svg", "paper.svg"):
        assert (tmp_path / name).stat().st_size < 150_000


def test_a_report_of_nothing_says_what_to_do(tmp_path):
    with pytest.raises(SystemExit, match="holds no measurement"):
        report.write(tmp_path / "absent.jsonl", tmp_path)


def test_absent_data_are_skipped_with_a_message(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("LHTREE_DATA", "")
    monkeypatch.setenv("LHTREE_CACHE", str(tmp_path))
    assert accuracy.main(make_command(tmp_path / "x.jsonl", ["protein"])[3:]) == 0
    assert "skipped: protein: set LHTREE_DATA" in capsys.readouterr().out


def test_a_job_that_fails_or_exceeds_its_time_spoils_no_other():
    jobs = [{"what": w} for w in ("burn", "raise", "die", "fine", "fine")]
    answers = {}
    for job, answer in workers.do_jobs(jobs, burn, 2, limit=1):
        answers.setdefault(job["what"], []).append(answer)
    assert [type(x) for x in answers["burn"]] == [workers.OverLimit]
    assert str(answers["raise"][0]) == "ValueError: no such thing"
    assert "exit code 3" in str(answers["die"][0])
    assert answers["fine"] == ["fine", "fine"]


def sleep_long(job):
    Path(job["path"]).write_text(str(os.getpid()))
    time.sleep(600)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs processes that can be killed")
def test_workers_end_with_the_run_that_started_them(tmp_path):
    path = tmp_path / "pid"
    job = f"[{{'path': {str(path)!r}}}]"
    code = (
        "if __name__ == '__main__':\n"
        "    from benchmarks import workers\n"
        "    from test_benchmarks import sleep_long\n"
        f"    list(workers.do_jobs({job}, sleep_long, 1, 60))\n"
    )
    (tmp_path / "run.py").write_text(code)
    folders = (ROOT, ROOT / "tests", Path(__file__).parent)
    paths = os.pathsep.join(map(str, folders))
    with subprocess.Popen(
        [sys.executable, tmp_path / "run.py"], env={**os.environ, "PYTHONPATH": paths}
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


def test_a_job_over_its_limit_is_a_line_and_is_tried_again_with_a_higher_one(tmp_path, capsys):
    out = tmp_path / "a.jsonl"
    lines.append(out, {"data": "wine", "model": "RF", "seed": 0, "over_s": 5.0, "run": 1})
    result = summary.summarize(lines.read(out))["wine", "RF"]
    assert cells.format_result(result) == "not run: over the time limit"
    command = make_command(out, ["wine"], ["RF"], 1)
    assert accuracy.main([*command[3:], "--limit", "5"]) == 0
    assert "Nothing to do" in capsys.readouterr().out
    run_command([*command, "--limit", "50"])
    assert summary.summarize(lines.read(out))["wine", "RF"].n_seeds == 1


def test_ranks_share_ties_and_wins_need_a_margin():
    table = np.array([[90.0, 90.0, 80.0], [50.0, 60.0, 70.0]])
    np.testing.assert_array_equal(summary.rank(table), [[1.5, 1.5, 3], [3, 2, 1]])
    np.testing.assert_array_equal(summary.rank(table, is_loss=True)[0], [2.5, 2.5, 1])
    assert summary.count_wins(np.array([90, 80.04, 70]), np.array([89.9, 80, 71])) == (1, 1, 1)
    assert summary.find_critical_difference(4, 20) == pytest.approx(1.049, abs=1e-3)


def test_means_are_compared_on_shared_seeds():
    made = [
        {"data": "wine", "model": model, "seed": seed, "right": right, "test": 10}
        for model, seed, right in [("A", 0, 5), ("A", 1, 10), ("B", 1, 8), ("B", 2, 0)]
    ]
    names, table = summary.compare(made, ["A", "B"])
    assert names == ["wine"]
    np.testing.assert_array_equal(table, [[100, 80]])


def test_the_deviation_of_a_given_split_is_that_of_a_bootstrap():
    line = {"data": "satimage", "model": "RF", "seed": 0, "right": 1820, "test": 2000,
            "log_loss": 0, "ece": 0, "cpu_s": 1}  # fmt: skip
    random = np.random.default_rng(0)
    is_right = np.arange(2000) < 1820
    drawn = [100 * is_right[random.integers(0, 2000, 2000)].mean() for _ in range(2000)]
    deviation = summary.summarize([line])["satimage", "RF"].deviation
    assert deviation == pytest.approx(np.std(drawn), rel=0.06)


def test_calibration_error_of_known_probabilities():
    proba = np.array([[0.9, 0.1], [0.9, 0.1], [0.55, 0.45], [0.45, 0.55]])
    is_right = np.array([True, False, True, False])
    # bins of 1/15: two rows at 0.9 (half right), two at 0.55 (half right)
    error = accuracy.compute_calibration_error(proba, is_right)
    assert error == pytest.approx((2 * 0.4 + 2 * 0.05) / 4)


def test_the_search_prefers_the_better_setting_and_grows_it():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    y = (X.sum(axis=1) > 0).astype(np.int64)
    settings = {"default": {"max_depth": 1, "max_features": 1}, "full": {"max_features": 1.0}}
    tuned = tune.TunedForest(0, settings).fit(X, y)
    assert tuned.setting_ == "full"
    assert tuned.scores_["full"].mean() > tuned.scores_["default"].mean()
    best = LHForestClassifier(random_state=0, max_features=1.0).fit(X, y)
    np.testing.assert_array_equal(tuned.predict_proba(X), best.predict_proba(X))


def test_the_defaults_stay_unless_another_setting_leads_clearly():
    default = np.array([0.90, 0.92, 0.91])
    assert (
        tune.choose({"default": default, "other": default + np.array([0.03, -0.02, 0.01])})
        == "default"
    )
    assert (
        tune.choose({"default": default, "other": default + np.array([0.03, 0.02, 0.01])})
        == "other"
    )
    assert tune.choose({"default": default, "other": default}) == "default"


def test_every_setting_of_the_search_can_be_grown():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 4)), np.arange(60) % 3
    assert set(tune.score_settings(X, y, tune.SETTINGS, 0)) == set(tune.SETTINGS)


def test_settings_of_the_paper_reach_the_models():
    forest = models.make_paper_forest("mnist", 1, 7).get_params()
    assert (forest["alpha"], forest["beta"], forest["n_estimators"]) == (900, 0.8, 20)
    assert (forest["gamma"], forest["min_samples_split"], forest["standardize"]) == (6, 6, False)
    assert forest["max_samples"] is None
    assert models.make_paper_peer("RF", "satimage", 0).max_depth == 15
    assert models.make_paper_peer("RF", "wine", 0) is None
    assert paper.read_accuracy("LHT")["skin"] == (99.97, 0.01)


def test_cheap_jobs_come_first_and_given_splits_run_once():
    jobs = accuracy.list_jobs(["wine", "satimage"], ["RF", "LHT beta=0.5"], 2)
    assert [job for job in jobs if job.data == "satimage"] == [("satimage", "RF", 0)]
    assert jobs[-1].data == "satimage"
    assert [accuracy.count_seeds(name, 10) for name in ("wine", "mnist", "skin")] == [10, 1, 3]
    assert sum(job.model == "LHT beta=0.5" for job in jobs) == 2


def test_labels_are_moved_apart_and_keep_their_order():
    places = figures.spread(np.array([1.0, 1.1, 1.1, 5.0]), 0.5)
    assert np.diff(places).min() > 0.5 - 1e-6
    assert abs(places[:3].mean() - 3.2 / 3) < 1e-6
    assert places[3] == 5.0


def test_the_page_of_robustness_has_means_over_splits(tmp_path, monkeypatch):
    monkeypatch.setattr(robustness, "PAGE", tmp_path / "robustness.md")
    line = {"task": "oob", "members": 100}
    found = [
        {**line, "data": name, "seed": seed, "result": {"test": value}}
        for name, seed, value in (("wine", 0, 0.5), ("wine", 1, 1.0), ("seeds", 0, 0.9))
    ]
    robustness.write_page(found)
    text = robustness.PAGE.read_text(encoding="utf-8")
    assert "| wine | 100 | 2 | 75.00 |" in text
    assert "| **mean** | 100 | 3 | 80.00 |" in text
    assert robustness.TITLES["holes"] not in text
    assert len(list(robustness.list_work([0, 1], ["frame", "holes"]))) == 2 * 3 + 2 * 3 + 1
