"""``lhtree fit``: from a table to a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

import lhtree
from lhtree import (
    LHBoostClassifier,
    LHBoostRegressor,
    LHForestClassifier,
    LHForestRegressor,
    LHTClassifier,
)
from lhtree.cli.models import (
    check_rows,
    check_target,
    read_labelled,
    read_numbers,
    score,
    split_target,
)
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
    "lhtree fit wine.csv --target alcohol --model boost -o alcohol.safetensors",
)
MOST_COLUMNS = 30  # shown by name
MOST_NUMBERS = 30  # whole numbers that may be classes


class Kind(StrEnum):
    """A kind of model."""

    forest = "forest"
    tree = "tree"
    boost = "boost"


class Task(StrEnum):
    """What a model predicts."""

    classify = "classify"
    regress = "regress"


NUMBER_SCORES = {"r2": "R2", "rmse": "RMSE", "mae": "MAE"}


def fit(
    data: DataFile,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the class labels or numbers.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the model here.")
    ] = None,
    model: Annotated[
        Kind, typer.Option(help="A forest, a single tree per class, or boosted trees.")
    ] = Kind.forest,
    task: Annotated[
        Task | None,
        typer.Option(help="Predict classes or numbers; default: from the target and the model."),
    ] = None,
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
    empty cells are missing values. LIBSVM files contain the targets, so omit --target.
    Forests and boosted models predict numbers where the target has fractions or more than 30
    different numbers; a single tree per class predicts classes.
    """
    keep_inputs(output, data, test)
    if output is None and test is None and cv is None:
        raise typer.BadParameter("give -o to save the model, or --test or --cv to score it.")
    if output is not None and not output.absolute().parent.is_dir():
        raise typer.BadParameter(f"the folder of {output} does not exist; make it first.")
    if model == Kind.tree and task == Task.regress:
        raise typer.BadParameter(
            "--task regress needs --model forest or boost: a tree predicts classes only."
        )
    # Bad settings are refused before the table is read, which may decide on the task.
    tasks = [task] if task else [Task.classify] if model == Kind.tree else list(Task)
    parameters = read_settings(settings or [], [make_model(model, each) for each in tasks])
    source = Source.parse(data, data_format, zero_based=zero_based)
    test_source = None if test is None else open_test(test, zero_based)
    X, y, row_weight = read_rows(source, target, drop or [], weight)
    check_rows(source, y)
    if task is None:
        task = choose_task(model, y)
    if task == Task.regress:
        y = read_numbers(source, target, y)
        check_folds(len(y), cv)
    else:
        check_classes(source, target, y, cv)
    estimator = make_model(model, task)
    read_settings(settings or [], [estimator])
    draws = {} if model == Kind.tree else {"random_state": seed}
    estimator.set_params(n_jobs=jobs, **{**draws, **parameters})
    result: dict[str, Any] = {"rows": len(y), "columns": describe_columns(X), "task": str(task)}
    if not as_json:
        print_columns(source, result, get_console())
    if cv is not None:
        result["cv"] = cross_validate(estimator, X, y, row_weight, cv)
    with show_progress("growing trees"):
        estimator.fit(X, y, row_weight)
    if test_source is not None:
        result["test"] = score(estimator, *read_labelled(estimator, test_source, target))
    if output is not None:
        lhtree.save(estimator, output)
        result["model"] = str(output)
    if as_json:
        print_json(result)
    else:
        print_scores(estimator, result, get_console())


def make_model(kind: Kind, task: Task) -> Any:
    """Return an unfitted model of a kind."""
    if kind == Kind.tree:
        return LHTClassifier()
    classifier, regressor = {
        Kind.forest: (LHForestClassifier, LHForestRegressor),
        Kind.boost: (LHBoostClassifier, LHBoostRegressor),
    }[kind]
    return classifier() if task == Task.classify else regressor()


def read_settings(settings: list[str], models: list[Any]) -> dict[str, Any]:
    """Return the parameters that the command line sets; at least one of the models has each."""
    known = dict.fromkeys(name for model in models for name in model.get_params())
    parameters = {}
    for setting in settings:
        name, is_given, text = setting.partition("=")
        if not is_given:
            raise typer.BadParameter(f"--set takes NAME=VALUE, got {setting!r}.")
        if name not in known:
            kinds = " or ".join(type(model).__name__ for model in models)
            raise typer.BadParameter(
                f"--set {name} is not a parameter of {kinds}; the parameters are "
                f"{', '.join(known)}."
            )
        parameters[name] = read_value(text)
    return parameters


