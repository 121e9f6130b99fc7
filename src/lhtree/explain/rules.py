"""A model as if-then rules."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lhtree.arrays import Ints
from lhtree.estimators import lookup
from lhtree.explain.wording import (
    AnyCondition,
    Condition,
    LinearSum,
    Vocabulary,
    describe_node,
    describe_side,
    format_number,
    make_vocabulary,
)
from lhtree.model.forest import Forest
from lhtree.model.tree import Tree


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

    def __str__(self) -> str:
        condition = " and ".join(map(str, self.conditions)) or "anything"
        output = self.membership.format()
        if self.membership.terms:
            output += f", {format_number(self.value, 2)} on average"
        return f"if {condition} then {self.positive_class}: {output} ({self.n_samples} rows)"


@dataclass(frozen=True)
class RuleSet:
    """The rules of all trees, tree by tree.

    Parameters
    ----------
    rules : tuple of Rule
        One rule per leaf.
    units : str
        Units of the numbers: "raw" or "standardized".
    min_weight : float
        Terms below it were dropped.
    n_terms, n_dropped : int
        How many terms the model has, and how many of them were dropped.
    agreement : float or None
        Fraction of the rows passed for which the rules predict the model's class; None
        without rows.
    """

    rules: tuple[Rule, ...]
    units: str
    min_weight: float
    n_terms: int
    n_dropped: int
    agreement: float | None

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __getitem__(self, number: int) -> Rule:
        return self.rules[number]

    def __str__(self) -> str:
        lines = []
        for number, rule in enumerate(self.rules):
            if number == 0 or rule.tree != self.rules[number - 1].tree:
                lines.append(f"Tree {rule.tree}: {rule.positive_class} against all other classes")
            lines.append(f"  {rule}")
        if self.n_dropped:
            lines.append(
                f"{self.n_dropped} of {self.n_terms} terms were dropped: their weights are below "
                f"{self.min_weight:g} times the largest of their node."
            )
        if self.agreement is not None:
            lines.append(f"The rules agree with the model on {self.agreement:.2%} of the rows.")
        return "\n".join(lines)


def rules(model: Any, *, min_weight: float = 0.0, X: Any = None, units: str = "raw") -> RuleSet:
    """Return a model as if-then rules, one for each leaf of each tree.

    The terms of a condition are sorted, the strongest (in standardised units) first.
    A condition on one feature is solved for it, and of several on the same feature the
    tightest are kept.

    Parameters
    ----------
    model : LHTClassifier or LHForestClassifier
        A fitted model.
    min_weight : float, default=0.0
        Drop terms whose weight is below this times the largest of their node, both in
        standardised units; what they add on average moves to the constant.
    X : array-like of shape (n_rows, n_features), default=None
        Rows on which to compare the shortened rules with the model.
    units : {"raw", "standardized"}, default="raw"
        Units of weights and thresholds: those of the columns as they came, or those in
        which the trees compare.

    Returns
    -------
    RuleSet
        Plain data; ``print`` shows it as text.

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
    lookup.check_is_forest(model)
    is_number = isinstance(min_weight, int | float | np.number)
    if not is_number or isinstance(min_weight, bool) or not 0 <= min_weight <= 1:
        raise ValueError(f"min_weight must be a number from 0 to 1, got {min_weight!r}.")
    words = make_vocabulary(model, units)
    forest = shorten(model.forest_, float(min_weight))
    agreement = None
    if X is not None:
        short = copy.copy(model)
        short.forest_ = forest
        agreement = float(np.mean(short.predict(X) == model.predict(X)))
    n_terms = len(model.forest_.weight)
    return RuleSet(
        rules=tuple(rule for tree in forest for rule in _list_rules(tree, words)),
        units=units,
        min_weight=float(min_weight),
        n_terms=n_terms,
        n_dropped=n_terms - len(forest.weight),
        agreement=agreement,
    )


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


def _list_rules(tree: Tree, words: Vocabulary) -> Iterator[Rule]:
    """Yield the rules of a tree, leaves from left to right."""
    stack: list[tuple[int, tuple[Any, ...]]] = [(0, ())]
    while stack:
        node, conditions = stack.pop()
        left = int(tree.left[node])
        if left >= 0:
            for is_right in (True, False):
                side = describe_side(tree, node, is_right, words)
                stack.append((left + is_right, _add(conditions, side)))
            continue
        yield Rule(
            tree=tree.number,
            leaf=node,
            positive_class=words.classes[tree.positive_class],
            conditions=conditions,
            membership=describe_node(tree, node, words),
            value=float(tree.value[node]),
            n_samples=int(tree.n_samples[node]),
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
