"""Forests of the engine that a cluster grows with, in one process."""

from lhtree import LHForestClassifier
from lhtree.estimators.classifier import TreeClassifier


def fit_old_forest(parameters, X, y, weight=None):
    """Return a fitted classifier whose trees are those of a cluster, whatever its preset."""
    model = LHForestClassifier(**parameters)
    TreeClassifier._fit(model, X, y, weight)
    return model
