"""The command ``lhtree``: parse, call, print."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from lhtree import LHForestClassifier, LHTClassifier, __version__

try:
    import typer
    from rich import box
    from rich.console import Console
    from rich.table import Table

    HAS_TYPER = True
except ModuleNotFoundError:  # main says what to install
    HAS_TYPER = False

N_SPLITS = 10
TEST_SIZE = 0.2
N_STRONGEST = 4
WIDTH_IN_PIPE = 100  # no terminal to ask; wide enough that no cell is cut


@dataclass(frozen=True)
class Accuracy:
    """Accuracy in percent over several splits."""

    mean: float
    std: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.std:.1f}"


# Table 4 of the paper: constants, typed from there and never computed here.
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

    target: str
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Demo:
    """All numbers of ``lhtree demo``."""

    n_splits: int
    test_size: float
    trees: tuple[TreeScore, ...]
    forest: Accuracy
    first_splits: tuple[FirstSplit, ...]


def find_accuracy(models: Sequence[Any], X: Any, y: Any) -> Accuracy:
    """Fit and score classifiers on random stratified splits, one on each.

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


def find_first_splits(
    model: LHTClassifier, feature_names: list[str], target_names: list[str]
) -> tuple[FirstSplit, ...]:
    """Return the strongest terms of each tree's root.

    Parameters
    ----------
    model : LHTClassifier
        Fitted classifier.
    feature_names : list of str
        Names of the columns.
    target_names : list of str
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
        splits.append(FirstSplit(target_names[tree.target], tuple(terms)))
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
        trees.append(TreeScore(beta, find_accuracy(models, X, y), paper))
    forests = [LHForestClassifier(random_state=seed) for seed in range(N_SPLITS)]
    forest = find_accuracy(forests, X, y)
    model = LHTClassifier().fit(X, y)
    splits = find_first_splits(model, wine.feature_names, wine.target_names.tolist())
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
        f"Accuracy on Wine in %: mean ± deviation over {numbers.n_splits} random splits, "
        f"{100 - test}/{test}.\nThe paper's column repeats its table 4; it is not computed here."
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
            name = split.target if term is split.terms[0] else ""
            is_last = term is split.terms[-1]
            table.add_row(name, term.feature, f"{term.weight:+.2f}", end_section=is_last)
    return table


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"lhtree {__version__}")
        raise typer.Exit


def _start(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Learning Hyperplane Trees: oblique decision trees and forests in closed form."""


def demo(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the numbers as JSON instead of tables.")
    ] = False,
) -> None:
    """Train trees on the Wine data and compare them with the paper."""
    numbers = compute_demo()
    if as_json:
        typer.echo(json.dumps(asdict(numbers), indent=2))
    else:
        width = None if sys.stdout.isatty() else WIDTH_IN_PIPE
        print_demo(numbers, Console(width=width, highlight=False))


def _make_app() -> typer.Typer:
    app = typer.Typer(name="lhtree", no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(_start)
    app.command()(demo)
    return app


if HAS_TYPER:
    app = _make_app()


def main() -> None:
    """Run the command ``lhtree``.

    Exits with 0 on success, 2 on wrong usage, 130 on an interrupt, otherwise 1 with
    one sentence on standard error.
    """
    if not HAS_TYPER:
        sys.exit('The command lhtree needs Typer: install with pip install "lhtree[cli]".')
    try:
        app()
    except Exception as error:
        sys.exit(f"lhtree: {str(error) or repr(error)}")
