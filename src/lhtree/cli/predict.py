"""``lhtree predict``: labels and probabilities, or numbers, for a table of any size."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import pyarrow as pa
import typer
from sklearn.base import is_classifier

from lhtree.cli.models import ModelFile, iterate_rows, list_levels, load_model
from lhtree.cli.overwrite import keep_inputs
from lhtree.cli.screen import AsJson, Examples, print_json, show_progress
from lhtree.cli.tables import (
    DataFile,
    DataFormat,
    Format,
    Source,
    ZeroBased,
    choose_format,
    open_writer,
)
from lhtree.files import replacing

EXAMPLES = Examples(
    "lhtree predict wine.safetensors wine.csv",
    "lhtree predict wine.safetensors wine.csv --proba -o predicted.parquet",
)


def predict(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="CSV, Parquet or Arrow; default: CSV on standard output.",
        ),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class.")
    ] = False,
    data_format: DataFormat = None,
    zero_based: ZeroBased = False,
    as_json: AsJson = False,
) -> None:
    """Predict the class, or the number, of every row of a table.

    The table is read and written in blocks, so it may be larger than memory. Columns are
    matched by name, in any order; columns that the model does not use are ignored.
    """
    keep_inputs(output, model, data)
    if as_json and output is None:
        raise typer.BadParameter("--json prints a summary; it needs -o for the predictions.")
    source = Source.parse(data, data_format, zero_based=zero_based)
    kind = Format.csv if output is None else choose_format(str(output), None)
    fitted = load_model(model)
    if proba and not is_classifier(fitted):
        raise typer.BadParameter(
            f"--proba needs a model of classes, but {model} is a {type(fitted).__name__}; "
            "leave it out."
        )
    blocks = iterate_rows(fitted, source)
    first = next(blocks, None)  # a table that does not fit is refused before anything is written
    with opened(output) as file, show_progress("predicting") as progress:
        n_rows = 0
        with open_writer(file, kind, make_schema(fitted, proba)) as writer:
            for rows in blocks if first is None else chain([first], blocks):
                if rows.shape[0]:
                    writer.write_table(predict_block(fitted, rows, proba))
                    n_rows += rows.shape[0]
                    progress.update(progress.task_ids[0], description=f"{n_rows} rows predicted")
    if as_json:
        print_json({"rows": n_rows, "output": str(output)})


@contextmanager
def opened(output: Path | None) -> Iterator[BinaryIO]:
    """Open standard output, or a new file that is complete or does not exist."""
    if output is None:
        yield sys.stdout.buffer
    else:
        with replacing(output) as file:
            yield file


def make_schema(model: Any, proba: bool) -> pa.Schema:
    """Return the columns of the predictions."""
    if levels := list_levels(model):
        return pa.schema([pa.field(f"prediction_{level}", pa.float64()) for level in levels])
    is_class = is_classifier(model)
    kind = pa.array(model.classes_.tolist()).type if is_class else pa.float64()
    fields = [pa.field("prediction", kind)]
    if proba:
        fields += [pa.field(f"probability_{label}", pa.float64()) for label in model.classes_]
    return pa.schema(fields)


def predict_block(model: Any, rows: Any, proba: bool) -> pa.Table:
    """Return the predictions, and optionally the probabilities, of a block of rows."""
    predicted = model.predict(rows)
    by_column = predicted.T if list_levels(model) else [predicted]
    columns = [pa.array(column.tolist()) for column in by_column]
    if proba:
        probability = model.predict_proba(rows)
        columns += [pa.array(probability[:, k].copy()) for k in range(probability.shape[1])]
    return pa.Table.from_arrays(columns, schema=make_schema(model, proba))
