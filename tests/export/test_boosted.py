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
from boosted_exports import assert_onnx, assert_predictions, assert_sql, run_c, run_onnx
from exports import DATABASES, compile_c
from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.export import export_graphviz, export_text, to_c, to_sql

NASTY = ["a'b", 'c"d', "e\n*/ ??/ \\"]


# ---- C ---------------------------------------------------------------------


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
    with pytest.raises(ValueError, match="units must be one of raw, standardized, got 'x'"):
        export_text(model, units="x")
    with pytest.raises(ValueError, match="class_names is for classifiers"):
        export_text(fit_small(), class_names=["a"])


@pytest.mark.parametrize("name", ["numbers", "two classes", "three classes"])
def test_graphviz_draws_every_node(name):
    model, _ = fit_boosted(name)
    drawn = export_graphviz(model, filled=True, node_ids=True)
    assert drawn.count("fillcolor") == len(model.forest_.left)
    assert drawn.count("->") == 2 * np.count_nonzero(model.forest_.left >= 0)
