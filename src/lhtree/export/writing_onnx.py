"""What the ONNX graphs of all models share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lhtree.export.graph import Graph, Name

NUMBERS_PER_BLOCK = 2**18  # that a step gathers; bounds the memory, and fits into a cache
# Types of labels that are not integers, by the kind of their NumPy type.
LABEL_TYPES = {"U": "STRING", "O": "STRING", "b": "BOOL", "f": "DOUBLE"}


def split_blocks(
    graph: Graph, rows: Name, n_rows: Name, width: int, most_rows: int
) -> tuple[Name, Name]:
    """Return the rows as equal blocks, padded with rows of zeros, and their number."""
    one = graph.integers(1)

    def divide_up(a: Name, b: Name) -> Name:
        return graph.add("Div", graph.add("Sub", graph.add("Add", a, b), one), b)

    n_blocks = graph.add("Max", divide_up(n_rows, graph.integers(most_rows)), one)
    size = graph.add("Max", divide_up(n_rows, n_blocks), one)  # without rows, one of zeros
    n_more = graph.add("Sub", graph.add("Mul", n_blocks, size), n_rows)
    zero = graph.integers(0)
    pads = graph.add("Concat", zero, zero, n_more, zero, axis=0)
    padded = graph.add("Pad", rows, pads)
    shape = graph.add("Concat", n_blocks, size, graph.integers(width), axis=0)
    blocks = graph.add("Reshape", padded, shape)
    return blocks, graph.add("Squeeze", n_blocks, zero)


def normalize(graph: Graph, score: Name) -> Name:
    """Divide scores by the sum of their row."""
    total = graph.add("ReduceSum", score, graph.integers(1))
    return graph.add("Div", score, total)


def add_labels(graph: Graph, classes: NDArray[Any]) -> Name:
    """Return the name of the labels."""
    if classes.dtype.kind in "UO":
        return graph.constant(classes.astype(object), object)
    kinds = {"b": np.bool_, "f": np.float64}
    return graph.constant(classes, kinds.get(classes.dtype.kind, np.int64))


def choose_label_type(classes: NDArray[Any]) -> str:
    """Return the name of the type of the labels."""
    return LABEL_TYPES.get(classes.dtype.kind, "INT64")
