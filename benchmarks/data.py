"""Tables that the measurements run on: the paper's data sets, and synthetic ones.

A data set is looked for in the folder that ``LHTREE_DATA`` names, as ``<name>.parquet``,
then in the cache of downloads, and then at its public origin. What cannot be had raises
:class:`Absent`, and the measurement is skipped with a message.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.model_selection import train_test_split

from benchmarks import origins
from benchmarks.datasets import ALL, DataSet
from benchmarks.download import DownloadError, fetch

# Ordered categories become ranks where the paper counts one column per attribute.
ORDERS = (
    ("no", "yes"),
    ("low", "med", "high", "vhigh"),
    ("small", "med", "big"),
    ("2", "3", "4", "5more"),
    ("2", "4", "more"),
)
FILES = {"connect4": "connect4_onehot"}  # one column per value: 126, as in the paper


BUILT_IN = ("balance_scale", "wine", "wdbc", "digits")


class Absent(Exception):
    """The data set is not to be had here."""


class Rows(NamedTuple):
    """A data set as numbers: missing values are NaN, classes are numbered."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    is_train: NDArray[np.bool_] | None  # the predefined split, where there is one


class Table(NamedTuple):
    """Rows to train on and rows to answer."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


def split(X: NDArray[Any], y: NDArray[Any], test_size: float = 0.2, seed: int = 0) -> Table:
    """Return a stratified random split."""
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=test_size, stratify=y, random_state=seed
    )
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


def rank_words(words: NDArray[Any]) -> NDArray[np.float64]:
    """Return the ranks of ordered categories."""
    present = set(words.tolist())
    order = next((order for order in ORDERS if present <= set(order)), None)
    if order is None:
        raise ValueError(f"No order is known for the categories {sorted(present)}.")
    rank = {word: float(i) for i, word in enumerate(order)}
    return np.array([rank[word] for word in words.tolist()])


def encode_frame(frame: Any) -> Rows:
    """Return a frame of features, ``target`` and perhaps ``split`` as numbers."""
    frame = frame.copy()
    y = np.unique(frame.pop("target").to_numpy(), return_inverse=True)[1].astype(np.int64)
    is_train = (frame.pop("split") == "train").to_numpy() if "split" in frame else None
    X = np.empty(frame.shape)
    for j, name in enumerate(frame):
        values = frame[name].to_numpy()
        is_number = np.issubdtype(values.dtype, np.number)
        X[:, j] = values if is_number else rank_words(values.astype(str))
    return Rows(X, y, is_train)


def compute_checksum(rows: Rows) -> str:
    """Return a digest of the rows, whatever their order and the file that they came from."""
    is_train = np.ones(len(rows.y)) if rows.is_train is None else rows.is_train
    table = np.column_stack([is_train, rows.y, rows.X]).astype("<f8") + 0.0  # -0 is 0
    table[np.isnan(table)] = np.nan  # of all the NaNs, one
    table = table[np.lexsort(table.T[::-1])]
    return hashlib.sha256(np.ascontiguousarray(table).tobytes()).hexdigest()[:16]


def check_rows(dataset: DataSet, rows: Rows) -> None:
    """Refuse rows that are not those of the data set."""
    shape = (*rows.X.shape, int(rows.y.max()) + 1)
    if shape != (dataset.n, dataset.m, dataset.k):
        raise ValueError(
            f"{dataset.name} has rows, columns and classes {shape} instead of "
            f"{(dataset.n, dataset.m, dataset.k)}: fetch it again."
        )
    counts = tuple(np.bincount(rows.y).tolist())
    if dataset.counts and counts != dataset.counts:
        raise ValueError(
            f"{dataset.name} has class counts {counts} instead of {dataset.counts}: "
            "fetch it again."
        )
    if dataset.checksum and compute_checksum(rows) != dataset.checksum:
        raise ValueError(f"The values of {dataset.name} fail its checksum: fetch it again.")


def make_rows(name: str) -> Rows | None:
    """Return a data set that needs no file: one of scikit-learn's, or one that is a rule."""
    if name == "balance_scale":  # the side with more weight times distance goes down
        X = np.array(list(itertools.product(range(1, 6), repeat=4)), dtype=np.float64)
        torque = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
        return Rows(X, np.select([torque == 0, torque > 0], [0, 1], 2).astype(np.int64), None)
    loaders = {"wine": load_wine, "wdbc": load_breast_cancer, "digits": load_digits}
    if name not in loaders:
        return None
    X, y = loaders[name](return_X_y=True)
    return Rows(X, (1 - y if name == "wdbc" else y).astype(np.int64), None)  # B before M


