"""What the nodes of a drawn tree say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from lhtree.explain.model_view import view_model
from lhtree.explain.wording import describe_side, make_vocabulary
from lhtree.model.ensemble import BoostedTree
from lhtree.model.link import VOTES, read_link
from lhtree.model.tree import Tree
from lhtree.plot.canvas import (
    DOWN,
    NEGATIVE,
    POSITIVE,
    UP,
    choose_decimals,
    format_change,
    format_plain,
    name_class,
    shorten,
)

INCHES = 0.92  # from one node to the next, in a figure of its own
N_LETTERS = 27  # of a condition
NAME_LENGTHS = (40, 20, 14, 10, 7, 5)  # of the names of features in it, tried in this order


T = TypeVar("T")
Pairs = tuple[tuple[T, T], tuple[T, T]]


class NodeFacts(NamedTuple):
    """The text and the bar of a node."""

    title: str
    lines: tuple[str, ...]
    bars: tuple[tuple[float, float, str], ...]  # start, width and colour, in parts of the bar
    color: str  # of the border of a leaf


class TreeStyle(Protocol):
    """What a drawn tree says about itself and its nodes."""

    task: str
    inches: float  # from one column of nodes to the next
    shapes: Pairs[int]  # letters and lines of a node, stacked and flat
    sides: tuple[str, str]  # what leads to the left and to the right
    colors: Pairs[str]  # and what they mean

    def describe(self, node: int) -> NodeFacts:
        """Return what a node says."""


def describe_nodes(model: Any, tree: Tree | BoostedTree) -> TreeStyle:
    """Return what the nodes of a tree say."""
    if isinstance(tree, BoostedTree):
        return _ShareStyle(model, tree) if _has_votes(model) else _BoostedStyle(model, tree)
    return _VotingStyle(model, tree)


def _has_votes(model: Any) -> bool:
    return read_link(model).name == VOTES


class _VotingStyle:
    """Nodes of floating-point trees: rows, and the fraction of the tree's class."""

    inches = INCHES
    shapes = ((9, 3), (14, 2))
    sides = ("projection < c", "projection ≥ c")

    def __init__(self, model: Any, tree: Tree) -> None:
        self.tree = tree
        name = name_class(model.classes_[tree.positive_class])
        self.task = f"{name} against all other classes"
        self.colors = (POSITIVE, name), (NEGATIVE, "all other classes")

    def describe(self, node: int) -> NodeFacts:
        value = float(self.tree.value[node])
        rows = format_rows(int(self.tree.n_samples[node]))
        return NodeFacts(
            f"{'leaf' if self.tree.left[node] < 0 else 'split'} {node}",
            (rows, format_percent(value)),
            ((0.0, value, POSITIVE), (value, 1 - value, NEGATIVE)),
            POSITIVE if value >= 0.5 else NEGATIVE,
        )


class _BoostedStyle:
    """Nodes of the exact engine: conditions, and what they add to the raw score.

    Those of a forest of numbers show what they predict; bars start from the mean.
    """

    inches = 2.0
    shapes = ((N_LETTERS, 3), (N_LETTERS + 6, 2))
    sides = ("yes", "no")

    def __init__(self, model: Any, tree: BoostedTree) -> None:
        self.tree, self.words = tree, make_vocabulary(model, "raw")
        view, link = view_model(model), self.words.link
        assert link is not None
        self.is_averaged = link.is_averaged
        self.colors = (UP, "raises the score"), (DOWN, "lowers the score")
        if self.is_averaged:
            self.colors = (UP, "above the mean"), (DOWN, "below the mean")
        self.task = link.describe_task([name_class(each) for each in self.words.classes], tree)
        self.names = [shorten(name, 12) for name in view.output_names]
        if view.classes is not None and tree.value.shape[1] > 1:
            self.names = [name_class(label, 12) for label in view.classes]
        self.largest = float(np.abs(tree.value).max()) or 1.0
        shown = np.abs(tree.prediction).max() if self.is_averaged else self.largest
        self.decimals = choose_decimals([float(shown)])

    def describe(self, node: int) -> NodeFacts:
        tree, value = self.tree, self.tree.value[node]
        k = int(np.abs(value).argmax())
        change = float(value[k])
        text = format_change(change, self.decimals)
        if self.is_averaged:
            text = format_plain(float(tree.prediction[node, k]), self.decimals)
        if len(value) > 1:
            text = f"{self.names[k]} {text}"
        size, color = abs(change) / self.largest / 2, UP if change >= 0 else DOWN
        return NodeFacts(
            self.describe_node(node),
            (f"{format_percent(float(tree.fraction[node]))} of rows", text),
            ((0.5 if change >= 0 else 0.5 - size, size, color),),
            color,
        )

    def describe_node(self, node: int) -> str:
        """Return the name of a leaf, or the condition of a split."""
        return f"leaf {node}" if self.tree.left[node] < 0 else self._describe_condition(node)

    def _describe_condition(self, node: int) -> str:
        """Return the condition with as many terms, or categories, as fit."""
        for length in NAME_LENGTHS:
            names = tuple(shorten(name, length) for name in self.words.columns)
            words = replace(self.words, columns=names)
            side = describe_side(self.tree, node, False, words)
            for n_terms in (None, 3, 2, 1):
                text = side.format(1, n_terms)
                if len(text) <= N_LETTERS:
                    return text
        return shorten(text, N_LETTERS)


def format_rows(n_rows: int) -> str:
    """Return a number of rows with its unit."""
    return f"{n_rows:,} row{'' if n_rows == 1 else 's'}"


def format_percent(fraction: float) -> str:
    """Return a fraction in percent; 0% and 100% mean none and all."""
    if fraction in (0.0, 1.0) or 0.01 <= fraction <= 0.99:
        return f"{fraction:.0%}"
    return f"{min(max(fraction, 0.001), 0.999):.1%}"


class _ShareStyle(_BoostedStyle):
    """Nodes of a forest of classes: conditions, and the share of the tree's class."""

    def __init__(self, model: Any, tree: BoostedTree) -> None:
        super().__init__(model, tree)
        view = view_model(model)
        assert view.classes is not None
        name = name_class(view.classes[view.get_class(tree)])
        self.task = f"{name} against all other classes"
        self.colors = (POSITIVE, name), (NEGATIVE, "all other classes")

    def describe(self, node: int) -> NodeFacts:
        value = float(self.tree.prediction[node, 0])
        rows = f"{format_percent(float(self.tree.fraction[node]))} of rows"
        return NodeFacts(
            self.describe_node(node),
            (rows, format_percent(value)),
            ((0.0, value, POSITIVE), (value, 1 - value, NEGATIVE)),
            POSITIVE if value >= 0.5 else NEGATIVE,
        )
