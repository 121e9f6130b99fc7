"""Plain values as JSON: what parameters, labels and names may be.

JSON has no tuples, no sets, no keys but strings, no infinities and no arrays. Such a value is
an object with one key that names its kind: ``{"tuple": [...]}``. Numbers and strings
stay as they are. A list without a tag never occurs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
DTYPES = {
    np.dtype(kind).name: np.dtype(kind)
    for kind in (*INTEGERS, np.bool_, np.float16, np.float32, np.float64, np.object_)
}
LARGEST_INTEGER = 2**64
MOST_LEVELS = 8  # of values in values
PLAIN_TYPES = (str, int, float, bool)


class NotPlainError(ValueError):
    """A value that a file cannot hold; the message ends the sentence "it ..."."""


def encode(value: Any, level: int = 0) -> Any:
    """Return a value as JSON; raise NotPlainError for what is not plain data."""
    if isinstance(value, np.bool_ | np.integer | np.floating | np.str_):
        value = value.item()
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        if abs(value) >= LARGEST_INTEGER:
            raise NotPlainError("is an integer of more than 64 bits")
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.random.RandomState):
        return {"random_state": _encode_generator(value)}
    if level == MOST_LEVELS:
        raise NotPlainError(f"is nested more than {MOST_LEVELS} levels deep")
    if kind in (list, tuple):
        return {kind.__name__: [encode(part, level + 1) for part in value]}
    if kind in (set, frozenset):
        return {kind.__name__: _encode_set(value)}
    if kind is dict:
        pairs = [[encode(k, level + 1), encode(v, level + 1)] for k, v in value.items()]
        return {"dict": pairs}
    if isinstance(value, np.ndarray):
        return {"array": encode_array(value)}
    what = "is code, not data" if callable(value) else f"has the type {kind.__name__}"
    raise NotPlainError(what)


def decode(json: Any, level: int = 0) -> Any:
    """Return the value that JSON stands for; raise NotPlainError if it is not valid."""
    if json is None or type(json) in PLAIN_TYPES:
        return json
    if type(json) is not dict or len(json) != 1 or level > MOST_LEVELS:
        raise NotPlainError("is not a tagged value")
    [(kind, content)] = json.items()
    if kind == "float" and content in ("nan", "inf", "-inf"):
        return float(content)
    if kind == "random_state":
        return _decode_generator(content)
    if kind == "array":
        return decode_array(content)
    if kind in ("list", "tuple", "set", "frozenset", "dict") and type(content) is list:
        if kind == "dict":
            return _decode_dict(content, level)
        parts = [decode(part, level + 1) for part in content]
        if kind in ("set", "frozenset"):
            return _to_set(kind, parts)
        return parts if kind == "list" else tuple(parts)
    raise NotPlainError("is not a tagged value")


def _encode_set(values: Any) -> list[Any]:
    parts = [encode(value) for value in sorted(values, key=repr)]
    _check_set(parts)
    return parts


def _check_set(parts: list[Any]) -> None:
    if not all(part is None or type(part) in PLAIN_TYPES for part in parts):
        raise NotPlainError("has a set of values that are not plain")


def _to_set(kind: str, parts: list[Any]) -> set[Any] | frozenset[Any]:
    _check_set(parts)
    return set(parts) if kind == "set" else frozenset(parts)


def _decode_dict(pairs: list[Any], level: int) -> dict[Any, Any]:
    if not all(type(pair) is list and len(pair) == 2 for pair in pairs):
        raise NotPlainError("has a dict that is not a list of pairs")
    keys = [decode(key, level + 1) for key, _ in pairs]
    if not all(key is None or type(key) in PLAIN_TYPES for key in keys):
        raise NotPlainError("has a key that is not a plain value")
    return {key: decode(pair[1], level + 1) for key, pair in zip(keys, pairs, strict=True)}


def encode_array(array: NDArray[Any]) -> dict[str, Any]:
    """Return a vector of labels as JSON: strings, integers, floats or truth values."""
    if array.ndim != 1:
        raise NotPlainError(f"is an array of {array.ndim} dimensions")
    values = array.tolist()
    kinds = {type(value) for value in values}
    if array.dtype.kind == "U":
        width = array.dtype.itemsize // 4
        if width * len(values) > _most_characters(values):
            width = max(map(len, values))
        if width * len(values) > _most_characters(values):
            raise NotPlainError("has strings of too different lengths for an array of them")
        return {"dtype": "str", "width": width, "values": values}
    if array.dtype.name not in DTYPES:
        raise NotPlainError(f"has the type {array.dtype}")
    if not kinds <= set(PLAIN_TYPES):
        names = ", ".join(sorted(kind.__name__ for kind in kinds - set(PLAIN_TYPES)))
        raise NotPlainError(f"has values of the type {names}")
    if not all(math.isfinite(value) for value in values if type(value) is float):
        raise NotPlainError("has values that are not finite")
    if any(abs(value) >= LARGEST_INTEGER for value in values if type(value) is int):
        raise NotPlainError("has integers of more than 64 bits")
    return {"dtype": array.dtype.name, "values": values}


def decode_array(json: Any) -> NDArray[Any]:
    """Return the vector that JSON stands for."""
    if type(json) is not dict or type(json.get("values")) is not list:
        raise NotPlainError("is not an array")
    values = json["values"]
    kinds = {type(value) for value in values}
    if json.get("dtype") == "str" and set(json) == {"dtype", "width", "values"}:
        width = json["width"]
        if type(width) is not int or not kinds <= {str}:
            raise NotPlainError("is not an array of strings")
        longest = max(map(len, values), default=0)
        if not max(longest, 1) <= width or width * len(values) > _most_characters(values):
            raise NotPlainError(f"has strings of an impossible width, {width}")
        return np.array(values, dtype=f"<U{width}").astype(f"=U{width}", copy=False)
    if set(json) != {"dtype", "values"} or json["dtype"] not in DTYPES:
        raise NotPlainError("is an array of an unknown type")
    dtype = DTYPES[json["dtype"]]
    by_kind: dict[str, set[type]] = {"b": {bool}, "f": {float}, "O": set(PLAIN_TYPES)}
    wanted = by_kind.get(dtype.kind, {int})
    if not kinds <= wanted:
        raise NotPlainError(f"has values that are not {dtype}")
    return _to_array(values, dtype)


def _to_array(values: list[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    try:
        with np.errstate(over="raise"):
            array = np.array(values, dtype=dtype)
    except (OverflowError, FloatingPointError) as error:
        raise NotPlainError(f"has values beyond {dtype}") from error
    if array.tolist() != values:
        raise NotPlainError(f"has values that {dtype} cannot hold")
    return array


def _most_characters(values: list[str]) -> int:
    """Return how many characters an array of strings may take: padding costs memory."""
    return 2**18 + 16 * sum(map(len, values))


def _encode_generator(generator: np.random.RandomState) -> dict[str, Any]:
    state = generator.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise NotPlainError(f"draws from {state['bit_generator']}, not from MT19937")
    return {
        "key": state["state"]["key"].tolist(),
        "position": int(state["state"]["pos"]),
        "gauss": [int(state["has_gauss"]), float(state["gauss"])],
    }


def _decode_generator(json: Any) -> np.random.RandomState:
    try:
        key = np.array(json["key"], dtype=np.uint32)
        position, (has_gauss, gauss) = json["position"], json["gauss"]
        if key.shape != (624,) or not 0 <= position <= 624 or has_gauss not in (0, 1):
            raise NotPlainError("is not the state of a generator")
        generator = np.random.RandomState(0)
        generator.set_state(("MT19937", key, int(position), int(has_gauss), float(gauss)))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise NotPlainError("is not the state of a generator") from error
    return generator
