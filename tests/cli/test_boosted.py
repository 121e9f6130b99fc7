"""Boosted models from fit to export, as a new user runs the commands."""

import contextlib
import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import (
    mean_absolute_error,
    mean_pinball_loss,
    r2_score,
    root_mean_squared_error,
)
from sklearn.model_selection import KFold

import lhtree
from lhtree.cli.app import run
from lhtree.explain import explain_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with wine.csv, a model of its classes and one of the alcohol."""
    path = tmp_path_factory.mktemp("wine")
    with contextlib.chdir(path):
        assert run(["demo", "--csv", "wine.csv"]) == 0
        line = "fit wine.csv --model boost --set n_estimators=9 --target "
        assert run(shlex.split(line + "cultivar -o cultivar.safetensors")) == 0
        assert run(shlex.split(line + "alcohol --drop cultivar -o alcohol.safetensors")) == 0
        frame = pd.read_csv("wine.csv")
        frame["cultivar"] = np.where(frame["cultivar"] == "class_0", "yes", "no")
        frame.to_csv("two.csv", index=False)
        line = "fit two.csv --model boost --set n_estimators=9 --target cultivar"
        assert run(shlex.split(line + " -o two.safetensors")) == 0
    return path


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    """Run every test in that folder."""
    monkeypatch.chdir(folder)


@pytest.fixture
def wine():
    return pd.read_csv("wine.csv")


def run_json(line, capsys):
    """Return what a command prints as JSON."""
    assert run([*shlex.split(line), "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_classes_make_a_classifier_and_numbers_a_regressor():
    assert isinstance(lhtree.load("cultivar.safetensors"), lhtree.LHBoostClassifier)
    assert isinstance(lhtree.load("two.safetensors"), lhtree.LHBoostClassifier)
    assert isinstance(lhtree.load("alcohol.safetensors"), lhtree.LHBoostRegressor)
    assert lhtree.load("alcohol.safetensors").n_estimators == 9


@pytest.mark.parametrize(
    ("values", "options", "task"),
    [
        (np.arange(60) % 30, "", "classify"),
        (np.arange(62) % 31, "", "regress"),
        (np.arange(60) % 2 + 0.5, "", "regress"),
        (np.arange(60) % 3, "--task regress", "regress"),
        (np.arange(62) % 31, "--task classify", "classify"),
        (np.arange(60) % 2 == 0, "", "classify"),
        (np.array(list("ab") * 30), "", "classify"),
    ],
    ids=str,
)
def test_the_target_or_the_option_says_what_is_predicted(values, options, task, tmp_path, capsys):
    table, out = tmp_path / "t.csv", tmp_path / "m.safetensors"
    pd.DataFrame({"x": np.arange(len(values)), "y": values}).to_csv(table, index=False)
    line = f"fit {table} --target y --model boost --set n_estimators=2 -o {out} {options}"
    assert run_json(line, capsys)["task"] == task
    assert hasattr(lhtree.load(out), "classes_") == (task == "classify")


def test_forests_and_trees_predict_classes_of_many_whole_numbers(tmp_path, capsys):
    table = tmp_path / "t.csv"
    pd.DataFrame({"x": np.arange(62), "y": np.arange(62) % 31}).to_csv(table, index=False)
    line = f"fit {table} --target y --model tree -o {tmp_path / 'm.safetensors'}"
    assert run_json(line, capsys)["task"] == "classify"


def test_scores_of_numbers_are_scikit_learns(wine, tmp_path, capsys):
    test = tmp_path / "test.csv"
    wine[100:].to_csv(test, index=False)
    line = "fit wine.csv --target alcohol --drop cultivar --model boost --set n_estimators=9"
    line += f" --test {test} --cv 3"
    result = run_json(line, capsys)
    model = lhtree.load("alcohol.safetensors")
    y, predicted = wine["alcohol"][100:], model.predict(wine[100:][model.feature_names_in_])
    assert result["test"] == {
        "r2": pytest.approx(r2_score(y, predicted)),
        "rmse": pytest.approx(root_mean_squared_error(y, predicted)),
        "mae": pytest.approx(mean_absolute_error(y, predicted)),
        "n_rows": 78,
    }
    assert 0 < result["cv"]["r2"] < result["test"]["r2"] < 1
    assert run(shlex.split(line)) == 0
    printed = capsys.readouterr().out
    assert f"on the test table: R2 {result['test']['r2']:.4f}, RMSE" in printed
    assert f"over 3 folds: R2 {result['cv']['r2']:.4f}, RMSE" in printed
    assert f"MAE {result['cv']['mae']:.4g} (R2 ± {result['cv']['r2_std']:.4f})" in printed
    assert "accuracy" not in printed


def test_each_of_several_quantiles_has_its_own_scores(wine, tmp_path, capsys):
    test, out = tmp_path / "test.csv", tmp_path / "m.safetensors"
    wine[100:].to_csv(test, index=False)
    line = "fit wine.csv --target alcohol --drop cultivar --model boost --set n_estimators=9"
    line += f" --set loss=quantile --set quantile=[0.25,0.9] --test {test} --cv 3 -o {out}"
    result = run_json(line, capsys)
    model = lhtree.load(out)
    y, predicted = wine["alcohol"][100:], model.predict(wine[100:][model.feature_names_in_])
    expected = [
        {
            "level": level,
            "pinball_loss": pytest.approx(mean_pinball_loss(y, column, alpha=level)),
            "coverage": pytest.approx(np.mean(y <= column)),
        }
        for level, column in zip([0.25, 0.9], predicted.T, strict=True)
    ]
    assert result["test"] == {"quantiles": expected, "n_rows": 78}
    assert run(shlex.split(line)) == 0
    printed = capsys.readouterr().out.replace("\n", " ")
    for rows, name in (("on the test table", "test"), ("over 3 folds", "cv")):
        for each in result[name]["quantiles"]:
            assert 0 < each["pinball_loss"] < 0.3
            assert abs(each["coverage"] - each["level"]) < 0.2
            loss, share = f"{each['pinball_loss']:.4g}", f"{each['coverage']:.1%}"
            words = f"{rows}, quantile {each['level']}: pinball loss {loss}, {share} of the rows"
            assert words in printed
    assert "R2" not in printed


def test_scores_of_quantiles_are_means_over_the_folds(wine, capsys):
    line = "fit wine.csv --target alcohol --drop cultivar --model boost --set n_estimators=5"
    line += " --set loss=quantile --set quantile=[0.25,0.9] --cv 2"
    found = run_json(line, capsys)["cv"]["quantiles"]
    X, y = wine.drop(columns=["alcohol", "cultivar"]), wine["alcohol"]
    model = lhtree.LHBoostRegressor(
        "quantile", quantile=[0.25, 0.9], n_estimators=5, random_state=0
    )
    losses, shares = [], []
    for train, test in KFold(2, shuffle=True, random_state=0).split(X):
        predicted = model.fit(X.iloc[train], y[train]).predict(X.iloc[test])
        losses.append(mean_pinball_loss(y[test], predicted[:, 1], alpha=0.9))
        shares.append(np.mean(y[test] <= predicted[:, 1]))
    assert found[1]["pinball_loss"] == pytest.approx(np.mean(losses))
    assert found[1]["coverage"] == pytest.approx(np.mean(shares))


def test_accuracy_of_boosted_classes_is_printed(capsys):
    line = "fit wine.csv --target cultivar --model boost --set n_estimators=3 --cv 2"
    assert run(shlex.split(f"{line} --test wine.csv")) == 0
    printed = capsys.readouterr().out
    assert "accuracy over 2 folds: 0." in printed
    assert "accuracy on the test table: 0." in printed or "table: 1.0000" in printed


@pytest.mark.parametrize(
    ("name", "options", "explained"),
    [
        ("alcohol", "", "prediction"),
        ("cultivar", "", "score of class_0"),
        ("cultivar", "--class class_2", "score of class_2"),
        ("two", "--class no", "log-odds of no"),
    ],
)
def test_an_explanation_adds_up_to_the_score(name, options, explained, wine, capsys):
    line = f"explain {name}.safetensors wine.csv --row 17 {options}"
    facts = run_json(line, capsys)
    model = lhtree.load(f"{name}.safetensors")
    x = wine.loc[[17], model.feature_names_in_]
    expected = explain_rows(model, x)
    assert facts["explained"] == explained
    k = expected.output_names.index(explained)
    assert facts["score"] == expected.score[0, k]
    assert_allclose(facts["base"] + sum(facts["contributions"].values()), facts["score"])
    assert facts["prediction"] == model.predict(x)[0]
    assert ("counterfactual" in facts) == ("probabilities" in facts) == (name != "alcohol")
    assert run(shlex.split(line + " --top 3")) == 0
    printed = capsys.readouterr().out
    assert "base: mean in training" in printed
    assert f" {explained} " in printed
    assert "others" in printed
    shown = re.search(rf"^ +{facts['name']} +(-?\d+\.\d+) *$", printed, re.MULTILINE)
    n_decimals = len(shown[1].partition(".")[2])
    assert n_decimals >= 2
    assert shown[1] == f"{facts['score']:.{n_decimals}f}"


@pytest.mark.parametrize(("name", "target"), [("alcohol", "alcohol"), ("cultivar", "cultivar")])
def test_a_report_is_written(name, target, tmp_path):
    out = tmp_path / "r.html"
    line = f"report {name}.safetensors wine.csv --target {target} -o {out}"
    assert run(shlex.split(line)) == 0
    page = out.read_text("utf-8")
    assert "LHBoost" in page
    assert ("accuracy on 178 rows" in page) == (name == "cultivar")
    assert ("R2 on 178 rows" in page) == (name == "alcohol")


@pytest.mark.parametrize("form", ["--text", "--graphviz", "--c", "--sql=wine"])
@pytest.mark.parametrize("name", ["alcohol", "cultivar", "two"])
def test_exports_go_to_standard_output_or_a_file(name, form, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(["export", f"{name}.safetensors", form]) == 0
    printed = capsys.readouterr().out
    assert run(["export", f"{name}.safetensors", form, "-o", str(out)]) == 0
    assert out.read_text("utf-8").strip() == printed.strip()
    assert len(printed) > 100


def test_an_onnx_graph_predicts_the_numbers(wine, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    out = tmp_path / "alcohol.onnx"
    assert run(["export", "alcohol.safetensors", "--onnx", "-o", str(out)]) == 0
    model = lhtree.load("alcohol.safetensors")
    X = wine[model.feature_names_in_]
    session = runtime.InferenceSession(out)
    predicted = session.run(None, {session.get_inputs()[0].name: X.to_numpy()})[0]
    assert_allclose(np.ravel(predicted), model.predict(X))


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("fit wine.csv --target alcohol --task regress --model tree -o x", 2, "or boost: a tree"),
        (
            "fit wine.csv --target cultivar --model boost --task regress -o x",
            1,
            "not numbers, but",
        ),
        ("fit wine.csv --target alcohol --model tree -o x", 1, "--model forest or boost, or name"),
        ("fit wine.csv --target alcohol --model boost --task classify -o x", 1, "not classes;"),
        ("fit wine.csv --target alcohol --model boost --cv 90 -o x", 2, "needs 180 rows, got 178"),
        ("fit wine.csv --target alcohol --model boost --set beta=1 -o x", 2, "not a parameter of"),
        (
            "fit wine.csv --target alcohol --model boost --set class_weight=1 -o x",
            2,
            "of LHBoostR",
        ),
        (
            "fit wine.csv --target cultivar --model boost --set beta=1 -o x",
            2,
            "or LHBoostRegressor",
        ),
        ("explain alcohol.safetensors wine.csv --class 1", 2, "this one predicts numbers; leave"),
        ("report alcohol.safetensors wine.csv --target cultivar -o x", 1, "that are not numbers"),
        ("report alcohol.safetensors wine.csv --target ash -o x", 2, "columns that the model"),
        ("predict alcohol.safetensors wine.csv --proba", 2, "--proba needs a model of classes"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(line, code, said, tmp_path, capsys):
    assert run(shlex.split(line.replace("-o x", f"-o {tmp_path / 'x'}"))) == code
    assert said in " ".join(capsys.readouterr().err.replace("│", "").split())
    assert list(tmp_path.iterdir()) == []
