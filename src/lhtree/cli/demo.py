"""``lhtree demo``: trees and forests on the Wine data, next to the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from lhtree import LHForestClassifier, LHTClassifier
from lhtree.cli.screen import AsJson, Examples, get_console, print_json
from lhtree.files import write_atomically

N_SPLITS = 10
TEST_SIZE = 0.2
N_STRONGEST = 4


@dataclass(frozen=True)
class Accuracy:
    """Accuracy in percent over several splits."""

    mean: float
    std: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.std:.1f}"


# Table 4 of the paper: copied from there, never computed here.
PAPER_ACCURACY = {
    0.0: Accuracy(97.6, 2.8),
    0.25: Accuracy(97.8, 1.6),
    0.5: Accuracy(96.8, 2.4),
    0.75: Accuracy(93.0, 3.2),
    1.0: Accuracy(94.1, 4.2),
}


@dataclass(frozen=True)
class TreeScore:
    """Single trees with one `beta`, here and in the paper."""

    beta: float
    accuracy: Accuracy
    paper: Accuracy


@dataclass(frozen=True)
class Term:
    """A feature and its weight in a split."""

    feature: str
    weight: float


@dataclass(frozen=True)
class FirstSplit:
    """The strongest terms of the root of one class's tree, strongest first."""

    positive_class: str
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Demo:
    """All numbers of ``lhtree demo``."""

    n_splits: int
    test_size: float
    trees: tuple[TreeScore, ...]
    forest: Accuracy
    first_splits: tuple[FirstSplit, ...]


def score_models(models: Sequence[Any], X: Any, y: Any) -> Accuracy:
    """Fit and score classifiers, each on its own random stratified split.

    Parameters
    ----------
    models : sequence of classifiers
        Model ``i`` gets the split of seed ``i``.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Class labels.

    Returns
    -------
    Accuracy
        Mean and standard deviation over the splits.
    """
    percent = []
    for seed, model in enumerate(models):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=TEST_SIZE, stratify=y, random_state=seed
        )
        percent.append(100 * model.fit(X_train, y_train).score(X_test, y_test))
    return Accuracy(float(np.mean(percent)), float(np.std(percent)))


def list_first_splits(
    model: LHTClassifier, feature_names: list[str], class_names: list[str]
) -> tuple[FirstSplit, ...]:
    """Return the strongest terms of each tree's root.

    Parameters
    ----------
    model : LHTClassifier
        Fitted classifier.
    feature_names : list of str
        Names of the columns.
    class_names : list of str
        Names of the classes, in the order of ``classes_``.

    Returns
    -------
    tuple of FirstSplit
        One entry per tree.
    """
    splits = []
    for tree in model.trees_:
        feature, weight, *_ = tree.terms(0)
        strongest = np.argsort(-np.abs(weight), kind="stable")[:N_STRONGEST]
        terms = (Term(feature_names[feature[k]], float(weight[k])) for k in strongest)
        splits.append(FirstSplit(class_names[tree.positive_class], tuple(terms)))
    return tuple(splits)


def compute_demo() -> Demo:
    """Train trees and forests on scikit-learn's Wine data.

    Returns
    -------
    Demo
        Accuracies, and the first split of each class's tree on all rows.
    """
    wine = load_wine()
    X, y = wine.data, wine.target
    trees = []
    for beta, paper in PAPER_ACCURACY.items():
        models = [LHTClassifier(beta=beta) for _ in range(N_SPLITS)]
        trees.append(TreeScore(beta, score_models(models, X, y), paper))
    forests = [LHForestClassifier(random_state=seed) for seed in range(N_SPLITS)]
    forest = score_models(forests, X, y)
    model = LHTClassifier().fit(X, y)
    splits = list_first_splits(model, wine.feature_names, wine.target_names.tolist())
    return Demo(N_SPLITS, TEST_SIZE, tuple(trees), forest, splits)


def print_demo(numbers: Demo, console: Console) -> None:
    """Print the numbers as two tables.

    Parameters
    ----------
    numbers : Demo
        What :func:`compute_demo` returns.
    console : rich.console.Console
        Where to print.
    """
    test = round(100 * numbers.test_size)
    console.print(
        f"Accuracy on Wine in %: mean ± standard deviation over {numbers.n_splits} random "
        f"{100 - test}/{test} splits.\nThe column paper repeats table 4 of the paper; it is not "
        "computed here."
    )
    console.print(_tabulate_accuracy(numbers))
    console.print(
        "Strongest features of each class's first split "
        "(all rows, beta = 0, standardised columns)."
    )
    console.print(_tabulate_first_splits(numbers))


def _tabulate_accuracy(numbers: Demo) -> Table:
    table = Table(box=box.SIMPLE)
    table.add_column("model")
    for name in ("beta", "lhtree", "paper"):
        table.add_column(name, justify="right")
    for score in numbers.trees:
        table.add_row("one tree", f"{score.beta:g}", str(score.accuracy), str(score.paper))
    table.add_row("forest", "default", str(numbers.forest), "-")
    return table


def _tabulate_first_splits(numbers: Demo) -> Table:
    table = Table(box=box.SIMPLE)
    table.add_column("class")
    table.add_column("feature")
    table.add_column("weight", justify="right")
    for split in numbers.first_splits:
        for term in split.terms:
            name = split.positive_class if term is split.terms[0] else ""
            is_last = term is split.terms[-1]
            table.add_row(name, term.feature, f"{term.weight:+.2f}", end_section=is_last)
    return table


EXAMPLES = Examples("lhtree demo", "lhtree demo --csv wine.csv")


def demo(
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the Wine data to this CSV file and exit."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train trees on the Wine data and compare them with the paper.

    With --csv, write the data instead, so that you can try the other commands.
    """
    if csv is not None:
        wine = load_wine(as_frame=True)
        frame = wine.data.assign(cultivar=wine.target_names[wine.target])
        write_atomically(csv, frame.to_csv(index=False))
        return
    numbers = compute_demo()
    if as_json:
        print_json(asdict(numbers))
    else:
        print_demo(numbers, get_console())
