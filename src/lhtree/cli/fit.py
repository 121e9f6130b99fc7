"""``lhtree fit``: from a table to a model."""

from __future__ import annotations

import ast
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

import lhtree
from lhtree import LHForestClassifier, LHTClassifier
from lhtree.cli.models import check_rows, check_target, read_labelled, score, split_target
from lhtree.cli.overwrite import keep_inputs
from lhtree.cli.screen import (
    AsJson,
    Examples,
    add_row,
    count,
    get_console,
    make_table,
    print_json,
    show_progress,
)
from lhtree.cli.tables import (
    DataFile,
    DataFormat,
    Format,
    Source,
    TableError,
    ZeroBased,
    read_frame,
    read_libsvm,
)
from lhtree.data.frames import take_rows

EXAMPLES = Examples(
    "lhtree fit wine.csv --target cultivar -o wine.safetensors",
    "lhtree fit wine.csv --target cultivar --model tree --set beta=0.25 --cv 5",
)
MOST_COLUMNS = 30  # shown by name


class Kind(StrEnum):
    """One of the two classifiers."""

    forest = "forest"
    tree = "tree"


def fit(
    data: DataFile,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the class labels.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the model here.")
    ] = None,
    model: Annotated[
        Kind, typer.Option(help="A forest, or a single tree per class.")
    ] = Kind.forest,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Parameter of the model; repeatable."),
    ] = None,
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Score the model on this table.")
    ] = None,
    cv: Annotated[
        int | None, typer.Option(min=2, help="Score by cross-validation with this many folds.")
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Ignore this column; repeatable."),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the rows' weights.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random draws.")] = 0,
    jobs: Annotated[int, typer.Option(help="Threads; -1 uses all cores.")] = -1,
    data_format: DataFormat = None,
    zero_based: ZeroBased = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on a table and save it.

    Column types are inferred and shown: numbers stay numbers, text becomes categories,
    empty cells are missing values. LIBSVM files contain the labels, so omit --target.
    """
    keep_inputs(output, data, test)
    if output is None and test is None and cv is None:
        raise typer.BadParameter("give -o to save the model, or --test or --cv to score it.")
    if output is not None and not output.absolute().parent.is_dir():
        raise typer.BadParameter(f"the folder of {output} does not exist; make it first.")
    classifier = make_classifier(model, settings or [], seed, jobs)
    source = Source.parse(data, data_format, zero_based=zero_based)
    test_source = None if test is None else open_test(test, zero_based)
    X, y, row_weight = read_rows(source, target, drop or [], weight)
    check_classes(source, target, y, cv)
    result: dict[str, Any] = {"rows": len(y), "columns": describe_columns(X)}
    if not as_json:
        print_columns(source, result, get_console())
    if cv is not None:
        result["cv"] = cross_validate(classifier, X, y, row_weight, cv)
    with show_progress("growing trees"):
        classifier.fit(X, y, row_weight)
    if test_source is not None:
        result["test"] = score(classifier, *read_labelled(classifier, test_source, target))
    if output is not None:
        lhtree.save(classifier, output)
        result["model"] = str(output)
    if as_json:
        print_json(result)
    else:
        print_scores(classifier, result, get_console())


def make_classifier(kind: Kind, settings: list[str], seed: int, jobs: int) -> Any:
    """Return an unfitted classifier with the parameters of the command line."""
    if kind == Kind.forest:
        classifier: Any = LHForestClassifier(random_state=seed, n_jobs=jobs)
    else:
        classifier = LHTClassifier(n_jobs=jobs)
    known = classifier.get_params()
    for setting in settings:
        name, is_given, text = setting.partition("=")
        if not is_given:
            raise typer.BadParameter(f"--set takes NAME=VALUE, got {setting!r}.")
        if name not in known:
            raise typer.BadParameter(
                f"--set {name} is not a parameter of a {kind}; its parameters are "
                f"{', '.join(known)}."
            )
        classifier.set_params(**{name: read_value(text)})
    return classifier


def read_value(text: str) -> Any:
    """Return the Python value of a text (a number, None, True, ...), or the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def read_rows(
    source: Source, target: str | None, dropped: list[str], weight: str | None
) -> tuple[Any, Any, Any]:
    """Return features, labels and weights of the training table."""
    if source.format == Format.libsvm:
        if target is not None or dropped or weight is not None:
            raise typer.BadParameter("LIBSVM files have no named columns to choose from.")
        return (*read_libsvm(source), None)
    target = check_target(target)
    frame = read_frame(source)
    omitted = [*dropped, *([] if weight is None else [weight])]
    X, y = split_target(source, frame, target, omitted)
    return X, y, None if weight is None else frame[weight].to_numpy()


