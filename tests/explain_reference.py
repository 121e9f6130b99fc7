"""Contributions in plain Python, row by row and node by node: the definition of correct."""

import numpy as np


def explain_tree(tree, row):
    """Return root share, contribution of each column, and membership of one row.

    `row` is in raw units; NaN is missing.
    """
    forest = tree.forest
    z = (row - forest.column_mean) / forest.column_deviation
    total = np.zeros(len(z))
    node = 0
    while tree.left[node] >= 0:
        feature, weight, center, _ = tree.terms(node)
        value = np.array([c if np.isnan(z[j]) else z[j] for j, c in zip(feature, center)])  # noqa: B905
        child = tree.left[node] + (project(feature, weight, value) >= tree.threshold[node])
        size = np.abs(weight * (value - center))
        if not size.any():
            size = np.abs(weight)
        total[feature] += (tree.share[child] - tree.share[node]) * size / size.sum()
        node = child
    feature, slope, center, _ = tree.terms(node)
    part = np.array([0 if np.isnan(z[j]) else a * (z[j] - c)
                     for j, a, c in zip(feature, slope, center)])  # noqa: B905  # fmt: skip
    membership = min(max(tree.share[node] + part.sum(), 0), 1)
    if np.abs(part).sum() > 0:
        cut = membership - tree.share[node] - part.sum()
        total[feature] += part + cut * np.abs(part) / np.abs(part).sum()
    return tree.share[0], total, membership


def project(feature, weight, value):
    """Return the projection, added up as the definition has it."""
    lane = [0.0] * 8
    for j, w, v in zip(feature, weight, value, strict=True):
        lane[j % 8] += w * v
    half = [lane[r] + lane[r + 4] for r in range(4)]
    return (half[0] + half[2]) + (half[1] + half[3])


def explain(model, table):
    """Return base (by class), contributions (row, class, column) and votes (row, class)."""
    n, k = len(table), model.n_classes_
    base, vote, total = np.zeros(k), np.zeros((n, k)), np.zeros((n, k, table.shape[1]))
    for tree in model.trees_:
        same = sum(other.target == tree.target for other in model.trees_)
        base[tree.target] += tree.share[0] / same
        for i in range(n):
            _, part, membership = explain_tree(tree, table[i])
            total[i, tree.target] += part / same
            vote[i, tree.target] += membership / same
    if k == 2:
        base[0], vote[:, 0], total[:, 0] = 1 - base[1], 1 - vote[:, 1], -total[:, 1]
    return base, total, vote
