"""Boosted models as plain data, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Arrays
from lhtree.estimators import LHBoostClassifier, LHBoostRegressor
from lhtree.estimators.boosting.params import BoostingParams
from lhtree.model import ensemble_packing
from lhtree.model.ensemble import Ensemble
from lhtree.persist.attributes import CLASSES, OF_COLUMNS, Attribute, decode_integer
from lhtree.persist.family import Check, Family, check_columns
from lhtree.persist.values import NotPlainError


def _decode_float(json: Any) -> float:
    if type(json) is not float:
        raise NotPlainError("is not a floating point number")
    return json


def _decode_scores(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != np.float64 or array.ndim != 1:
        raise NotPlainError("is not a list of float64")
    if np.isnan(array).any():  # squares of huge errors are infinite
        raise NotPlainError("has a score that is not a number")
    return array


def _decode_loss(json: Any) -> str:
    if type(json) is not str or json not in (*LHBoostClassifier.LOSSES, *LHBoostRegressor.LOSSES):
        raise NotPlainError("is not the name of a loss")
    return json


def _decode_quantile(json: Any) -> float | list[float] | None:
    levels = [] if json is None else json if type(json) is list else [json]
    if not all(type(level) is float and 0 < level < 1 for level in levels):
        raise NotPlainError("is not a level or a list of levels between 0 and 1")
    if json == [] or sorted(set(levels)) != levels:
        raise NotPlainError("is not ascending")
    quantile: float | list[float] | None = json
    return quantile


def _decode_shift(json: Any) -> list[int]:
    if type(json) is not list or not all(type(each) is int and abs(each) < 2**53 for each in json):
        raise NotPlainError("is not a list of integers within 2**53")
    return json


SCALARS = (
    Attribute("power", int, decode_integer(-1200)),
    Attribute("origin", float, _decode_float),
)
ATTRIBUTES = (
    *OF_COLUMNS,
    Attribute("n_iter_", int, decode_integer(0)),
    Attribute("_loss", str, _decode_loss, is_always_there=False),
    Attribute("_best_round", int, decode_integer(0), is_always_there=False),
    Attribute("_seed", int, decode_integer(0), is_always_there=False),
    Attribute("_shift", lambda each: each, _decode_shift, is_always_there=False),
    Attribute("_quantile", lambda each: each, _decode_quantile, is_always_there=False),
    Attribute("train_score_", np.ascontiguousarray, _decode_scores, is_array=True),
    Attribute("validation_score_", np.ascontiguousarray, _decode_scores, is_array=True),
)


def unpack_ensemble(arrays: Arrays, **scalars: Any) -> Ensemble:
    """Take the arrays of an ensemble out of those of a file."""
    packed = {name: arrays.pop(name) for name in ensemble_packing.DTYPES if name in arrays}
    return Ensemble.from_packed(packed, **scalars)


def check_codes(state: dict[str, Any]) -> Iterator[Check]:
    """Yield whether names, columns, categories and trees fit together."""
    forest, columns = state["forest_"], state["columns_"]
    yield from check_columns(state)
    is_same = np.array_equal(columns.count_codes(), forest.columns.n_codes)
    yield is_same, "its columns_ have other numbers of categories than its trees"


def _list_checks(state: dict[str, Any]) -> Iterator[Check]:
    forest = state["forest_"]
    yield from check_codes(state)
    yield state["n_iter_"] == len(forest), "its n_iter_ is not the number of its trees"
    n_scores, n_more = len(state["train_score_"]), len(state["validation_score_"])
    n_rounds = state.get("_best_round", len(forest))  # those of a refit have no scores
    yield n_scores > n_rounds, "its train_score_ is too short"
    yield n_more in (0, n_scores), "its validation_score_ does not have the length of train_score_"
    n_classes, quantile = len(state.get("classes_", "12")), state.get("_quantile")
    n_outputs = n_classes if n_classes > 2 else len(quantile) if isinstance(quantile, list) else 1
    yield forest.n_outputs == n_outputs, f"its trees do not add to {n_outputs} scores"
    is_shift = len(state.get("_shift", range(n_outputs))) == n_outputs
    yield is_shift, "its _shift does not have a number for each score"
    yield n_classes > 1 or len(forest) == 0, "it has trees for a single class"


def _make_family(kind: Any, attributes: tuple[Attribute, ...]) -> Family:
    return Family(
        classes=(kind,),
        attributes=attributes,
        read_parameters=BoostingParams.read,
        pack=ensemble_packing.pack,
        unpack=unpack_ensemble,
        list_checks=_list_checks,
        scalars=SCALARS,
    )


REGRESSORS = _make_family(LHBoostRegressor, ATTRIBUTES)
CLASSIFIERS = _make_family(LHBoostClassifier, (CLASSES, *ATTRIBUTES))
