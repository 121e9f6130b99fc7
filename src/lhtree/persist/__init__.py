"""Models as files: safe to read, and either complete or not written at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lhtree.estimators.base import TreeEstimator
from lhtree.files import PathLike, replacing
from lhtree.persist.container import decode_file, encode_file
from lhtree.persist.state import check_savable, describe, restore

__all__ = ["load", "save"]


def save(model: TreeEstimator, path: PathLike) -> None:
    """Write a fitted model to one file.

    The file is in the safetensors format: arrays and text, no code. It keeps the
    parameters, the trees and all that `fit` learned, so that the loaded model predicts
    the same bit for bit and continues with `warm_start`. An existing file is replaced once
    the new one is complete; its permissions stay. Callbacks and metadata requests of
    scikit-learn are not saved.

    Parameters
    ----------
    model : classifier or regressor of this package
        A fitted model. Its labels must be strings, integers, floats or truth
        values, its parameters plain data: a function as `oob_score` is refused.
    path : str or path-like
        Where to write.

    See Also
    --------
    load : Read such a file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> import lhtree
    >>> X, y = load_iris(return_X_y=True)
    >>> model = lhtree.LHTClassifier().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "iris.safetensors"
    ...     lhtree.save(model, path)
    ...     copy = lhtree.load(path)
    >>> bool((copy.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    check_savable(model)
    try:
        chunks = encode_file(*describe(model))
    except ValueError as error:
        raise ValueError(f"model cannot be saved: {error}.") from error
    with replacing(path) as file:
        file.writelines(chunks)


def load(path: PathLike) -> TreeEstimator:
    """Read a model that `save` wrote.

    Everything is checked before it is used, and nothing in the file is run as code: a
    damaged or malicious file raises a ValueError that says what is wrong.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    classifier or regressor of this package
        The fitted model.

    See Also
    --------
    save : Write such a file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import lhtree
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "broken.model"
    ...     _ = path.write_bytes(b"none")
    ...     lhtree.load(path)
    Traceback (most recent call last):
        ...
    ValueError: broken.model cannot be loaded as a model: it has 4 bytes, too few for a header.
    """
    data = _read(path)
    try:
        return restore(*decode_file(data))
    except (ValueError, TypeError) as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"{Path(path).name} cannot be loaded as a model: {reason}.") from error


def _read(path: PathLike) -> bytes:
    """Return the bytes of a regular file: a pipe or a device may have no end."""
    # Mapped into memory, a file that another program cuts short would end the process.
    with open(path, "rb", opener=_open_at_once) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(
                f"{Path(path).name} cannot be loaded as a model: it is not a regular file."
            )
        return file.read(status.st_size)


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
