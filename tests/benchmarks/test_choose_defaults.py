"""The script by which the defaults were chosen."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas", reason="the tables are made with pandas")
from benchmarks import choose_defaults

ROOT = Path(__file__).parents[2]
LINES = ROOT / "benchmarks" / "results" / "defaults.jsonl"


def test_a_second_start_runs_nothing_again(tmp_path):
    path = tmp_path / "lines.jsonl"
    models = ["ExtraTrees", "LHT default, calibrated"]
    choose_defaults.run(path, models, ["synth_tiny"])
    text = path.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert len(lines) == 9
    assert {line["model"] for line in lines} == {*models, "LHT default"}
    choose_defaults.run(path, models, ["synth_tiny"])
    assert path.read_text() == text
    path.write_text("".join(text.splitlines(keepends=True)[:-2]))  # one fold is lost
    choose_defaults.run(path, models, ["synth_tiny"])
    assert len(path.read_text().splitlines()) == 9


def test_the_page_is_made_from_the_committed_lines():
    page = (ROOT / "docs" / "results" / "probabilities.md").read_text()
    assert choose_defaults.compare(LINES) in page
    assert choose_defaults.compare_left_out(LINES) in page


def test_out_of_bag_accuracy_agrees_with_that_of_held_out_rows():
    lines = [json.loads(line) for line in LINES.read_text().splitlines()]
    gap = [line["oob_accuracy"] - line["accuracy"] for line in lines if "oob_accuracy" in line]
    assert len(gap) > 100
    assert abs(np.mean(gap)) < 0.01


@pytest.mark.parametrize("name", choose_defaults.SYNTHETIC)
def test_synthetic_tables_are_the_same_each_time(name):
    (X, y), (again, labels) = (choose_defaults.load_rows(name) for _ in range(2))
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    assert np.isfinite(X).all()
    assert np.bincount(y).min() >= choose_defaults.N_FOLDS


def test_calibration_error_is_the_gap_between_confidence_and_accuracy():
    proba = np.array([[0.9, 0.1]] * 10 + [[0.3, 0.7]] * 10)
    y = np.array([0] * 8 + [1] * 2 + [1] * 10)
    found = choose_defaults.measure_answers(proba, y)
    assert found["calibration_error"] == pytest.approx((0.1 + 0.3) / 2)
