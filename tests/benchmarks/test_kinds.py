"""What each kind of benchmarks lists and measures."""

from argparse import Namespace

import numpy as np
import pytest

pytest.importorskip("pandas", reason="frames are made with pandas")
import lhtree
from benchmarks import data, lines, models, run
from benchmarks.kinds import comparison, engine_choices, robustness


def test_small_tables_come_first_and_given_splits_run_once():
    options = Namespace(datasets=["wine", "satimage"], models=["RF", "LHT, beta=0.5"], seeds=2)
    jobs = comparison.list_accuracy(options)
    of_satimage = [job for job in jobs if job["data"] == "satimage"]
    assert of_satimage == [{"data": "satimage", "model": "RF", "seed": 0}]
    assert jobs[-1]["data"] == "satimage"
    assert [comparison.count_seeds(name, 10) for name in ("wine", "mnist", "skin")] == [10, 1, 3]
    assert sum(job["model"] == "LHT, beta=0.5" for job in jobs) == 2


def test_folds_share_the_training_rows_out():
    X, y = comparison.load_training_rows("synth_tiny")
    folds = [comparison.make_fold("synth_tiny", fold) for fold in range(comparison.N_FOLDS)]
    assert sum(len(fold.y_test) for fold in folds) == len(y) == 80
    np.testing.assert_array_equal(
        np.sort(np.vstack([fold.X_test for fold in folds]), axis=0), np.sort(X, axis=0)
    )
    jobs = comparison.list_folds(Namespace(datasets=None, models=["RF"]))
    assert len(jobs) == (28 + len(data.SYNTHETIC)) * comparison.N_FOLDS


def test_calibration_changes_probabilities_but_no_label():
    calibrated, plain = (
        comparison.measure({"data": "synth_tiny", "model": model, "fold": 0})
        for model in (models.DEFAULTS, models.PLAIN)
    )
    assert plain["right"] == calibrated["right"]
    assert plain["log_loss"] != calibrated["log_loss"]


def test_connect4_is_measured_once_among_the_frames():
    jobs = robustness.list_jobs(Namespace(seeds=2))
    assert sum(job["data"] == "connect4" for job in jobs) == 1
    assert sum(job["task"] == "holes" for job in jobs) == 2 * 3
    assert {job["task"] for job in jobs} == set(robustness.MEASURES)


@pytest.mark.parametrize("task", robustness.TASKS)
def test_every_task_of_robustness_has_numbers(task, monkeypatch):
    frame, y = data.make_mixed(400)
    if task != "frame":
        frame = frame[list("abcde")].fillna(0.0)
    monkeypatch.setattr(data, "read_frame", lambda name: (frame, y))
    job = {"task": task, "data": "mixed", "model": "LHForest, n_estimators=30", "seed": 0}
    line = robustness.measure(job)
    assert line["n_estimators"] == 30
    assert all(-1 <= value <= 1 for value in line["result"].values())


@pytest.mark.parametrize("name", ["overhead", "equal"])
def test_a_cluster_is_compared_with_one_process(name, monkeypatch):
    dask = pytest.importorskip("benchmarks.kinds.dask")
    X, y = dask.make_block(0, 500)
    monkeypatch.setattr(dask, "load_rows", lambda _: data.Table(X, y, X, y))
    monkeypatch.setattr(dask, "OVERHEAD_ROWS", 1600)
    jobs = [job for job in dask.list_jobs(Namespace()) if job["task"] == name]
    line = dask.measure(jobs[0] | {"n_partitions": 2})
    assert line["same_predictions"] == 1
    assert line["n_rounds"] >= 0


# From the command line to the file, in a worker process.
SMALL = {
    "accuracy": ("--datasets", "wine", "--models", "RF"),
    "defaults": ("--datasets", "synth_tiny", "--models", "RF"),
    "comparison": ("--datasets", "wine", "--models", "LHForest, n_estimators=2"),
    "robustness": ("--tasks", "frame", "--datasets", "mixed"),
    "speed": ("--tasks", "import"),
    "engine_choices": ("--datasets", "curves", "--choices", "shrinkage"),
    "boosting_choices": ("--datasets", "wdbc", "--choices", "shrinkage"),
}


@pytest.mark.parametrize("kind", SMALL)
def test_a_kind_goes_from_the_command_line_to_its_lines(kind, tmp_path, monkeypatch):
    core = {"LHTREE_CORE": str(lhtree._core.__file__)}  # where others would be compiled
    monkeypatch.setattr(engine_choices, "prepare", lambda job: core)
    monkeypatch.setitem(data.ALL, "wine", data.ALL["wine"])
    out = tmp_path / "lines.jsonl"
    command = [kind, *SMALL[kind], "--seeds", "1", "--offline", "--out", str(out)]
    assert run.main(command) == 0
    found = lines.read(out)
    assert len(found) == {"defaults": 3, "engine_choices": 2, "boosting_choices": 2}.get(kind, 1)
    for line in found:
        assert line["build"] == lines.compute_build()
        assert not {"error", "over_s"} & set(line)
        assert {"accuracy", "result", "both_ms", "score"} & set(line)
    assert run.main(command) == 0
    assert len(lines.read(out)) == len(found)
