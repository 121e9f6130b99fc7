"""Trees and forests by the paper's rules as plain data, and back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Arrays
from lhtree.data.table import MOST_ROWS
from lhtree.estimators import LHForestClassifier, LHTClassifier
from lhtree.estimators.params import Params
from lhtree.model.forest import Forest, list_positive_classes
from lhtree.persist import values
from lhtree.persist.attributes import (
    CLASSES,
    OF_COLUMNS,
    Attribute,
    decode_flag,
    decode_integer,
)
from lhtree.persist.family import Check, Family, check_columns
from lhtree.persist.values import NotPlainError
from lhtree.training.plan import Draw

PREFIX = "forest."  # starts the names of the forest's arrays


def decode_draw(json: Any) -> Draw:
    """Accept how estimators draw their rows."""
    if type(json) is not list or len(json) != 3:
        raise NotPlainError("does not have three parts")
    n_rows, n_draws, bootstrap = json
    count = decode_integer(1, MOST_ROWS)
    draw = Draw(count(n_rows), count(n_draws), decode_flag(bootstrap))
    if draw.n_draws > draw.n_rows and not draw.bootstrap:
        raise NotPlainError("draws more rows than there are")
    return draw


def encode_score(score: Any) -> Any:
    """Encode the score, which may be anything that the user's metric returns."""
    return values.encode(float(score) if isinstance(score, np.floating) else score)


def decode_score(json: Any) -> float:
    """Accept an out-of-bag score."""
    score = values.decode(json)
    if type(score) not in (int, float, bool):
        raise NotPlainError("is not a number")
    return float(score) if type(score) is float else score


def decode_strength(json: Any) -> float:
    """Accept a strength of shrinkage."""
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


def _decode_position(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != np.int64 or array.ndim != 1:
        raise NotPlainError("is not a list of int64")
    if not np.all(np.diff(array, prepend=-1) > 0):
        raise NotPlainError("is not ascending from 0 up")
    return array


CALIBRATION = Attribute(
    "calibration_", values.encode_array, _decode_calibration, is_always_there=False
)
DECISION_FUNCTION = Attribute(
    "oob_decision_function_",
    np.ascontiguousarray,
    _decode_matrix,
    is_always_there=False,
    is_array=True,
)
POSITION = Attribute(
    "_position",
    lambda position: np.ascontiguousarray(position, dtype=np.int64),
    _decode_position,
    is_always_there=False,
    is_array=True,
)
ATTRIBUTES = (
    CLASSES,
    Attribute("n_classes_", int, decode_integer(1)),
    *OF_COLUMNS,
    Attribute("_seed", int, decode_integer(0, 2**64 - 1)),
    Attribute("_draw", list, decode_draw),
    Attribute("_standardized", bool, decode_flag),
    Attribute("shrinkage_", values.encode, decode_strength),
    CALIBRATION,
    Attribute("oob_score_", encode_score, decode_score, is_always_there=False),
    DECISION_FUNCTION,
    POSITION,
)


def check_position(state: dict[str, Any]) -> Check:
    """Demand the positions of as many rows as estimators draw from."""
    position = state.get("_position")
    is_whole = position is None or len(position) == state["_draw"].n_rows
    return is_whole, "its _position does not have one entry for each row"


def _pack(forest: Forest) -> Arrays:
    return {PREFIX + field.name: getattr(forest, field.name) for field in fields(Forest)}


def _unpack(arrays: Arrays) -> Forest:
    """Take the forest's arrays out of those of the file; `Forest` checks them without a copy."""
    parts = {}
    for field in fields(Forest):
        if PREFIX + field.name not in arrays:
            raise ValueError(f"its array {PREFIX + field.name!r} is missing")
        parts[field.name] = np.require(arrays.pop(PREFIX + field.name), requirements=["C", "A"])
    forest = Forest.__new__(Forest)
    forest.adopt(parts)
    return forest


def _list_checks(state: dict[str, Any]) -> Iterator[Check]:
    n_classes, forest, columns = state["n_classes_"], state["forest_"], state["columns_"]
    yield len(state["classes_"]) == n_classes, "its n_classes_ is not the number of its labels"
    positive = list_positive_classes(n_classes)
    n_estimators, n_more = divmod(len(forest), len(positive))
    is_whole = n_estimators > 0 and n_more == 0
    yield is_whole, "its estimators do not have one tree per class"
    is_in_turn = np.array_equal(forest.positive_class, positive * n_estimators)
    yield is_in_turn, "its trees have the wrong positive classes"
    yield from check_columns(state)
    yield not columns.has_codes, "its columns_ have codes, which no forest reads"
    votes = state.get("oob_decision_function_")
    is_wide = votes is None or votes.shape[1] == n_classes
    yield is_wide, "its oob_decision_function_ has another number of columns"
    yield check_position(state)


FORESTS = Family(
    classes=(LHTClassifier, LHForestClassifier),
    attributes=ATTRIBUTES,
    read_parameters=Params.read,
    pack=_pack,
    unpack=_unpack,
    list_checks=_list_checks,
)
