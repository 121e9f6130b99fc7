"""Comparing what exported boosted models predict with the package."""

import ctypes

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from boosted import get_scores
from lhtree.export import to_onnx, to_sql


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


def assert_sql(query, model, X):
    """Compare what a database says of rows with the package, scores bit for bit."""
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
    """Compare what the ONNX runtime says of encoded rows with the package, scores bit for bit."""
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
