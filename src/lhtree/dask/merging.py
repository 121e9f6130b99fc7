"""The results of passes, and how they merge: in one order, wherever the partitions are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats


class Mergeable(Protocol):
    """The result of a pass over a partition."""

    def merged(self, later: Self) -> Self:
        """Return the merged result; `later` comes from the partitions behind."""

    @property
    def n_bytes(self) -> int:
        """Size of the message that carries it."""


T = TypeVar("T", bound=Mergeable)


class Sums(NamedTuple):
    """Numbers that merge by addition, and others that merge by the maximum."""

    sum: Floats
    end: Floats

    def merged(self, later: Sums) -> Sums:
        """Return the merged result."""
        return Sums(self.sum + later.sum, np.maximum(self.end, later.end))

    @property
    def n_bytes(self) -> int:
        """Size of the message that carries it."""
        return self.sum.nbytes + self.end.nbytes


class Listed(NamedTuple):
    """Single projections near the cut of a node, one for each row."""

    hyperplane: NDArray[np.int32]
    score: Floats
    is_positive: NDArray[np.uint8]
    weight: Floats  # empty where every row counts once

    def merged(self, later: Listed) -> Listed:
        """Return the merged result."""
        arrays: Any = zip(self, later, strict=True)
        return Listed(*map(np.concatenate, arrays))

    @property
    def n_bytes(self) -> int:
        """Size of the message that carries it."""
        return sum(array.nbytes for array in self)


class Runs(NamedTuple, Generic[T]):
    """Merged results of runs of neighbouring partitions.

    Run (height, number) is that of the partitions from ``number * 2**height`` on, as many
    as ``2**height`` where there are so many. Two runs that fill the one above merge at once,
    and no others do: so additions have one order, whichever worker makes them.
    """

    parts: dict[tuple[int, int], T]
    n_sent: int = 0  # bytes that tasks have sent to others so far

    @property
    def n_bytes(self) -> int:
        """Size of the message that carries it."""
        return sum(part.n_bytes for part in self.parts.values())


def _add_run(
    parts: dict[tuple[int, int], T], position: tuple[int, int], part: T, n_partitions: int
) -> None:
    height, number = position
    while (width := -(-n_partitions >> height)) > 1:
        if number % 2 == 1 or number + 1 < width:  # the last may be without a neighbour
            other = parts.pop((height, number ^ 1), None)
            if other is None:
                break
            part = other.merged(part) if number % 2 else part.merged(other)
        height, number = height + 1, number // 2
    parts[height, number] = part


def collect_runs(numbers: Sequence[int], parts: Iterable[T], n_partitions: int) -> Runs[T]:
    """Merge the results of one worker's partitions, as far as they are neighbours."""
    found: dict[tuple[int, int], T] = {}
    for number, part in zip(numbers, parts, strict=True):
        _add_run(found, (0, number), part, n_partitions)
    return Runs(found)


def merge_runs(several: Sequence[Runs[T]], n_partitions: int) -> Runs[T]:
    """Merge the runs of several workers."""
    found: dict[tuple[int, int], T] = {}
    for runs in several:
        for position, part in runs.parts.items():
            _add_run(found, position, part, n_partitions)
    return Runs(found, sum(runs.n_sent + runs.n_bytes for runs in several))
