"""Trees in the language of Graphviz."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lhtree.estimators.lookup import check_model, check_number, look_up_tree
from lhtree.explain.wording import (
    Vocabulary,
    check_decimals,
    describe_side,
    describe_tree,
    format_number,
    format_values,
    make_vocabulary,
    read_values,
)
from lhtree.files import write_atomically
from lhtree.model.ensemble import BoostedTree
from lhtree.model.link import VOTES, Link
from lhtree.model.tree import Tree

# Okabe and Ito's colours: colour-blind people can distinguish them.
PALETTE = ((0, 114, 178), (230, 159, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233),
           (213, 94, 0), (240, 228, 66))  # fmt: skip


def export_graphviz(
    model: Any,
    out_file: Any = None,
    *,
    tree: int | None = None,
    max_depth: int | None = None,
    feature_names: Sequence[Any] | None = None,
    class_names: Sequence[Any] | None = None,
    n_features: int = 3,
    filled: bool = False,
    rounded: bool = False,
    rotate: bool = False,
    node_ids: bool = False,
    decimals: int = 2,
    units: str | None = None,
    fontname: str = "helvetica",
) -> str | None:
    r"""Return the trees of a model in DOT, in the manner of ``sklearn.tree.export_graphviz``.

    Parameters
    ----------
    model : classifier or regressor of this package
        A fitted model.
    out_file : str, path or file object, default=None
        Where to write; None returns the text.
    tree : int, default=None
        Position in ``trees_`` of the only tree to draw; None draws all side by side.
    max_depth : int, default=None
        Nodes below this depth are replaced by "(...)"; None draws all.
    feature_names : list of str, default=None
        Names of the columns; None takes ``column_names_``.
    class_names : list of str, default=None
        Names of the classes; None takes ``classes_``.
    n_features : int, default=3
        How many features of a split to write, strongest first; the others are counted.
    filled : bool, default=False
        Whether to colour the nodes by the class of the tree: the larger the value, the
        stronger the colour. Nodes of boosted trees have the colour of the score that they
        change most (for a single score one colour up, another down), the stronger the more.
    rounded : bool, default=False
        Whether to draw rounded corners.
    rotate : bool, default=False
        Whether trees grow from left to right instead of down.
    node_ids : bool, default=False
        Whether to write the number of each node.
    decimals : int, default=2
        Digits after the decimal point.
    units : {"standardized", "raw"}, default=None
        Units of weights and thresholds: standardised columns, as in the trees (the default
        of LHTClassifier and forests of such trees), or the columns as given (the default of
        other models, whose standardised units are powers of two next to the standard
        deviations).
    fontname : str, default="helvetica"
        Font of all text.

    Returns
    -------
    str or None
        The text if `out_file` is None.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lhtree import LHTClassifier
    >>> from lhtree.export import export_graphviz
    >>> model = LHTClassifier(max_depth=1).fit(*load_iris(return_X_y=True))
    >>> export_graphviz(model, tree=0).split("\n")[0]
    'digraph Trees {'
    """
    check_model(model)
    if max_depth is not None:
        check_number("max_depth", max_depth, 0, 2**62)
    check_number("n_features", n_features, 1, 2**62)
    words = make_vocabulary(model, units, feature_names, class_names)
    style = ", ".join(["filled"] * bool(filled) + ["rounded"] * bool(rounded)) or "solid"
    drawing = _Drawing(
        words, max_depth, n_features, check_decimals(decimals), bool(filled), bool(node_ids)
    )
    trees = list(model.forest_) if tree is None else [look_up_tree(model, tree)]
    lines = [
        "digraph Trees {",
        f"node [shape=box, style={quote(style)}, color=black, fontname={quote(fontname)}] ;",
        f"edge [fontname={quote(fontname)}] ;",
        *(["rankdir=LR ;"] if rotate else []),
        *(line for each in trees for line in drawing.draw(each)),
        "}",
    ]
    return _write("\n".join(lines) + "\n", out_file)


def quote(text: str) -> str:
    r"""Return a string of DOT; its \n stays a line break."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "")
    return '"' + escaped.replace("\n", "\\n") + '"'


@dataclass(frozen=True)
class _Drawing:
    """The settings of a drawing."""

    words: Vocabulary
    max_depth: int | None
    n_features: int
    decimals: int
    is_filled: bool
    has_ids: bool

    def draw(self, tree: Tree | BoostedTree) -> Iterator[str]:
        """Yield the lines of a tree."""
        name = f"tree{tree.number}"
        title = describe_tree(tree, self.words)
        yield f"subgraph cluster_{name} {{"
        yield f"label={quote(title)} ; color=white ;"
        stack = [(0, 0)]
        while stack:
            node, depth = stack.pop()
            if self.max_depth is not None and depth > self.max_depth:
                yield f"{name}_{node} [label={quote('(...)')}] ;"
                continue
            yield f"{name}_{node} [{self._describe(tree, node)}] ;"
            left = int(tree.left[node])
            if left >= 0:
                yield f'{name}_{node} -> {name}_{left} [label="yes"] ;'
                yield f'{name}_{node} -> {name}_{left + 1} [label="no"] ;'
                stack += [(left + 1, depth + 1), (left, depth + 1)]
        yield "}"

    def _describe(self, tree: Tree | BoostedTree, node: int) -> str:
        lines = [f"node #{node}"] * self.has_ids
        if tree.left[node] >= 0:
            side = describe_side(tree, node, False, self.words)
            lines.append(side.format(self.decimals, self.n_features))
        if isinstance(tree, BoostedTree):
            lines.append(f"rows = {tree.fraction[node]:.1%}")
            value = format_values(read_values(tree, self.words)[node], self.decimals)
        else:
            lines.append(f"samples = {tree.n_samples[node]}")
            value = format_number(float(tree.value[node]), self.decimals)
        lines.append(f"value = {value}")
        label = f"label={quote(chr(10).join(lines))}"
        if not self.is_filled:
            return label
        return f"{label}, fillcolor={quote(_choose_colour(tree, node, self.words.link))}"


def _choose_colour(tree: Tree | BoostedTree, node: int, link: Link | None) -> str:
    if not isinstance(tree, BoostedTree):
        return _mix(tree.positive_class, float(tree.value[node]))
    if link is not None and link.name == VOTES:
        return _mix(link.get_class(tree), float(tree.prediction[node, 0]))
    value, size = tree.value[node], np.abs(tree.value)
    strength = float(size[node].max() / (size.max() or 1.0))
    if len(value) == 1:
        return _mix(int(value[0] < 0), strength)
    return _mix(int(size[node].argmax()), strength)


def _mix(positive_class: int, value: float) -> str:
    """Return the colour of a class, mixed with white: the smaller the value, the whiter."""
    colour = PALETTE[positive_class % len(PALETTE)]
    return "#" + "".join(f"{round(255 - value * (255 - part)):02x}" for part in colour)


def _write(text: str, out_file: Any) -> str | None:
    if out_file is None:
        return text
    if hasattr(out_file, "write"):
        out_file.write(text)
    elif isinstance(out_file, str | os.PathLike):
        write_atomically(out_file, text)
    else:
        raise TypeError(f"out_file must be a path, an open file or None, got {out_file!r}.")
    return None
