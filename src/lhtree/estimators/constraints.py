"""Monotone and interaction constraints: from columns of X to those that trees see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from numbers import Integral
from typing import Any, NoReturn

import numpy as np

from lhtree.arrays import Ints
from lhtree.data.reading import name_features

Groups = tuple[tuple[int, ...], ...]
KINDS = ("pairwise", "no_interactions")
MOST_PAIRS = 2**20


def resolve_constraints(estimator: Any, params: Any) -> tuple[tuple[int, ...], Groups]:
    """Return the trend of each column that trees see, and the groups of these columns.

    Either is empty without constraints.
    """
    names, source = name_features(estimator), estimator.columns_.list_sources()
    is_named = hasattr(estimator, "feature_names_in_")
    trends = resolve_trends(params.monotonic_cst, names, source, is_named=is_named)
    n_codes = estimator.columns_.count_codes()
    for k in np.flatnonzero(np.array(trends, dtype=bool) & (n_codes > 0)[: len(trends)]):
        raise ValueError(
            f"monotonic_cst has {trends[k]} for {names[source[k]]!r}, a column of categories, "
            "which have no order; give 0 for it, or turn it into numbers."
        )
    return trends, resolve_groups(params.interaction_cst, names, source)


def check_single_output(trends: tuple[int, ...], n_outputs: int) -> None:
    """Refuse trends for more than one score per row."""
    if any(trends) and n_outputs > 1:
        raise ValueError(
            "monotonic_cst needs two classes, or numbers with one prediction per row, got "
            f"{n_outputs} scores per row; leave it None, or fit one model for each of them."
        )


# ---- monotone -------------------------------------------------------------------------


def resolve_trends(
    given: Any, names: Sequence[str], source: Ints, *, is_named: bool
) -> tuple[int, ...]:
    """Return -1, 0 or 1 for each column that trees see; nothing if all are 0."""
    if given is None:
        return ()
    if isinstance(given, Mapping):
        chosen = _read_mapping(given, names, is_named=is_named)
    else:
        chosen = _read_list(given, len(names))
    trends = tuple(chosen.get(j, 0) for j in source.tolist())
    return trends if any(trends) else ()


def _read_mapping(given: Mapping[Any, Any], names: Sequence[str], *, is_named: bool) -> Any:
    if not is_named:
        raise ValueError(
            "monotonic_cst is a dict, but the columns of X have no names; give a list with one "
            "entry per column, or a frame."
        )
    position = {name: j for j, name in enumerate(names)}
    for name, value in given.items():
        if name not in position:
            raise ValueError(
                f"monotonic_cst has the key {name!r}, which is not a column of X; its columns "
                f"are {_shorten(list(names))}."
            )
        _check_trend(value, f" for {name!r}")
    return {position[name]: int(value) for name, value in given.items()}


def _read_list(given: Any, n_features: int) -> dict[int, int]:
    values = given if isinstance(given, str) else _to_list(given)
    if isinstance(values, str) or values is None:
        raise ValueError(
            "monotonic_cst must be None, a list of -1, 0 and 1 with one entry per column, or a "
            f"dict of these by the names of columns, got {given!r}."
        )
    if len(values) != n_features:
        raise ValueError(
            f"monotonic_cst must have one entry for each of the {n_features} columns of X, got "
            f"{len(values)}; give 0 for a column that may do what it wants."
        )
    for j, value in enumerate(values):
        _check_trend(value, f" at position {j}")
    return {j: int(value) for j, value in enumerate(values) if value}


def _to_list(given: Any) -> list[Any] | None:
    array = np.asarray(given, dtype=object)
    return array.tolist() if array.ndim == 1 else None


def _check_trend(value: Any, where: str) -> None:
    is_number = isinstance(value, Integral | float | np.floating)
    if not is_number or isinstance(value, bool) or value not in (-1, 0, 1):
        raise ValueError(
            f"monotonic_cst must have 1 (rising), -1 (falling) or 0 (either) only, got "
            f"{value!r}{where}."
        )


# ---- interaction ----------------------------------------------------------------------


def resolve_groups(given: Any, names: Sequence[str], source: Ints) -> Groups:
    """Return groups of the columns that trees see; those in none of them form one more."""
    if given is None:
        return ()
    if isinstance(given, str):
        return _make_groups(given, len(source))
    groups = _read_groups(given, names)
    place = {j: k for k, j in enumerate(source.tolist())}
    placed = [tuple(sorted(place[j] for j in group if j in place)) for group in groups]
    rest = sorted(set(range(len(source))).difference(*placed))
    return tuple(group for group in (*placed, tuple(rest)) if group)


def _make_groups(kind: str, n_columns: int) -> Groups:
    if kind not in KINDS:
        _refuse_groups(kind)
    if kind == "no_interactions" or n_columns < 2:
        return tuple((k,) for k in range(n_columns))
    n_pairs = n_columns * (n_columns - 1) // 2
    if n_pairs > MOST_PAIRS:
        raise ValueError(
            f"interaction_cst='pairwise' takes at most {MOST_PAIRS} pairs of columns, got "
            f"{n_pairs} of {n_columns} columns; give groups of columns, or 'no_interactions'."
        )
    return tuple(combinations(range(n_columns), 2))


def _read_groups(given: Any, names: Sequence[str]) -> list[set[int]]:
    is_list = isinstance(given, Iterable) and not isinstance(given, Mapping)
    if not is_list or (isinstance(given, np.ndarray) and given.ndim == 0):
        _refuse_groups(given)
    groups = []
    for group in _check_lasting(given):
        if not isinstance(group, Iterable) or isinstance(group, str | Mapping):
            _refuse_groups(given)
        groups.append({_look_up(each, names) for each in _check_lasting(group)})
    return groups


def _check_lasting(given: Any) -> Any:
    """Refuse what can be read only once: other fits, and the one from all rows, need it, too."""
    if isinstance(given, Iterator):
        raise ValueError(
            f"interaction_cst has {given!r}, which can be read only once, but every fit must read "
            "it; turn it into a list."
        )
    return given


def _look_up(wanted: Any, names: Sequence[str]) -> int:
    """Return the position of a column given by its name or position."""
    if isinstance(wanted, str) and wanted in names:
        return names.index(wanted)
    is_position = isinstance(wanted, Integral) and not isinstance(wanted, bool)
    if is_position and 0 <= wanted < len(names):
        return int(wanted)
    raise ValueError(
        f"interaction_cst has {wanted!r}, which is not a column of X; give positions from 0 to "
        f"{len(names) - 1}, or names of columns."
    )


def _refuse_groups(given: Any) -> NoReturn:
    raise ValueError(
        "interaction_cst must be None, 'pairwise', 'no_interactions' or a list of sets of "
        f"columns, got {given!r}."
    )


def _shorten(names: list[str], most: int = 20) -> str:
    return str(names) if len(names) <= most else f"{names[:most]} and more"
