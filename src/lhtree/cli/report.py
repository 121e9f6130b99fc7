"""``lhtree report``: a page about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lhtree.cli.models import ModelFile, load_model, match_labels, read_labelled
from lhtree.cli.overwrite import keep_inputs
from lhtree.cli.screen import AsJson, Examples, print_json, show_progress
from lhtree.cli.tables import DataFile, DataFormat, Source, ZeroBased

EXAMPLES = Examples("lhtree report wine.safetensors wine.csv --target cultivar -o wine.html")


def report(
    model: ModelFile,
    data: DataFile,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="HTML file.")],
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the class labels or numbers.")
    ] = None,
    data_format: DataFormat = None,
    zero_based: ZeroBased = False,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page: scores, trees to click through, and explained predictions."""
    keep_inputs(output, model, data)
    try:
        from lhtree.report import write_report
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "markupsafe"):
            raise
        raise ModuleNotFoundError(
            f'Reports need {error.name}: install with pip install "lhtree[report]".'
        ) from error
    fitted = load_model(model)
    X, y = read_labelled(fitted, Source.parse(data, data_format, zero_based=zero_based), target)
    with show_progress("writing the report"):
        write_report(fitted, X, match_labels(fitted, y), output)
    if as_json:
        print_json({"output": str(output), "rows": len(y)})
