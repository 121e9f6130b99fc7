"""Boosted models in other languages: labels and raw scores are the same bit for bit."""

import ctypes

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import lhtree.export.boosted_sql
import lhtree.export.c
import lhtree.export.sql
import lhtree.export.writing_onnx
from boosted import NAMES, REGRESSORS, fit_boosted, get_scores, make_frame, to_targets
from exports import DATABASES, compile_c
from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.export import export_graphviz, export_text, to_c, to_onnx, to_sql

NASTY = ["a'b", 'c"d', "e\n*/ ??/ \\"]


def assert_predictions(model, X, label=None, probability=None, prediction=None):
    """Compare what another program predicts with the package."""
    if hasattr(model, "classes_"):
        assert_array_equal(label, model.predict(X))
        assert_allclose(probability, model.predict_proba(X), rtol=0, atol=1e-12)
    elif getattr(model, "loss", None) in (
        "poisson",
        "gamma",
    ):  # exponentials differ in their last bits
        assert_allclose(prediction, model.predict(X), rtol=1e-12)
    else:
        assert_array_equal(prediction, model.predict(X))


# ---- C ---------------------------------------------------------------------


def run_c(program, model, rows):
    """Return scores, predictions (labels or numbers) and probabilities of encoded rows."""
    pointer = ctypes.POINTER(ctypes.c_double)
    is_classifier = hasattr(model, "classes_")
    program.lhtree_predict.restype = ctypes.c_int if is_classifier else ctypes.c_double
    score = np.empty((len(rows), model.forest_.n_outputs))
    probability = np.empty((len(rows), len(model.classes_) if is_classifier else 0))
    levels = getattr(model, "_quantile", None)
    predicted = np.empty((len(rows), len(levels)) if isinstance(levels, list) else len(rows))
    for i, row in enumerate(np.ascontiguousarray(rows, dtype=np.float64)):
        address = row.ctypes.data_as(pointer)
        program.lhtree_score(address, score[i].ctypes.data_as(pointer))
        if predicted.ndim == 1:
            predicted[i] = program.lhtree_predict(address)
        else:
            program.lhtree_predict(address, predicted[i].ctypes.data_as(pointer))
        if is_classifier:
            program.lhtree_predict_proba(address, probability[i].ctypes.data_as(pointer))
    return score, predicted, probability


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("has_categories", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_c_gives_the_same_bits(name, has_categories, dtype, tmp_path):
    model, X = fit_boosted(name, has_categories=has_categories)
    rows = model.encode_rows(X)
    if dtype == "float32":
        if has_categories:
            pytest.skip("frames are read as float64")
        X = rows = np.nan_to_num(rows.clip(-1e30, 1e30), nan=np.nan).astype(np.float32)
        model.fit(model.encode_rows(make_frame()[0].drop(columns="color")), make_y(model, name))
    score, predicted, probability = run_c(compile_c(to_c(model), tmp_path), model, rows)
    assert score.tobytes() == get_scores(model, X).tobytes()
    label = model.classes_[predicted.astype(int)] if hasattr(model, "classes_") else None
    assert_predictions(model, X, label, probability, predicted)


def make_y(model, name):
    """Return targets for another fit."""
    y = make_frame()[1]
    if name in REGRESSORS:
        return to_targets(name, y)
    n_classes = len(model.classes_)
    return np.searchsorted(np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]), y)


def test_c_looks_up_the_codes_of_categories(tmp_path):
    model, X = fit_boosted("two classes")
    program = compile_c(to_c(model), tmp_path)
    program.lhtree_code.restype = ctypes.c_double
    codes = model.encode_rows(X)[:, 3]
    for value, code in zip(X["color"], codes, strict=True):
        text = "" if value is None else value
        assert_array_equal(program.lhtree_code(3, text.encode()), code)
    assert np.isnan(program.lhtree_code(0, b"red"))
    assert program.lhtree_column_name(3) == b"color"


def test_c_shares_the_code_of_rare_categories(tmp_path):
    frame, y = make_frame()
    model = LHBoostRegressor(n_estimators=3, max_categories=3).fit(frame, y)
    program = compile_c(to_c(model), tmp_path)
    program.lhtree_code.restype = ctypes.c_double
    for value, code in zip(frame["color"], model.encode_rows(frame)[:, 3], strict=True):
        assert_array_equal(program.lhtree_code(3, (value or "").encode()), code)


def test_c_keeps_labels_as_they_are(tmp_path):
    model, X = fit_boosted("three classes", labels=NASTY)
    program = compile_c(to_c(model), tmp_path)
    for k, name in enumerate(model.classes_):
        assert program.lhtree_class_name(k).decode() == name
    _, predicted, _ = run_c(program, model, model.encode_rows(X))
    assert_array_equal(model.classes_[predicted.astype(int)], model.predict(X))


