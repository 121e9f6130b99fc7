"""Saving and loading: everything survives, nothing harmful gets in."""

import errno
import json
import os
import pickle
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import balanced_accuracy_score

import corruption
import lhtree
from forests import list_arrays
from lhtree import LHForestClassifier, LHTClassifier, load, save
from lhtree.files import write_atomically
from lhtree.persist import values

MODELS = {
    "tree": LHTClassifier(),
    "sparse tree": LHTClassifier(beta=0.7, standardize=False),
    "forest": LHForestClassifier(4, random_state=0),
    "paper": LHForestClassifier(4, preset="paper", beta=0.8, random_state=1, bootstrap=True),
    "margin": LHForestClassifier(3, preset="paper", voting="margin", random_state=2),
    "balanced": LHForestClassifier(3, class_weight="balanced_subsample", random_state=3),
    "bootstrap": LHForestClassifier(3, bootstrap=True, n_hyperplanes=7, random_state=4),
    "one": LHForestClassifier(1, max_depth=2, shrinkage=3.0, random_state=5),
    "old rules": LHForestClassifier(30, contrast="standardized", calibration="oob"),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.fixture
def saved(path, blobs):
    """Return the path of a file with a model in it."""
    model = LHForestClassifier(3, random_state=0, max_depth=3).fit(*blobs)
    save(model, path)
    return path


def assert_same(copy, model, X):
    """Compare all that a fit leaves behind."""
    assert type(copy) is type(model)
    assert str(copy.get_params()) == str(model.get_params())
    assert list(map(type, copy.get_params().values())) == [
        type(value) for value in model.get_params().values()
    ]
    assert set(vars(copy)) == set(vars(model))
    assert copy.classes_.dtype == model.classes_.dtype
    assert type(copy.forest_) is type(model.forest_)
    arrays = list_arrays(copy.forest_)
    for name, value in list_arrays(model.forest_).items():
        array = arrays[name]
        if isinstance(value, np.ndarray):
            assert array.dtype == value.dtype
            assert array.tobytes() == value.tobytes(), name
            assert not array.flags.writeable
        else:
            assert (type(array), array) == (type(value), value)
    for name, value in vars(model).items():
        if name.strip("_") != name and name != "forest_":
            assert type(getattr(copy, name)) is type(value)
            assert_array_equal(getattr(copy, name), value)
    assert copy.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert_array_equal(copy.predict(X), model.predict(X))
    assert_array_equal(copy.apply(X), model.apply(X))


@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_survives_bit_for_bit(name, n_classes, blobs, path):
    X, y = blobs
    model = clone(MODELS[name]).fit(X, np.minimum(y, n_classes - 1))
    save(model, path)
    assert_same(load(path), model, X)


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "ü\n\0\\\"'"],
        np.array(["b", "a", "c"], dtype="<U9"),
        np.array(["b", "a", "digest"], dtype=object),
        [3, -1, 2],
        np.array([2**63 - 1, 0, 1]),
        np.array([2**64 - 1, 0, 1], dtype=np.uint64),
        np.array([3, 1, 2], dtype=np.int8),
        [3.0, 1.0, 2.0],
        np.array([3, 1, 2], dtype=np.float32),
        [True, False, True],
    ],
    ids=repr,
)
def test_labels_of_any_plain_type_survive(labels, blobs, path):
    X, y = blobs
    model = LHTClassifier(max_depth=2).fit(X, np.asarray(labels)[y])
    save(model, path)
    assert_same(load(path), model, X)
    assert list(map(type, load(path).classes_)) == list(map(type, model.classes_))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.array([b"a", b"b", b"c"]), "S1"),
        (np.array([Decimal(1), Decimal(2), Decimal(3)], dtype=object), "Decimal"),
        (np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="M8[D]"), "datetime64"),
        (np.array([10**30, 2, 3], dtype=object), "64 bits"),
    ],
    ids=str,
)
def test_other_labels_are_refused_at_saving(labels, words, blobs, saved):
    before = saved.read_bytes()
    X, y = blobs
    model = LHTClassifier(max_depth=2).fit(X, y)
    model.classes_ = np.sort(labels)
    with pytest.raises(ValueError, match=rf"^model cannot be saved: its classes_ .*{words}"):
        save(model, saved)
    assert saved.read_bytes() == before


@pytest.mark.parametrize(
    "parameters",
    [
        {"random_state": np.random.RandomState(3)},
        {"random_state": np.int64(7), "beta": np.float64(0.5), "n_jobs": np.int8(1)},
        {"class_weight": {0: 1.0, 1: 2, 2: np.float64(0.1)}, "max_depth": 3},
        {"class_weight": "balanced", "max_samples": None, "verbose": False},
        {"min_samples_split": 0.1, "max_features": "sqrt", "gamma": 2.0},
    ],
    ids=lambda parameters: ",".join(parameters),
)
def test_parameters_survive(parameters, blobs, path):
    X, y = blobs
    model = LHForestClassifier(2, **{"random_state": 0, **parameters}).fit(X, y)
    save(model, path)
    copy = load(path)
    for name, value in model.get_params().items():
        if name != "random_state":
            assert getattr(copy, name) == value
    again, anew = clone(model).fit(X, y), clone(copy).fit(X, y)
    assert_array_equal(again.predict_proba(X), anew.predict_proba(X))


