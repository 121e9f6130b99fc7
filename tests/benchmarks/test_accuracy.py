"""What the benchmarks of accuracy measure: splits, folds and difficult tables."""

from argparse import Namespace

import numpy as np
import pytest

pytest.importorskip("pandas", reason="frames are made with pandas")
from benchmarks import accuracy, data, models


def test_cheap_jobs_come_first_and_given_splits_run_once():
    options = Namespace(datasets=["wine", "satimage"], models=["RF", "LHT, beta=0.5"], seeds=2)
    jobs = accuracy.list_jobs(options)
    of_satimage = [job for job in jobs if job["data"] == "satimage"]
    assert of_satimage == [{"data": "satimage", "model": "RF", "seed": 0}]
    assert jobs[-1]["data"] == "satimage"
    assert [accuracy.count_seeds(name, 10) for name in ("wine", "mnist", "skin")] == [10, 1, 3]
    assert sum(job["model"] == "LHT, beta=0.5" for job in jobs) == 2


def test_calibration_error_is_the_gap_between_confidence_and_accuracy():
    # bins of 1/15: two rows at 0.9 (half right), two at 0.55 (half right)
    confidence = np.array([0.9, 0.9, 0.55, 0.55])
    is_right = np.array([True, False, True, False])
    error = accuracy.compute_calibration_error(confidence, is_right)
    assert error == pytest.approx((2 * 0.4 + 2 * 0.05) / 4)


def test_scores_of_known_probabilities():
    proba = np.array([[0.9, 0.1]] * 10 + [[0.3, 0.7]] * 10)
    y = np.array([0] * 8 + [1] * 2 + [1] * 10)
    found = accuracy.score(proba, y)
    assert (found["test"], found["right"]) == (20, 18)
    assert found["ece"] == pytest.approx((0.1 + 0.3) / 2)
    loss = -(8 * np.log(0.9) + 2 * np.log(0.1) + 10 * np.log(0.7)) / 20
    assert found["log_loss"] == pytest.approx(loss, abs=1e-5)


def test_folds_share_the_training_rows_out():
    X, y = accuracy.load_training_rows("synth_tiny")
    folds = [accuracy.make_fold("synth_tiny", fold) for fold in range(accuracy.N_FOLDS)]
    assert sum(len(fold.y_test) for fold in folds) == len(y) == 80
    np.testing.assert_array_equal(
        np.sort(np.vstack([fold.X_test for fold in folds]), axis=0), np.sort(X, axis=0)
    )
    jobs = accuracy.list_folds(Namespace(datasets=None, models=["RF"]))
    assert len(jobs) == (28 + len(data.SYNTHETIC)) * accuracy.N_FOLDS


def test_calibration_changes_probabilities_but_no_label():
    plain, calibrated = (
        accuracy.measure({"data": "synth_tiny", "model": model, "fold": 0})
        for model in (models.DEFAULTS, models.CALIBRATED)
    )
    assert plain["right"] == calibrated["right"]
    assert plain["log_loss"] != calibrated["log_loss"]
    assert 0.5 < calibrated["oob_accuracy"] < 1


def test_connect4_is_measured_once_among_the_frames():
    jobs = accuracy.list_robustness(Namespace(seeds=2))
    assert sum(job["data"] == "connect4" for job in jobs) == 1
    assert sum(job["task"] == "holes" for job in jobs) == 2 * 3
    assert {job["task"] for job in jobs} == set(accuracy.MEASURES)


@pytest.mark.parametrize("task", accuracy.TASKS)
def test_every_task_of_robustness_has_numbers(task, monkeypatch):
    frame, y = accuracy.make_mixed(400)
    if task != "frame":
        frame = frame[list("abcde")].fillna(0.0)
    monkeypatch.setattr(accuracy, "read_frame", lambda name: (frame, y))
    job = {"task": task, "data": "mixed", "model": "LHForest, n_estimators=30", "seed": 0}
    line = accuracy.measure_robustness(job)
    assert line["n_estimators"] == 30
    assert all(-1 <= value <= 1 for value in line["result"].values())
