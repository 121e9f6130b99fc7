"""What the file must know of each family of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lhtree.arrays import Arrays
from lhtree.estimators.base import TreeEstimator
from lhtree.persist.attributes import Attribute

Check = tuple[bool, str]  # whether it holds, and what is wrong if not


class Part(NamedTuple):
    """An object that a fit leaves behind, beside `forest_`, as arrays of a file.

    `unpack` takes its arrays out of those of the file.
    """

    name: str
    pack: Callable[[Any], Arrays]
    unpack: Callable[[Arrays], Any]
    is_always_there: bool = True


class Family(NamedTuple):
    """Models with the same attributes.

    `pack` returns the arrays of `forest_`; `unpack` takes them out of those of a file, with
    the values of `scalars` as further arguments. `list_checks` looks at all attributes
    together; each check may rely on those before it.
    """

    classes: tuple[type[TreeEstimator], ...]
    attributes: tuple[Attribute, ...]
    read_parameters: Callable[[TreeEstimator], object]  # raises if they are not valid
    pack: Callable[[Any], Arrays]
    unpack: Callable[..., Any]
    list_checks: Callable[[dict[str, Any]], Iterator[Check]]
    scalars: tuple[Attribute, ...] = ()  # of `forest_`
    parts: tuple[Part, ...] = ()


def check_columns(state: dict[str, Any]) -> Iterator[Check]:
    """Yield whether names, columns and trees have the same number of columns."""
    n_features, columns, n_columns = (
        state["n_features_in_"], state["columns_"], state["forest_"].n_features,
    )  # fmt: skip
    yield columns.n_features == n_features, "its columns_ have another number of features"
    # Checked before the columns are listed: a file may claim any number of them.
    is_narrow = columns.kept is None and n_features > n_columns
    yield not is_narrow, "its trees have another number of columns"
    n_listed = len(columns.list_sources())
    yield n_listed == n_columns, "its trees have another number of columns"
    names = state.get("feature_names_in_")
    yield names is None or len(names) == n_features, "it has too few or too many names"
