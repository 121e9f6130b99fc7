"""The model as plain data, and back: the one place that lists what a fit leaves behind.

Whatever `fit` sets must be among `ATTRIBUTES` (or in the forest): saving refuses a
model with anything else, so that nothing is lost silently.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lhtree.data.columns import Columns
from lhtree.data.rows import Draw
from lhtree.estimators import LHForestClassifier, LHTClassifier, params
from lhtree.estimators.base import HyperplaneTrees
from lhtree.model.forest import Forest, list_targets
from lhtree.persist import values
from lhtree.persist.categories import decode_columns, encode_columns
from lhtree.persist.container import Arrays
from lhtree.persist.values import NotPlainError

FORMAT = 1  # raised when older versions could not read what is written
CLASSES = {kind.__name__: kind for kind in (LHTClassifier, LHForestClassifier)}
FOREST = "forest."  # starts the names of the forest's arrays
# What scikit-learn keeps for the process in which it trains.
NOT_SAVED = {"_metadata_request", "_skl_callbacks"}


class Attribute(NamedTuple):
    """One attribute that a fit sets; `decode` checks what a file says of it."""

    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    is_always_there: bool = True
    is_array: bool = False  # kept as an array of the file instead of JSON


def _decode_integer(low: int, high: float = math.inf) -> Callable[[Any], int]:
    def decode(json: Any) -> int:
        if type(json) is not int or not low <= json <= high:
            raise NotPlainError(f"is no integer from {low}")
        return json

    return decode


def _decode_flag(json: Any) -> bool:
    if type(json) is not bool:
        raise NotPlainError("is neither true nor false")
    return json


def _decode_labels(json: Any) -> NDArray[Any]:
    labels = values.decode_array(json)
    kinds = {type(label) for label in labels.tolist()}
    if len(labels) == 0 or len(kinds) > 1:
        raise NotPlainError("is no list of labels of one type")
    if not np.all(labels[:-1] < labels[1:]):
        raise NotPlainError("is not ascending")
    return labels


def _decode_names(json: Any) -> NDArray[Any]:
    names = values.decode_array(json)
    if names.dtype != object or not all(type(name) is str for name in names):
        raise NotPlainError("is no list of names")
    return names


def _decode_draw(json: Any) -> Draw:
    if type(json) is not list or len(json) != 3:
        raise NotPlainError("has not three parts")
    n_rows, n_draws, bootstrap = json
    count = _decode_integer(1, params.MOST_ROWS)
    draw = Draw(count(n_rows), count(n_draws), _decode_flag(bootstrap))
    if draw.n_draws > draw.n_rows and not draw.bootstrap:
        raise NotPlainError("draws more rows than there are")
    return draw


def _encode_score(score: Any) -> Any:
    """Accept numbers: a metric of the user's may return anything."""
    return values.encode(float(score) if isinstance(score, np.floating) else score)


def _decode_score(json: Any) -> float:
    score = values.decode(json)
    if type(score) not in (int, float, bool):
        raise NotPlainError("is no number")
    return float(score) if type(score) is float else score


def _decode_strength(json: Any) -> float:
    strength = values.decode(json)
    if type(strength) is not float or not 0 <= strength < math.inf:
        raise NotPlainError("is no number from 0")
    return strength


def _decode_calibration(json: Any) -> NDArray[Any]:
    pair = values.decode_array(json)
    if pair.dtype != np.float64 or pair.shape != (2,):
        raise NotPlainError("is no pair of numbers")
    if not np.all((pair >= 0) & (pair < math.inf)):
        raise NotPlainError("is not finite, or negative")
    return pair


