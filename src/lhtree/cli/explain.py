"""``lhtree explain``: what leads to the prediction of one row."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from lhtree.cli.models import ModelFile, iterate_rows, load_classifier
from lhtree.cli.overwrite import keep_inputs
from lhtree.cli.screen import AsJson, Examples, add_row, get_console, make_table, print_json
from lhtree.cli.tables import DataFile, DataFormat, Source, ZeroBased
from lhtree.explain import explain_rows, nearest_counterfactual

EXAMPLES = Examples(
    "lhtree explain wine.safetensors wine.csv --row 17",
    "lhtree explain wine.safetensors wine.csv --row 17 --class class_1 --json",
)


def explain(
    model: ModelFile,
    data: DataFile,
    row: Annotated[int, typer.Option(min=0, help="Number of the row; the first is 0.")] = 0,
    label: Annotated[
        str | None,
        typer.Option(
            "--class", metavar="LABEL", help="Class to explain; default: the predicted class."
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, help="Number of features to show, strongest first.")
    ] = 10,
    data_format: DataFormat = None,
    zero_based: ZeroBased = False,
    as_json: AsJson = False,
) -> None:
    """Show what each feature adds to the vote for a class, and what would flip the prediction."""
    keep_inputs(None, model, data)
    classifier = load_classifier(model)
    x = read_row(classifier, Source.parse(data, data_format, zero_based=zero_based), row)
    facts = describe(classifier, x, label)
    facts["row"] = row
    if as_json:
        print_json(facts)
    else:
        print_facts(facts, top, get_console())


def read_row(model: Any, source: Source, number: int) -> Any:
    """Return one row of a table as a table of one row."""
    n_before = 0
    for rows in iterate_rows(model, source):
        if number < n_before + rows.shape[0]:
            part = slice(number - n_before, number - n_before + 1)
            return rows.iloc[part] if hasattr(rows, "iloc") else rows[part]
        n_before += rows.shape[0]
    raise typer.BadParameter(
        f"--row {number} is not in {source}: its {n_before} rows are numbered from 0."
    )


def describe(model: Any, x: Any, label: str | None) -> dict[str, Any]:
    """Return the prediction, the contributions and the nearest counterfactual of one row."""
    labels = [str(one) for one in model.classes_]
    if label is not None and label not in labels:
        raise typer.BadParameter(
            f"--class {label} is not a class of the model; its classes are {', '.join(labels)}."
        )
    proba = model.predict_proba(x)[0]
    predicted = model.predict(x)[0]
    k = labels.index(str(predicted) if label is None else label)
    explanation = explain_rows(model, x).by_feature()
    total = explanation.contribution[0, k]
    other = nearest_counterfactual(model, x)
    names = explanation.feature_names
    return {
        "prediction": predicted,
        "probabilities": dict(zip(labels, proba, strict=True)),
        "class": model.classes_[k],
        "base": explanation.base[k],
        "score": explanation.score[0, k],
        "contributions": {names[j]: total[j] for j in np.argsort(-np.abs(total), kind="stable")},
        "counterfactual": {
            "message": other.message,
            "is_minimal": other.is_minimal,
            "prediction": other.prediction,
            "change": {
                name: value
                for name, value in zip(names, other.change, strict=True)
                if value != 0 and np.isfinite(value)
            },
        },
    }


def print_facts(facts: dict[str, Any], top: int, console: Console) -> None:
    """Print the facts as a table whose numbers add up."""
    probability = facts["probabilities"][str(facts["prediction"])]
    console.print(
        f"row {facts['row']}: {facts['prediction']} (probability {probability:.3f})", markup=False
    )
    table = make_table(f"vote for {facts['class']}", "adds", right=("adds",))
    add_row(table, "base: fraction of the class", f"{facts['base']:.4f}")
    terms = list(facts["contributions"].items())
    for name, value in terms[:top]:
        add_row(table, name, f"{value:+.4f}")
    if others := terms[top:]:
        add_row(table, f"{len(others)} others", f"{sum(value for _, value in others):+.4f}")
    add_row(table, "vote", f"{facts['score']:.4f}")
    console.print(table)
    console.print(facts["counterfactual"]["message"], markup=False)
    changes = facts["counterfactual"]["change"]
    for name in sorted(changes, key=lambda name: -abs(changes[name]))[:top]:
        console.print(f"  {name}: {changes[name]:+.6g}", markup=False)
