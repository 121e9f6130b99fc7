"""Learning Hyperplane Trees: oblique decision trees and forests in closed form."""

from lhtree.estimators import LHForestClassifier, LHTClassifier
from lhtree.model.forest import Forest, Tree
from lhtree.model.validation import check_forest
from lhtree.persist import load, save

__version__ = "0.1.0"

__all__ = [
    "Forest",
    "LHForestClassifier",
    "LHTClassifier",
    "Tree",
    "check_forest",
    "load",
    "save",
]
