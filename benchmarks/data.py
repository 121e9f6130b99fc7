"""Tables that the measurements run on.

The paper's data sets are read from the folder that ``LHTREE_DATA`` names; what is
absent raises :class:`Absent`, and the measurement is skipped with a message.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split


class Absent(Exception):
    """The data set is not to be had here."""


class Table(NamedTuple):
    """Rows to train on and rows to answer."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


def split(X: NDArray[Any], y: NDArray[Any], test_size: float = 0.2) -> Table:
    """Return a stratified random split."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=test_size, stratify=y, random_state=0)
    return Table(X, y, X_test, y_test)


def make_synthetic(n_rows: int = 50_000, n_columns: int = 50) -> Table:
    """Return five classes of two clusters each in twenty informative columns."""
    X, y = make_classification(
        n_rows,
        n_columns,
        n_informative=20,
        n_redundant=0,
        n_classes=5,
        n_clusters_per_class=2,
        flip_y=0.01,
        random_state=0,
    )
    return split(X, y)


def read_parquet(name: str) -> Table:
    """Return one of the paper's data sets, with its own split where it has one."""
    import pandas as pd  # only here: the synthetic tables need no pandas

    folder = os.environ.get("LHTREE_DATA")
    if not folder:
        raise Absent(f"{name}: set LHTREE_DATA to the folder of the data sets")
    path = Path(folder) / f"{name}.parquet"
    if not path.exists():
        raise Absent(f"{name}: {path.name} is not in the folder that LHTREE_DATA names")
    table = pd.read_parquet(path)
    y = np.unique(table.pop("target"), return_inverse=True)[1].astype(np.int64)
    if "split" not in table:
        return split(table.to_numpy(np.float64), y)
    is_train = (table.pop("split") == "train").to_numpy()
    X = table.to_numpy(np.float64)
    return Table(X[is_train], y[is_train], X[~is_train], y[~is_train])


def load(name: str) -> Table:
    """Return a table by name: ``synth50k`` or one of the paper's."""
    return make_synthetic() if name == "synth50k" else read_parquet(name)
