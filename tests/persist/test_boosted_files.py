"""Saving and loading boosted models: everything survives, in few bytes."""

import json
import pickle
from dataclasses import fields

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone

import lhtree
from boosted import fit_boosted
from lhtree import LHBoostClassifier, LHBoostRegressor, load, save
from lhtree.explain import explain_rows
from lhtree.model import ensemble_packing

TRUSTED = [
    "lhtree.data.columns.Category",
    "lhtree.data.columns.Columns",
    "lhtree.estimators.boosting.classifier.LHBoostClassifier",
    "lhtree.estimators.boosting.regressor.LHBoostRegressor",
    "lhtree.model.ensemble.Ensemble",
]
MODELS = {
    "classifier": LHBoostClassifier(n_estimators=9),
    "regressor": LHBoostRegressor(n_estimators=9),
    "single columns": LHBoostRegressor(n_estimators=9, n_hyperplanes=0),
    "stopped early": LHBoostClassifier(n_estimators=40, early_stopping=True, random_state=0),
    "weighted": LHBoostClassifier(n_estimators=9, class_weight={0: 0.3, 1: 2.0}),
    "many hyperplanes": LHBoostRegressor(n_estimators=5, n_hyperplanes=7, max_terms=6),
    "gamma": LHBoostRegressor("gamma", n_estimators=5),
    "quantiles": LHBoostRegressor("quantile", quantile=[0.2, 0.7], n_estimators=5),
    "stumps": LHBoostClassifier(n_estimators=9, max_depth=1),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.fixture
def rows():
    """Return a table with gaps and a column of categories, classes and numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6)) * [1, 1e3, 1e-3, 1, 1e9, 1]
    X[rng.random(400) < 0.2, 1] = np.nan
    X[:, 5] = rng.integers(0, 12, 400)
    y = X[:, 0] + 1e-3 * np.nan_to_num(X[:, 1]) + X[:, 5] % 3 + rng.normal(size=400) / 3
    return X, y


def fit(model, X, y):
    """Fit a clone, on classes if it is a classifier."""
    model = clone(model)
    if model.loss == "gamma":
        return model.fit(X, np.exp(y))
    return model.fit(X, np.where(y > 1, 1, 0) if hasattr(model, "predict_proba") else y)


def assert_same(copy, model, X):
    """Compare all that a fit leaves behind."""
    assert type(copy) is type(model)
    assert str(copy.get_params()) == str(model.get_params())
    assert set(vars(copy)) == set(vars(model))
    for first, second in (
        (model.forest_, copy.forest_), (model.forest_.columns, copy.forest_.columns),
    ):  # fmt: skip
        for field in fields(first):
            one, other = getattr(first, field.name), getattr(second, field.name)
            assert type(one) is type(other)
            if isinstance(one, np.ndarray):
                assert (one.dtype, one.shape) == (other.dtype, other.shape)
                assert one.tobytes() == other.tobytes(), field.name
                assert not other.flags.writeable
            elif field.name != "columns":
                assert one == other
    for name, value in vars(model).items():
        if name.strip("_") != name and name != "forest_":
            assert type(getattr(copy, name)) is type(value)
            assert_array_equal(getattr(copy, name), value)
    if hasattr(model, "predict_proba"):
        assert copy.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
        assert copy.classes_.dtype == model.classes_.dtype
    assert_array_equal(copy.predict(X), model.predict(X))
    assert_array_equal(copy.apply(X), model.apply(X))
    assert_array_equal(copy.feature_importances_, model.feature_importances_)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("has_categories", [False, True])
def test_a_boosted_model_survives_bit_for_bit(name, has_categories, rows, path):
    X, y = rows
    model = clone(MODELS[name]).set_params(categorical_features=[5] if has_categories else None)
    model = fit(model, X, y)
    save(model, path)
    assert_same(load(path), model, X)


@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_pickle_joblib_and_skops_work(name, rows, tmp_path):
    sio = pytest.importorskip("skops.io")
    X, y = rows
    model = fit(clone(MODELS[name]).set_params(categorical_features=[5]), X, y)
    assert_same(pickle.loads(pickle.dumps(model)), model, X)
    joblib.dump(model, tmp_path / "model.joblib")
    assert_same(joblib.load(tmp_path / "model.joblib"), model, X)
    data = sio.dumps(model)
    assert set(sio.get_untrusted_types(data=data)) <= set(TRUSTED)
    assert_same(sio.loads(data, trusted=TRUSTED), model, X)


@pytest.mark.parametrize("name", ["numbers", "two classes", "three classes", "one class"])
def test_copies_of_all_kinds_explain_alike(name, path):
    sio = pytest.importorskip("skops.io")
    model, X = fit_boosted(name)
    before = len(pickle.dumps(model))
    expected = explain_rows(model, X)
    assert len(pickle.dumps(model)) == before  # what was computed for explanations stays behind
    save(model, path)
    copies = load(path), pickle.loads(pickle.dumps(model))
    for copy in (*copies, sio.loads(sio.dumps(model), trusted=TRUSTED)):
        explanation = explain_rows(copy, X)
        assert explanation.contribution.tobytes() == expected.contribution.tobytes()
        assert explanation.output_names == expected.output_names


def test_frames_with_categories_survive(rows, path):
    pd = pytest.importorskip("pandas")
    X, y = rows
    frame = pd.DataFrame(X[:, :2], columns=["size", "weight"])
    frame["colour"] = np.array(["red", None, "blue", "ü"], dtype=object)[X[:, 5].astype(int) % 4]
    frame["flag"] = pd.Categorical(X[:, 0] > 0)
    model = fit(LHBoostClassifier(n_estimators=5, max_categories=2), frame, y)
    save(model, path)
    copy = load(path)
    assert_same(copy, model, frame)
    assert copy.columns_ == model.columns_
    assert copy.columns_.has_codes
    assert copy.column_names_ == ["size", "weight", "colour", "flag"]


def test_frames_of_numbers_and_truth_values_survive(rows, path):
    pd = pytest.importorskip("pandas")
    X, y = rows
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0})
    model = fit(LHBoostRegressor(n_estimators=5), frame, y)
    save(model, path)
    assert_same(load(path), model, frame)


def test_sparse_and_very_wide_tables_survive(path):
    rng = np.random.default_rng(0)
    column = rng.integers(0, 40, 600) * 100_000
    X = csr_array((rng.normal(size=600), (rng.integers(0, 100, 600), column)), (100, 2**22))
    model = LHBoostClassifier(n_estimators=5).fit(X, rng.integers(0, 2, 100))
    assert model.columns_.kept is not None
    save(model, path)
    assert path.stat().st_size < 10_000
    assert_same(load(path), model, X)


@pytest.mark.parametrize(
    "labels",
    [["no", "yes"], [False, True], [-1.0, 2.0], [0, 2**40], ["few", "many", "some"], [*range(9)]],
)
def test_labels_survive(labels, rows, path):
    X, y = rows
    bounds = np.quantile(y, np.arange(1, len(labels)) / len(labels))
    model = LHBoostClassifier(n_estimators=3, categorical_features=[5])
    model.fit(X, np.array(labels)[np.digitize(y, bounds)])
    assert model.forest_.n_outputs == (1 if len(labels) == 2 else len(labels))
    save(model, path)
    assert_same(load(path), model, X)


@pytest.mark.parametrize("value", [0.0, 1.0, -2e300])
def test_models_of_a_constant_survive(value, rows, path):
    y = np.full(400, value)
    for model in (LHBoostRegressor(n_estimators=2), LHBoostClassifier(n_estimators=2)):
        model.fit(rows[0], y > 0 if hasattr(model, "predict_proba") else y)
        save(model, path)
        assert_same(load(path), model, rows[0])


def test_numbers_of_any_size_survive(rows, path):
    X, y = rows
    for factor in (1e-300, 1e300):
        model = LHBoostRegressor(n_estimators=3).fit(X, y * factor + 7 * factor)
        assert model.forest_.origin != 0 or model.forest_.base[0] != 0
        save(model, path)
        assert_same(load(path), model, X)


def test_an_attribute_that_cannot_be_saved_is_refused(rows, path):
    model = fit(MODELS["classifier"], *rows)
    model.secret_ = 1
    with pytest.raises(ValueError, match="attribute 'secret_', which cannot be saved"):
        save(model, path)
    with pytest.raises(ValueError, match="must be fitted before it is saved"):
        save(LHBoostClassifier(), path)
    assert not path.exists()


def test_parameters_that_no_fit_takes_are_refused(rows, path):
    model = fit(MODELS["classifier"], *rows).set_params(learning_rate=-1)
    with pytest.raises(ValueError, match="learning_rate must be a number above 0"):
        save(model, path)


def test_saving_twice_gives_the_same_bytes(rows, path):
    model = fit(MODELS["regressor"], *rows)
    contents = set()
    for _ in range(3):
        save(model, path)
        contents.add(path.read_bytes())
        model = load(path)
    assert len(contents) == 1


def test_arrays_have_the_narrowest_types(rows, path):
    from safetensors import safe_open

    model = fit(MODELS["regressor"], *rows)
    save(model, path)
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        description = json.loads(file.metadata()["lhtree"])
    assert set(arrays) == {*ensemble_packing.DTYPES, "train_score_", "validation_score_"}
    for name, array in arrays.items():
        if array.dtype.kind in "iu" and array.size:
            low, high = int(array.min()), int(array.max())
            narrower = [
                dtype
                for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32)
                if np.dtype(dtype).itemsize < array.dtype.itemsize
                and np.iinfo(dtype).min <= low <= high <= np.iinfo(dtype).max
            ]
            assert not narrower, name
    assert description["class"] == "LHBoostRegressor"
    assert description["format"] == 2
    assert description["version"] == lhtree.__version__
    fitted = {"power", "origin", "n_iter_", "n_features_in_", "_loss", "_quantile", "_seed"}
    assert fitted | {"_best_round"} == set(description["fitted"])


@pytest.mark.parametrize(("n_hyperplanes", "most"), [(0, 60_000), (1, 100_000)])
def test_files_are_small(n_hyperplanes, most, path):
    # LightGBM pickles a model of as many leaves in 340 kB.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 10))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3:].sum(axis=1)
    model = LHBoostRegressor(n_estimators=100, max_leaf_nodes=31, early_stopping=False)
    model.set_params(n_hyperplanes=n_hyperplanes).fit(X, y)
    assert model.get_n_leaves() == 3100
    save(model, path)
    assert path.stat().st_size < most
    assert len(pickle.dumps(model)) < most
