"""``lhtree export``: a model for other programs and for people."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

from lhtree.cli.models import ModelFile, load_model
from lhtree.cli.overwrite import keep_inputs
from lhtree.cli.screen import AsJson, Examples, print_json
from lhtree.files import write_atomically

EXAMPLES = Examples(
    "lhtree export wine.safetensors --text",
    "lhtree export wine.safetensors --onnx -o wine.onnx",
)


def export(
    model: ModelFile,
    onnx: Annotated[bool, typer.Option("--onnx", help="ONNX graph; needs -o.")] = False,
    c: Annotated[bool, typer.Option("--c", help="C99 source without dependencies.")] = False,
    sql: Annotated[
        str | None, typer.Option(metavar="TABLE", help="SELECT statement over this table.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="The splits as text.")] = False,
    graphviz: Annotated[
        bool, typer.Option("--graphviz", help="Graph in DOT, the language of Graphviz.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Default: standard output."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a model in another format: choose one of --onnx, --c, --sql, --text, --graphviz."""
    keep_inputs(output, model)
    chosen = [
        name
        for name, is_wanted in [
            ("onnx", onnx), ("c", c), ("sql", sql is not None), ("text", text),
            ("graphviz", graphviz),
        ]
        if is_wanted
    ]  # fmt: skip
    if len(chosen) != 1:
        raise typer.BadParameter("choose one of --onnx, --c, --sql TABLE, --text or --graphviz.")
    if output is None and (onnx or as_json):
        raise typer.BadParameter("give -o, the file to write.")
    fitted = load_model(model)
    if output is not None and (onnx or c):
        _import("to_onnx" if onnx else "to_c")(fitted, output)
    else:
        content = render(fitted, chosen[0], sql)
        if output is None:
            typer.echo(content)
        else:
            write_atomically(output, content if content.endswith("\n") else content + "\n")
    if as_json:
        print_json({"format": chosen[0], "output": str(output)})


def render(model: Any, format_name: str, table: str | None) -> str:
    """Return a model as text."""
    if format_name == "sql":
        return str(_import("to_sql")(model, table))
    if format_name == "c":
        return str(_import("to_c")(model, None))
    return str(_import(f"export_{format_name}")(model))


def _import(name: str) -> Any:
    """Return a function of lhtree.export, which other commands need not load."""
    return getattr(importlib.import_module("lhtree.export"), name)
