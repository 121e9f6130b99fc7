"""What explanations refuse, and in which words."""

import os
import subprocess
import sys

import pytest
from sklearn.exceptions import NotFittedError

from lhtree import LHTClassifier
from lhtree.explain import (
    class_importances,
    explain_rows,
    interactions,
    split_table,
    split_view,
)


def test_classifiers_do_not_import_explanations():
    code = "import sys, lhtree; print([m for m in sys.modules if m.startswith('lhtree.ex')])"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("explain", [
    lambda model, X, y: split_table(model),
    lambda model, X, y: explain_rows(model, X),
    lambda model, X, y: split_view(model, 0, 0, X, y),
    lambda model, X, y: class_importances(model),
    lambda model, X, y: interactions(model),
])  # fmt: skip
def test_only_fitted_models_are_explained(explain, wine):
    with pytest.raises(NotFittedError, match="not fitted"):
        explain(LHTClassifier(), *wine)
    with pytest.raises(TypeError, match="must be a fitted LHTClassifier, LHForest"):
        explain("model", *wine)


@pytest.mark.parametrize(("explain", "message"), [
    (lambda m, X, y: split_table(m, n_features=0), "n_features must be an integer from 1"),
    (lambda m, X, y: split_table(m, n_features=2.5), "n_features must be an integer"),
    (lambda m, X, y: interactions(m, n_pairs=-1), "n_pairs must be an integer from 1"),
    (lambda m, X, y: explain_rows(m, X, paths="yes"), "paths must be True or False, got 'yes'"),
    (lambda m, X, y: explain_rows(m, X[["ash"]]), "feature names"),
    (lambda m, X, y: explain_rows(m, X[:0]), "0 sample"),
    (lambda m, X, y: split_view(m, 3, 0, X, y), "tree must be an integer from 0 to 2, got 3"),
    (lambda m, X, y: split_view(m, -1, 0, X, y), "tree must be an integer from 0 to 2, got -1"),
    (lambda m, X, y: split_view(m, 0, 99, X, y), "node must be an integer from 0 to "),
    (lambda m, X, y: split_view(m, 0, 1, X, y), "node=1 of tree 0 is a leaf; its splits are 0, 2"),
    (lambda m, X, y: split_view(m, 0, 0, X, y[:-1]), "y must have one label for each of the 178"),
    (lambda m, X, y: split_view(m, 0, 0, X, y + 1), "y has 3, but the model's classes are 0, 1"),
])  # fmt: skip
def test_bad_input_gets_a_clear_message(explain, message, wine):
    model = LHTClassifier().fit(*wine)
    with pytest.raises(ValueError, match=message):
        explain(model, *wine)
