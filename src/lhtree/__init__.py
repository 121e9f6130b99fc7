"""Learning Hyperplane Trees: oblique decision trees and forests in closed form."""

from lhtree.classifier import LHForestClassifier, LHTClassifier
from lhtree.persist import load, save
from lhtree.soundness import check_forest
from lhtree.tree import Forest, Tree

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
