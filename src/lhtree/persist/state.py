"""The model as plain data, and back.

Whatever `fit` sets must be among the attributes that `forests.py`, `averaging.py` and
`boosting.py` list (or in `forest_`): saving refuses a model with anything else, so that
nothing is lost silently.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from lhtree.arrays import Arrays
from lhtree.data.columns import Columns
from lhtree.estimators.base import TreeEstimator
from lhtree.model.link import is_exact
from lhtree.persist import averaging, boosting, forests, values
from lhtree.persist.attributes import Attribute
from lhtree.persist.family import Family
from lhtree.persist.values import NotPlainError

FORMAT = 2  # raised when older versions could not read what is written
FAMILIES = (
    forests.FORESTS,
    averaging.CLASS_FORESTS,
    averaging.NUMBER_FORESTS,
    boosting.CLASSIFIERS,
    boosting.REGRESSORS,
)
CLASSES = {kind.__name__: kind for family in FAMILIES for kind in family.classes}
# What scikit-learn keeps for the process in which it trains.
NOT_SAVED = {"_metadata_request", "_skl_callbacks"}


def describe(model: TreeEstimator) -> tuple[dict[str, Any], Arrays]:
    """Return a fitted model as JSON and arrays; raise a ValueError if it has more than that."""
    family, state = _get_family(model), vars(model)
    arrays = family.pack(model.forest_)
    for own in family.parts:
        if own.name in state:
            arrays |= own.pack(state[own.name])
    fitted: dict[str, Any] = {
        scalar.name: scalar.encode(getattr(model.forest_, scalar.name))
        for scalar in family.scalars
    }
    for attribute in family.attributes:
        if attribute.name in state:
            part = arrays if attribute.is_array else fitted
            part[attribute.name] = _name_errors(
                attribute.encode, state[attribute.name], attribute.name
            )
    if model.columns_ == Columns(model.n_features_in_):  # they follow from n_features_in_
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
        *names, last = CLASSES
        raise TypeError(
            f"model must be a fitted {', '.join(names)} or {last}, got "
            f"{type(model).__name__}{remedy}."
        )
    if "forest_" not in vars(model):
        raise ValueError(f"model must be fitted before it is saved: call {model}.fit first.")
    attributes = _get_family(model).attributes
    parts = {part.name for part in _get_family(model).parts}
    known = {attribute.name for attribute in attributes} | parts | NOT_SAVED | {"forest_"}
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
    family = _choose_family(kind, is_exact="power" in parts["fitted"])
    model = kind(**_decode_parameters(kind, parts["parameters"]))
    family.read_parameters(model)
    fitted, arrays = parts["fitted"], dict(arrays)
    in_json = [each.name for each in family.attributes if not each.is_array]
    if unknown := sorted(set(fitted) - {*in_json, *(scalar.name for scalar in family.scalars)}):
        raise ValueError(f"it has the unknown attribute {unknown[0][:40]!r}")
    scalars = {scalar.name: _take(scalar, fitted) for scalar in family.scalars}
    state: dict[str, Any] = {"forest_": family.unpack(arrays, **scalars)}
    for attribute in family.attributes:
        part = arrays if attribute.is_array else fitted
        if attribute.name in part or attribute.is_always_there:
            state[attribute.name] = _take(attribute, part)
    for own in family.parts:
        found = own.unpack(arrays)
        if found is not None:
            state[own.name] = found
        elif own.is_always_there:
            raise ValueError(f"its attribute {own.name!r} is missing")
    if arrays:
        raise ValueError(f"it has the unknown array {min(arrays)[:40]!r}")
    state.setdefault("columns_", Columns(state["n_features_in_"]))
    for is_valid, message in family.list_checks(state):
        if not is_valid:
            raise ValueError(message)
    for name, value in state.items():
        setattr(model, name, value)
    return model


def check_parameters(model: TreeEstimator) -> None:
    """Refuse parameters with which the model could not be fitted."""
    _get_family(model).read_parameters(model)


def _get_family(model: TreeEstimator) -> Family:
    return _choose_family(type(model), is_exact=is_exact(model))


def _choose_family(kind: type[TreeEstimator], *, is_exact: bool) -> Family:
    """Return the family of a class; forests of classes have one for each kind of trees."""
    families = [family for family in FAMILIES if kind in family.classes]
    return next((family for family in families if bool(family.scalars) == is_exact), families[-1])


def _take(attribute: Attribute, part: dict[str, Any]) -> Any:
    """Take the value of an attribute out of a part of the file."""
    if attribute.name not in part:
        raise ValueError(f"its attribute {attribute.name!r} is missing")
    return _name_errors(attribute.decode, part.pop(attribute.name), attribute.name)


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
