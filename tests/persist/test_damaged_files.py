"""Damaged, forged and malicious files: loading refuses them, or they are harmless."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import corruption
from lhtree import LHBoostClassifier, LHForestClassifier, LHTClassifier, load, save
from lhtree.persist import container


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.fixture
def saved(path, blobs):
    """Return the path of a file with a forest of floating point numbers in it."""
    model = LHForestClassifier(3, contrast="standardized", random_state=0, max_depth=3)
    model.fit(*blobs)
    save(model, path)
    return path


def test_a_header_beyond_the_end_is_detected(saved):
    data = saved.read_bytes()
    size = len(data) - 7
    saved.write_bytes(size.to_bytes(8, "little") + data[8:])
    with pytest.raises(ValueError, match=rf"its header of {size} bytes does not fit into"):
        load(saved)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.timeout(20)
def test_pipes_and_devices_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ValueError, match="it is not a regular file"):
            load(path)


def test_every_flipped_bit_is_detected(blobs, path):
    X, y = blobs
    save(LHTClassifier(max_depth=1).fit(X[:, :2], y == 0), path)
    data = path.read_bytes()
    for i in range(len(data)):
        for bit in range(8) if i % 32 == 0 else [i % 8]:
            damaged = bytearray(data)
            damaged[i] ^= 1 << bit
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match="cannot be loaded as a model"):
                load(path)


def test_every_truncation_is_detected(saved):
    data = saved.read_bytes()
    for size in {*range(0, len(data), 97), *range(40), *range(len(data) - 40, len(data))}:
        saved.write_bytes(data[:size])
        with pytest.raises(ValueError, match="cannot be loaded as a model"):
            load(saved)


@pytest.mark.parametrize("seed", range(4))
def test_corrupted_files_are_refused_or_harmless(seed, tmp_path):
    models, X = corruption.make_models()
    originals = [corruption.to_bytes(model, tmp_path) for model in models]
    path = tmp_path / "corrupted.safetensors"
    outcomes = set()
    for i in range(300):
        rng = np.random.default_rng([seed, i])
        original = originals[i % len(originals)]
        data, is_forged = corruption.corrupt(original, rng)
        if data != original:
            path.write_bytes(data)
            outcomes.add((is_forged, corruption.examine(path, X, is_forged)))
    assert outcomes == {(False, "refused"), (True, "refused"), (True, "predicted")}


def set_array(name, **changes):
    """Return a change of one array: entry to value."""

    def change(header, description, body):
        entry = header[name if "." in name or name.endswith("_") else f"forest.{name}"]
        begin, end = entry["data_offsets"]
        kind = np.dtype(container.DTYPES[entry["dtype"]]).newbyteorder("<")
        array = np.frombuffer(body[begin:end], kind).copy()
        for place, value in changes.items():
            array[int(place.strip("i_")) * (1, -1)["_" in place]] = value
        return header, description, body[:begin] + array.tobytes() + body[end:]

    return change


def set_part(value, *keys):
    """Return a change of one part of the description."""

    def change(header, description, body):
        part = description
        for key in keys[:-1]:
            part = part[key]
        if value is Ellipsis:
            del part[keys[-1]]
        else:
            part[keys[-1]] = value
        return header, description, body

    return change


def set_entry(value, *keys):
    """Return a change of one part of the header."""

    def change(header, description, body):
        return set_part(value, *keys)(None, header, body)[1], description, body

    return change


MANY_COLUMNS = {"n_features": 2**40, "categories": []}
SAME_COLUMN = {"n_features": 6, "categories": [[1, {"list": [1]}, {"list": []}]] * 2}
WIDE_LABELS = {"dtype": "str", "width": 2**60, "values": ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_array("left", i0=0), "a child comes before its parent"),
        (set_array("left", i0=-2), "a node has no parent, or a child is absent|children"),
        (set_array("left", i0=2**31 - 1), "children are misplaced"),
        (set_array("positive_class", i1=7), "its trees have the wrong positive classes"),
        (set_array("positive_class", i0=-1), "a positive class is negative"),
        (set_array("start", i1=2**40), "start falls"),
        (set_array("start", i1=-1), "start falls"),
        (set_array("tree_start", i0=1), "tree_start does not cover its array"),
        (set_array("tree_start", i1=0), "tree_start falls"),
        (set_array("feature", i0=-1), "a column is out of range"),
        (set_array("feature", i0=6), "a column is out of range"),
        (set_array("weight", i0=np.nan), "weight is not finite"),
        (set_array("weight", i0=1.5), "a weight of a split is larger than one"),
        (set_array("weight", i0=0.123), "a norm is not that of the weights"),
        (set_array("norm", i0=0), "a norm is not that of the weights"),
        (set_array("norm", **{"i_1": 1}), "a leaf has a norm"),
        (set_array("threshold", i0=np.inf), "threshold is not finite"),
        (set_array("threshold", **{"i_1": 0.5}), "a leaf has a threshold"),
        (set_array("value", i0=1.1), r"a value is not in \[0, 1\]"),
        (set_array("value", **{"i_1": 1.5}), r"a value is not in \[0, 1\]"),
        (set_array("threshold_kind", i0=0), "a threshold_kind is unknown"),
        (set_array("threshold_kind", i0=7), "a threshold_kind is unknown"),
        (set_array("n_samples", i0=10**6), "rows are lost"),
        (set_array("n_samples", i0=0), "a node has no rows"),
        (set_array("weight_sum", i0=-1), "a node's rows have no weight"),
        (set_array("std", i0=-1), "a std is negative"),
        (set_array("extremes", i0=1e9), "extremes of a node are exchanged"),
        (set_array("column_std", i0=0), "the std of a column is not positive"),
        (set_array("column_mean", i0=np.nan), "column_mean is not finite"),
        (set_part(3, "format"), "file format 3, but .* reads format 2; install a newer version"),
        (set_part(1, "format"), "old file format 1, but .* reads format 2; fit the model again"),
        (set_part(0, "format"), "its file format has no number"),
        (set_part(..., "format"), "its file format has no number"),
        (set_part("Popen", "class"), "its class 'Popen' is not one of lhtree"),
        (set_part(..., "version"), "other keys than a model"),
        (set_part(3, "parameters"), "its parameters has the wrong type"),
        (set_part(1, "parameters", "__class__"), "unknown parameter '__class__'"),
        (set_part({"tuple": 3}, "parameters", "beta"), "its parameter beta is not a tagged"),
        (set_part("x", "parameters", "beta"), "beta must be a number"),
        (set_part("x", "parameters", "voting"), "voting must be one of"),
        (set_part(1, "fitted", "predict"), "unknown attribute 'predict'"),
        (set_part(..., "fitted", "_seed"), "its attribute '_seed' is missing"),
        (set_part(-1, "fitted", "_seed"), "its _seed is not an integer from 0 up"),
        (set_part([9, 10, False], "fitted", "_draw"), "draws more rows"),
        (set_part([9, 2], "fitted", "_draw"), "does not have three parts"),
        (set_part(0, "fitted", "_standardized"), "is neither true nor false"),
        (set_part(5, "fitted", "n_features_in_"), "its trees have another number of columns"),
        (set_part(2**40, "fitted", "n_features_in_"), "its trees have another number of columns"),
        (set_part(MANY_COLUMNS, "fitted", "columns_"), "columns_ have another number of features"),
        (set_part(SAME_COLUMN, "fitted", "columns_"), "positions of columns that are not asc"),
        (set_part([1, -1.0], "fitted", "shrinkage_"), "its shrinkage_ is"),
        (set_part(-1.0, "fitted", "shrinkage_"), "shrinkage_ is not a finite number from 0 up"),
        (set_part(2, "fitted", "n_classes_"), "n_classes_ is not the number"),
        (set_part([2, 1, 0], "fitted", "classes_", "values"), "is not ascending"),
        (set_part([0, 0, 1], "fitted", "classes_", "values"), "is not ascending"),
        (set_part([0, 1, "a"], "fitted", "classes_", "values"), "has values that are not int64"),
        (set_part([0, 1, 2**63], "fitted", "classes_", "values"), "beyond int64|cannot hold"),
        (set_part("int7", "fitted", "classes_", "dtype"), "array of an unknown type"),
        (set_part(WIDE_LABELS, "fitted", "classes_"), "strings of an impossible width"),
        (set_entry(..., "forest.left"), "arrays take|is missing"),
        (set_entry("F64", "forest.left", "dtype"), "take|impossible|larger"),
        (set_entry("BF16", "forest.left", "dtype"), "unknown type 'BF16'"),
        (set_entry([2**62, 4], "forest.left", "shape"), "impossible shape"),
        (set_entry([0, 0], "forest.left", "data_offsets"), "not a safetensors file"),
    ],
)  # fmt: skip
def test_a_forged_file_is_refused_by_what_is_wrong(change, words, saved):
    saved.write_bytes(corruption.join(*change(*corruption.split(saved.read_bytes()))))
    with pytest.raises(
        ValueError, match=rf"^{saved.name} cannot be loaded as a model: .*({words}).*\.$"
    ):
        load(saved)


@pytest.fixture
def boosted(path):
    """Return the path of a file with a boosted model that has splits of all kinds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[:, 3] = rng.integers(0, 9, 300)
    X[rng.random(300) < 0.2, 1] = np.nan
    y = X[:, 0] + np.nan_to_num(X[:, 1]) + X[:, 3] % 3 > 1
    model = LHBoostClassifier(n_estimators=6, categorical_features=[3], random_state=0)
    model.set_params(learning_rate=0.1, max_leaf_nodes=31, early_stopping=False).fit(X, y)
    assert min(map(len, (model.forest_.threshold, model.forest_.codes, model.forest_.cut))) > 1
    save(model, path)
    return path


