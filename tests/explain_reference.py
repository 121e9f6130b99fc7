"""Contributions in plain Python, row by row and node by node: the definition of correct."""

import math
from fractions import Fraction

import numpy as np

from lhtree.model.ensemble_splits import CategorySplit, NumberSplit


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


def explain_boosted(ensemble, row):
    """Return what each column adds to each score of a row, as integers: [output][column]."""
    total = [[0] * ensemble.n_features for _ in range(ensemble.n_outputs)]
    for tree in ensemble:
        node = 0
        while tree.left[node] >= 0:
            shares, child = split_boosted(ensemble, tree, node, row)
            before, after = average(tree, node), average(tree, child)
            for k in range(len(before)):
                for j, part in divide(after[k] - before[k], shares):
                    total[tree.output + k][j] += part
            node = child
    return total


def average(tree, node):
    """Return the mean of the leaves below a node, rounded from the leaves up."""
    left = int(tree.left[node])
    if left < 0:
        position = np.count_nonzero(tree.ensemble.left[: tree.nodes.start + node] < 0)
        return [int(value) for value in tree.ensemble.value[position]]
    weight = tree.ensemble.weight[tree.nodes]
    fraction = weight[left + 1] / weight[node]
    sides = zip(average(tree, left), average(tree, left + 1), strict=True)
    return [a + math.floor((b - a) * fraction + 0.5) for a, b in sides]


def split_boosted(ensemble, tree, node, row):
    """Return the share of each column in a split, and the child to which a row goes."""
    left, split = int(tree.left[node]), tree.split(node)
    if isinstance(split, NumberSplit):
        value = row[split.column]
        goes_left = split.missing_left if np.isnan(value) else value < split.threshold
        return [(split.column, 1)], left + (not goes_left)
    if isinstance(split, CategorySplit):
        n_codes = len(split.left) + len(split.right) - 1
        value = row[split.column]
        is_code = value in range(n_codes)  # what is missing or unknown has the code after
        goes_left = (int(value) if is_code else n_codes) in split.left
        return [(split.column, 1)], left + (not goes_left)
    columns, position = ensemble.columns, ensemble.index.position[tree.first_node + node]
    projection, parts, sizes = 0, [], []
    for term in range(*ensemble.term_start[position : position + 2].tolist()):
        j, fill = int(ensemble.feature[term]), int(ensemble.fill[term])
        coefficient = int(ensemble.coefficient[term])
        z = fill if np.isnan(row[j]) else place(columns, j, row[j])
        projection += coefficient * z
        parts.append((j, abs(coefficient * (z - fill))))
        sizes.append((j, abs(coefficient)))
    shares = parts if any(size for _, size in parts) else sizes
    return shares, left + (projection >= ensemble.cut[position])


def place(columns, j, x):
    """Return a number on the grid of its column."""
    exact = Fraction(float(x)) * Fraction(2) ** int(columns.power[j])
    z = math.floor(exact + Fraction(1, 2)) - int(columns.origin[j])
    return min(max(z, int(columns.low[j])), int(columns.high[j]))


def divide(change, shares):
    """Yield the part of a change for each column; the largest share takes the rest."""
    total = sum(share for _, share in shares)
    largest = max(range(len(shares)), key=lambda k: shares[k][1])
    rest = change
    for k, (j, share) in enumerate(shares):
        if k != largest:
            part = math.floor(change * (share / total) + 0.5)
            rest -= part
            yield j, part
    yield shares[largest][0], rest