def choose_task(kind: Kind, y: Any) -> Task:
    """Return what to predict: numbers if the model can, and the target has many of them."""
    if kind == Kind.tree or y.dtype.kind not in "iuf":
        return Task.classify
    is_number = (y != np.floor(y)).any() or len(np.unique(y)) > MOST_NUMBERS
    return Task.regress if is_number else Task.classify


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
    name = "labels" if target is None else f"column {target!r}"
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        raise TableError(
            f"{source} has numbers with fractions in its {name}, which are not classes; predict "
            "the numbers with --model forest or boost, or name a column of class labels."
        )
    n_least = int(np.unique(y, return_counts=True)[1].min())
    if n_folds is not None and n_folds > n_least:
        raise typer.BadParameter(
            f"--cv {n_folds} needs {n_folds} rows of each class, but one class has only "
            f"{n_least}; use fewer folds or merge rare classes."
        )


def check_folds(n_rows: int, n_folds: int | None) -> None:
    """Refuse more folds than rows: each needs two to have an R2."""
    if n_folds is not None and 2 * n_folds > n_rows:
        raise typer.BadParameter(
            f"--cv {n_folds} needs {2 * n_folds} rows, got {n_rows}; use fewer folds."
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
    """Score a model by cross-validation, stratified by classes."""
    kind = StratifiedKFold if is_classifier(model) else KFold
    folds = kind(n_folds, shuffle=True, random_state=0)
    scores = []
    with show_progress("cross-validation", total=n_folds) as progress:
        for train, test in folds.split(np.zeros(len(y)), y):
            fold_weight = None if weight is None else weight[train]
            fold = clone(model).fit(take_rows(X, train), y[train], fold_weight)
            scores.append(score(fold, take_rows(X, test), y[test]))
            progress.advance(progress.task_ids[0])
    if "quantiles" in scores[0]:
        return {"folds": n_folds, "quantiles": average_quantiles(scores)}
    if not is_classifier(model):
        means = {name: float(np.mean([fold[name] for fold in scores])) for name in NUMBER_SCORES}
        return {"folds": n_folds, **means, "r2_std": float(np.std([f["r2"] for f in scores]))}
    accuracy = [fold["accuracy"] for fold in scores]
    losses = [fold["log_loss"] for fold in scores if fold["log_loss"] is not None]
    return {
        "folds": n_folds,
        "accuracy": float(np.mean(accuracy)),
        "accuracy_std": float(np.std(accuracy)),
        "log_loss": float(np.mean(losses)) if losses else None,
    }


def average_quantiles(scores: list[dict[str, Any]]) -> list[dict[str, float]]:
    """Return the means over the folds of what each quantile has."""
    by_level = zip(*(fold["quantiles"] for fold in scores), strict=True)
    return [
        {name: float(np.mean([fold[name] for fold in folds])) for name in folds[0]}
        for folds in by_level
    ]


def print_scores(model: Any, result: dict[str, Any], console: Console) -> None:
    """Print the size of the model and its scores."""
    console.print(
        f"{type(model).__name__}: {count(len(model.trees_), 'tree')}, "
        f"{count(model.get_n_leaves(), 'leaf', 'leaves')}, depth {model.get_depth()}",
        markup=False,
    )
    for name in ("cv", "test"):
        if name in result:
            rows = f"over {result[name]['folds']} folds" if name == "cv" else "on the test table"
            for line in describe_scores(result[name], rows):
                console.print(line)
    if "model" in result:
        console.print(f"saved to {result['model']}", markup=False)


def describe_scores(scores: dict[str, Any], rows: str) -> Iterator[str]:
    """Yield lines about the scores of some rows."""
    if "accuracy" in scores:
        deviation = f" ± {scores['accuracy_std']:.4f}" if "accuracy_std" in scores else ""
        yield f"accuracy {rows}: {scores['accuracy']:.4f}{deviation}"
    elif "quantiles" in scores:
        for each in scores["quantiles"]:
            yield (
                f"{rows}, quantile {each['level']:g}: pinball loss {each['pinball_loss']:.4g}, "
                f"{each['coverage']:.1%} of the rows are at most as large"
            )
    else:
        deviation = f" (R2 ± {scores['r2_std']:.4f})" if "r2_std" in scores else ""
        yield f"{rows}: {describe_numbers(scores)}{deviation}"


def describe_numbers(scores: dict[str, Any]) -> str:
    """Return R2, RMSE and MAE in words."""
    parts = []
    for name, title in NUMBER_SCORES.items():
        value = scores[name]
        text = "none" if value is None else f"{value:.4f}" if name == "r2" else f"{value:.4g}"
        parts.append(f"{title} {text}")
    return ", ".join(parts)
