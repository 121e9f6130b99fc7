"""Forests of numbers from fit to export, as a new user runs the commands."""

import json
import shlex
import sqlite3

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import lhtree
from lhtree.cli.app import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("wine")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        assert run(["demo", "--csv", "wine.csv"]) == 0
        line = (
            "fit wine.csv --target alcohol --drop cultivar --set n_estimators=9 -o a.safetensors"
        )
        assert run(shlex.split(line)) == 0
    return path


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_a_target_of_numbers_makes_a_forest_of_numbers():
    model = lhtree.load("a.safetensors")
    assert isinstance(model, lhtree.LHForestRegressor)
    assert model.n_estimators_ == 9


def test_task_overrules_what_the_target_suggests(capsys):
    line = "fit wine.csv --target magnesium --task classify --set max_depth=2 -o p.safetensors"
    assert run(shlex.split(line)) == 0
    assert isinstance(lhtree.load("p.safetensors"), lhtree.LHForestClassifier)
    line = "fit wine.csv --target magnesium --task regress --set max_depth=3 -o m.safetensors"
    assert run(shlex.split(line)) == 0
    assert isinstance(lhtree.load("m.safetensors"), lhtree.LHForestRegressor)
    assert run(shlex.split("fit wine.csv --target cultivar --set beta=0.5 --cv 2")) == 0
    capsys.readouterr()
    line = "fit wine.csv --target alcohol --set beta=0.5 -o x.safetensors"
    assert run(shlex.split(line)) == 2
    assert "beta is not a parameter of LHForestRegressor" in " ".join(
        capsys.readouterr().err.split()
    )


def test_scores_are_those_of_numbers(capsys):
    line = "fit wine.csv --target alcohol --set n_estimators=30 --cv 3 --test wine.csv --json"
    assert run(shlex.split(line)) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["task"] == "regress"
    assert result["cv"]["r2"] > 0.3
    assert result["test"]["r2"] > 0.8
    assert {"rmse", "mae"} <= set(result["cv"]) & set(result["test"])


def test_the_other_commands_take_it(capsys):
    frame = pd.read_csv("wine.csv")
    model = lhtree.load("a.safetensors")
    assert run(shlex.split("predict a.safetensors wine.csv -o p.parquet")) == 0
    predicted = model.predict(frame[list(model.feature_names_in_)])
    assert_array_equal(pd.read_parquet("p.parquet")["prediction"], predicted)
    for line in (
        "info a.safetensors",
        "explain a.safetensors wine.csv",
        "report a.safetensors wine.csv --target alcohol -o a.html",
        "export a.safetensors --text",
        "export a.safetensors --c -o a.c",
    ):
        assert run(shlex.split(line)) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert run(shlex.split("export a.safetensors --sql wine")) == 0
    query = capsys.readouterr().out.rstrip().rstrip(";")
    with sqlite3.connect(":memory:") as database:
        frame.to_sql("wine", database, index=False)
        result = pd.read_sql_query(query, database)
    assert_array_equal(np.sort(result["prediction"]), np.sort(predicted))
