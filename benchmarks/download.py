"""Fetch the files of a data set from its public origin, and parse them.

UCI and LIBSVM publish delimited text, ARFF or LIBSVM files. Each becomes a frame of features,
``target`` and, where the origin has a test part, ``split``.
"""

from __future__ import annotations

import bz2
import http.client
import io
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from tqdm import tqdm

BLOCK = 1 << 16
N_TRIES = 3
TIMEOUT = 30.0  # seconds without a byte
_BROKEN = (OSError, http.client.HTTPException)  # urllib's errors are OSErrors


class DownloadError(Exception):
    """The file could not be fetched; the message says why."""


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


def fetch(url: str, path: Path, *, n_tries: int = N_TRIES, timeout: float = TIMEOUT) -> Path:
    """Return `path` once it holds the whole file.

    Bytes are collected in ``<path>.part``. A broken transfer is resumed, also one that an
    earlier process left behind; when all tries fail, nothing stays on the disk.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    reason: object = "no try was made"
    try:
        for _ in range(n_tries):
            try:
                _receive(url, part, timeout)
            except urllib.error.HTTPError as error:
                if error.code == 416:  # what is there is not a beginning of the file
                    part.unlink(missing_ok=True)
                elif error.code < 500:
                    raise DownloadError(f"{url} returns {error.code} {error.reason}.") from error
                reason = f"{error.code} {error.reason}"
            except _BROKEN as error:
                reason = getattr(error, "reason", None) or error
            else:
                part.replace(path)
                return path
        raise DownloadError(f"{url} could not be read in {n_tries} tries: {reason}.")
    except BaseException:  # Ctrl-C too: nothing half-written stays
        part.unlink(missing_ok=True)
        raise


def _receive(url: str, part: Path, timeout: float) -> None:
    """Append to `part` until it has the announced length; raise OSError if bytes are missing."""
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "lhtree-benchmarks"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    with urllib.request.urlopen(request, timeout=timeout) as response:
        if response.status != 206:  # the server sends the file from its beginning
            start = 0
        length = response.headers.get("Content-Length")
        total = None if length is None else int(length) + start
        with (
            part.open("ab" if start else "wb") as file,
            tqdm(desc=part.stem, initial=start, total=total, unit="B", unit_scale=True) as bar,
        ):
            while block := response.read(BLOCK):
                file.write(block)
                bar.update(len(block))
    size = part.stat().st_size
    if total is not None and size != total:
        raise OSError(f"{size} of {total} bytes came")


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
