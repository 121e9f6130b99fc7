"""Exports: other programs predict what the package predicts."""

import ctypes
import re
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import lhtree.export.c
import lhtree.export.onnx
import lhtree.export.sql
import lhtree.export.writing_onnx
import lhtree.export.writing_sql
from exports import DATABASES, compile_c, query_sqlite
from lhtree import LHForestClassifier, LHTClassifier
from lhtree.export import to_c, to_onnx, to_sql
from lhtree.model.link import is_exact

NASTY = ["a'b", 'c"d', "e\n*/ ??/ \\", 'ü %s {x} "; DROP TABLE t; --']

MODELS = {
    "tree": LHTClassifier(),
    "lines": LHTClassifier(min_samples_split=40, beta=0.3),
    "raw": LHTClassifier(standardize=False, beta=0.7),
    "leaf only": LHTClassifier(max_depth=0),
    "forest": LHForestClassifier(4, calibration=None, random_state=0),
    "paper": LHForestClassifier(5, preset="paper", beta=0.8, random_state=1),
    "margin": LHForestClassifier(3, preset="paper", voting="margin", random_state=2),
    "few columns": LHForestClassifier(3, preset="paper", max_features=2, max_depth=4),
    "axis splits": LHForestClassifier(3, n_hyperplanes=0, calibration=None, random_state=0),
    "gini": LHForestClassifier(3, contrast="standardized", criterion="gini", random_state=0),
    "calibrated": LHForestClassifier(9, max_samples=0.5, calibration="oob", random_state=0),
}