def _decode_matrix(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != np.float64 or array.ndim != 2:
        raise NotPlainError("is no matrix of float64")
    if np.isinf(array).any():
        raise NotPlainError("is not finite")
    return array


ATTRIBUTES = (
    Attribute("classes_", values.encode_array, _decode_labels),
    Attribute("n_classes_", int, _decode_integer(1)),
    Attribute("n_features_in_", int, _decode_integer(1)),
    Attribute("feature_names_in_", values.encode_array, _decode_names, is_always_there=False),
    Attribute("columns_", encode_columns, decode_columns, is_always_there=False),
    Attribute("_seed", int, _decode_integer(0, 2**64 - 1)),
    Attribute("_draw", list, _decode_draw),
    Attribute("_standardized", bool, _decode_flag),
    Attribute("shrinkage_", values.encode, _decode_strength, is_always_there=False),
    Attribute("calibration_", values.encode_array, _decode_calibration, is_always_there=False),
    Attribute("oob_score_", _encode_score, _decode_score, is_always_there=False),
    Attribute(
        "oob_decision_function_",
        np.ascontiguousarray,
        _decode_matrix,
        is_always_there=False,
        is_array=True,
    ),
)


def describe(model: HyperplaneTrees) -> tuple[dict[str, Any], Arrays]:
    """Return a fitted model as JSON and arrays; raise a ValueError if it has more than that."""
    arrays: Arrays = {
        FOREST + field.name: getattr(model.forest_, field.name) for field in fields(Forest)
    }
    fitted: dict[str, Any] = {}
    for attribute in ATTRIBUTES:
        if attribute.name in vars(model):
            place = arrays if attribute.is_array else fitted
            place[attribute.name] = _name_errors(
                attribute.encode, vars(model)[attribute.name], attribute.name
            )
    if model.columns_.is_plain:  # then a file says nothing of them
        del fitted["columns_"]
    description = {
        "format": FORMAT,
        "version": _find_version(),
        "class": type(model).__name__,
        "parameters": {
            name: _encode_parameter(name, value)
            for name, value in model.get_params(deep=False).items()
        },
        "fitted": fitted,
    }
    return description, arrays


def check_savable(model: Any) -> None:
    """Refuse what is no fitted classifier of this package, or has state without a place."""
    if type(model) not in CLASSES.values():
        remedy = "; save what its to_local() returns" if hasattr(model, "to_local") else ""
        raise TypeError(
            f"model must be a fitted {' or '.join(CLASSES)}, got {type(model).__name__}{remedy}."
        )
    if "forest_" not in vars(model):
        raise ValueError(f"model must be fitted before it is saved: call {model}.fit first.")
    known = {attribute.name for attribute in ATTRIBUTES} | NOT_SAVED | {"forest_"}
    unknown = sorted(set(vars(model)) - known - set(model.get_params(deep=False)))
    if unknown:
        raise ValueError(
            f"model has the attribute {unknown[0]!r}, for which files have no place; delete it "
            "before saving."
        )
    check_parameters(model)


def restore(description: dict[str, Any], arrays: Arrays) -> HyperplaneTrees:
    """Return the model that a file describes; raise a ValueError if it describes none."""
    parts = _check_description(description)
    kind = CLASSES[parts["class"]]
    model = kind(**_decode_parameters(kind, parts["parameters"]))
    check_parameters(model)
    known = {attribute.name for attribute in ATTRIBUTES if not attribute.is_array}
    if unknown := sorted(set(parts["fitted"]) - known):
        raise ValueError(f"it has the unknown attribute {unknown[0][:40]!r}")
    arrays = dict(arrays)
    state: dict[str, Any] = {"forest_": _restore_forest(arrays)}
    for attribute in ATTRIBUTES:
        place = arrays if attribute.is_array else parts["fitted"]
        if attribute.name in place:
            state[attribute.name] = _name_errors(
                attribute.decode, place.pop(attribute.name), attribute.name
            )
        elif attribute.is_always_there:
            raise ValueError(f"its attribute {attribute.name!r} is absent")
    if arrays:
        raise ValueError(f"it has the unknown array {min(arrays)[:40]!r}")
    state.setdefault("columns_", Columns(state["n_features_in_"]))
    _check_fit(state)
    for name, value in state.items():
        setattr(model, name, value)
    return model


def check_parameters(model: HyperplaneTrees) -> None:
    """Refuse parameters with which the model could not answer."""
    params.check_rules(model)
    params.check_members(model)


def _find_version() -> str:
    from lhtree import __version__

    return __version__


def _name_errors(function: Callable[[Any], Any], value: Any, name: str) -> Any:
    try:
        return function(value)
    except NotPlainError as error:
        raise ValueError(f"its {name} {error}") from error


def _encode_parameter(name: str, value: Any) -> Any:
    try:
        return values.encode(value)
    except NotPlainError as error:
        raise ValueError(
            f"its parameter {name}={value!r} {error}; set another value with set_params"
        ) from error


def _check_description(description: dict[str, Any]) -> dict[str, Any]:
    number = description.get("format")
    if type(number) is not int or number < 1:
        raise ValueError("its format has no number")
    if number > FORMAT:
        raise ValueError(
            f"its format {number} is newer than {FORMAT}, the newest that this version of lhtree "
            "reads: install a newer one"
        )
    kinds = {"digest": str, "version": str, "class": str, "parameters": dict, "fitted": dict}
    if set(description) != {"format", *kinds}:
        raise ValueError("its description has other parts than a model has")
    for name, kind in kinds.items():
        if type(description[name]) is not kind:
            raise ValueError(f"its {name} has the wrong type")
    if description["class"] not in CLASSES:
        raise ValueError(f"its class {description['class'][:40]!r} is none of lhtree")
    return description


def _decode_parameters(kind: type[HyperplaneTrees], json: dict[str, Any]) -> dict[str, Any]:
    known = inspect.signature(kind).parameters
    if unknown := sorted(set(json) - set(known)):
        raise ValueError(f"it has the unknown parameter {unknown[0][:40]!r}")
    return {
        name: _name_errors(values.decode, value, f"parameter {name}")
        for name, value in json.items()
    }


def _restore_forest(arrays: Arrays) -> Forest:
    """Take the forest's arrays out of the file's; `Forest` checks them, without a copy."""
    parts = {}
    for field in fields(Forest):
        if FOREST + field.name not in arrays:
            raise ValueError(f"its array {FOREST + field.name!r} is absent")
        parts[field.name] = np.require(arrays.pop(FOREST + field.name), requirements=["C", "A"])
    forest = Forest.__new__(Forest)
    forest._adopt(parts)
    return forest


def _check_fit(state: dict[str, Any]) -> None:
    """Check what the parts of a fitted model say of each other."""
    for is_sound, message in _list_checks(state):
        if not is_sound:
            raise ValueError(message)


def _list_checks(state: dict[str, Any]) -> Iterator[tuple[bool, str]]:
    """Yield whether something holds, and what is wrong if not; each relies on those before."""
    n_classes, forest, columns = state["n_classes_"], state["forest_"], state["columns_"]
    n_features = state["n_features_in_"]
    yield len(state["classes_"]) == n_classes, "n_classes_ is not the number of its labels"
    target = list_targets(n_classes)
    n_members, rest = divmod(len(forest), len(target))
    yield n_members > 0 and rest == 0, "its members have not one tree per class"
    yield np.array_equal(forest.target, target * n_members), "its trees have wrong targets"
    yield columns.n_features == n_features, "its columns_ are of other features"
    is_narrow = columns.kept is None and n_features > forest.n_features
    yield not is_narrow, "its trees have other columns"  # before as many are counted
    yield len(columns.find_source()) == forest.n_features, "its trees have other columns"
    names, votes = state.get("feature_names_in_"), state.get("oob_decision_function_")
    yield names is None or len(names) == n_features, "it has too few or many names"
    is_wide = votes is None or votes.shape[1] == n_classes
    yield is_wide, "oob_decision_function_ has other columns"
