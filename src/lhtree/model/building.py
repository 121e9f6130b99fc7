"""Forests from the arrays of grown trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Arrays, Scale
from lhtree.model.forest import Forest
from lhtree.model.packing import complete


def finish_forest(grown: Arrays, scale: Scale) -> Forest:
    """Return the forest of trees that have grown.

    Growing nodes take half the memory of finished ones, which leaves room for the training
    rows; those should be freed by now.

    Parameters
    ----------
    grown : dict of ndarrays
        What the core returns; the call consumes it.
    scale : tuple of two ndarrays of shape (n_features,)
        Mean and standard deviation of the columns: the units of the trees.
    """
    mean, std = scale
    complete(grown, grown["threshold_kind"] > 0, len(mean))
    return Forest.from_arrays({**grown, "column_mean": mean, "column_std": std})


def join_forests(forests: Sequence[Forest]) -> Forest:
    """Return one forest with the trees of several forests in the same units."""
    offset_of = {"tree_start": "left", "start": "weight", "feature_start": "feature"}
    arrays: dict[str, NDArray[Any]] = {}
    for field in fields(Forest):
        parts = [getattr(forest, field.name) for forest in forests]
        if field.name.startswith("column_"):
            arrays[field.name] = parts[0]
        elif field.name in offset_of:
            sizes = [len(getattr(forest, offset_of[field.name])) for forest in forests]
            shifts = np.cumsum([0, *sizes[:-1]])
            shifted = [part[1:] + shift for part, shift in zip(parts, shifts, strict=True)]
            arrays[field.name] = np.concatenate([parts[0][:1], *shifted])
        else:
            arrays[field.name] = np.concatenate(parts)
    return Forest.from_arrays(arrays)
