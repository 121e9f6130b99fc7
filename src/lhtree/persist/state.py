"""The model as plain data, and back: the one list of what a fit leaves behind.

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

from lhtree.arrays import Arrays
from lhtree.data.columns import Columns
from lhtree.data.table import MOST_ROWS
from lhtree.estimators import LHForestClassifier, LHTClassifier
from lhtree.estimators.base import TreeEstimator
from lhtree.estimators.params import Params
from lhtree.model.forest import Forest, list_positive_classes
from lhtree.persist import values
from lhtree.persist.categories import decode_columns, encode_columns
from lhtree.persist.values import NotPlainError
from lhtree.training.plan import Draw

FORMAT = 2  # raised when older versions could not read what is written
CLASSES = {kind.__name__: kind for kind in (LHTClassifier, LHForestClassifier)}
FOREST = "forest."  # starts the names of the forest's arrays
# What scikit-learn keeps for the process in which it trains.
NOT_SAVED = {"_metadata_request", "_skl_callbacks"}


class Attribute(NamedTuple):
    """One attribute that a fit sets; `decode` checks what a file says about it."""

    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    is_always_there: bool = True
    is_array: bool = False  # kept as an array of the file instead of JSON


def _decode_integer(low: int, high: float = math.inf) -> Callable[[Any], int]:
    def decode(json: Any) -> int:
        if type(json) is not int or not low <= json <= high:
            raise NotPlainError(f"is not an integer from {low} up")
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
        raise NotPlainError("is not a list of labels of one type")
    if not np.all(labels[:-1] < labels[1:]):
        raise NotPlainError("is not ascending")
    return labels


def _decode_names(json: Any) -> NDArray[Any]:
    names = values.decode_array(json)
    if names.dtype != object or not all(type(name) is str for name in names):
        raise NotPlainError("is not a list of names")
    return names


def _decode_draw(json: Any) -> Draw:
    if type(json) is not list or len(json) != 3:
        raise NotPlainError("does not have three parts")
    n_rows, n_draws, bootstrap = json
    count = _decode_integer(1, MOST_ROWS)
    draw = Draw(count(n_rows), count(n_draws), _decode_flag(bootstrap))
    if draw.n_draws > draw.n_rows and not draw.bootstrap:
        raise NotPlainError("draws more rows than there are")
    return draw


def _encode_score(score: Any) -> Any:
    """Encode the score, which may be anything that the user's metric returns."""
    return values.encode(float(score) if isinstance(score, np.floating) else score)


def _decode_score(json: Any) -> float:
    score = values.decode(json)
    if type(score) not in (int, float, bool):
        raise NotPlainError("is not a number")
    return float(score) if type(score) is float else score


def _decode_strength(json: Any) -> float:
    strength = values.decode(json)
    if type(strength) is not float or not 0 <= strength < math.inf:
        raise NotPlainError("is not a finite number from 0 up")
    return strength


def _decode_calibration(json: Any) -> NDArray[Any]:
    pair = values.decode_array(json)
    if pair.dtype != np.float64 or pair.shape != (2,):
        raise NotPlainError("is not a pair of numbers")
    if not np.all((pair >= 0) & (pair < math.inf)):
        raise NotPlainError("is negative or not finite")
    return pair


def _decode_matrix(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != np.float64 or array.ndim != 2:
        raise NotPlainError("is not a matrix of float64")
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
    Attribute("shrinkage_", values.encode, _decode_strength),
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


def describe(model: TreeEstimator) -> tuple[dict[str, Any], Arrays]:
    """Return a fitted model as JSON and arrays; raise a ValueError if it has more than that."""
    arrays: Arrays = {
        FOREST + field.name: getattr(model.forest_, field.name) for field in fields(Forest)
    }
    fitted: dict[str, Any] = {}
    for attribute in ATTRIBUTES:
        if attribute.name in vars(model):
            part = arrays if attribute.is_array else fitted
            part[attribute.name] = _name_errors(
                attribute.encode, vars(model)[attribute.name], attribute.name
            )
    if model.columns_.is_plain:  # they follow from n_features_in_
        del fitted["columns_"]
    description = {
        "format": FORMAT,
        "version": _get_version(),
        "class": type(model).__name__,
        "parameters": {
            name: _encode_parameter(name, value)
            for name, value in model.get_params(deep=False).items()
        },
        "fitted": fitted,
    }
    return description, arrays


def check_savable(model: Any) -> None:
    """Refuse anything but a fitted classifier whose whole state can be saved."""
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
            f"model has the attribute {unknown[0]!r}, which cannot be saved; delete it before "
            "saving."
        )
    check_parameters(model)


