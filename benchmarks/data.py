"""Tables that the benchmarks run on: the paper's data sets, others beside them, synthetic ones.

``datasets.toml`` says what a data set of the paper is and where it comes from. It is looked for
in the folder that ``LHTREE_DATA`` names, as ``<name>.parquet``, then in the cache of downloads,
and then at its public origin: delimited text, ARFF or LIBSVM files, which become a frame of
features, ``target`` and, where the origin has a test part, ``split``. One that cannot be found
raises :class:`Absent`, and its measurements are skipped with a message.

The folders ``regression`` and ``frames`` beside the data sets have tables as people have them:
numbers to predict, and columns of text. Of each kind, sorted by name, every other table may be
used to choose defaults by, the rest are there to judge by.
"""

from __future__ import annotations

import bz2
import hashlib
import http.client
import io
import itertools
import os
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_wine,
    make_classification,
    make_gaussian_quantiles,
)
from sklearn.model_selection import train_test_split
from tqdm import tqdm

Labelled = tuple[NDArray[np.float64], NDArray[np.int64]]

# Ordered categories become ranks where the paper counts one column per attribute.
ORDERS = (
    ("no", "yes"),
    ("low", "med", "high", "vhigh"),
    ("small", "med", "big"),
    ("2", "3", "4", "5more"),
    ("2", "4", "more"),
)
FILES = {"connect4": "connect4_onehot"}  # one column per value: 126, as in the paper
ALIASES = {file: name for name, file in FILES.items()}
BUILT_IN = ("balance_scale", "wine", "wdbc", "digits")


class Absent(Exception):
    """The data set cannot be found here."""


class Origin(NamedTuple):
    """Files of a data set: one, or the training part and the test part."""

    urls: tuple[str, ...]
    kind: str = "text"  # or "arff", "libsvm"
    sep: str = ","  # a regular expression
    skip: int = 0  # lines before the first row
    target: int = -1  # its column
    drop: tuple[int, ...] = ()  # columns that are not features
    labels: tuple[str, ...] = ()  # names of the classes 1, 2, ...
    files: tuple[str, ...] = ()  # files of an archive: how their names end
    encoding: str = "utf-8"
    decimal: str = "."
    high: int = 0  # undo a scaling of 0..high to [-1, 1]


class DataSet(NamedTuple):
    """What a data set must be; without a checksum no complete copy could be reached."""

    name: str
    n_rows: int
    n_columns: int
    n_classes: int
    n_train: int | None = None  # rows of the predefined training part
    checksum: str = ""
    origin: Origin | None = None


class Rows(NamedTuple):
    """A data set as numbers: missing values are NaN, classes are numbered."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    is_train: NDArray[np.bool_] | None  # the predefined split, where there is one


class Table(NamedTuple):
    """Training rows and test rows."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


def _read_datasets() -> dict[str, DataSet]:
    text = Path(__file__).with_name("datasets.toml").read_text(encoding="utf-8")
    found = {}
    for name, entry in tomllib.loads(text).items():
        fields: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()
        }
        origin = {key: fields.pop(key) for key in Origin._fields if key in fields}
        found[name] = DataSet(name, origin=Origin(**origin) if origin else None, **fields)
    return found


ALL = _read_datasets()
PAPER = {name: dataset for name, dataset in ALL.items() if dataset.origin}


def get_dataset(name: str) -> DataSet:
    """Return a data set by name."""
    if name not in ALL:
        raise ValueError(f"No data set is called {name!r}; there are {', '.join(ALL)}.")
    return ALL[name]


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
    expected = dataset.n_rows, dataset.n_columns, dataset.n_classes
    if shape != expected:
        raise ValueError(
            f"{dataset.name} has rows, columns and classes {shape} instead of "
            f"{expected}: fetch it again."
        )
    if dataset.checksum and compute_checksum(rows) != dataset.checksum:
        raise ValueError(f"The values of {dataset.name} fail its checksum: fetch it again.")


def make_rows(name: str) -> Rows | None:
    """Return a data set that needs no file: one of scikit-learn's, or one that is a formula."""
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


def look_up_file(name: str) -> Path | None:
    """Return the Parquet file of a data set, in LHTREE_DATA or the cache."""
    folder = os.environ.get("LHTREE_DATA")
    paths = [Path(folder) / f"{FILES.get(name, name)}.parquet"] if folder else []
    paths.append(get_cache() / f"{name}.parquet")
    return next((path for path in paths if path.exists()), None)


def _say_absent(name: str) -> Absent:
    return Absent(f"{name}: set LHTREE_DATA to a folder that holds {FILES.get(name, name)}")


# ---- Downloads


