"""Damaged and malicious model files, for the tests and for ``tools/fuzz_load.py``."""

import hashlib
import json
import struct
import warnings

import numpy as np
from sklearn.base import clone

from lhtree import (
    LHBoostClassifier,
    LHBoostRegressor,
    LHForestClassifier,
    LHForestRegressor,
    LHTClassifier,
    load,
    save,
)
from lhtree.persist import container

WEIRD = (
    None, True, -1, 0, 1, 2, 7, 2**31, 2**63, -(2**63), 10**30, 1e308, -0.5, "", "x", "nan",
    "\ud800", "lhtree", [], [[]], [0], {}, {"tuple": []}, {"dict": [[{}, 1]]}, {"float": "inf"},
    {"array": {"dtype": "str", "width": 2**40, "values": ["a"]}}, {"list": [1, "a", None]},
)  # fmt: skip
NUMBERS = [
    struct.pack("<d", value)
    for value in (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, 1e308, -1e308, 5e-324)
] + [struct.pack("<q", value) for value in (-1, 0, 1, 2, 3, 2**31, 2**62, 2**63 - 1, -(2**63))]


def make_models():
    """Return small fitted models of several kinds, with rows to predict."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int) + (X[:, 3] > 1)
    names = np.array(["none", "some", "many"])[y]
    forest = LHForestClassifier(3, random_state=0, oob_score=True, max_samples=0.5, max_depth=4)
    paper = LHForestClassifier(2, preset="paper", voting="margin", beta=0.5, random_state=0)
    mixed = LHForestClassifier(6, max_samples=0.5, calibration="oob", max_depth=2, random_state=0)
    mixed.set_params(categorical_features=[4], max_categories=3, shrinkage=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few estimators leave some rows without a vote
        models = [LHTClassifier().fit(X, names), forest.fit(X, y), paper.fit(X, y > 0)]
        X[:, 4], X[::5, 1] = np.round(X[:, 4]), np.nan
        models.append(mixed.fit(X, y > 0))
        old = clone(mixed).set_params(contrast="standardized", oob_score=True)
        models.append(old.fit(X, y, np.arange(60) % 5))
    for boosted in (LHBoostClassifier(random_state=0), LHBoostRegressor(early_stopping=True)):
        boosted.set_params(n_estimators=3, max_leaf_nodes=5, random_state=0, n_hyperplanes=3)
        models.append(boosted.set_params(categorical_features=[4]).fit(X, y > 0))
    models.append(clone(models[-2]).fit(X, names))
    numbers = LHForestRegressor(5, max_samples=0.4, random_state=0, categorical_features=[4])
    models.append(numbers.fit(X, y + X[:, 0], np.arange(60) % 3))
    return models, X[:8]


def to_bytes(model, folder):
    """Return the bytes that `save` writes."""
    path = folder / "model.safetensors"
    save(model, path)
    return path.read_bytes()


def forge(data):
    """Return the file with a digest that matches it: only the other checks can detect it."""
    size = min(int.from_bytes(data[:8], "little"), len(data))
    found = container.DIGEST.search(data, 8, 8 + size)
    if not found:
        return data
    start, end = found.span(1)
    blank = data[:start] + container.BLANK.encode() + data[end:]
    return data[:start] + hashlib.sha256(blank).hexdigest().encode() + data[end:]


def split(data):
    """Return the header of a file as JSON, the description in it, and the bytes after it."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    return header, json.loads(header["__metadata__"]["lhtree"]), data[8 + size :]


def join(header, description, body):
    """Return the file of these parts, with a digest that matches."""
    description = {"digest": container.BLANK, **description}
    header = {**header, "__metadata__": {"lhtree": json.dumps(description, separators=(",", ":"))}}
    text = json.dumps(header, separators=(",", ":")).encode()
    return forge(len(text).to_bytes(8, "little") + text + body)


def damage_bytes(data, rng):
    """Damage a file anywhere, as disks and networks do."""
    data = bytearray(data)
    kind, i = rng.integers(6), int(rng.integers(len(data)))
    n = int(rng.integers(1, 33))
    if kind == 0:
        for place in rng.integers(len(data), size=int(rng.integers(1, 4))):
            data[place] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del data[i:]
    elif kind == 2:
        data[i : i + n] = rng.bytes(n)
    elif kind == 3:
        del data[i : i + n]
    elif kind == 4:
        data[i:i] = data[:n]
    else:
        data += rng.bytes(n)
    return bytes(data)


def damage_numbers(data, rng):
    """Put awkward numbers into the arrays, aligned like their entries."""
    start = 8 + int.from_bytes(data[:8], "little")
    damaged = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        number = NUMBERS[rng.integers(len(NUMBERS))][: int(rng.choice([1, 4, 8, 8]))]
        place = start + int(rng.integers((len(data) - start) // len(number))) * len(number)
        damaged[place : place + len(number)] = number
    return bytes(damaged[: len(data)])


def damage_json(data, rng):
    """Change, remove or copy parts of the header."""
    header, description, body = split(data)
    del header["__metadata__"]
    for _ in range(int(rng.integers(1, 3))):
        node = header if rng.random() < 0.3 else description
        key = _pick(node, rng)
        while isinstance(node[key], dict | list) and node[key] and rng.random() < 0.8:
            node = node[key]
            key = _pick(node, rng)
        _change(node, key, rng)
        if not header or not description:
            break
    return join(header, description, body)


def _pick(node, rng):
    keys = list(node) if isinstance(node, dict) else range(len(node))
    return keys[rng.integers(len(keys))]


def _change(node, key, rng):
    kind = rng.integers(4)
    if kind == 0:
        del node[key]
    elif kind == 1:
        node[key] = node[_pick(node, rng)]
    elif kind == 2 and isinstance(node[key], int | float):
        node[key] += int(rng.integers(-2, 3))
    else:
        node[key] = WEIRD[rng.integers(len(WEIRD))]


def corrupt(data, rng):
    """Return a corrupted file, and whether its digest still matches."""
    kind = rng.integers(5)
    if kind <= 1:
        return damage_bytes(data, rng), False
    if kind == 2:
        return forge(damage_bytes(data, rng)), True
    return forge((damage_numbers, damage_json)[kind - 3](data, rng)), True


def examine(path, X, is_forged):
    """Load a corrupted file; return "refused" or "predicted", raise for anything else."""
    try:
        model = load(path)
    except ValueError as error:
        if not str(error).startswith(f"{path.name} cannot be loaded as a model: "):
            raise
        return "refused"
    assert is_forged, "a changed file was loaded"
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            predicted = model.predict(X)
        except (ValueError, TypeError):  # a parameter such as n_jobs=0
            return "predicted"
        if hasattr(model, "predict_proba"):
            assert model.predict_proba(X).shape == (len(X), len(model.classes_))
        if hasattr(model, "predict_quantiles"):
            assert model.predict_quantiles(X).shape == (len(X), 3)
            if hasattr(model, "_conformity"):
                assert model.interval(X, 0.5).shape == (len(X), 2)
        model.apply(X)
        model.decision_path(X)
    assert predicted.shape == (len(X),)
    assert all(tree.n_leaves > 0 for tree in model.trees_)
    assert model.get_depth() >= 0
    assert len(model.feature_importances_) == model.n_features_in_
    assert len(model.column_names_) == model.forest_.n_features
    repr(model)
    return "predicted"