def get_cache() -> Path:
    """Return the folder of downloads: LHTREE_CACHE, or one in the user's cache."""
    return Path(os.environ.get("LHTREE_CACHE") or Path.home() / ".cache" / "lhtree")


def find_file(name: str, folder: Path | None) -> Path | None:
    """Return the Parquet file of a data set: in `folder`, LHTREE_DATA or the cache."""
    given = folder or os.environ.get("LHTREE_DATA")
    paths = [Path(given) / f"{FILES.get(name, name)}.parquet"] if given else []
    paths.append(get_cache() / f"{name}.parquet")
    return next((path for path in paths if path.exists()), None)


def download(name: str, origin: origins.Origin | None = None) -> Path:
    """Fetch a data set from its origin into the cache; return its Parquet file there."""
    origin = origin or origins.ORIGINS[name]
    cache = get_cache()
    paths = [cache / "origin" / name / file for file in origins.name_files(origin)]
    try:
        for url, path in zip(origin.urls, paths, strict=True):
            if not path.exists():
                fetch(url, path)
        try:
            frame = origins.parse(origin, paths, ALL[name].m)
            check_rows(ALL[name], encode_frame(frame))
        except Exception as error:  # a parser may stumble over anything that is no such file
            for path in paths:
                path.unlink(missing_ok=True)
            raise Absent(f"{name}: what {origin.urls[0]} sent is not it: {error}") from error
        whole = cache / f"{name}.parquet"
        part = whole.with_suffix(".part")
        frame.to_parquet(part)
        part.replace(whole)
    except (DownloadError, OSError) as error:
        raise Absent(f"{name}: data not available: {error}") from error
    for path in paths:
        path.unlink(missing_ok=True)
    return whole


def ensure(name: str, folder: Path | None = None, *, may_download: bool = True) -> None:
    """See to it that `read_rows` finds a data set; raise `Absent` if it cannot be had."""
    if find_file(name, folder) or name in BUILT_IN:
        return
    if not may_download:
        raise Absent(f"{name}: set LHTREE_DATA to a folder that holds {FILES.get(name, name)}")
    download(name)


def read_rows(name: str, folder: Path | None = None) -> Rows:
    """Return a data set from a file that `ensure` sees, or from what needs no file."""
    if name not in ALL:
        raise ValueError(f"No data set is called {name!r}; there are {', '.join(ALL)}.")
    path = find_file(name, folder)
    if path is not None:
        import pandas as pd  # only here: the synthetic tables need no pandas

        rows: Rows | None = encode_frame(pd.read_parquet(path))
    else:
        rows = make_rows(name)
    if rows is None:
        raise Absent(f"{name}: set LHTREE_DATA to a folder that holds {FILES.get(name, name)}")
    check_rows(ALL[name], rows)
    return rows


def split_rows(rows: Rows, seed: int) -> Table:
    """Return the predefined split, or the stratified 80/20 split of a seed.

    Missing values become the medians of the training rows.
    """
    if rows.is_train is None:
        table = split(rows.X, rows.y, seed=seed)
    else:
        mask = rows.is_train
        table = Table(rows.X[mask], rows.y[mask], rows.X[~mask], rows.y[~mask])
    if np.isnan(rows.X).any():
        median = np.nanmedian(table.X, axis=0)
        for X in (table.X, table.X_test):
            np.copyto(X, median, where=np.isnan(X))
    return table


def load(name: str) -> Table:
    """Return a table by name: ``synth50k`` or one of the paper's, split 0."""
    if name == "synth50k":
        return make_synthetic()
    return split_rows(read_rows({"connect4_onehot": "connect4"}.get(name, name)), 0)