THREE_CLASSES = {"dtype": "int64", "values": [0, 1, 2]}
FEWER_CATEGORIES = {
    "n_features": 4, "categories": [[3, {"list": [0.0]}, {"list": []}]], "has_codes": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_array("ensemble.n_nodes", i0=0), "a tree has no node"),
        (set_array("ensemble.n_nodes", i0=1), "bits|a node has no parent"),
        (set_array("ensemble.is_split", i0=0), "a node has no parent, or a child is absent"),
        (set_array("ensemble.leaf_weight", i0=0), "a node's rows have no weight"),
        (set_array("ensemble.column", i0=4), "a split has an unknown column"),
        (set_array("ensemble.column", i0=-2), "a split has an unknown column"),
        (set_array("ensemble.threshold", i0=np.nan), "a threshold is not a number or \\+inf"),
        (set_array("ensemble.threshold", i0=-np.inf), "a threshold is not a number or \\+inf"),
        (set_array("ensemble.threshold_index", i0=255), "a split has an unknown threshold"),
        (set_array("ensemble.n_terms", i0=0), "one entry per term|fewer than two terms"),
        (set_array("ensemble.feature", i0=4), "a hyperplane has an unknown column"),
        (set_array("ensemble.feature", i0=3), "has a column of categories|one entry per term"),
        (set_array("ensemble.coefficient", i0=0), "a term has no weight"),
        (set_array("ensemble.fill", i0=2**31 - 1), "the fill of a term is out of the range"),
        (set_array("ensemble.importance", i0=np.inf), "an importance is negative or not finite"),
        (set_array("ensemble.importance", i0=-1), "an importance is negative or not finite"),
        (set_array("columns.n_codes", i0=1), "bits|a column of categories|one entry per split"),
        (set_array("columns.n_codes", i_1=0), "bits|one entry per split"),
        (set_array("columns.n_codes", i_1=8), "other numbers of categories than its trees"),
        (set_array("columns.origin", i0=np.nan), "the origin of a column is not an integer"),
        (set_array("columns.low", i0=2**31 - 1), "low and high of a column are exchanged"),
        (set_array("columns.low", i0=-(2**31)), "the low of a column is that of a missing value"),
        (set_array("columns.high", i0=-(2**31)), "low and high of a column are exchanged"),
        (set_array("columns.fill", i0=2**31 - 1), "the fill of a column is out of its range"),
        (set_array("columns.has_gaps", i0=0), "fill does not have one entry per term"),
        (set_array("train_score_", i0=np.nan), "train_score_ has a score that is not a number"),
        (set_part(5, "fitted", "n_iter_"), "its n_iter_ is not the number of its trees"),
        (set_part(-1, "fitted", "n_iter_"), "its n_iter_ is not an integer from 0 up"),
        (set_part(1200, "fitted", "power"), "power is not an integer in range"),
        (set_part(2**80, "fitted", "power"), "power is not an integer in range"),
        (set_part(-(2**80), "fitted", "power"), "its power is not an integer from"),
        (set_part(1.0, "fitted", "power"), "its power is not an integer from"),
        (set_part(..., "fitted", "power"), "its attribute 'power' is missing"),
        (set_part(0.5, "fitted", "origin"), "origin is not an integer in a float"),
        (set_part(0, "fitted", "origin"), "its origin is not a floating point number"),
        (set_part(5, "fitted", "n_features_in_"), "columns_ have another number of features"),
        (set_part(..., "fitted", "columns_"), "other numbers of categories than its trees"),
        (set_part(FEWER_CATEGORIES, "fitted", "columns_"), "other numbers of categories"),
        (set_part(False, "fitted", "columns_", "has_codes"), "another number of columns"),
        (set_part(MANY_COLUMNS, "fitted", "columns_"), "columns_ have another number of features"),
        (set_part([False], "fitted", "classes_", "values"), "it has trees for a single class"),
        (set_part(THREE_CLASSES, "fitted", "classes_"), "its trees do not add to 3 scores"),
        (set_part("LHBoostRegressor", "class"), "unknown parameter 'class_weight'"),
        (set_part("LHForestClassifier", "class"), "unknown parameter 'categorical|unknown param"),
        (set_part("x", "parameters", "loss"), "loss must be one of"),
        (set_part(0, "parameters", "learning_rate"), "learning_rate must be a number above 0"),
        (set_part(0, "fitted", "_secret"), "unknown attribute '_secret'"),
        (set_part(-1, "fitted", "_seed"), "its _seed is not an integer from 0 up"),
        (set_part("huber", "fitted", "_loss"), "its _loss is not the name of a loss"),
        (set_part([0.5, 0.2], "fitted", "_quantile"), "its _quantile is not ascending"),
        (set_part(1.0, "fitted", "_quantile"), "its _quantile is not a level or a list of lev"),
        (set_part([0.2, 0.5], "fitted", "_quantile"), "its trees do not add to 2 scores"),
        (set_entry(..., "ensemble.value"), "arrays take|is missing"),
        (set_entry("F32", "ensemble.value", "dtype"), "is not a list of int32"),
        (set_entry("U8", "ensemble.value", "dtype"), "take|impossible|larger"),
    ],
)  # fmt: skip
def test_a_forged_boosted_file_is_refused_by_what_is_wrong(change, words, boosted):
    boosted.write_bytes(corruption.join(*change(*corruption.split(boosted.read_bytes()))))
    with pytest.raises(
        ValueError, match=rf"^{boosted.name} cannot be loaded as a model: .*({words}).*\.$"
    ):
        load(boosted)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[" * 100_000, "levels|parts"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "levels"),
        (b"[" + b"{}," * 100_000 + b"{}]", "parts"),
        (b'{"a":1,"a":2}', "repeats a key"),
        (b'{"a":NaN}', "the number NaN"),
        (b'{"a":' + b"9" * 5000 + b"}", "."),
        (b"\xff\xfe", "not JSON"),
        (b"{", "not JSON"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_malicious_json_is_refused(text, words, saved):
    prefix = b'{"__metadata__":{"lhtree":"{\\"digest\\":\\"' + b"0" * 64 + b'\\"}"},"x":'
    header = prefix + text + b"}"
    saved.write_bytes(corruption.forge(len(header).to_bytes(8, "little") + header))
    with pytest.raises(ValueError, match=f"cannot be loaded as a model: .*({words})"):
        load(saved)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_a_bomb_takes_little_memory(saved):
    header = b'{"__metadata__":{"lhtree":"{\\"digest\\":\\"' + b"0" * 64 + b'\\"}"},"x":['
    header += b"{}," * 1_000_000 + b"{}]}"
    saved.write_bytes(corruption.forge(len(header).to_bytes(8, "little") + header))
    # The peak of the process itself: getrusage would start with that of its parent.
    program = f"""
import lhtree
def measure_peak():
    text = open("/proc/self/status").read()
    return int(text[text.index("VmHWM:") + 6 :].split()[0]) // 1024
try:
    lhtree.load("absent")
except FileNotFoundError:
    before = measure_peak()
try:
    lhtree.load({str(saved)!r})
except ValueError:
    print(measure_peak() - before)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert int(run.stdout) < 40, run.stderr  # megabytes, for a file of three