def restore(description: dict[str, Any], arrays: Arrays) -> TreeEstimator:
    """Return the model that a file describes; raise a ValueError if it is not valid."""
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
        part = arrays if attribute.is_array else parts["fitted"]
        if attribute.name in part:
            state[attribute.name] = _name_errors(
                attribute.decode, part.pop(attribute.name), attribute.name
            )
        elif attribute.is_always_there:
            raise ValueError(f"its attribute {attribute.name!r} is missing")
    if arrays:
        raise ValueError(f"it has the unknown array {min(arrays)[:40]!r}")
    state.setdefault("columns_", Columns(state["n_features_in_"]))
    _check_fit(state)
    for name, value in state.items():
        setattr(model, name, value)
    return model


def check_parameters(model: TreeEstimator) -> None:
    """Refuse parameters with which the model could not be fitted."""
    Params.read(model)


def _get_version() -> str:
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
        raise ValueError("its file format has no number")
    if number < FORMAT:
        raise ValueError(
            f"it has the old file format {number}, but this version of lhtree reads format "
            f"{FORMAT}; fit the model again and save it"
        )
    if number > FORMAT:
        raise ValueError(
            f"it has file format {number}, but this version of lhtree reads format {FORMAT}; "
            "install a newer version"
        )
    kinds = {"digest": str, "version": str, "class": str, "parameters": dict, "fitted": dict}
    if set(description) != {"format", *kinds}:
        raise ValueError("its description has other keys than a model has")
    for name, kind in kinds.items():
        if type(description[name]) is not kind:
            raise ValueError(f"its {name} has the wrong type")
    if description["class"] not in CLASSES:
        raise ValueError(f"its class {description['class'][:40]!r} is not one of lhtree")
    return description


def _decode_parameters(kind: type[TreeEstimator], json: dict[str, Any]) -> dict[str, Any]:
    known = inspect.signature(kind).parameters
    if unknown := sorted(set(json) - set(known)):
        raise ValueError(f"it has the unknown parameter {unknown[0][:40]!r}")
    return {
        name: _name_errors(values.decode, value, f"parameter {name}")
        for name, value in json.items()
    }


def _restore_forest(arrays: Arrays) -> Forest:
    """Take the forest's arrays out of those of the file; `Forest` checks them without a copy."""
    parts = {}
    for field in fields(Forest):
        if FOREST + field.name not in arrays:
            raise ValueError(f"its array {FOREST + field.name!r} is missing")
        parts[field.name] = np.require(arrays.pop(FOREST + field.name), requirements=["C", "A"])
    forest = Forest.__new__(Forest)
    forest.adopt(parts)
    return forest


def _check_fit(state: dict[str, Any]) -> None:
    """Check that the parts of a fitted model fit together."""
    for is_valid, message in _list_checks(state):
        if not is_valid:
            raise ValueError(message)


def _list_checks(state: dict[str, Any]) -> Iterator[tuple[bool, str]]:
    """Yield checks and what is wrong where one fails; each relies on those before it."""
    n_classes, forest, columns = state["n_classes_"], state["forest_"], state["columns_"]
    n_features = state["n_features_in_"]
    yield len(state["classes_"]) == n_classes, "its n_classes_ is not the number of its labels"
    positive = list_positive_classes(n_classes)
    n_estimators, n_more = divmod(len(forest), len(positive))
    is_whole = n_estimators > 0 and n_more == 0
    yield is_whole, "its estimators do not have one tree per class"
    is_in_turn = np.array_equal(forest.positive_class, positive * n_estimators)
    yield is_in_turn, "its trees have the wrong positive classes"
    yield columns.n_features == n_features, "its columns_ have another number of features"
    is_narrow = columns.kept is None and n_features > forest.n_features
    # Checked before the columns are listed: a file may claim any number of them.
    yield not is_narrow, "its trees have another number of columns"
    n_columns = len(columns.list_sources())
    yield n_columns == forest.n_features, "its trees have another number of columns"
    names, votes = state.get("feature_names_in_"), state.get("oob_decision_function_")
    yield names is None or len(names) == n_features, "it has too few or too many names"
    is_wide = votes is None or votes.shape[1] == n_classes
    yield is_wide, "its oob_decision_function_ has another number of columns"
