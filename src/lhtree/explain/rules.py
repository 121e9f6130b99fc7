"""A model as if-then rules."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from lhtree.arrays import Ints
from lhtree.estimators import lookup
from lhtree.explain import boosted_splits
from lhtree.explain.wording import (
    AnyCondition,
    Condition,
    LinearSum,
    Vocabulary,
    describe_node,
    describe_side,
    format_number,
    make_vocabulary,
    read_values,
)
from lhtree.model.ensemble import BoostedTree, Ensemble
from lhtree.model.forest import Forest
from lhtree.model.link import VOTES, Link, is_exact
from lhtree.model.tree import Tree

MOST_SCORES = 3  # whose changes a rule shows as text


@dataclass(frozen=True)
class Rule:
    """One leaf in words: the tree's output where all conditions hold.

    Parameters
    ----------
    tree : int
        Position of the tree in ``trees_``.
    leaf : int
        Number of the leaf in the tree.
    positive_class : str
        Class that the tree separates from all others.
    conditions : tuple of Condition
        What holds for the rows of the leaf; each has ``terms``, ``comparison`` and
        ``threshold``.
    membership : LinearSum
        The tree's output: ``terms`` plus ``constant``, clipped to [0, 1].
    value : float
        Fraction of positive rows among the training rows of the leaf, after shrinkage.
    n_samples : int
        Number of these rows.
    """

    tree: int
    leaf: int
    positive_class: str
    conditions: tuple[Any, ...]
    membership: LinearSum
    value: float
    n_samples: int

    @property
    def task(self) -> str:
        """What the tree does, in words."""
        return f"{self.positive_class} against all other classes"

    def __str__(self) -> str:
        condition = _join_conditions(self.conditions)
        output = self.membership.format()
        if self.membership.terms:
            output += f", {format_number(self.value, 2)} on average"
        return f"if {condition} then {self.positive_class}: {output} ({self.n_samples} rows)"


@dataclass(frozen=True)
class BoostedRule:
    """One leaf in words: what it adds, or in a forest predicts, where all conditions hold.

    A leaf of a forest of classes predicts the share of its tree's class.

    Parameters
    ----------
    tree : int
        Position of the tree in ``trees_``.
    leaf : int
        Number of the leaf in the tree.
    conditions : tuple of Condition, Membership or Presence
        What holds for the rows of the leaf.
    value : tuple of float
        What the leaf adds to each raw score; in a forest, what it predicts.
    output_names : tuple of str
        What these scores are.
    fraction : float
        Fraction of the tree's training rows, by weight, that are in the leaf.
    task : str
        What the tree does, in words.
    is_averaged : bool
        Whether the tree is of a forest.
    positive_class : str or None
        Of a forest of classes, the class that the tree votes for.
    """

    tree: int
    leaf: int
    conditions: tuple[Any, ...]
    value: tuple[float, ...]
    output_names: tuple[str, ...]
    fraction: float
    task: str
    is_averaged: bool = False
    positive_class: str | None = None

    def __str__(self) -> str:
        order = sorted(range(len(self.value)), key=lambda k: -abs(self.value[k]))
        shown = sorted(order[:MOST_SCORES])
        added = [f"{self.output_names[k]} {self._format(self.value[k])}" for k in shown]
        if n_hidden := len(order) - len(shown):
            added.append(f"{n_hidden} smaller changes")
        condition = _join_conditions(self.conditions)
        return f"if {condition} then {', '.join(added)} ({self.fraction:.1%} of the rows)"

    def _format(self, value: float) -> str:
        return format_number(value, 2) if self.is_averaged else _format_change(value)


def _join_conditions(conditions: tuple[Any, ...]) -> str:
    return " and ".join(map(str, conditions)) or "anything"


def _format_change(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{format_number(abs(value), 2)}"


@dataclass(frozen=True)
class RuleSet:
    """The rules of all trees, tree by tree.

    Parameters
    ----------
    rules : tuple of Rule or BoostedRule
        One rule per leaf.
    units : str
        Units of the numbers: "raw" or "standardized".
    min_weight : float
        Terms below it were dropped.
    n_terms, n_dropped : int
        How many terms the model has, and how many of them were dropped.
    agreement : float or None
        Fraction of the rows passed for which the rules predict the model's class; of a model
        of numbers, the R2 of the rules' predictions against the model's. None without rows.
    predicts_numbers : bool
        Whether the model predicts numbers.
    start : tuple of (str, float)
        Of a boosted model, each raw score in words, and what it is before the first tree.
    """

    rules: tuple[Any, ...]
    units: str
    min_weight: float
    n_terms: int
    n_dropped: int
    agreement: float | None
    predicts_numbers: bool = False
    start: tuple[tuple[str, float], ...] = ()

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rules)

    def __getitem__(self, number: int) -> Any:
        return self.rules[number]

    def __str__(self) -> str:
        lines = [f"{name} starts at {format_number(value, 2)}" for name, value in self.start]
        for number, rule in enumerate(self.rules):
            if number == 0 or rule.tree != self.rules[number - 1].tree:
                lines.append(f"Tree {rule.tree}: {rule.task}")
            lines.append(f"  {rule}")
        if self.n_dropped:
            lines.append(
                f"{self.n_dropped} of {self.n_terms} terms were dropped: their weights are below "
                f"{self.min_weight:g} times the largest of their node."
            )
        if self.agreement is not None and self.predicts_numbers:
            lines.append(f"R2 of the rules against the model: {self.agreement:.4f}.")
        elif self.agreement is not None:
            lines.append(f"The rules agree with the model on {self.agreement:.2%} of the rows.")
        return "\n".join(lines)


def rules(model: Any, *, min_weight: float = 0.0, X: Any = None, units: str = "raw") -> RuleSet:
    """Return a model as if-then rules, one for each leaf of each tree.

    The terms of a condition are sorted, the strongest (in standardised units) first.
    A condition on one feature is solved for it, and of several on the same feature the
    tightest are kept.

    Parameters
    ----------
    model : classifier or regressor of this package
        A fitted model.
    min_weight : float, default=0.0
        Drop terms whose weight is below this times the largest of their node, both in
        standardised units; what they add on average moves to the constant. A hyperplane of
        a boosted model keeps its two strongest terms.
    X : array-like of shape (n_rows, n_features), default=None
        Rows on which to compare the shortened rules with the model.
    units : {"raw", "standardized"}, default="raw"
        Units of weights and thresholds: those of the columns as they came, or those in
        which the trees compare. Where leaves are constant (see :func:`explain_rows`), the
        latter are powers of two next to the standard deviations of the columns.

    Returns
    -------
    RuleSet
        Plain data; ``print`` shows it as text. The rules of an LHTClassifier, and of forests
        of such trees, are :class:`Rule`, all others :class:`BoostedRule`: what leaves add to
        the raw scores, or in a forest predict.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lhtree import LHTClassifier
    >>> from lhtree.explain import rules
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = LHTClassifier(beta=0.9, max_depth=1).fit(X, y)
    >>> print(rules(model)[0])
    if proline < 680.00 then 0: 0.00 (92 rows)
    >>> round(rules(model, min_weight=0.5, X=X).agreement, 2)
    0.97
    """
    lookup.check_model(model)
    is_number = isinstance(min_weight, int | float | np.number)
    if not is_number or isinstance(min_weight, bool) or not 0 <= min_weight <= 1:
        raise ValueError(f"min_weight must be a number from 0 to 1, got {min_weight!r}.")
    words = make_vocabulary(model, units)
    trees, least = model.forest_, float(min_weight)
    if is_exact(model):
        short: Any = boosted_splits.shorten_hyperplanes(trees, least)
        n_terms, n_dropped = len(trees.feature), len(trees.feature) - len(short.feature)
    else:
        short = shorten(trees, least)
        n_terms, n_dropped = len(trees.weight), len(trees.weight) - len(short.weight)
    return RuleSet(
        rules=tuple(rule for tree in short for rule in _list_rules(tree, words)),
        units=units,
        min_weight=least,
        n_terms=n_terms,
        n_dropped=n_dropped,
        agreement=None if X is None else _compare(model, short, X),
        predicts_numbers=not hasattr(model, "classes_"),
        start=() if words.link is None else _list_starts(trees, words.link),
    )


def _list_starts(ensemble: Ensemble, link: Link) -> tuple[tuple[str, float], ...]:
    if link.is_averaged:
        return ()
    start = ensemble.to_raw(ensemble.start).tolist()
    return tuple((link.name_score(k), value) for k, value in enumerate(start))


def _compare(model: Any, trees: Any, X: Any) -> float:
    """Return how well a model with other trees predicts what it predicts itself."""
    other = copy.copy(model)
    other.forest_ = trees
    own, predicted = model.predict(X), other.predict(X)
    if hasattr(model, "classes_"):
        return float(np.mean(predicted == own))
    return float(r2_score(own, predicted))


def shorten(forest: Forest, min_weight: float) -> Forest:
    """Return a forest without the terms below `min_weight` times the largest of their node.

    What they add at the node's center moves into the threshold, so that a row there takes
    the same side. In a leaf they add nothing there.
    """
    size = np.diff(forest.start)
    node = np.repeat(np.arange(len(size)), size)
    strength = np.abs(forest.weight)
    largest = np.zeros(len(size))
    np.maximum.at(largest, node, strength)
    is_kept = strength >= min_weight * largest[node]
    if is_kept.all():
        return forest
    dropped = np.bincount(node, ~is_kept * forest.weight * forest.center, len(size))
    is_split = forest.left >= 0
    kept_size: Ints = np.bincount(node, is_kept, len(size)).astype(np.int64)
    column = forest.list_columns()[is_kept]
    is_listed = np.repeat(kept_size != forest.n_features, kept_size)
    n_listed = np.where(kept_size == forest.n_features, 0, kept_size)
    square = np.bincount(node, is_kept * forest.weight**2, len(size))
    return replace(
        forest,
        start=_add_up(kept_size),
        feature_start=_add_up(n_listed),
        feature=column[is_listed],
        weight=forest.weight[is_kept],
        center=forest.center[is_kept],
        std=forest.std[is_kept],
        threshold=forest.threshold - np.where(is_split, dropped, 0.0),
        norm=np.where(is_split, np.sqrt(square), 0.0),
    )


def _add_up(size: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(size)]).astype(np.int64)


def _list_rules(tree: Any, words: Vocabulary) -> Iterator[Rule | BoostedRule]:
    """Yield the rules of a tree, leaves from left to right."""
    stack: list[tuple[int, tuple[Any, ...]]] = [(0, ())]
    make = _make_rule if words.link is None else _make_boosted_rule
    while stack:
        node, conditions = stack.pop()
        left = int(tree.left[node])
        if left < 0:
            yield make(tree, node, conditions, words)
            continue
        for is_right in (True, False):
            side = describe_side(tree, node, is_right, words)
            stack.append((left + is_right, _add(conditions, side)))


def _make_rule(tree: Tree, leaf: int, conditions: tuple[Any, ...], words: Vocabulary) -> Rule:
    return Rule(
        tree=tree.number,
        leaf=leaf,
        positive_class=words.classes[tree.positive_class],
        conditions=conditions,
        membership=describe_node(tree, leaf, words),
        value=float(tree.value[leaf]),
        n_samples=int(tree.n_samples[leaf]),
    )


def _make_boosted_rule(
    tree: BoostedTree, leaf: int, conditions: tuple[Any, ...], words: Vocabulary
) -> BoostedRule:
    link = words.link
    assert link is not None
    value = read_values(tree, words)[leaf]
    return BoostedRule(
        tree=tree.number,
        leaf=leaf,
        conditions=conditions,
        value=tuple(value.tolist()),
        output_names=tuple(link.name_score(tree.output + k) for k in range(len(value))),
        fraction=float(tree.fraction[leaf]),
        task=link.describe_task(words.classes, tree),
        is_averaged=link.is_averaged,
        positive_class=words.classes[link.get_class(tree)] if link.name == VOTES else None,
    )


def _add(conditions: tuple[Any, ...], new: AnyCondition) -> tuple[Any, ...]:
    """Add a condition; of two limits of the same sum from the same side, keep the tighter."""
    if not isinstance(new, Condition):
        return conditions if new in conditions else (*conditions, new)
    for k, known in enumerate(conditions):
        if not isinstance(known, Condition):
            continue
        if known.terms == new.terms and known.is_upper == new.is_upper:
            return (*conditions[:k], _select_tighter(known, new), *conditions[k + 1 :])
    return (*conditions, new)


def _select_tighter(known: Condition, new: Condition) -> Condition:
    tighter = new if (new.threshold < known.threshold) == new.is_upper else known
    if new.threshold == known.threshold:
        tighter = new if "=" in known.comparison else known
    return replace(tighter, or_missing=known.or_missing and new.or_missing)
