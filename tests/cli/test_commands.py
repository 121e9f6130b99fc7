"""The commands that read and write files, as a new user runs them."""

import array
import contextlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import dump_svmlight_file

import lhtree
from lhtree.cli.app import COMMANDS, run
from lhtree.cli.models import match_labels, read_labelled, score
from lhtree.cli.tables import BLOCK_BYTES, Source

if sys.platform != "win32":
    import fcntl
    import termios


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with wine.csv and wine.safetensors, made by the commands."""
    path = tmp_path_factory.mktemp("wine")
    with contextlib.chdir(path):
        assert run(["demo", "--csv", "wine.csv"]) == 0
        line = "fit wine.csv --target cultivar -o wine.safetensors"
        assert run(shlex.split(line)) == 0
        assert run(shlex.split(line.replace("-o wine", "--model tree -o tree"))) == 0
    return path


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    """Run every test in that folder."""
    monkeypatch.chdir(folder)


@pytest.fixture
def wine():
    return pd.read_csv("wine.csv")


def list_examples():
    for name, (_, examples) in COMMANDS.items():
        for line in examples:
            yield pytest.param(line, id=f"{name}: {line}")


@pytest.mark.parametrize("line", list(list_examples()))
def test_the_examples_of_the_help_run_as_printed(line, capsys):
    program, command, *arguments = shlex.split(line)
    assert program == "lhtree"
    assert run([command, *arguments]) == 0, capsys.readouterr().err
    assert run([command, "--help"]) == 0
    # A terminal of any width may break lines.
    assert " ".join(line.split()) in " ".join(capsys.readouterr().out.split())


def test_the_commands_of_the_readme_run_as_printed(tmp_path, monkeypatch, capsys):
    readme = Path(__file__).parents[2] / "README.md"
    lines = re.findall(r"^lhtree (.+)$", readme.read_text("utf-8"), re.MULTILINE)
    assert len(lines) >= 6
    monkeypatch.chdir(tmp_path)
    for line in lines:
        assert run(shlex.split(line)) == 0, capsys.readouterr().err


def test_predictions_are_those_of_python(wine, capsysbinary):
    assert run(["predict", "wine.safetensors", "wine.csv", "--proba"]) == 0
    text = io.BytesIO(capsysbinary.readouterr().out)
    printed = pd.read_csv(text, dtype=str)
    probabilities = [[float(text) for text in row] for row in printed.iloc[:, 1:].to_numpy()]
    model = lhtree.load("wine.safetensors")
    X = wine.drop(columns="cultivar")
    assert_array_equal(printed["prediction"], model.predict(X))
    assert_array_equal(probabilities, model.predict_proba(X))
    assert list(printed) == ["prediction", *(f"probability_class_{k}" for k in range(3))]


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "tsv"])
def test_tables_come_in_several_formats_and_orders(wine, ending, tmp_path, capsysbinary):
    shuffled = wine[wine.columns[::-1]].assign(note="unused, not even a number")
    path = tmp_path / f"wine.{ending}"
    if ending == "parquet":
        shuffled.to_parquet(path)
    elif ending == "arrow":
        shuffled.to_feather(path)
    else:
        shuffled.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    out = tmp_path / f"out.{ending.replace('tsv', 'csv')}"
    assert run(["predict", "wine.safetensors", str(path), "-o", str(out)]) == 0
    read = {"csv": pd.read_csv, "tsv": pd.read_csv, "arrow": pd.read_feather}
    predicted = read.get(ending, pd.read_parquet)(out)
    model = lhtree.load("wine.safetensors")
    assert_array_equal(predicted["prediction"], model.predict(wine.drop(columns="cultivar")))


def test_a_table_from_standard_input_is_learned(wine, tmp_path):
    model = tmp_path / "model.safetensors"
    command = [sys.executable, "-c", "from lhtree.cli import main; main()"]
    arguments = ["fit", "-", "--target", "cultivar", "-o", str(model), "--json"]
    done = subprocess.run(
        [*command, *arguments], input=wine.to_csv(index=False), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == len(wine)
    X = wine.drop(columns="cultivar")
    assert_array_equal(lhtree.load(model).predict(X), lhtree.load("wine.safetensors").predict(X))


def test_libsvm_files_contain_their_labels(wine, tmp_path, capsysbinary):
    X = wine.drop(columns="cultivar").to_numpy()
    y = wine["cultivar"].astype("category").cat.codes.to_numpy()
    path, model = tmp_path / "wine.libsvm", tmp_path / "model.safetensors"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    assert run(["fit", str(path), "-o", str(model), "--model", "tree", "--json"]) == 0
    capsysbinary.readouterr()
    assert run(["predict", str(model), str(path)]) == 0
    printed = pd.read_csv(io.BytesIO(capsysbinary.readouterr().out))
    assert np.mean(printed["prediction"] == y) > 0.98
    assert lhtree.load(model).classes_.dtype == np.int64


def predict_libsvm(model, path, capsysbinary, *arguments):
    capsysbinary.readouterr()
    assert run(["predict", str(model), str(path), *arguments]) == 0
    return pd.read_csv(io.BytesIO(capsysbinary.readouterr().out))["prediction"]


@pytest.mark.parametrize("zero_based", [False, True])
def test_columns_of_libsvm_files_stay_in_place(zero_based, tmp_path, capsysbinary, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 1] > 0).astype(int)
    X[100:, 0] = 0.0  # these rows do not show from which number the columns count
    path, half, model = (tmp_path / name for name in ("all.svm", "half.svm", "m.safetensors"))
    dump_svmlight_file(X, y, str(path), zero_based=zero_based)
    half.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[100:]))
    option = ["--zero-based"] if zero_based else []
    arguments = ["-o", str(model), "--model", "tree", "--json", "--test", str(half), *option]
    assert run(["fit", str(path), *arguments]) == 0
    assert json.loads(capsysbinary.readouterr().out)["test"]["accuracy"] == 1
    assert lhtree.load(model).n_features_in_ == 3
    assert_array_equal(predict_libsvm(model, half, capsysbinary, *option), y[100:])
    monkeypatch.setattr("lhtree.cli.tables.BLOCK_BYTES", 500)
    assert_array_equal(predict_libsvm(model, path, capsysbinary, *option), y)


def test_a_column_0_of_a_libsvm_file_gets_a_sentence_with_a_remedy(tmp_path, capsys):
    path = tmp_path / "zero.svm"
    path.write_text("1 0:2 1:3\n0 0:1\n")
    assert run(["fit", str(path), "-o", str(tmp_path / "model.safetensors")]) == 1
    err = capsys.readouterr().err
    assert "zero.svm has a column 0, but LIBSVM files number columns from 1" in err
    assert "--zero-based" in err
    assert err.count("\n") == 1


def test_a_row_of_a_libsvm_file_is_explained(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(60, 2))
    path, model = str(tmp_path / "all.svm"), str(tmp_path / "model.safetensors")
    dump_svmlight_file(X, (X[:, 1] > 0).astype(int), path, zero_based=False)
    assert run(["fit", path, "-o", model, "--model", "tree"]) == 0
    capsys.readouterr()
    assert run(["explain", model, path, "--row", "7", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["counterfactual"]["prediction"] == 1 - facts["prediction"]


def test_fit_scores_by_folds_and_on_another_table(wine, tmp_path, capsys):
    wine.iloc[::2].to_csv(tmp_path / "train.csv", index=False)
    wine.iloc[1::2].to_csv(tmp_path / "test.csv", index=False)
    arguments = ["--target", "cultivar", "--cv", "3", "--test", str(tmp_path / "test.csv")]
    assert run(["fit", str(tmp_path / "train.csv"), *arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["rows"] == 89
    assert result["cv"]["folds"] == 3
    assert 0.9 < result["cv"]["accuracy"] <= 1
    assert 0.9 < result["test"]["accuracy"] <= 1
    assert run(["fit", str(tmp_path / "train.csv"), *arguments]) == 0
    assert "accuracy over 3 folds" in capsys.readouterr().out


LABELS = {  # in the training table and, for the same rows, in the test table
    "int and float": ([0, 1, 2], [0.0, 1.0, 2.0]),
    "float and int": ([0.0, 1.0, 2.0], [0, 1, 2]),
    "int and text": ([0, 1, 2], ["0", "1", "2.0"]),
    "text and int": (["0", "1", "x"], ["0", "1", "x"]),
    "text and truth": (["true", "false", "x"], ["true", "false", "x"]),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_labels_are_compared_by_their_meaning(kind, ending, wine, tmp_path, capsys):
    train, test = (np.array(labels)[pd.factorize(wine["cultivar"])[0]] for labels in LABELS[kind])
    wine.assign(y=train).drop(columns="cultivar").to_csv(tmp_path / "train.csv", index=False)
    # Without the last class the others may look like numbers or truth values.
    rows = wine.assign(y=test).drop(columns="cultivar")[wine["cultivar"] != "class_2"]
    path = tmp_path / f"test.{ending}"
    rows.to_csv(path, index=False) if ending == "csv" else rows.to_parquet(path)
    model = str(tmp_path / "model.safetensors")
    line = ["fit", str(tmp_path / "train.csv"), "--target", "y", "--test", str(path), "-o", model]
    assert run([*line, "--model", "tree", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["test"]["accuracy"] == 1
    labels = read_labelled(lhtree.load(model), Source.parse(str(path)), "y")[1]
    assert_array_equal(match_labels(lhtree.load(model), labels), train[: len(rows)])


def test_an_unknown_label_counts_as_a_wrong_prediction(wine, tmp_path, capsys):
    wine.iloc[:100].to_csv(tmp_path / "train.csv", index=False)
    wine.to_csv(tmp_path / "test.csv", index=False)
    arguments = ["--target", "cultivar", "--test", str(tmp_path / "test.csv"), "--json"]
    assert run(["fit", str(tmp_path / "train.csv"), *arguments]) == 0
    test = json.loads(capsys.readouterr().out)["test"]
    assert test["accuracy"] < np.mean(wine["cultivar"] != "class_2") + 1e-9
    assert test["log_loss"] is None


def test_labels_are_those_of_predict_where_calibration_makes_classes_equal(
    wine, tmp_path, capsysbinary
):
    X, y = wine.drop(columns="cultivar"), wine["cultivar"]
    model = lhtree.LHForestClassifier(5, calibration="oob", random_state=0).fit(X, y)
    model.calibration_ = np.array([0.1, 0.0])  # all classes are as likely
    assert (model.predict_proba(X).argmax(axis=1) == 0).all()
    assert model.score(X, y) > 0.95
    path = str(tmp_path / "model.safetensors")
    lhtree.save(model, path)
    for option in ["--proba"], []:
        assert run(["predict", path, "wine.csv", *option]) == 0
        printed = pd.read_csv(io.BytesIO(capsysbinary.readouterr().out))
        assert_array_equal(printed["prediction"], model.predict(X))
    last = len(wine) - 1
    assert run(["explain", path, "wine.csv", "--row", str(last), "--json"]) == 0
    facts = json.loads(capsysbinary.readouterr().out)
    assert facts["prediction"] == facts["class"] == y[last]
    assert score(model, X, y)["accuracy"] == model.score(X, y)


def test_settings_reach_the_model(tmp_path, capsys):
    out = tmp_path / "model.safetensors"
    arguments = "--model tree --set beta=0.25 --set max_depth=None --set criterion=gini"
    assert (
        run(["fit", "wine.csv", "--target", "cultivar", "-o", str(out), *arguments.split()]) == 0
    )
    model = lhtree.load(out)
    assert (model.beta, model.max_depth, model.criterion) == (0.25, None, "gini")
    capsys.readouterr()
    assert run(["info", str(out), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {"beta", "criterion"} <= set(facts["changed"])
    assert facts["classes"] == ["class_0", "class_1", "class_2"]


def test_categories_are_read_as_what_they_were_in_training(tmp_path, capsys):
    rng = np.random.default_rng(0)
    number, letter = rng.integers(0, 6, 300), rng.choice(list("1234x"), 300)
    y = np.where((number % 3 == 1) ^ (letter == "2"), "in", "out")
    table = pd.DataFrame({"number": number, "letter": letter, "y": y})
    table.to_csv(tmp_path / "train.csv", index=False)
    # Without the x, the letters look like numbers.
    table[letter != "x"].to_csv(tmp_path / "test.csv", index=False)
    model, test = str(tmp_path / "model.safetensors"), str(tmp_path / "test.csv")
    line = ["fit", str(tmp_path / "train.csv"), "--target", "y", "--model", "tree", "--json"]
    named = "categorical_features=['number', 'letter']"
    assert run([*line, "--set", named, "--test", test, "-o", model]) == 0
    assert json.loads(capsys.readouterr().out)["test"]["accuracy"] == 1
    assert run(["predict", model, test, "-o", str(tmp_path / "predicted.csv")]) == 0
    predicted = pd.read_csv(tmp_path / "predicted.csv")["prediction"]
    assert_array_equal(predicted, y[letter != "x"])


def test_weights_and_dropped_columns_are_not_features(wine, tmp_path):
    table, out = tmp_path / "table.csv", tmp_path / "model.safetensors"
    wine.assign(name=np.arange(len(wine)), times=2).to_csv(table, index=False)
    options = ["--drop", "name", "--weight", "times", "--model", "tree"]
    assert run(["fit", str(table), "--target", "cultivar", "-o", str(out), *options]) == 0
    model = lhtree.load(out)
    assert list(model.feature_names_in_) == list(wine.columns[:-1])
    assert model.forest_.weight_sum[0] == 2 * len(wine)


def test_an_explanation_adds_up(capsys):
    assert run(["explain", "wine.safetensors", "wine.csv", "--row", "17", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    total = facts["base"] + sum(facts["contributions"].values())
    assert_allclose(total, facts["score"], atol=1e-9)
    assert facts["prediction"] == "class_0"
    assert facts["counterfactual"]["prediction"] != "class_0"
    assert run(["explain", "wine.safetensors", "wine.csv", "--row", "17", "--top", "2"]) == 0
    assert "11 others" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["--text", "--graphviz", "--c", "--sql=wine"])
def test_exports_go_to_standard_output_or_a_file(form, tmp_path, capsys):
    assert run(["export", "tree.safetensors", form]) == 0
    printed = capsys.readouterr().out
    out = tmp_path / "out"
    assert run(["export", "tree.safetensors", form, "-o", str(out)]) == 0
    assert out.read_text("utf-8").strip() == printed.strip()
    assert len(printed) > 100


WRONG_USAGE = {
    "": "Usage",
    "fit wine.csv": "give -o to save the model",
    "fit wine.csv -o x": "give --target",
    "fit wine.csv -o x --zero-based": "--zero-based is for LIBSVM files; wine.csv is read as csv",
    "fit wine.csv -o x --target nope": "has no column 'nope'",
    "fit wine.csv -o x --target cultiva": "it has 'cultivar'.",
    "fit wine.csv -o x --target xyz": "'magnesium' and 9 more.",
    "fit wine.csv -o x --target cultivar --cv 50": "one class has only 48",
    "report wine.safetensors wine.csv -o x.html --target ash": "columns that the model reads",
    "fit wine.csv -o x --target cultivar --drop nope": "has no column 'nope'",
    "fit wine.csv -o nowhere/x --target cultivar": "the folder of nowhere/x does not exist",
    "fit wine.csv -o x --target cultivar --set beta": "--set takes NAME=VALUE",
    "fit wine.csv -o x --target cultivar --set nope=1": "--set nope is not a parameter",
    "fit wine.csv -o x --target cultivar --cv 1": "cv",
    "fit wine.xlsx -o x --target cultivar": "unknown ending .xlsx",
    "predict wine.safetensors wine.csv --json": "needs -o",
    "predict wine.safetensors wine.csv -o out.xlsx": "unknown ending .xlsx",
    "predict wine.safetensors": "DATA",
    "explain wine.safetensors wine.csv --row 178": "its 178 rows are numbered from 0",
    "explain wine.safetensors wine.csv --row=-1": "row",
    "explain wine.safetensors wine.csv --class nope": "its classes are class_0, class_1, class_2",
    "export wine.safetensors": "choose one of",
    "export wine.safetensors --c --text": "choose one of",
    "export wine.safetensors --onnx": "give -o",
    "report wine.safetensors wine.csv -o x.html": "give --target",
}


@pytest.mark.parametrize("line", WRONG_USAGE)
def test_wrong_usage_exits_with_2_and_says_why(line, capsys):
    assert run(shlex.split(line)) == 2
    out, err = capsys.readouterr()
    text = " ".join(re.sub(r"[│╭╮╰╯─]", " ", out + err).split())
    assert WRONG_USAGE[line] in text
    assert "Traceback" not in err


BAD_FILES = {
    "empty.csv": b"",
    "twice.csv": b"alcohol,alcohol\n1,2\n",
    "ragged.csv": b"alcohol,ash\n1,2\n3\n",
    "latin.csv": "alcohol,ash\n1,gr\xf6\xdfer\n".encode("latin-1"),
    "few.csv": b"alcohol,ash\n1,2\n",
    "text.csv": b"",  # made below: a word where a number is due
    "broken.parquet": b"PAR1 and no more",
    "broken.arrow": b"ARROW1 and no more",
    "broken.libsvm": b"1 a:b\n",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_tables_get_one_sentence_and_leave_files_alone(name, wine, tmp_path, capsys):
    path, out = tmp_path / name, tmp_path / "out.csv"
    path.write_bytes(BAD_FILES[name])
    if name == "text.csv":
        wine.assign(ash="much").to_csv(path, index=False)
    out.write_text("old")
    assert run(["predict", "wine.safetensors", str(path), "-o", str(out)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("lhtree: ")
    assert err.count("\n") == 1
    assert name in err
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "out.csv"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("info nowhere.safetensors", "No such file"),
        ("info wine.csv", "cannot be loaded as a model"),
        ("predict wine.safetensors nowhere.csv", "No such file"),
        ("fit wine.csv --target cultivar -o . ", "directory"),
        ("fit wine.csv --target cultivar -o x --set beta=2", "beta must be a number from 0 to 1"),
        ("fit gaps.csv --target cultivar -o x", "no label in 1 row;"),
        ("fit wine.csv --target alcohol --task classify -o x", "in its column 'alcohol'"),
        ("fit wine.csv --target cultivar --test nowhere.csv", "nowhere.csv: No such file"),
        ("fit header.csv --target cultivar -o x", "header.csv has no rows"),
        ("fit empty.libsvm -o x", "empty.libsvm"),
        ("report wine.safetensors header.csv --target cultivar -o x.html", "no rows"),
    ],
)
def test_other_errors_exit_with_1(line, said, wine, capsys):
    wine[:0].to_csv("header.csv", index=False)
    Path("empty.libsvm").write_bytes(b"")
    wine.assign(cultivar=wine["cultivar"].where(wine.index > 0)).to_csv("gaps.csv", index=False)
    assert run(shlex.split(line)) == 1
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_markup_in_names_is_shown_as_it_is(wine, tmp_path, capsys):
    table, out = tmp_path / "table.csv", tmp_path / "model.safetensors"
    wine.rename(columns={"proline": "[bold]proline[/bold]"}).to_csv(table, index=False)
    assert run(["fit", str(table), "--target", "cultivar", "-o", str(out)]) == 0
    assert run(["info", str(out)]) == 0
    assert capsys.readouterr().out.count("[bold]proline[/bold]") == 2


MEASURED = """
import sys
from lhtree.cli import main
try:
    main()