def make_table(n_columns=6, n_classes=3, n_rows=240, seed=0):
    """Return rows on a coarse grid: many of them lie on hyperplanes."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-6, 7, size=(n_rows, n_columns)).astype(float)
    score = X[:, 0] + X[:, 1 % n_columns] * X[:, 2 % n_columns] / 4 + rng.normal(size=n_rows)
    bounds = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    return X, np.searchsorted(bounds, score)


def fit(name, n_classes=3, has_missing=False, **table):
    """Return a fitted model and rows to predict."""
    model = clone(MODELS[name])
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    X, y = make_table(n_classes=n_classes, **table)
    rows = np.vstack([X, X + 0.5, 1e200 * X[:5], 0 * X[:1]])
    if has_missing:
        rng = np.random.default_rng(1)
        X, rows = (np.where(rng.random(table.shape) < 0.2, np.nan, table) for table in (X, rows))
        rows[0] = np.nan
    return model.fit(X, y), rows


# ---- ONNX ------------------------------------------------------------------


def run_onnx(model, X, dtype="float64"):
    runtime = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    proto = to_onnx(model, dtype=dtype)
    onnx.checker.check_model(proto, full_check=True)
    assert {entry.domain for entry in proto.opset_import} == {""}
    session = runtime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["label", "probabilities"], {"X": X.astype(dtype)})


def assert_onnx(model, X):
    for dtype, tolerance in [("float64", 1e-12), ("float32", 1e-6)]:
        with np.errstate(over="ignore"):
            rows = np.nan_to_num(X.astype(dtype), nan=np.nan)
        label, probability = run_onnx(model, rows, dtype)
        assert_array_equal(label, model.predict(rows))
        assert_allclose(probability, model.predict_proba(rows), atol=tolerance)
        assert probability.dtype == dtype


@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_onnx_gives_the_same_predictions(name, n_classes):
    assert_onnx(*fit(name, n_classes))


@pytest.mark.parametrize("name", ["tree", "lines", "forest", "few columns", "margin"])
def test_onnx_predicts_rows_with_missing_values(name):
    model, X = fit(name, has_missing=True, n_columns=17)
    assert_onnx(model, X)


@pytest.mark.parametrize("n_columns", [1, 7, 8, 9, 40])
def test_onnx_adds_in_the_order_of_the_package(n_columns):
    model, X = fit("paper", n_columns=n_columns, n_classes=4)
    assert_onnx(model, X)
    assert_onnx(*fit("few columns", n_columns=n_columns))


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (NASTY[:3], "<U"),
        (np.array(NASTY[:3], dtype=object), "<U"),
        ([-7, 2**40, 3], "int64"),
        ([2.0, 1.0, -3.0], "float64"),
        ([True, False, True], "bool"),
    ],
    ids=str,
)
def test_onnx_gives_labels_of_their_type(labels, kind):
    X, y = make_table()
    model = LHTClassifier().fit(X, np.asarray(labels)[y])
    label, _ = run_onnx(model, X)
    assert_array_equal(label, model.predict(X))
    assert kind in str(label.dtype) or (label.dtype == object and kind == "<U")


@pytest.mark.parametrize("n_rows", [0, 1, 2, 63, 64, 65, 1000])
def test_onnx_takes_any_number_of_rows(n_rows, monkeypatch):
    monkeypatch.setattr(lhtree.export.writing_onnx, "NUMBERS_PER_BLOCK", 64)
    model, X = fit("forest")
    rows = np.resize(X, (n_rows, X.shape[1]))
    label, probability = run_onnx(model, rows)
    assert label.shape == (n_rows,)
    assert probability.shape == (n_rows, 3)
    if n_rows:
        assert_array_equal(label, model.predict(rows))


@pytest.mark.parametrize("name", ["wine", "satimage", "pendigits"])
@pytest.mark.parametrize(
    "model",
    [
        LHTClassifier(),
        LHForestClassifier(4, random_state=0),
        LHForestClassifier(5, preset="paper", beta=0.8, random_state=0),
        LHForestClassifier(3, preset="paper", voting="margin", random_state=0),
    ],
    ids=["tree", "default", "paper", "margin"],
)
def test_onnx_agrees_on_real_test_rows(name, model, load_table):
    table = load_table(name)
    if "split" not in table:
        table["split"] = np.where(np.arange(len(table)) % 5 == 0, "test", "train")
    train, test = (table[table.split == part] for part in ("train", "test"))
    X, rows = (part.drop(columns=["target", "split"]).to_numpy() for part in (train, test))
    model = clone(model).fit(X, train.target)
    label, probability = run_onnx(model, rows)
    assert_array_equal(label, model.predict(rows))
    assert_allclose(probability, model.predict_proba(rows), atol=1e-12)
    label, probability = run_onnx(model, rows, "float32")
    assert np.mean(label == model.predict(rows)) >= 0.999
    is_same_path = (model.apply(rows) == model.apply(rows.astype(np.float32))).all(axis=1)
    difference = np.abs(probability - model.predict_proba(rows))[is_same_path]
    assert is_same_path.mean() > 0.9
    assert difference.max() < 1e-5


def test_onnx_writes_a_file_whole_or_not_at_all(tmp_path, monkeypatch):
    runtime = pytest.importorskip("onnxruntime")
    model, X = fit("tree")
    path = tmp_path / "model.onnx"
    to_onnx(model, path)
    before = path.read_bytes()
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert_array_equal(session.run(None, {"X": X})[0], model.predict(X))
    with monkeypatch.context() as patch:
        patch.setattr(lhtree.export.onnx, "MOST_BYTES", 100)
        with pytest.raises(ValueError, match=r"takes 0\.0 GiB, but an ONNX file holds at most 2;"):
            to_onnx(model, path)
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64', got 'int8'"):
        to_onnx(model, path, dtype="int8")
    assert path.read_bytes() == before
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'lhtree\[onnx\]'"):
        to_onnx(model, path)


# ---- C ---------------------------------------------------------------------


def predict_c(program, X, n_classes):
    pointer = ctypes.POINTER(ctypes.c_double)
    label, probability = np.empty(len(X), dtype=int), np.empty((len(X), n_classes))
    for i, row in enumerate(np.ascontiguousarray(X)):
        address = row.ctypes.data_as(pointer)
        label[i] = program.lhtree_predict(address)
        program.lhtree_predict_proba(address, probability[i].ctypes.data_as(pointer))
    return label, probability


@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_c_gives_the_same_bits(name, n_classes, tmp_path):
    model, X = fit(name, n_classes)
    program = compile_c(to_c(model), tmp_path)
    label, probability = predict_c(program, X, n_classes)
    assert_array_equal(model.classes_[label], model.predict(X))
    if hasattr(model, "calibration_"):  # NumPy has its own pow
        assert_allclose(probability, model.predict_proba(X), rtol=1e-14)
    else:
        assert probability.tobytes() == model.predict_proba(X).tobytes()


@pytest.mark.parametrize("name", ["tree", "lines", "forest", "margin"])
def test_c_predicts_rows_with_missing_values(name, tmp_path):
    model, X = fit(name, has_missing=True)
    assert np.isnan(X).any()
    _, probability = predict_c(compile_c(to_c(model), tmp_path), X, 3)
    assert probability.tobytes() == model.predict_proba(X).tobytes()


@pytest.mark.parametrize("n_classes", [7, 8, 20, 131, 300])
def test_c_adds_many_classes_as_numpy_does(n_classes, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * n_classes, 3))
    model = LHTClassifier(max_depth=1).fit(X, np.arange(2 * n_classes) % n_classes)
    _, probability = predict_c(compile_c(to_c(model), tmp_path), X, n_classes)
    assert probability.tobytes() == model.predict_proba(X).tobytes()


def test_c_keeps_names_as_they_are(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = make_table(n_columns=4, n_classes=4)
    model = LHTClassifier().fit(pd.DataFrame(X, columns=NASTY), np.array(NASTY)[y])
    program = compile_c(to_c(model), tmp_path)
    for k, name in enumerate(model.classes_):
        assert program.lhtree_class_name(k).decode() == name
    for j, name in enumerate(NASTY):
        assert program.lhtree_column_name(j).decode() == name
    label, _ = predict_c(program, X, 4)
    assert_array_equal(model.classes_[label], model.predict(pd.DataFrame(X, columns=NASTY)))


def test_c_files_have_their_prefix_and_their_limit(tmp_path, monkeypatch):
    model, _ = fit("tree")
    path = tmp_path / "wine.c"
    text = to_c(model, path, prefix="wine")
    assert path.read_text() == text
    assert not re.search(r"\blhtree_", text)
    compile_c(text, tmp_path, prefix="wine")
    for prefix in ("", "1a", "a b", "a;", None):
        with pytest.raises(ValueError, match="prefix must be a C identifier"):
            to_c(model, prefix=prefix)
    monkeypatch.setattr(lhtree.export.c, "MOST_TERMS", 10)
    with pytest.raises(ValueError, match="coefficients, more than the 10 that a C file should"):
        to_c(model)


# ---- SQL -------------------------------------------------------------------


def assert_sql(query, model, X, table="rows"):
    names, rows = query(to_sql(model, table), table, model.column_names_, X)
    m, scores = len(model.column_names_), []
    labels = model.classes_.tolist()
    if is_exact(model):
        scores = ["score"] if len(labels) < 3 else [f"score_{k}" for k in labels]
    probabilities = [f"probability_{k}" for k in labels]
    assert names[1:] == [*model.column_names_, "label", *probabilities, *scores]
    assert [row[0] for row in rows] == list(range(1, len(X) + 1))
    kept = np.array([row[1 : m + 1] for row in rows], dtype=float)
    assert_array_equal(kept, X)
    assert_array_equal(np.array([row[m + 1] for row in rows]), model.predict(X))
    found = np.array([row[m + 2 :] for row in rows], dtype=float)
    assert_allclose(found[:, : len(labels)], model.predict_proba(X), atol=1e-12)
    if scores:
        assert_array_equal(found[:, len(labels) :], model.forest_.score(X))


@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "axis splits"])
@pytest.mark.parametrize("database", DATABASES)
def test_sql_gives_the_same_predictions(database, name, n_classes):
    model, X = fit(name, n_classes, n_rows=60)
    rows = np.vstack([X[:20], X[60:80]])
    assert_sql(DATABASES[database], model, rows)


@pytest.mark.parametrize("name", ["tree", "lines", "forest", "margin"])
@pytest.mark.parametrize("database", DATABASES)
def test_sql_reads_null_as_missing(database, name):
    model, X = fit(name, has_missing=True, n_rows=60)
    assert_sql(DATABASES[database], model, X[:40])


def make_frame():
    """Return a frame with categories, of which one is missing and one rare, and labels."""
    pd = pytest.importorskip("pandas")
    X, y = make_table(n_columns=2, n_rows=90)
    color = np.array(["red", "it's", 'a "b"'], dtype=object)[y]
    color[::7], color[::11] = "grey", None
    return pd.DataFrame({"size": X[:, 0], "color": color, "weight": X[:, 1]}), y


@pytest.mark.parametrize("database", DATABASES)
def test_sql_compares_categories(database):
    frame, y = make_frame()
    model = LHForestClassifier(2, max_categories=3, random_state=0).fit(frame, y)
    assert len(model.column_names_) == 3
    new = frame.head(40).copy()
    new.loc[3, "color"] = "unheard of"
    rows = new.to_numpy()
    kinds = {"size": "REAL", "color": "TEXT", "weight": "REAL"}
    _, found = DATABASES[database](to_sql(model, "t"), "t", kinds, rows)
    assert [row[4] for row in found] == model.predict(new).tolist()
    assert_allclose([row[5:8] for row in found], model.predict_proba(new), atol=1e-12)


def test_onnx_and_c_take_encoded_categories(tmp_path):
    frame, y = make_frame()
    model = LHForestClassifier(2, max_categories=3, random_state=0).fit(frame, y)
    rows = model.encode_rows(frame)
    label, probability = run_onnx(model, rows)
    assert_array_equal(label, model.predict(frame))
    assert_allclose(probability, model.predict_proba(frame), atol=1e-12)
    program = compile_c(to_c(model), tmp_path)
    assert program.lhtree_column_name(1).decode() == model.column_names_[1]
    _, probability = predict_c(program, rows, 3)
    assert_allclose(probability, model.predict_proba(frame), rtol=1e-14)


@pytest.mark.parametrize("database", DATABASES)
def test_sql_quotes_names_and_labels(database):
    pd = pytest.importorskip("pandas")
    X, y = make_table(n_columns=4, n_classes=4, n_rows=60)
    frame = pd.DataFrame(X, columns=NASTY)
    model = LHTClassifier(max_depth=3).fit(frame, np.array(NASTY)[y])
    table = 'my "table"; --'
    names, rows = DATABASES[database](to_sql(model, table), table, NASTY, X)
    assert names[1:6] == [*NASTY, "label"]
    assert [row[5] for row in rows] == model.predict(frame).tolist()


def test_sql_takes_other_columns_and_schemas():
    model, X = fit("tree", n_rows=60)
    columns = [f"column {j}" for j in range(6)]
    statement = to_sql(model, ("main", "rows"), columns=columns)
    _, rows = query_sqlite(statement, "rows", columns, X[:9])
    assert [row[7] for row in rows] == model.predict(X[:9]).tolist()


def test_sql_refuses_what_it_cannot_hold(monkeypatch):
    model, _ = fit("tree")
    with pytest.raises(ValueError, match="columns must name the 6 columns of the model, got 2"):
        to_sql(model, "rows", columns=["a", "b"])
    for table in ("", [], [3], "a\0b"):
        with pytest.raises(ValueError, match=r"table must be|is not a name"):
            to_sql(model, table)
    monkeypatch.setattr(lhtree.export.sql, "MOST_NUMBERS", 10)
    with pytest.raises(ValueError, match="coefficients, more than the 10 that one statement"):
        to_sql(model, "rows")
    X, y = make_table(n_classes=2)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="null character"):
        to_sql(LHTClassifier().fit(X, np.array(["a\0b", "c"])[y]), "rows")


@pytest.mark.parametrize(
    "export", [to_onnx, to_c, lambda model: to_sql(model, "t")], ids=["onnx", "c", "sql"]
)
def test_only_fitted_models_are_exported(export):
    with pytest.raises(ValueError, match="not fitted"):
        export(LHTClassifier())
    with pytest.raises(TypeError, match="model must be a fitted LHTClassifier"):
        export("text")
