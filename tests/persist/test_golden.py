"""Models that earlier versions saved: they load and predict as they did."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import lhtree

FOLDER = Path(__file__).parent / "golden"
NAMES = sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def read_rows(expected):
    if expected["columns"] is None:
        return np.array(expected["rows"])
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(expected["rows"], columns=expected["columns"])


def test_the_golden_models_exist():
    assert len(NAMES) >= 25
    assert [path.stem for path in sorted(FOLDER.glob("*.json"))] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_model_predicts_as_it_did(name):
    expected = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    model = lhtree.load(FOLDER / f"{name}.safetensors")
    X = read_rows(expected)
    if getattr(model, "loss", None) == "poisson":  # NumPy's exponentials
        assert_allclose(model.predict(X), expected["labels"], rtol=1e-15)
    else:
        assert_array_equal(model.predict(X), expected["labels"])
    if "probabilities" not in expected:
        return
    is_calibrated = hasattr(model, "calibration_")
    if is_calibrated or getattr(model.forest_, "n_outputs", 1) > 1:
        # The last bit of NumPy's powers depends on the processor.
        assert_allclose(model.predict_proba(X), expected["probabilities"], rtol=1e-15)
    else:
        assert_array_equal(model.predict_proba(X), expected["probabilities"])


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_model_is_saved_as_it_was(name, tmp_path):
    # Parameters that came later are added with their defaults; nothing else changes.
    expected = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    X = read_rows(expected)
    model = lhtree.load(FOLDER / f"{name}.safetensors")
    lhtree.save(model, tmp_path / "again")
    again = lhtree.load(tmp_path / "again")
    assert str(again.get_params()) == str(model.get_params())
    for field, array in vars(model.forest_).items():
        if isinstance(array, np.ndarray):
            assert_array_equal(getattr(again.forest_, field), array)
    assert_array_equal(again.predict(X), model.predict(X))


def test_a_file_of_format_1_is_refused_with_a_remedy():
    sentence = (
        "format_1.safetensors cannot be loaded as a model: it has the old file format 1, but this "
        "version of lhtree reads format 2; fit the model again and save it."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        lhtree.load(FOLDER / "refused" / "format_1.safetensors")


def test_golden_files_stay_small():
    for path in FOLDER.rglob("*.*"):
        assert path.stat().st_size < 40_000, path.name
