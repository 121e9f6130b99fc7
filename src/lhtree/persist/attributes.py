"""What a fit leaves behind, attribute by attribute: how a file keeps it, and what is valid."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lhtree.persist import values
from lhtree.persist.categories import decode_columns, encode_columns
from lhtree.persist.values import NotPlainError


class Attribute(NamedTuple):
    """One attribute that a fit sets; `decode` checks what a file says about it."""

    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    is_always_there: bool = True
    is_array: bool = False  # kept as an array of the file instead of JSON


def decode_integer(low: int, high: float = math.inf) -> Callable[[Any], int]:
    """Return a function that accepts integers in a range."""

    def decode(json: Any) -> int:
        if type(json) is not int or not low <= json <= high:
            raise NotPlainError(f"is not an integer from {low} up")
        return json

    return decode


def decode_flag(json: Any) -> bool:
    """Accept a truth value."""
    if type(json) is not bool:
        raise NotPlainError("is neither true nor false")
    return json


def decode_labels(json: Any) -> NDArray[Any]:
    """Accept ascending labels of one type."""
    labels = values.decode_array(json)
    kinds = {type(label) for label in labels.tolist()}
    if len(labels) == 0 or len(kinds) > 1:
        raise NotPlainError("is not a list of labels of one type")
    if not np.all(labels[:-1] < labels[1:]):
        raise NotPlainError("is not ascending")
    return labels


def decode_names(json: Any) -> NDArray[Any]:
    """Accept names of columns."""
    names = values.decode_array(json)
    if names.dtype != object or not all(type(name) is str for name in names):
        raise NotPlainError("is not a list of names")
    return names


CLASSES = Attribute("classes_", values.encode_array, decode_labels)
OF_COLUMNS = (
    Attribute("n_features_in_", int, decode_integer(1)),
    Attribute("feature_names_in_", values.encode_array, decode_names, is_always_there=False),
    Attribute("columns_", encode_columns, decode_columns, is_always_there=False),
)
