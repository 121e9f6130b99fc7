"""Nodes in words: sums of named terms, sorted by their strength."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lhtree.arrays import Floats
from lhtree.data.columns import OTHERS, Columns
from lhtree.data.validation import join_few
from lhtree.estimators import lookup
from lhtree.explain.linear_splits import compute_units
from lhtree.model.ensemble import BoostedTree
from lhtree.model.ensemble_splits import CategorySplit, HyperplaneSplit
from lhtree.model.link import Link, is_exact, read_link
from lhtree.model.tree import Tree

UNITS = ("raw", "standardized")
MISSING = "missing"  # names the code of missing and unknown categories
MIRRORED = {"<": ">", ">=": "<=", ">": "<", "<=": ">="}  # of both sides, divided by -1


@dataclass(frozen=True)
class Term:
    """A feature and what it is multiplied by."""

    feature: str
    weight: float


@dataclass(frozen=True)
class LinearSum:
    """A sum of terms, the strongest first, plus a constant."""

    terms: tuple[Term, ...]
    constant: float

    def format(self, decimals: int = 2, n_terms: int | None = None) -> str:
        """Return the sum in words; terms beyond `n_terms` are only counted."""
        constant = format_number(abs(self.constant), decimals)
        if not self.terms:
            return f"-{constant}" if self.constant < 0 else constant
        return f"{join_terms(self.terms, decimals, n_terms)} {'+-'[self.constant < 0]} {constant}"


@dataclass(frozen=True)
class Condition:
    """A comparison of a sum of terms with a threshold."""

    terms: tuple[Term, ...]
    comparison: str  # <, >=, > or <=
    threshold: float
    or_missing: bool = False  # whether it holds for a missing value

    @property
    def is_upper(self) -> bool:
        """Whether the sum is limited from above."""
        return self.comparison in ("<", "<=")

    def format(self, decimals: int = 2, n_terms: int | None = None) -> str:
        """Return the condition in words."""
        terms = join_terms(self.terms, decimals, n_terms)
        text = f"{terms} {self.comparison} {format_number(self.threshold, decimals)}"
        return f"{text} or missing" if self.or_missing else text

    def __str__(self) -> str:
        return self.format()


@dataclass(frozen=True)
class Presence:
    """Whether a value is there."""

    feature: str
    is_missing: bool

    def format(self, decimals: int = 2, n_terms: int | None = None) -> str:
        """Return the condition in words."""
        del decimals, n_terms
        return f"{self.feature} is {MISSING if self.is_missing else 'present'}"

    def __str__(self) -> str:
        return self.format()


@dataclass(frozen=True)
class Membership:
    """Whether a category is one of some; "missing" stands for unknown ones, too."""

    feature: str
    values: tuple[str, ...]
    is_in: bool

    def format(self, decimals: int = 2, n_terms: int | None = None) -> str:
        """Return the condition in words; categories beyond `n_terms` are only counted."""
        del decimals
        shown = self.values[:n_terms]
        n_hidden = len(self.values) - len(shown)
        listed = ", ".join([*shown, f"({n_hidden} more)"] if n_hidden else shown)
        return f"{self.feature} {'in' if self.is_in else 'not in'} {{{listed}}}"

    def __str__(self) -> str:
        return self.format()


AnyCondition = Condition | Presence | Membership


@dataclass(frozen=True)
class Vocabulary:
    """Names of columns and classes, and whether numbers are in raw units."""

    columns: tuple[str, ...]
    classes: tuple[str, ...]
    is_raw: bool
    codes: tuple[tuple[str, ...], ...] = ()  # of the exact engine: names of categories by column
    link: Link | None = None  # of the exact engine
    unit: Floats | None = None  # of the exact engine: what columns are divided by


def make_vocabulary(
    model: Any,
    units: str | None,
    feature_names: Sequence[Any] | None = None,
    class_names: Sequence[Any] | None = None,
) -> Vocabulary:
    """Check the names; None stands for those of the model."""
    if units is not None and units not in UNITS:
        raise ValueError(f"units must be one of {', '.join(UNITS)}, got {units!r}.")
    columns = _check_names("feature_names", feature_names, model.column_names_)
    if not is_exact(model):
        classes = _check_names("class_names", class_names, model.classes_.tolist())
        return Vocabulary(columns, classes, units == "raw")
    link = read_link(model)
    if link.classes is None and class_names is not None:
        raise ValueError("class_names is for classifiers, and this model predicts numbers.")
    own = [] if link.classes is None else link.classes.tolist()
    classes = _check_names("class_names", class_names, own)
    is_raw, unit = units != "standardized", compute_units(model.forest_)
    if is_raw:
        unit = np.ones(len(unit))
    return Vocabulary(columns, classes, is_raw, name_codes(model.columns_), link, unit)


def name_codes(columns: Columns) -> tuple[tuple[str, ...], ...]:
    """Return for each column that trees see the names of its codes, missing last."""
    source = columns.list_sources().tolist()
    names: list[tuple[str, ...]] = [()] * len(source)
    for category in columns.categories:
        own = [str(value) for value in category.values] + [OTHERS] * category.has_others
        names[source.index(category.feature)] = (*own, MISSING)
    return tuple(names)


def _check_names(argument: str, given: Any, own: Sequence[Any]) -> tuple[str, ...]:
    if given is None:
        return tuple(map(str, own))
    if isinstance(given, str) or len(given) != len(own):
        raise ValueError(
            f"{argument} must list {len(own)} names, got {given!r}; the model's own are "
            f"{join_few(list(own))}."
        )
    return tuple(map(str, given))


def name_label(label: object) -> str:
    """Return the name of a class: "class" is added to a bare number."""
    is_word = isinstance(label, str) and any(letter.isalpha() for letter in label)
    return str(label) if is_word else f"class {label}"


def describe_node(tree: Tree, node: int, words: Vocabulary) -> LinearSum:
    """Return the projection of a split, or the membership of a leaf before clipping.

    The constant of a split is 0: in raw units it is part of the threshold.
    """
    feature, weight, center, _ = tree.terms(node)
    order = np.argsort(-np.abs(weight), kind="stable")[: np.count_nonzero(weight)]
    if words.is_raw:
        unit = tree.forest.column_std[feature]
        center = tree.forest.column_mean[feature] + center * unit
        weight = weight / unit
    terms = tuple(Term(words.columns[feature[k]], float(weight[k])) for k in order)
    is_leaf = tree.left[node] < 0
    constant = float(tree.value[node] - weight @ center) if is_leaf else 0.0
    return LinearSum(terms, constant)


def describe_tree(tree: Any, words: Vocabulary) -> str:
    """Return what a tree does, as a title."""
    if words.link is None:
        positive = words.classes[tree.positive_class]
        return f"Tree {tree.number}: {positive} against all other classes"
    return f"Tree {tree.number}: {words.link.describe_task(words.classes, tree)}"


def describe_side(
    tree: Tree | BoostedTree, node: int, is_right: bool, words: Vocabulary
) -> AnyCondition:
    """Return the condition that sends rows to one side of a split."""
    if isinstance(tree, BoostedTree):
        return _describe_boosted_side(tree, node, is_right, words)
    feature, weight, *_ = tree.terms(node)
    threshold = float(tree.threshold[node])
    if words.is_raw:
        forest = tree.forest
        threshold += float(weight / forest.column_std[feature] @ forest.column_mean[feature])
    terms = describe_node(tree, node, words).terms
    comparison = ">=" if is_right else "<"
    if len(terms) > 1:
        return Condition(terms, comparison, threshold)
    (term,) = terms
    if term.weight < 0:
        comparison = MIRRORED[comparison]
    return Condition((Term(term.feature, 1.0),), comparison, threshold / term.weight)


def _describe_boosted_side(
    tree: BoostedTree, node: int, is_right: bool, words: Vocabulary
) -> AnyCondition:
    split = tree.split(node)
    comparison = ">=" if is_right else "<"
    assert words.unit is not None
    if isinstance(split, HyperplaneSplit):
        threshold = split.threshold / float(words.unit[split.feature[0]])
        return Condition(_list_terms(split, words), comparison, threshold)
    name = words.columns[split.column]
    if isinstance(split, CategorySplit):
        return _describe_categories(split, is_right, name, words.codes[split.column])
    if split.threshold == np.inf:
        return Presence(name, is_right)
    or_missing = split.has_gaps and split.missing_left != is_right
    threshold = split.threshold / float(words.unit[split.column])
    return Condition((Term(name, 1.0),), comparison, threshold, or_missing)


def _list_terms(split: HyperplaneSplit, words: Vocabulary) -> tuple[Term, ...]:
    """Return the terms of a hyperplane, the strongest first; its weight is 1 or -1."""
    assert words.unit is not None
    unit = words.unit[split.feature]
    pairs = zip(split.feature, split.weight * unit / unit[0], strict=True)
    return tuple(Term(words.columns[j], float(weight)) for j, weight in pairs)


def _describe_categories(
    split: CategorySplit, is_right: bool, name: str, codes: Sequence[str]
) -> Membership:
    """List the side with fewer categories; the other has all others."""
    lists_left = len(split.left) <= len(split.right)
    listed = split.left if lists_left else split.right
    return Membership(name, tuple(codes[k] for k in listed), lists_left != is_right)


def format_number(value: float, decimals: int) -> str:
    """Return a number with this many decimals; a small one keeps as many digits."""
    size = abs(value)
    if size == 0 or not math.isfinite(size):
        return f"{value:.{decimals}f}"
    if not 1e-4 <= size < 1e7:
        return f"{value:.{decimals}e}"
    places = decimals if size >= 1 else decimals - 1 - math.floor(math.log10(size))
    return f"{value:.{max(places, decimals)}f}"


def join_terms(terms: tuple[Term, ...], decimals: int, n_terms: int | None) -> str:
    """Return terms in words; those beyond `n_terms` are only counted."""
    shown = terms[:n_terms]
    words = [format_term(term, decimals, is_first=k == 0) for k, term in enumerate(shown)]
    n_hidden = len(terms) - len(shown)
    return " ".join([*words, f"+ ({n_hidden} more)"] if n_hidden else words)


def format_term(term: Term, decimals: int, *, is_first: bool) -> str:
    """Return a term with its sign; a weight of one is left out."""
    sign = "-" if term.weight < 0 else ("" if is_first else "+")
    size = format_number(abs(term.weight), decimals)
    word = term.feature if abs(term.weight) == 1 else f"{size}*{term.feature}"
    return f"{sign}{word}" if is_first else f"{sign} {word}"


def choose_decimals(values: Iterable[float], n_digits: int = 4, *, most: int = 12) -> int:
    """Return how many decimals show this many digits of the largest value."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest == 0:
        return n_digits - 1
    return min(max(n_digits - 1 - math.floor(math.log10(largest)), 0), most)


def check_decimals(decimals: Any) -> int:
    """Return a valid number of decimals."""
    return lookup.check_number("decimals", decimals, 0, 17)


def read_values(tree: BoostedTree, words: Vocabulary) -> Floats:
    """Return what the nodes of a tree add to each score; in a forest, what they predict."""
    assert words.link is not None
    return words.link.read_values(tree)


def format_values(values: Any, decimals: int) -> str:
    """Return the values of a node, as text."""
    listed = [format_number(float(value), decimals) for value in values]
    return listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