def open_test(name: str, zero_based: bool) -> Source:
    """Return the table to score on; it must exist before a long fit begins."""
    source = Source.parse(name, zero_based=zero_based)
    with source.open():
        return source


def check_classes(source: Source, target: str | None, y: Any, n_folds: int | None) -> None:
    """Refuse labels that are not classes, or too few for the folds."""
    check_rows(source, y)
    name = "labels" if target is None else f"column {target!r}"
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        raise TableError(
            f"{source} has numbers with fractions in its {name}, but lhtree predicts classes; "
            "name a column of class labels, or turn the numbers into classes first."
        )
    n_least = int(np.unique(y, return_counts=True)[1].min())
    if n_folds is not None and n_folds > n_least:
        raise typer.BadParameter(
            f"--cv {n_folds} needs {n_folds} rows of each class, but one class has only "
            f"{n_least}; use fewer folds or merge rare classes."
        )


def describe_columns(X: Any) -> list[dict[str, Any]]:
    """Return the name, the kind and the number of missing values of each column."""
    if not isinstance(X, pd.DataFrame):
        return [{"name": f"x0 to x{X.shape[1] - 1}", "kind": "number", "missing": 0}]
    rows = []
    for name in X.columns:
        column = X[name]
        is_number = pd.api.types.is_numeric_dtype(column)
        kind = "number" if is_number else str(column.dtype)
        if pd.api.types.is_bool_dtype(column):
            kind = "boolean"
        elif not is_number and not pd.api.types.is_datetime64_any_dtype(column):
            kind = f"category, {column.nunique()} values"
        rows.append({"name": str(name), "kind": kind, "missing": int(column.isna().sum())})
    return rows


def print_columns(source: Source, result: dict[str, Any], console: Console) -> None:
    """Print the inferred types of the columns."""
    columns = result["columns"]
    n_rows, n_columns = count(result["rows"], "row"), count(len(columns), "column")
    console.print(f"{n_rows}, {n_columns} in {source}", markup=False)
    table = make_table("column", "read as", "missing", right=("missing",))
    for column in columns[:MOST_COLUMNS]:
        add_row(table, column["name"], column["kind"], column["missing"] or "-")
    if len(columns) > MOST_COLUMNS:
        add_row(table, f"... and {len(columns) - MOST_COLUMNS} more", "", "")
    console.print(table)


def cross_validate(model: Any, X: Any, y: Any, weight: Any, n_folds: int) -> dict[str, Any]:
    """Score a model by stratified cross-validation."""
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    scores = []
    with show_progress("cross-validation", total=n_folds) as progress:
        for train, test in folds.split(np.zeros(len(y)), y):
            fold_weight = None if weight is None else weight[train]
            fold = clone(model).fit(take_rows(X, train), y[train], fold_weight)
            scores.append(score(fold, take_rows(X, test), y[test]))
            progress.advance(progress.task_ids[0])
    accuracy = [fold["accuracy"] for fold in scores]
    losses = [fold["log_loss"] for fold in scores if fold["log_loss"] is not None]
    return {
        "folds": n_folds,
        "accuracy": float(np.mean(accuracy)),
        "accuracy_std": float(np.std(accuracy)),
        "log_loss": float(np.mean(losses)) if losses else None,
    }


def print_scores(model: Any, result: dict[str, Any], console: Console) -> None:
    """Print the size of the model and its scores."""
    console.print(
        f"{type(model).__name__}: {count(len(model.trees_), 'tree')}, "
        f"{count(model.get_n_leaves(), 'leaf', 'leaves')}, depth {model.get_depth()}",
        markup=False,
    )
    if "cv" in result:
        cv = result["cv"]
        console.print(
            f"accuracy over {cv['folds']} folds: {cv['accuracy']:.4f} ± {cv['accuracy_std']:.4f}"
        )
    if "test" in result:
        console.print(f"accuracy on the test table: {result['test']['accuracy']:.4f}")
    if "model" in result:
        console.print(f"saved to {result['model']}", markup=False)
