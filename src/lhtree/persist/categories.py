"""The columns of a model, with their categories, as plain data and back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from lhtree.data.columns import Category, Columns
from lhtree.persist import values
from lhtree.persist.values import NotPlainError


def encode_columns(columns: Columns) -> dict[str, Any]:
    """Return the columns of a model as JSON."""
    return {
        "n_features": columns.n_features,
        "categories": [
            [each.feature, values.encode(list(each.values)), values.encode(list(each.merged))]
            for each in columns.categories
        ],
        **({} if columns.kept is None else {"kept": list(columns.kept)}),
        **({"has_codes": True} if columns.has_codes else {}),
    }


def decode_columns(json: Any) -> Columns:
    """Return the columns that a file describes; raise NotPlainError if they are not valid."""
    if type(json) is not dict or set(json) - {"kept", "has_codes"} != {"n_features", "categories"}:
        raise NotPlainError("has other keys than columns have")
    n_features = _decode_position(json["n_features"], 1)
    if type(json["categories"]) is not list:
        raise NotPlainError("has no list of categories")
    categories = tuple(_decode_category(each) for each in json["categories"])
    position = [each.feature for each in categories]
    if position != sorted(set(position)) or max(position, default=0) >= n_features:
        raise NotPlainError("has positions of columns that are not ascending")
    has_codes = json.get("has_codes", False)
    if type(has_codes) is not bool:
        raise NotPlainError("does not say whether categories are codes")
    if "kept" not in json:
        return Columns(n_features, categories, has_codes=has_codes)
    if categories:
        raise NotPlainError("has both categories and dropped columns")
    return Columns(n_features, kept=_decode_kept(json["kept"], n_features))


def _decode_kept(json: Any, n_features: int) -> tuple[int, ...]:
    if type(json) is not list or not json:
        raise NotPlainError("has no list of kept columns")
    kept = tuple(_decode_position(each, 0) for each in json)
    if kept[-1] >= n_features or any(a >= b for a, b in pairwise(kept)):
        raise NotPlainError("has kept columns that are not ascending")
    return kept


def _decode_category(json: Any) -> Category:
    if type(json) is not list or len(json) != 3:
        raise NotPlainError("has a category that does not have three parts")
    feature = _decode_position(json[0], 0)
    own, merged = (values.decode(part) for part in json[1:])
    if type(own) is not list or type(merged) is not list:
        raise NotPlainError("has a category that is not a list")
    if not all(type(value) in (str, int, float, bool) for value in own + merged):
        raise NotPlainError("has a category that is neither text nor number")
    if len(set(own + merged)) != len(own + merged):
        raise NotPlainError("has a category twice")
    return Category(feature, tuple(own), tuple(merged))


def _decode_position(json: Any, low: int) -> int:
    if type(json) is not int or json < low:
        raise NotPlainError(f"has a number that is not an integer from {low} up")
    return json
