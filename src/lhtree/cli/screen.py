"""What a command shows: text for people, JSON for programs, progress on a terminal."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

WIDTH_IN_PIPE = 100  # there is no terminal; wide enough that no cell is cut

AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, for other programs.")
]


class Examples(tuple[str, ...]):
    """Commands that the help of a command shows; the tests run them as printed."""

    def __new__(cls, *lines: str) -> Examples:
        """Take one command per line."""
        return super().__new__(cls, lines)

    def __str__(self) -> str:
        # Typer joins lines unless an empty one stands between them.
        return "Examples:\n\n" + "\n\n".join(self)


def get_console() -> Console:
    """Return where results are printed: standard output."""
    return Console(width=None if sys.stdout.isatty() else WIDTH_IN_PIPE, highlight=False)


def print_json(value: Any) -> None:
    """Print plain data as JSON; NaN and infinities become null."""
    typer.echo(json.dumps(to_plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def to_plain(value: Any) -> Any:
    """Return values of NumPy and Python as JSON types."""
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return repr(value)


def make_table(*names: str, right: tuple[str, ...] = ()) -> Table:
    """Return an empty table; the columns in `right` are aligned there."""
    table = Table(box=box.SIMPLE)
    for name in names:
        table.add_column(Text(name), justify="right" if name in right else "left")
    return table


def add_row(table: Table, *cells: object) -> None:
    """Add a row whose cells are shown as they are: names may look like markup."""
    table.add_row(*(Text(str(cell)) for cell in cells))


def count(n: int, one: str, many: str | None = None) -> str:
    """Return a number of things in words."""
    return f"{n} {one if n == 1 else many or one + 's'}"


@contextmanager
def show_progress(task: str, total: float | None = None) -> Iterator[Progress]:
    """Show a bar on standard error while the block runs, if that is a terminal.

    Its only task has number 0; without `total` the bar shows no end.
    """
    console = Console(stderr=True)
    columns = [TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()]
    if total is not None:
        columns.append(TimeRemainingColumn())
    is_terminal = sys.stderr.isatty()
    progress = Progress(*columns, console=console, transient=True, disable=not is_terminal)
    progress.add_task(task, total=total)
    # Some versions of rich print an empty line at the end of a bar that is not shown.
    with progress if is_terminal else nullcontext():
        yield progress
