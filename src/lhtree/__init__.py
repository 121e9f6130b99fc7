"""Learning Hyperplane Trees: oblique decision trees and forests in closed form."""

import importlib
from typing import Any

from lhtree.estimators import (
    LHBoostClassifier,
    LHBoostRegressor,
    LHForestClassifier,
    LHForestRegressor,
    LHTClassifier,
)
from lhtree.model.forest import Forest
from lhtree.model.tree import Tree
from lhtree.model.validation import check_forest
from lhtree.persist import load, save

__version__ = "0.2.0"

__all__ = [
    "Forest",
    "LHBoostClassifier",
    "LHBoostRegressor",
    "LHForestClassifier",
    "LHForestRegressor",
    "LHTClassifier",
    "Tree",
    "check_forest",
    "load",
    "save",
]
_SUBMODULES = ("dask", "explain", "export", "plot", "report")  # loaded when first used


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"lhtree.{name}")
    raise AttributeError(f"module 'lhtree' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES, "__version__"])
