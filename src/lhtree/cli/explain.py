"""``lhtree explain``: what leads to the prediction of one row."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from lhtree.cli.models import ModelFile, iterate_rows, load_model
from lhtree.cli.overwrite import keep_inputs
from lhtree.cli.screen import AsJson, Examples, add_row, get_console, make_table, print_json
from lhtree.cli.tables import DataFile, DataFormat, Source, ZeroBased
from lhtree.explain import explain_rows, nearest_counterfactual
from lhtree.explain.model_view import ModelView, look_up_output, view_model
from lhtree.explain.wording import choose_decimals

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
    """Show what each feature adds to a prediction, and what would change the predicted class.

    Trees and forests vote for classes, boosted models add up raw scores: log-odds of two
    classes, a score per class of more, or the predicted number.
    """
    keep_inputs(None, model, data)
    fitted = load_model(model)
    x = read_row(fitted, Source.parse(data, data_format, zero_based=zero_based), row)
    facts = describe(fitted, x, label)
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
    view = view_model(model)
    if view.classes is None:
        if label is not None:
            raise typer.BadParameter(
                f"--class {label} is for models of classes, and this one predicts numbers; "
                "leave it out."
            )
        output = look_up_output(view, None)
        prediction = np.ravel(model.predict(x))[output]
        return {"prediction": prediction, **describe_score(view, x, output)}
    labels = [str(one) for one in view.classes]
    if label is not None and label not in labels:
        raise typer.BadParameter(
            f"--class {label} is not a class of the model; its classes are {', '.join(labels)}."
        )
    predicted = model.predict(x)[0]
    k = labels.index(str(predicted) if label is None else label)
    return {
        "prediction": predicted,
        "probabilities": dict(zip(labels, model.predict_proba(x)[0], strict=True)),
        "class": view.classes[k],
        **describe_score(view, x, k),
        "counterfactual": describe_counterfactual(model, x),
    }


def describe_score(view: ModelView, x: Any, output: int) -> dict[str, Any]:
    """Return what a score is, what it starts from and what the features add to it."""
    explanation = explain_rows(view.model, x).by_feature()
    total, names = explanation.contribution[0, output], explanation.feature_names
    order = np.argsort(-np.abs(total), kind="stable")
    return {
        "explained": view.output_names[output],
        "name": view.score_name,
        "start": view.start_name,
        "base": explanation.base[output],
        "score": explanation.score[0, output],
        "contributions": {names[j]: total[j] for j in order},
    }


def describe_counterfactual(model: Any, x: Any) -> dict[str, Any]:
    """Return the nearest change that leads to another class."""
    other = nearest_counterfactual(model, x)
    return {
        "message": other.message,
        "is_minimal": other.is_minimal,
        "prediction": other.prediction,
        "change": {
            name: value
            for name, value in zip(other.feature_names, other.change, strict=True)
            if value != 0 and np.isfinite(value)
        },
    }


def print_facts(facts: dict[str, Any], top: int, console: Console) -> None:
    """Print the facts as a table whose numbers add up."""
    terms = list(facts["contributions"].items())
    is_vote = facts["name"] == "vote"
    largest = [facts["base"], facts["score"], *facts["contributions"].values()]
    n = 4 if is_vote else choose_decimals(largest, 5)
    prediction = facts["prediction"]
    if "probabilities" in facts:
        shown = f"{prediction} (probability {facts['probabilities'][str(prediction)]:.3f})"
    else:
        shown = f"{prediction:.6g}"
    console.print(f"row {facts['row']}: {shown}", markup=False)
    table = make_table(facts["explained"], "adds", right=("adds",))
    add_row(table, f"base: {facts['start']}", f"{facts['base']:.{n}f}")
    for name, value in terms[:top]:
        add_row(table, name, f"{value:+.{n}f}")
    if others := terms[top:]:
        add_row(table, f"{len(others)} others", f"{sum(value for _, value in others):+.{n}f}")
    add_row(table, facts["name"], f"{facts['score']:.{n}f}")
    console.print(table)
    if "counterfactual" not in facts:
        return
    console.print(facts["counterfactual"]["message"], markup=False)
    changes = facts["counterfactual"]["change"]
    for name in sorted(changes, key=lambda name: -abs(changes[name]))[:top]:
        console.print(f"  {name}: {changes[name]:+.6g}", markup=False)