def test_c_files_have_their_prefix_and_their_limit(tmp_path, monkeypatch):
    model, _ = fit_boosted("numbers")
    text = to_c(model, tmp_path / "model.c", prefix="wine")
    assert (tmp_path / "model.c").read_text() == text
    assert "lhtree_" not in text
    compile_c(text, tmp_path, prefix="wine")
    monkeypatch.setattr(lhtree.export.c, "MOST_TERMS", 10)
    with pytest.raises(ValueError, match="numbers, more than the 10 that a C file should hold"):
        to_c(model)


# ---- SQL -------------------------------------------------------------------


def assert_sql(query, model, X):
    kinds = {name: "TEXT" if name == "color" else "DOUBLE PRECISION" for name in X.columns}
    names, found = query(to_sql(model, "t"), "t", kinds, X.to_numpy())
    assert [row[0] for row in found] == list(range(1, len(X) + 1))
    columns = dict(zip(names, zip(*found, strict=True), strict=True))
    n_scores = model.forest_.n_outputs
    if hasattr(model, "classes_"):
        labels = model.classes_.tolist()
        score_names = [f"score_{label}" for label in labels] if n_scores > 1 else ["score"]
        probability = np.column_stack([columns[f"probability_{label}"] for label in labels])
        assert_predictions(model, X, columns["label"], probability.astype(float))
    elif n_scores > 1:
        score_names = [f"score_{level}" for level in model.quantile]
        prediction = np.column_stack([columns[f"prediction_{level}"] for level in model.quantile])
        assert_predictions(model, X, prediction=prediction)
        assert (np.diff(get_scores(model, X)) < 0).any()  # trees' own would cross
    else:
        score_names = ["score" if "score" in columns else "prediction"]
        assert_predictions(model, X, prediction=columns["prediction"])
    score = np.column_stack([columns[name] for name in score_names]).astype(float)
    assert score.tobytes() == get_scores(model, X).tobytes()


@pytest.mark.parametrize("has_categories", [True, False])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("database", DATABASES)
def test_sql_gives_the_same_bits(database, name, has_categories):
    assert_sql(DATABASES[database], *fit_boosted(name, has_categories=has_categories))


def test_deep_trees_are_tested():
    model, _ = fit_boosted("deep")
    assert model.get_depth() > lhtree.export.boosted_sql.LEVELS_AT_ONCE


@pytest.mark.parametrize("database", DATABASES)
def test_sql_reads_columns_without_a_known_category(database):
    frame, y = make_frame()
    frame["color"] = frame["color"].where(frame["a"] > 1e9, None)
    model = LHBoostRegressor(n_estimators=2, categorical_features=["color"]).fit(frame, y)
    assert_sql(DATABASES[database], model, frame.head(20))


@pytest.mark.parametrize("database", DATABASES)
def test_sql_takes_far_origins(database):
    rng = np.random.default_rng(0)
    frame, _ = make_frame()
    X = frame[["a", "b"]].assign(a=1e17 + 16 * rng.integers(-100, 100, len(frame)))
    X["b"] = -1e-300 * rng.normal(size=len(X))
    y = 1e12 + np.sin((X["a"] - 1e17) / 800 + 1e300 * X["b"])
    model = LHBoostRegressor(n_estimators=8, n_hyperplanes=3).fit(X, y)
    assert len(model.forest_.cut)
    assert_sql(DATABASES[database], model, X.head(60))


@pytest.mark.parametrize("database", DATABASES)
def test_sql_quotes_labels(database):
    model, X = fit_boosted("three classes", labels=NASTY)
    kinds = {name: "TEXT" if name == "color" else "DOUBLE PRECISION" for name in X.columns}
    names, found = DATABASES[database](to_sql(model, "t"), "t", kinds, X.head(30).to_numpy())
    assert [row[names.index("label")] for row in found] == model.predict(X.head(30)).tolist()


@pytest.mark.parametrize("database", DATABASES)
def test_sql_holds_many_trees(database):
    frame, y = make_frame()
    model = LHBoostClassifier(n_estimators=120, random_state=0, early_stopping=False)
    assert_sql(DATABASES[database], model.fit(frame, np.digitize(y, [0, 1])), frame.head(9))


def test_sql_refuses_what_databases_cannot_hold(monkeypatch):
    model, _ = fit_boosted("three classes")
    monkeypatch.setattr(lhtree.export.boosted_sql, "MOST_COLUMNS", 20)
    with pytest.raises(ValueError, match=r"model needs \d+ columns, .* statement can hold 20;"):
        to_sql(model, "t")
    monkeypatch.setattr(lhtree.export.sql, "MOST_NUMBERS", 10)
    with pytest.raises(ValueError, match="numbers, more than the 10 that one statement"):
        to_sql(model, "t")


# ---- ONNX ------------------------------------------------------------------


def run_onnx(model, rows):
    """Return the outputs by name."""
    runtime = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    proto = to_onnx(model, dtype=str(rows.dtype))
    onnx.checker.check_model(proto, full_check=True)
    assert {entry.domain for entry in proto.opset_import} == {""}
    session = runtime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": rows}), strict=True))


