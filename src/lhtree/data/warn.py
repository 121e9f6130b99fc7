"""Warnings that point to the line of the caller, not into this package."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Hashable, Iterator
from contextvars import ContextVar
from pathlib import Path

import sklearn

# Frames of scikit-learn and of decorators lie between a method and its caller, too.
FOLDERS = Path(__file__).parents[1], Path(str(sklearn.__file__)).parent
INSIDE = (*(f"{folder}{os.sep}" for folder in FOLDERS), str(contextlib.__file__))

_seen: ContextVar[set[Hashable] | None] = ContextVar("seen", default=None)


def warn(message: str, *, key: Hashable = None) -> None:
    """Warn in the first frame outside of this package and scikit-learn.

    Parameters
    ----------
    message : str
        What to say.
    key : hashable, default=None
        What the warning is about, which :func:`warning_once` counts by; None: the message.
    """
    seen = _seen.get()
    if seen is not None:
        about = message if key is None else key
        if about in seen:
            return
        seen.add(about)
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INSIDE):
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        UserWarning,
        filename=frame.f_code.co_filename,
        lineno=frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


@contextlib.contextmanager
def warning_once() -> Iterator[None]:
    """Warn of the same thing once in the block, which reads the same rows several times."""
    seen = _seen.get()
    token = _seen.set(set() if seen is None else seen)  # blocks within a block share it
    try:
        yield
    finally:
        _seen.reset(token)