def fetch(url: str, path: Path, *, n_tries: int = 3, timeout: float = 30.0) -> None:
    """Write what an address sends to a file, all of it or nothing; raise `Absent` if it fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    request = urllib.request.Request(url, headers={"User-Agent": "lhtree-benchmarks"})
    for last in range(n_tries - 1, -1, -1):
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                length = int(response.headers.get("Content-Length") or 0)
                bar = tqdm(desc=path.name, total=length or None, unit="B", unit_scale=True)
                with bar, io.BytesIO() as content:
                    while block := response.read(1 << 16):
                        bar.update(content.write(block))
                    if length > content.tell():
                        raise OSError(f"{content.tell()} of {length} bytes came")
                    path.write_bytes(content.getvalue())
            return
        except (OSError, http.client.HTTPException) as error:  # urllib's errors are OSErrors
            is_final = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if last == 0 or is_final:
                raise Absent(f"{url} could not be read: {error}") from error


def name_files(origin: Origin) -> list[str]:
    """Return the file names of an origin, without what its address escapes."""
    return [unquote(url.rsplit("/", 1)[1]).replace(" ", "_") for url in origin.urls]


def _unpack(origin: Origin, paths: list[Path]) -> list[bytes]:
    """Return the contents of the files."""
    if origin.files:
        with zipfile.ZipFile(paths[0]) as archive:
            names = archive.namelist()
            found = [next((n for n in names if n.endswith(end)), None) for end in origin.files]
            if None in found:
                raise ValueError(f"{paths[0].name} has no file that ends in {origin.files}.")
            return [archive.read(name) for name in found if name]
    return [
        bz2.decompress(path.read_bytes()) if path.suffix == ".bz2" else path.read_bytes()
        for path in paths
    ]


def _parse_text(origin: Origin, content: bytes) -> Any:
    """Return one part as a frame whose last column is ``target``."""
    import pandas as pd

    text = content.decode(origin.encoding).lstrip("\ufeff")
    if origin.kind == "arff":
        lines = text.splitlines()
        start = next((i for i, line in enumerate(lines) if line.lower().startswith("@data")), None)
        if start is None:
            raise ValueError("The ARFF file has no line @data.")
        text = "\n".join(line for line in lines[start + 1 :] if not line.startswith("%"))
    frame = pd.read_csv(
        io.StringIO(text), sep=origin.sep, engine="python", header=None, skiprows=origin.skip,
        decimal=origin.decimal, na_values="?", skipinitialspace=True,
    )  # fmt: skip
    columns = list(frame.columns)
    target = frame[columns[origin.target]]
    unwanted = {columns[j] for j in (*origin.drop, origin.target)}
    frame = frame.drop(columns=list(unwanted))
    frame.columns = [f"x{j}" for j in range(frame.shape[1])]
    return frame.assign(target=target)


def _parse_libsvm(origin: Origin, content: bytes, n_columns: int) -> Any:
    import pandas as pd
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(io.BytesIO(content), n_features=n_columns, zero_based=False)
    values = X.toarray()
    if origin.high:
        values = np.rint((values + 1) * origin.high / 2)
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(n_columns)])
    return frame.assign(target=y.astype(int))


def parse(origin: Origin, paths: list[Path], n_columns: int) -> Any:
    """Return the files of a data set as one frame."""
    import pandas as pd

    frames = [
        _parse_libsvm(origin, content, n_columns)
        if origin.kind == "libsvm"
        else _parse_text(origin, content)
        for content in _unpack(origin, paths)
    ]
    if len(frames) > 1:
        frames = [x.assign(split=s) for x, s in zip(frames, ("train", "test"), strict=True)]
    frame = pd.concat(frames, ignore_index=True)
    if origin.labels:
        frame["target"] = [origin.labels[int(label) - 1] for label in frame["target"]]
    return frame


def download(name: str, origin: Origin | None = None) -> Path:
    """Fetch a data set from its origin into the cache; return its Parquet file there."""
    origin = origin or ALL[name].origin
    if origin is None:
        raise _say_absent(name)
    cache = get_cache()
    paths = [cache / "origin" / name / file for file in name_files(origin)]
    try:
        for url, path in zip(origin.urls, paths, strict=True):
            fetch(url, path)
        frame = parse(origin, paths, ALL[name].n_columns)
        check_rows(ALL[name], encode_frame(frame))
    except Exception as error:  # a parser may fail in any way on another file
        raise Absent(f"{name}: data not available, or not what was sent: {error}") from error
    finally:
        for path in paths:
            path.unlink(missing_ok=True)
    whole = cache / f"{name}.parquet"
    part = whole.with_suffix(".part")
    frame.to_parquet(part)
    part.replace(whole)
    return whole


def ensure(name: str, *, may_download: bool = True) -> None:
    """Make sure that `read_rows` finds a data set; raise `Absent` if it cannot."""
    if look_up_file(name) or name in BUILT_IN:
        return
    if not may_download:
        raise _say_absent(name)
    download(name)


def read_rows(name: str) -> Rows:
    """Return a data set from a file that `ensure` sees, or from what needs no file."""
    dataset = get_dataset(name)
    path = look_up_file(name)
    if path is not None:
        import pandas as pd  # only here: the synthetic tables need no pandas

        rows: Rows | None = encode_frame(pd.read_parquet(path))
    else:
        rows = make_rows(name)
    if rows is None:
        raise _say_absent(name)
    check_rows(dataset, rows)
    return rows


def split(X: NDArray[Any], y: NDArray[Any], test_size: float = 0.2, seed: int = 0) -> Table:
    """Return a stratified random split."""
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=test_size, stratify=y, random_state=seed
    )
    return Table(X, y, X_test, y_test)


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


# ---- Tables by name

CLUSTERS = "synth50k"
KINDS = ("regression", "frames")  # folders of tables beside the paper's data sets


class Description(NamedTuple):
    """What is known of a table before it is read."""

    role: str  # "choose", "judge", or "named": has numbers of its own to reach
    n_rows: int
    n_columns: int
    is_given: bool = False  # the split


@cache
def list_tables() -> dict[str, Description]:
    """Return the tables by name; of each kind, every other one is to choose by."""
    roles = ("choose", "judge")
    paper = [each for _, each in sorted(PAPER.items()) if each.checksum]
    found = {
        each.name: Description(
            roles[i % 2], each.n_rows, each.n_columns, is_given=each.n_train is not None
        )
        for i, each in enumerate(paper)
    }
    for kind in KINDS:
        folder = Path(os.environ.get("LHTREE_DATA", "")) / kind
        for i, path in enumerate(sorted(folder.glob("*.parquet"))):
            from pyarrow.parquet import read_metadata

            metadata = read_metadata(path)
            found[f"{kind}/{path.stem}"] = Description(
                roles[i % 2], metadata.num_rows, metadata.num_columns - 1
            )
    return {**found, CLUSTERS: Description("named", 50_000, 50)}


def is_of_numbers(name: str) -> bool:
    """Return whether a table has numbers to predict, not classes."""
    return name.startswith("regression/")


def find_text(X: Any) -> list[str]:
    """Return the columns of a frame that hold text; none of an array."""
    if isinstance(X, np.ndarray):
        return []
    from pandas.api.types import is_numeric_dtype

    return [name for name in X if not is_numeric_dtype(X[name])]


def read_frame(name: str) -> tuple[Any, Any]:
    """Return columns and targets of a table as they are, not as numbers."""
    import pandas as pd

    if name == "mixed":
        return make_mixed()
    path = Path(os.environ.get("LHTREE_DATA", "")) / f"{name}.parquet"
    if not path.is_file():
        raise Absent(f"{name}: set LHTREE_DATA to a folder that holds it")
    table = pd.read_parquet(path)
    return table.drop(columns=["target", "split"], errors="ignore"), table["target"]


def load(name: str, seed: int = 0) -> Table:
    """Return training rows and test rows of a table by name; those with text are frames."""
    if name == CLUSTERS:
        return split(*make_clusters(50_000, 50), seed=seed)
    if not name.startswith(KINDS):
        return split_rows(read_rows(ALIASES.get(name, name)), seed)
    X, y = read_frame(name)
    text = find_text(X)
    X = X.astype({column: object if column in text else float for column in X})
    classes = None if is_of_numbers(name) else np.unique(y, return_inverse=True)[1]
    X, X_test, y, y_test = train_test_split(
        X if text else X.to_numpy(), y.to_numpy() if classes is None else classes,
        test_size=0.2, random_state=seed, stratify=classes,
    )  # fmt: skip
    return Table(X, y, X_test, y_test)


# ---- Synthetic tables


def make_clusters(n_rows: int, n_columns: int) -> Labelled:
    """Return five classes of two clusters each in twenty informative columns."""
    X, y = make_classification(
        n_rows, n_columns, n_informative=20, n_redundant=0, n_classes=5,
        n_clusters_per_class=2, flip_y=0.01, random_state=0,
    )  # fmt: skip
    return X, y


def make_xor(rng: np.random.Generator, n: int, m: int) -> Labelled:
    """Return classes by the signs of two of the columns."""
    X = rng.normal(size=(n, m))
    return X, (X[:, 0] * X[:, 1] > 0).astype(np.int64)


def make_spirals(rng: np.random.Generator, n: int) -> Labelled:
    """Return two spirals, with two columns of noise."""
    turn, y = np.sqrt(rng.uniform(0.02, 1, n)) * 10, rng.integers(0, 2, n)
    angle = turn + np.pi * y
    spiral = np.column_stack([turn * np.cos(angle), turn * np.sin(angle)])
    return np.hstack([spiral + rng.normal(0, 0.4, (n, 2)), rng.normal(size=(n, 2))]), y


def make_steps(rng: np.random.Generator, n: int, m: int) -> Labelled:
    """Return classes by nested conditions on single columns."""
    X = rng.uniform(size=(n, m))
    y = np.where(X[:, 0] > 0.6, X[:, 1] > 0.3, (X[:, 2] > 0.5) ^ (X[:, 3] > 0.7))
    return X, (y ^ (rng.uniform(size=n) < 0.03)).astype(np.int64)


def make_heavy_tails(rng: np.random.Generator, n: int, m: int) -> Labelled:
    """Return Cauchy columns and classes by a line through their signs and logarithms."""
    X = rng.standard_cauchy((n, m))
    score = np.arctan(X) @ rng.normal(size=m)
    return X, np.digitize(score, np.quantile(score, [0.4, 0.75]))


def _classify(n: int, m: int, n_informative: int, seed: int, **more: Any) -> Callable[[], Any]:
    given = {"n_informative": n_informative, "random_state": seed, **more}
    return lambda: make_classification(n, m, **given)


_SYNTHETIC: dict[str, Callable[[], Any]] = {
    "synth_easy": _classify(2000, 20, 5, 1, n_classes=3),
    "synth_hard": _classify(3000, 30, 15, 2, n_redundant=5, n_classes=5, flip_y=0.02),
    "synth_noise_labels": _classify(1500, 10, 4, 3, flip_y=0.4),
    "synth_noise_columns": _classify(1500, 100, 5, 4, n_redundant=0),
    "synth_tiny": _classify(80, 8, 3, 5, flip_y=0.1),
    "synth_wide": _classify(150, 500, 20, 6, n_redundant=50),
    "synth_unbalanced": _classify(3000, 12, 6, 7, weights=[0.95], flip_y=0.02),
    "synth_shells": lambda: make_gaussian_quantiles(
        n_samples=2000, n_features=6, n_classes=3, random_state=8
    ),
    "synth_xor": lambda: make_xor(np.random.default_rng(0), 1500, 8),
    "synth_spirals": lambda: make_spirals(np.random.default_rng(0), 1500),
    "synth_steps": lambda: make_steps(np.random.default_rng(0), 2000, 12),
    "synth_heavy_tails": lambda: make_heavy_tails(np.random.default_rng(0), 2000, 10),
}
SYNTHETIC = tuple(_SYNTHETIC)


def make_synthetic(name: str) -> Labelled:
    """Return a synthetic table, the same each time."""
    X, y = _SYNTHETIC[name]()
    return X.astype(np.float64), y.astype(np.int64)


def make_mixed(n: int = 3000) -> tuple[Any, Any]:
    """Return numbers, categories, text, flags and gaps, and labels that follow all of them."""
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    frame["city"] = pd.Categorical(rng.choice(list("KLMNOPQR"), n))
    frame["colour"] = rng.choice(["red", "green", "blue"], n)
    frame["is_new"] = rng.random(n) < 0.5
    effect = frame["city"].cat.codes.isin([1, 4, 6]) * 1.5 + (frame["colour"] == "red")
    signal = frame["a"] + frame["b"] * frame["is_new"] + effect + rng.normal(size=n) / 2
    frame.loc[rng.random(n) < 0.1, "a"] = np.nan
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    return frame, pd.Series(np.digitize(signal, [0.5, 2.0]))


def make_curves(n_rows: int = 800, n_columns: int = 200) -> Labelled:
    """Return curves of twelve bumps each, and which of two shapes they are closer to.

    Bumps differ by four orders of magnitude in height, curves by six; shapes by 5 %.
    """
    rng = np.random.default_rng(0)
    offset = np.linspace(0, 1, n_columns) - np.linspace(0, 1, 12)[:, None]
    bump = np.exp(-((offset / 0.06) ** 2)) * 10.0 ** rng.uniform(-2, 2, (12, 1))
    y = rng.integers(0, 2, n_rows)
    shape = 1 + 0.05 * rng.normal(size=(n_rows, 12))
    shape[:, 3:9] += 0.05 * np.outer(2 * y - 1, [-1, 1, -1, 1, -1, 1])
    height = 10.0 ** rng.uniform(0, 6, (n_rows, 1))
    return height * (shape @ bump) * (1 + 0.002 * rng.normal(size=(n_rows, n_columns))), y