def test_out_of_bag_scores_names_and_warm_start_survive(path):
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = LHForestClassifier(40, oob_score=True, warm_start=True, random_state=0).fit(X, y)
    save(model, path)
    copy = load(path)
    assert_same(copy, model, X)
    assert copy.oob_score_ == model.oob_score_
    assert_array_equal(copy.oob_decision_function_, model.oob_decision_function_)
    assert_array_equal(copy.feature_names_in_, X.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        copy.predict(X[X.columns[::-1]])
    copy.set_params(n_estimators=45).fit(X, y)
    model.set_params(n_estimators=45).fit(X, y)
    assert_same(copy, model, X)
    assert_array_equal(copy.estimators_samples_[44], model.estimators_samples_[44])


def test_categories_and_missing_values_survive(path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 2)), columns=["size", "weight"])
    frame["color"] = np.array(["red", None, "blue", 'a "b"\n'], dtype=object)[
        rng.integers(4, size=80)
    ]
    frame["number"] = pd.Categorical(rng.integers(3, size=80))
    frame["flag"] = pd.Categorical(rng.random(80) < 0.5)
    frame.loc[::7, "size"] = np.nan
    y = (frame["color"] == "red") ^ (frame["weight"] > 0)
    model = LHForestClassifier(5, max_categories=2, random_state=0).fit(frame, y)
    save(model, path)
    copy = load(path)
    assert_same(copy, model, frame)
    assert copy.columns_ == model.columns_
    assert copy.column_names_ == model.column_names_
    values = [value for category in copy.columns_.categories for value in category.values]
    assert {type(value) for value in values} == {str, int, bool}


def test_an_attribute_that_cannot_be_saved_is_refused(blobs, path):
    model = LHTClassifier().fit(*blobs)
    model.secret_ = 1
    with pytest.raises(ValueError, match="attribute 'secret_', which cannot be saved"):
        save(model, path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (LHTClassifier(), "must be fitted before"),
        ("text", "must be a fitted LHTClassifier, .* or LHBoostRegressor, got str"),
        (None, "got NoneType"),
        (LHTClassifier, "got ABCMeta|got type"),
    ],
    ids=repr,
)
def test_only_fitted_models_are_saved(model, words, path):
    with pytest.raises((ValueError, TypeError), match=words):
        save(model, path)


def test_code_among_the_parameters_is_refused(blobs, path):
    model = LHForestClassifier(20, oob_score=balanced_accuracy_score, max_samples=0.5)
    model.set_params(random_state=0).fit(*blobs)
    with pytest.raises(ValueError, match=r"oob_score=.* is code, not data; set another value"):
        save(model, path)
    save(model.set_params(oob_score=True), path)
    assert load(path).oob_score_ == model.oob_score_
    model.set_params(n_jobs=0)
    with pytest.raises(ValueError, match="n_jobs"):
        save(model, path)


def test_saving_twice_gives_the_same_bytes(blobs, tmp_path):
    model = LHForestClassifier(3, random_state=0).fit(*blobs)
    contents = {corruption.to_bytes(model, tmp_path) for _ in range(5)}
    assert len(contents) == 1


@pytest.mark.parametrize(
    "value",
    [
        (1, "a", [None, True, 2.0], ()),
        [np.inf, -np.inf, -0.0, 5e-324, 1e308, 0.1],
        {1: "a", "1": 2.5, False: None, -0.5: {"x": (1,)}},
        np.array([True, False]),
        np.array(["a", "bc"]),
        np.array([1, 2**64 - 1], dtype=np.uint64),
        {"float": "inf", "list": [], "tuple": {"dict": []}},
        [{3, 1}, frozenset({"a"}), set()],
    ],
    ids=repr,
)
def test_plain_values_survive(value):
    text = json.dumps(values.encode(value), allow_nan=False)
    copy = values.decode(json.loads(text))
    assert repr(copy) == repr(value)
    assert np.isnan(values.decode(values.encode(np.nan)))


@pytest.mark.parametrize("value", [print, object(), 2**64, b"a", {(1, 2)}, np.zeros((2, 2)), 1j])
def test_other_values_are_refused(value):
    with pytest.raises(values.NotPlainError, match=r"^(is|has) "):
        values.encode([value])


def test_names_may_look_like_json(path):
    pd = pytest.importorskip("pandas")
    X, y = load_wine(return_X_y=True)
    X = pd.DataFrame(X, columns=[f'{j}"' + '[{"' * 40 for j in range(X.shape[1])])
    model = LHTClassifier(max_depth=1).fit(X, y)
    save(model, path)
    assert_same(load(path), model, X)