finally:
    with open("/proc/self/status") as file:  # ru_maxrss would be that of the parent, if larger
        kilobytes = next(line.split()[1] for line in file if line.startswith("VmHWM"))
    print(int(kilobytes) // 1024, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_two_million_rows_are_predicted_in_bounded_memory(wine, tmp_path):
    text = wine.drop(columns="cultivar").to_csv(index=False)
    header, rows = text.split("\n", 1)
    n_times = 2_000_000 // len(wine) + 1
    with (tmp_path / "large.csv").open("w") as file:
        file.write(header + "\n")
        for _ in range(n_times):
            file.write(rows)
    assert (tmp_path / "large.csv").stat().st_size > 10 * BLOCK_BYTES
    model = str(Path("tree.safetensors").absolute())
    arguments = ["predict", model, "large.csv", "-o", "out.parquet", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == n_times * len(wine)
    assert int(done.stderr.split()[-1]) < 500


def wait_until_empty(pipe):
    """Wait until another process has read what is in a pipe."""
    deadline = time.monotonic() + 60
    n_bytes = array.array("i", [1])
    while n_bytes[0]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
        fcntl.ioctl(pipe, termios.FIONREAD, n_bytes)


def start(*arguments, **settings):
    command = [sys.executable, "-c", "from lhtree.cli import main; main()", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, **settings)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_ends_within_a_second_and_leaves_no_file(tmp_path):
    # A pipe that gives a header, one row, and then nothing.
    reader, writer = os.pipe()
    header = b",".join(name.encode() for name in pd.read_csv("wine.csv").columns[:-1])
    os.write(writer, header + b"\n" + b",".join([b"1"] * 13) + b"\n")
    out = tmp_path / "out.csv"
    process = start("predict", "wine.safetensors", "-", "-o", str(out), stdin=reader)
    try:
        wait_until_empty(reader)
        time.sleep(0.2)  # it now waits for more
        assert process.poll() is None
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        assert time.monotonic() - begin < 2
        assert process.returncode == 130
        assert b"Traceback" not in process.stderr.read()
        assert list(tmp_path.iterdir()) == []
    finally:
        process.kill()
        process.stderr.close()
        os.close(reader)
        os.close(writer)


def test_a_reader_that_leaves_early_is_not_an_error():
    process = start("predict", "wine.safetensors", "wine.csv", stdout=subprocess.PIPE)
    process.stdout.close()
    process.wait(timeout=60)
    error = process.stderr.read()
    process.stderr.close()
    assert b"Traceback" not in error
    assert b"Broken" not in error


@pytest.fixture
def boosted(wine, tmp_path):
    """Return files of a boosted model of two classes and of one of numbers, with their rows."""
    X = wine.drop(columns=["cultivar", "alcohol"])
    is_first = np.where(wine["cultivar"] == "class_0", "yes", "no")
    classifier = lhtree.LHBoostClassifier(n_estimators=7, random_state=0).fit(X, is_first)
    regressor = lhtree.LHBoostRegressor(n_estimators=7, random_state=0).fit(X, wine["alcohol"])
    paths = tmp_path / "yes.safetensors", tmp_path / "alcohol.safetensors"
    for model, path in zip((classifier, regressor), paths, strict=True):
        lhtree.save(model, path)
    return paths, X


def test_boosted_models_predict(boosted, capsysbinary):
    paths, X = boosted
    for path in paths:
        model = lhtree.load(path)
        assert run(["predict", str(path), "wine.csv"]) == 0
        printed = pd.read_csv(io.BytesIO(capsysbinary.readouterr().out))
        assert_array_equal(printed["prediction"], model.predict(X))
    assert run(["predict", str(paths[0]), "wine.csv", "--proba"]) == 0
    printed = pd.read_csv(io.BytesIO(capsysbinary.readouterr().out))
    wanted = lhtree.load(paths[0]).predict_proba(X)
    assert_array_equal(printed[["probability_no", "probability_yes"]], wanted)
    assert run(["predict", str(paths[1]), "wine.csv", "--proba"]) == 2
    assert b"--proba needs a model of classes" in capsysbinary.readouterr().err


def test_each_quantile_of_a_model_has_a_column(wine, tmp_path, capsysbinary):
    X, path = wine.drop(columns=["cultivar", "alcohol"]), tmp_path / "quantiles.safetensors"
    model = lhtree.LHBoostRegressor("quantile", quantile=[0.1, 0.9], n_estimators=5)
    lhtree.save(model.fit(X, wine["alcohol"]), path)
    assert run(["predict", str(path), "wine.csv"]) == 0
    printed = pd.read_csv(io.BytesIO(capsysbinary.readouterr().out))
    assert list(printed) == ["prediction_0.1", "prediction_0.9"]
    assert_array_equal(printed, model.predict(X))


def test_info_shows_boosted_models(boosted, capsys):
    for path, name in zip(boosted[0], ("LHBoostClassifier", "LHBoostRegressor"), strict=True):
        model = lhtree.load(path)
        assert run(["info", str(path), "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["model"] == name
        assert (facts["rounds"], facts["trees"]) == (7, 7)
        assert facts["leaves"] == model.get_n_leaves()
        assert len(facts["features"]) == 12
        assert facts.get("classes") == (["no", "yes"] if name == "LHBoostClassifier" else None)
        assert set(facts["changed"]) == {"n_estimators", "random_state"}
        assert run(["info", str(path)]) == 0
        shown = capsys.readouterr().out
        assert name in shown
        assert f"7, {facts['leaves']} leaves" in shown
