"""Contributions in plain Python, row by row and node by node: the definition of correct."""

import numpy as np


def explain_tree(tree, row):
    """Return the root's value, the contribution of each column, and the membership of one row.

    `row` is in raw units; NaN is missing.
    """
    forest = tree.forest
    z = (row - forest.column_mean) / forest.column_std
    total = np.zeros(len(z))
    node = 0
    while tree.left[node] >= 0:
        feature, weight, center, _ = tree.terms(node)
        filled = np.where(np.isnan(z[feature]), center, z[feature])
        child = tree.left[node] + (project(feature, weight, filled) >= tree.threshold[node])
        size = np.abs(weight * (filled - center))
        if not size.any():
            size = np.abs(weight)
        total[feature] += (tree.value[child] - tree.value[node]) * size / size.sum()
        node = child
    feature, slope, center, _ = tree.terms(node)
    term = np.where(np.isnan(z[feature]), 0.0, slope * (z[feature] - center))
    membership = min(max(tree.value[node] + term.sum(), 0), 1)
    if np.abs(term).sum() > 0:
        cut = membership - tree.value[node] - term.sum()
        total[feature] += term + cut * np.abs(term) / np.abs(term).sum()
    return tree.value[0], total, membership


def project(feature, weight, z):
    """Return the projection, added up as the definition has it."""
    lane = [0.0] * 8
    for j, w, v in zip(feature, weight, z, strict=True):
        lane[j % 8] += w * v
    half = [lane[r] + lane[r + 4] for r in range(4)]
    return (half[0] + half[2]) + (half[1] + half[3])


def explain(model, table):
    """Return base (by class), contributions (row, class, column) and votes (row, class)."""
    n, k = len(table), model.n_classes_
    base, vote, total = np.zeros(k), np.zeros((n, k)), np.zeros((n, k, table.shape[1]))
    for tree in model.trees_:
        positive = tree.positive_class
        n_trees = sum(other.positive_class == positive for other in model.trees_)
        base[positive] += tree.value[0] / n_trees
        for i in range(n):
            _, contribution, membership = explain_tree(tree, table[i])
            total[i, positive] += contribution / n_trees
            vote[i, positive] += membership / n_trees
    if k == 2:
        base[0], vote[:, 0], total[:, 0] = 1 - base[1], 1 - vote[:, 1], -total[:, 1]
    return base, total, vote
