"""Warnings that point to the line of the caller, not into this package."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import sklearn

# scikit-learn's frames lie between a method and its caller, too: callbacks, cross-validation.
FOLDERS = Path(__file__).parents[1], Path(str(sklearn.__file__)).parent
INSIDE = tuple(f"{folder}{os.sep}" for folder in FOLDERS)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of something in the first frame outside of this package and scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
