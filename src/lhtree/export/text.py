"""Trees as indented text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lhtree.estimators.lookup import check_model, check_number, look_up_tree
from lhtree.explain.wording import (
    Vocabulary,
    check_decimals,
    describe_node,
    describe_side,
    describe_tree,
    format_number,
    format_values,
    make_vocabulary,
    read_values,
)
from lhtree.model.ensemble import BoostedTree
from lhtree.model.tree import Tree


def export_text(
    model: Any,
    *,
    tree: int | None = None,
    feature_names: Sequence[Any] | None = None,
    class_names: Sequence[Any] | None = None,
    max_depth: int = 10,
    n_features: int = 5,
    spacing: int = 3,
    decimals: int = 2,
    units: str | None = None,
    show_weights: bool = False,
) -> str:
    """Return the trees of a model as text, in the manner of ``sklearn.tree.export_text``.

    Parameters
    ----------
    model : classifier or regressor of this package
        A fitted model.
    tree : int, default=None
        Position in ``trees_`` of the only tree to write; None writes all.
    feature_names : list of str, default=None
        Names of the columns; None takes ``column_names_``.
    class_names : list of str, default=None
        Names of the classes; None takes ``classes_``.
    max_depth : int, default=10
        Splits below this depth are omitted, and the text says so.
    n_features : int, default=5
        How many features of a node to write, strongest first; the others are counted.
    spacing : int, default=3
        Width of an edge.
    decimals : int, default=2
        Digits after the decimal point.
    units : {"standardized", "raw"}, default=None
        Units of weights and thresholds: standardised columns, as in the trees (the default
        of LHTClassifier and forests of such trees), or the columns as given (the default of
        other models, whose standardised units are powers of two next to the standard
        deviations).
    show_weights : bool, default=False
        Whether to write the weighted number of training rows of each leaf; of a boosted tree
        their fraction.

    Returns
    -------
    str
        One paragraph per tree. A leaf shows its value, the fraction of the tree's class among
        its training rows after shrinkage, and its membership if that is not constant. The
        value of a leaf of a boosted tree is what it adds to the raw score, or to each of them;
        in a forest it is what the tree predicts: the share of its class, or a number.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lhtree import LHTClassifier
    >>> from lhtree.export import export_text
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = LHTClassifier(beta=0.8, max_depth=2).fit(X, y)
    >>> print(export_text(model, tree=0, n_features=2))
    Tree 0: 0 against all other classes
    |--- proline + 0.81*flavanoids < 0.28
    |   |--- value: 0.00
    |--- proline + 0.81*flavanoids >= 0.28
    |   |--- alcohol < -0.013
    |   |   |--- value: 0.20, membership: 0.38*malic_acid + 0.33*alcohol + (11 more) + 0.96
    |   |--- alcohol >= -0.013
    |   |   |--- value: 1.00
    """
    check_model(model)
    check_number("max_depth", max_depth, 0, 2**62)
    check_number("n_features", n_features, 1, 2**62)
    check_number("spacing", spacing, 1, 1000)
    check_decimals(decimals)
    words = make_vocabulary(model, units, feature_names, class_names)
    writer = _Writer(words, max_depth, n_features, spacing, decimals, bool(show_weights))
    trees = list(model.forest_) if tree is None else [look_up_tree(model, tree)]
    return "\n".join(line for each in trees for line in writer.write(each))


class _Writer:
    """Writes trees with fixed settings."""

    def __init__(
        self,
        words: Vocabulary,
        max_depth: int,
        n_features: int,
        spacing: int,
        decimals: int,
        shows_weights: bool,
    ) -> None:
        self.words, self.max_depth, self.n_features = words, max_depth, n_features
        self.decimals, self.shows_weights = decimals, shows_weights
        self.branch, self.trunk = "|" + "-" * spacing + " ", "|" + " " * spacing

    def write(self, tree: Tree | BoostedTree) -> list[str]:
        """Return the lines of a tree, without recursion: it may be deep."""
        lines = [describe_tree(tree, self.words)]
        stack = [(0, 0, "")]
        while stack:
            node, depth, condition = stack.pop()
            if condition:
                lines.append(self.trunk * (depth - 1) + self.branch + condition)
            left = int(tree.left[node])
            indent = self.trunk * depth + self.branch
            if left < 0:
                lines.append(indent + self._describe_leaf(tree, node))
            elif depth > self.max_depth:
                lines.append(f"{indent}truncated branch of depth {_compute_height(tree, node)}")
            else:
                for is_right in (True, False):
                    side = describe_side(tree, node, is_right, self.words)
                    words = side.format(self.decimals, self.n_features)
                    stack.append((left + is_right, depth + 1, words))
        return lines

    def _describe_leaf(self, tree: Tree | BoostedTree, node: int) -> str:
        if isinstance(tree, BoostedTree):
            value = format_values(read_values(tree, self.words)[node], self.decimals)
            weight = f", fraction of rows: {tree.fraction[node]:.3g}"
            return f"value: {value}{weight * self.shows_weights}"
        text = f"value: {format_number(float(tree.value[node]), self.decimals)}"
        form = describe_node(tree, node, self.words)
        if form.terms:
            text += f", membership: {form.format(self.decimals, self.n_features)}"
        if self.shows_weights:
            text += f", weight: {format_number(float(tree.weight_sum[node]), self.decimals)}"
        return text


def _compute_height(tree: Tree | BoostedTree, node: int) -> int:
    """Return the number of splits on the longest path below a node."""
    height, level = 0, [node]
    while True:
        level = [
            int(tree.left[parent]) + side
            for parent in level
            if tree.left[parent] >= 0
            for side in (0, 1)
        ]
        if not level:
            return height
        height += 1