def assert_onnx(model, rows, X):
    found = run_onnx(model, rows)
    score = get_scores(model, X)
    if "prediction" in found:
        assert found.get("scores", found["prediction"]).tobytes() == score.tobytes()
        assert_predictions(model, X, prediction=found["prediction"])
        return
    assert found["scores"].tobytes() == score.tobytes()
    assert_array_equal(found["label"], model.predict(X))
    assert found["probabilities"].dtype == rows.dtype
    tolerance = 1e-12 if rows.dtype == np.float64 else 1e-6
    assert_allclose(found["probabilities"], model.predict_proba(X), rtol=0, atol=tolerance)


@pytest.mark.parametrize("has_categories", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_onnx_gives_the_same_bits(name, has_categories):
    model, X = fit_boosted(name, has_categories=has_categories)
    assert_onnx(model, model.encode_rows(X), X)


@pytest.mark.parametrize("name", NAMES)
def test_onnx_reads_float32(name):
    model, X = fit_boosted(name, has_categories=False)
    model.fit(model.encode_rows(make_frame()[0].drop(columns="color")), make_y(model, name))
    rows = np.nan_to_num(X.to_numpy().clip(-1e30, 1e30), nan=np.nan).astype(np.float32)
    assert_onnx(model, rows, rows)


@pytest.mark.parametrize("n_rows", [0, 1, 63, 64, 65, 300])
def test_onnx_takes_any_number_of_rows(n_rows, monkeypatch):
    monkeypatch.setattr(lhtree.export.writing_onnx, "NUMBERS_PER_BLOCK", 64)
    model, X = fit_boosted("three classes", has_categories=False)
    rows = np.resize(model.encode_rows(X), (n_rows, 5))
    found = run_onnx(model, rows)
    assert found["label"].shape == (n_rows,)
    assert found["scores"].shape == (n_rows, 3)
    if n_rows:
        assert found["scores"].tobytes() == model.forest_.score(rows).tobytes()


def test_onnx_gives_labels_of_their_type():
    model, X = fit_boosted("three classes", labels=NASTY)
    assert_array_equal(run_onnx(model, model.encode_rows(X))["label"], model.predict(X))


# ---- text ------------------------------------------------------------------


def fit_small(kind=LHBoostRegressor, **parameters):
    """Return a model of one tree, whose splits are by numbers, categories and gaps."""
    frame, y = make_frame()
    y = np.where(frame["b"].isna(), 9.0, np.where(frame["color"] == "red", 4.0, frame["a"] > 0))
    y = y if kind is LHBoostRegressor else np.where(y > 1, "high", "low")
    settings = {"n_estimators": 1, "max_leaf_nodes": 4, "n_hyperplanes": 0, "learning_rate": 1.0}
    return kind(**{**settings, "l2_regularization": 0.0, **parameters}).fit(frame, y)


def test_text_of_a_tree():
    text = export_text(fit_small(), decimals=1, show_weights=True).splitlines()
    assert text[0] == "Tree 0: adds to the prediction"
    assert "|--- b is present" in text
    assert "|--- b is missing" in text
    assert "|   |--- color in {red}" in text
    assert "|   |--- color not in {red}" in text
    assert any(line.startswith("|   |   |--- a < ") for line in text)
    fractions = [float(line.split()[-1]) for line in text if "fraction of rows" in line]
    assert len(fractions) == 4
    assert_allclose(sum(fractions), 1.0, atol=0.01)


def test_text_says_where_missing_values_go():
    frame, _ = make_frame()
    y = np.where(frame["b"].isna(), 0.0, frame["b"] > 0)
    model = LHBoostRegressor(n_estimators=1, max_leaf_nodes=2, n_hyperplanes=0).fit(frame, y)
    lines = export_text(model).splitlines()
    assert lines[1].startswith("|--- b < ")
    assert lines[1].endswith(" or missing")
    assert lines[3].startswith("|--- b >= ")
    assert not lines[3].endswith("missing")


def test_text_of_classes():
    assert export_text(fit_small(LHBoostClassifier)).startswith(
        "Tree 0: adds to the log-odds of low\n"
    )
    model, _ = fit_boosted("three classes")
    text = export_text(model, tree=0, max_depth=1)
    assert text.startswith("Tree 0: adds to the scores of 3 classes\n")
    assert "truncated branch" in text
    with pytest.raises(ValueError, match="units='standardized' is for trees and forests"):
        export_text(model, units="standardized")
    with pytest.raises(ValueError, match="class_names is for classifiers"):
        export_text(fit_small(), class_names=["a"])


@pytest.mark.parametrize("name", ["numbers", "two classes", "three classes"])
def test_graphviz_draws_every_node(name):
    model, _ = fit_boosted(name)
    drawn = export_graphviz(model, filled=True, node_ids=True)
    assert drawn.count("fillcolor") == len(model.forest_.left)
    assert drawn.count("->") == 2 * np.count_nonzero(model.forest_.left >= 0)
