"""Forests on the exact engine as plain data, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Arrays
from lhtree.estimators import LHForestClassifier, LHForestRegressor
from lhtree.estimators.averaging.params import AveragingParams
from lhtree.model import ensemble_packing
from lhtree.model.conformity import Conformity, Spread
from lhtree.model.ensemble_validation import MOST_AVERAGED
from lhtree.model.leaf_rows import LeafRows
from lhtree.persist import values
from lhtree.persist.attributes import CLASSES, OF_COLUMNS, Attribute, decode_integer
from lhtree.persist.boosting import SCALARS, check_codes, unpack_ensemble
from lhtree.persist.family import Check, Family, Part
from lhtree.persist.forests import (
    CALIBRATION,
    DECISION_FUNCTION,
    POSITION,
    check_position,
    decode_draw,
    decode_score,
    decode_strength,
    encode_score,
)
from lhtree.persist.values import NotPlainError
from lhtree.training.targets import SHARE_POWER

LEAVES, ERRORS = "leaf_rows.", "conformity."  # start the names of arrays
LISTS = ("ratio", "half_ratio", "weight")


def _decode_prediction(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != np.float64 or array.ndim != 1 or np.isinf(array).any():
        raise NotPlainError("is not a list of finite float64")
    return array


SHARED = (
    *OF_COLUMNS,
    Attribute("_seed", int, decode_integer(0)),
    Attribute("_draw", list, decode_draw),
    Attribute("shrinkage_", values.encode, decode_strength),
    Attribute("oob_score_", encode_score, decode_score, is_always_there=False),
    POSITION,
)
OF_NUMBERS = (
    *SHARED,
    Attribute(
        "oob_prediction_",
        np.ascontiguousarray,
        _decode_prediction,
        is_always_there=False,
        is_array=True,
    ),
)
OF_CLASSES = (
    CLASSES,
    Attribute("n_classes_", int, decode_integer(1)),
    *SHARED,
    CALIBRATION,
    DECISION_FUNCTION,
)


def _pack_leaves(leaf_rows: LeafRows) -> Arrays:
    return {LEAVES + each.name: getattr(leaf_rows, each.name) for each in fields(LeafRows)}


def _unpack_leaves(arrays: Arrays) -> LeafRows | None:
    names = [LEAVES + each.name for each in fields(LeafRows)]
    if any(name not in arrays for name in names):
        return None
    return LeafRows(*(arrays.pop(name) for name in names))


def _pack_errors(conformity: Conformity) -> Arrays:
    spread = conformity.spread
    scale = np.array([conformity.step, spread.usual, spread.least, spread.share])
    lists = {name: getattr(conformity, name) for name in LISTS}
    return {ERRORS + name: array for name, array in {**lists, "scale": scale}.items()}


def _unpack_errors(arrays: Arrays) -> Conformity | None:
    names = [ERRORS + name for name in (*LISTS, "scale")]
    if not any(name in arrays for name in names):
        return None
    if not all(name in arrays for name in names):
        raise ValueError("its out-of-bag errors are not complete")
    ratio, half_ratio, weight, scale = (arrays.pop(name) for name in names)
    if scale.shape != (4,) or scale.dtype != np.float64:
        raise ValueError("the scale of its out-of-bag errors does not have four parts")
    step, *of_spread = scale.tolist()
    return Conformity(ratio, half_ratio, weight, step, Spread(*of_spread))


def _check_forest(state: dict[str, Any], n_outputs: int) -> Iterator[Check]:
    forest = state["forest_"]
    yield from check_codes(state)
    yield len(forest) > 0, "it has no trees"
    yield forest.n_outputs == n_outputs, f"its trees do not have {n_outputs} scores"
    yield forest.value.shape[1] == 1, "its leaves have several values"
    is_whole = forest.n_averaged == len(forest) // forest.n_turns
    yield is_whole, "its n_averaged is not the number of its estimators"
    yield check_position(state)


def _check_numbers(state: dict[str, Any]) -> Iterator[Check]:
    yield from _check_forest(state, 1)
    forest, leaf_rows, draw = state["forest_"], state["leaf_rows_"], state["_draw"]
    yield len(leaf_rows.size) == len(forest.value), "its leaf_rows_ are those of other leaves"
    prediction = state.get("oob_prediction_")
    is_long = prediction is None or len(prediction) >= draw.n_rows
    yield is_long, "its oob_prediction_ is too short"


def _check_classes(state: dict[str, Any]) -> Iterator[Check]:
    n_classes, forest = state["n_classes_"], state["forest_"]
    yield len(state["classes_"]) == n_classes, "its n_classes_ is not the number of its labels"
    yield from _check_forest(state, n_classes if n_classes > 2 else 1)
    share = forest.value
    is_share = bool(np.all((share >= 0) & (share <= 1 << SHARE_POWER)))
    yield is_share and forest.power == SHARE_POWER, "a leaf has no share of a class"
    yield not forest.base.any() and forest.origin == 0, "its scores do not start from 0"
    votes = state.get("oob_decision_function_")
    is_wide = votes is None or votes.shape[1] == n_classes
    yield is_wide, "its oob_decision_function_ has another number of columns"


N_AVERAGED = Attribute("n_averaged", int, decode_integer(1, MOST_AVERAGED))
CLASS_FORESTS = Family(
    classes=(LHForestClassifier,),
    attributes=OF_CLASSES,
    read_parameters=AveragingParams.read,
    pack=ensemble_packing.pack,
    unpack=unpack_ensemble,
    list_checks=_check_classes,
    scalars=(*SCALARS, N_AVERAGED),
)
NUMBER_FORESTS = Family(
    classes=(LHForestRegressor,),
    attributes=OF_NUMBERS,
    read_parameters=AveragingParams.read,
    pack=ensemble_packing.pack,
    unpack=unpack_ensemble,
    list_checks=_check_numbers,
    scalars=(*SCALARS, N_AVERAGED),
    parts=(
        Part("leaf_rows_", _pack_leaves, _unpack_leaves),
        Part("_conformity", _pack_errors, _unpack_errors, is_always_there=False),
    ),
)
