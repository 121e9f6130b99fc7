"""The numbers of the worked example in docs/how-it-works.md, and the paper's Wine study."""

import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine

from lhtree import LHTClassifier

PAGE = Path(__file__).parents[2] / "docs" / "how-it-works.md"
POSITIVE = [[2, 2], [5, 3], [6, 5], [5, 4]]
NEGATIVE = [[1, 2], [2, 3], [3, 1], [4, 4]]


@pytest.fixture(scope="module")
def tree():
    X, y = np.array(POSITIVE + NEGATIVE, dtype=float), [1] * 4 + [0] * 4
    model = LHTClassifier(standardize=False, gamma=2, min_samples_split=3).fit(X, y)
    return model.trees_[0]


@pytest.mark.parametrize(
    ("node", "weights", "threshold_kind", "threshold", "n_rows"),
    [
        (0, {0: 1.0, 1: 0.5}, 2, math.nextafter(6, 7), 8),
        (1, {0: -1.0, 1: -1.0}, 3, -4.0, 5),
        (4, {1: 1.0}, 5, 1.75, 3),
    ],
)
def test_splits_of_the_worked_example(tree, node, weights, threshold_kind, threshold, n_rows):
    feature, weight, *_ = tree.terms(node)
    found = {int(j): w for j, w in zip(feature, weight, strict=True) if w}
    assert found == weights
    assert (tree.threshold_kind[node], tree.threshold[node]) == (threshold_kind, threshold)
    assert tree.n_samples[node] == n_rows


def test_the_leaf_of_the_worked_example(tree):
    leaf = 6
    feature, weight, center, *_ = tree.terms(leaf)
    assert tree.left[leaf] == -1
    assert (tree.n_samples[leaf], tree.value[leaf]) == (2, 0.5)
    slope = {int(j): (a, c) for j, a, c in zip(feature, weight, center, strict=True) if a}
    assert slope == {0: (1.0, 1.5)}


def test_the_page_shows_the_rows_and_the_numbers():
    text = PAGE.read_text(encoding="utf-8")
    for row in POSITIVE + NEGATIVE:
        assert f"({row[0]}, {row[1]})" in text
    for number in (
        "w = (1, 0.5)",
        "w = (\N{MINUS SIGN}1, \N{MINUS SIGN}1)",
        "w = (0, 1)",
        "1.75",
        "next(6)",
    ):
        assert number in text


@pytest.mark.parametrize(("beta", "n_nodes"), [(0, [5, 9, 5]), (0.25, [5, 7, 7])])
def test_the_papers_trees_of_wine(beta, n_nodes):
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = LHTClassifier(beta=beta).fit(X, y)
    assert [tree.n_nodes for tree in model.trees_] == n_nodes
    feature, weight, *_ = model.trees_[0].terms(0)
    assert X.columns[feature[np.argmax(abs(weight))]] == "proline"