def test_any_reader_of_safetensors_finds_the_arrays(saved):
    from safetensors import safe_open

    with safe_open(saved, framework="numpy") as file:
        description = json.loads(file.metadata()["lhtree"])
        forest = load(saved).forest_
        assert_array_equal(file.get_tensor("ensemble.n_nodes"), np.diff(forest.tree_start))
    assert description["class"] == "LHForestClassifier"
    assert description["version"] == lhtree.__version__
    assert description["format"] == 2
    save(LHForestClassifier(3, preset="paper").fit(*load_wine(return_X_y=True)), saved)
    with safe_open(saved, framework="numpy") as file:
        assert_array_equal(file.get_tensor("forest.left"), load(saved).forest_.left)


def test_a_failed_write_leaves_the_old_file(saved, blobs, monkeypatch):
    before, folder = saved.read_bytes(), sorted(saved.parent.iterdir())

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    other = LHTClassifier().fit(*blobs)
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            patch.setattr(Path, name, fail, raising=False)
            with pytest.raises(OSError, match=rf"No space left on device: '.*{saved.name}'$"):
                save(other, saved)
        assert saved.read_bytes() == before
        assert sorted(saved.parent.iterdir()) == folder


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX limits")
def test_a_full_disk_leaves_the_old_file(saved):
    before, folder = saved.read_bytes(), sorted(saved.parent.iterdir())
    program = f"""
import resource, signal
import numpy as np, lhtree
X = np.random.default_rng(0).normal(size=(2000, 30))
model = lhtree.LHTClassifier().fit(X, X[:, 0] > X[:, 1] * X[:, 2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    lhtree.save(model, {str(saved)!r})
except OSError as error:
    print("refused", error.filename)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == f"refused {saved}\n", run.stderr
    assert saved.read_bytes() == before
    assert sorted(saved.parent.iterdir()) == folder


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")
def test_permissions_are_those_of_any_new_file_or_of_the_old_one(blobs, path):
    model = LHTClassifier(max_depth=1).fit(*blobs)
    plain = path.with_name("plain")
    plain.touch()
    save(model, path)
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o640)
    save(model, path)
    assert path.stat().st_mode & 0o777 == 0o640
    link = path.with_name("link")
    link.symlink_to(path)
    save(model, str(link))
    assert link.is_symlink()
    assert load(link).max_depth == 1


def test_places_that_cannot_be_written_or_read_are_named(blobs, tmp_path):
    model = LHTClassifier(max_depth=1).fit(*blobs)
    with pytest.raises(FileNotFoundError, match="absent/model'"):
        save(model, tmp_path / "absent" / "model")
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        save(model, tmp_path)
    with pytest.raises(FileNotFoundError, match="absent"):
        load(tmp_path / "absent")
    with pytest.raises((IsADirectoryError, PermissionError, ValueError), match=tmp_path.name):
        load(tmp_path)


def test_threads_may_save_to_one_path(blobs, path):
    X, y = blobs
    models = [LHTClassifier(max_depth=depth).fit(X, y) for depth in range(4)]
    threads = [threading.Thread(target=save, args=(model, path)) for model in models * 5]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert load(path).max_depth in range(4)
    assert list(path.parent.iterdir()) == [path]


TRUSTED = [
    "lhtree.training.plan.Draw",
    "lhtree.estimators.boosting.classifier.LHBoostClassifier",
    "lhtree.estimators.boosting.regressor.LHBoostRegressor",
    "lhtree.estimators.forest.LHForestClassifier",
    "lhtree.estimators.tree.LHTClassifier",
    "lhtree.data.columns.Category",
    "lhtree.data.columns.Columns",
    "lhtree.model.ensemble.Ensemble",
    "lhtree.model.forest.Forest",
]  # as the user guide lists them


@pytest.mark.parametrize("name", [*MODELS, "categories"])
def test_pickle_joblib_and_skops_work(name, blobs, tmp_path):
    sio = pytest.importorskip("skops.io")
    X, y = blobs
    model = clone(MODELS[name]) if name in MODELS else LHTClassifier(categorical_features=[0])
    X = np.round(X) if name == "categories" else X
    model.fit(X, y)
    assert_same(pickle.loads(pickle.dumps(model)), model, X)
    joblib.dump(model, tmp_path / "model.joblib")
    assert_same(joblib.load(tmp_path / "model.joblib"), model, X)
    data = sio.dumps(model)
    assert set(sio.get_untrusted_types(data=data)) <= set(TRUSTED)
    assert_same(sio.loads(data, trusted=TRUSTED), model, X)


def test_the_user_guide_lists_the_types_to_trust():
    page = Path(__file__).parents[2] / "docs" / "guide" / "saving.md"
    if not page.exists():
        pytest.skip("the documentation is not here")
    text = page.read_text(encoding="utf-8")
    listed = text[text.index("trusted = [") : text.index("same = skops")]
    assert [line.strip(' ",') for line in listed.splitlines()[1:-1]] == TRUSTED


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_only_regular_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"Is not a regular file, and would be replaced.*pipe"):
        write_atomically(tmp_path / "pipe", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    assert not (tmp_path / "pipe").is_file()
