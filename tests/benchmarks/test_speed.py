"""What the benchmark of speed measures."""

import numpy as np
import pytest

from benchmarks import models
from benchmarks.kinds import speed


def test_the_goals_are_measured_first_and_nothing_twice():
    jobs = speed.list_jobs()
    assert len({str(job) for job in jobs}) == len(jobs)
    names = [models.PAPER, models.DEFAULTS, "RF", "LightGBM"]
    assert [job["model"] for job in jobs[:4]] == names


def test_peers_have_the_settings_of_the_paper_where_it_has_some():
    found = {(job["data"], job["model"]) for job in speed.list_jobs()}
    assert ("satimage", "RF (table 6)") in found
    assert ("synth50k", "CatBoost (100 trees)") in found
    assert ("satimage", "RF") not in found


def test_one_measurement_has_all_its_numbers():
    job = speed.make_job("growth", "synth50k", models.PAPER, 1, rows=500, columns=25, max_depth=3)
    line = speed.measure(job)
    assert line["depth"] <= 3
    assert line["X_mb"] == 0.1
    assert line["fit_s"] > 0
    assert line["n_estimators"] == 2
    table = speed.load_table(job)
    predicted = speed.measure_predict(speed.make_model(job).fit(table.X, table.y), table)
    assert predicted["accuracy"] > 0.5
    assert predicted["bulk_rows"] == 500


def test_onnx_is_timed_next_to_the_package(monkeypatch):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    name = "LHForest, n_estimators=2, max_depth=3"
    line = speed.measure(speed.make_job("onnx", "digits", name, 1))
    assert line["onnx_s"] > 0
    assert line["bulk_s"] > 0


def test_boosts_are_measured_at_the_same_settings_as_lightgbm(monkeypatch):
    own, peer = speed.LIKE_PEER, pytest.importorskip("lightgbm").LGBMRegressor().get_params()
    same = {"n_estimators": "n_estimators", "learning_rate": "learning_rate"}
    for name, of_peer in (same | {"max_leaf_nodes": "num_leaves"}).items():
        assert own[name] == peer[of_peer]
    X = np.arange(60.0).reshape(30, 2)
    for name, y in (("magic", (X[:, 0] > 20).astype(int)), ("regression/pol", X[:, 0])):
        monkeypatch.setattr(speed, "load_boosts", lambda _, y=y: (X, y))
        found = speed.measure_boosts({"data": name})["fit_s"]
        assert list(found) == [speed.PEER_OF_BOOSTS, *speed.BOOSTS]
        assert all(0 < value < 60 for value in found.values())
