"""Keeps commands from writing over the files that they read."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TextIO

import typer


def keep_inputs(output: Path | None, *inputs: str | Path | None) -> None:
    """Refuse to write into a file that the command reads, before it does anything.

    Files are compared, not their names: links and other spellings lead to the same file.
    Devices and pipes hold nothing that could be lost.

    Parameters
    ----------
    output : Path or None
        The file that ``-o`` names. Standard output is always checked.
    *inputs : str, Path or None
        Tables, where the text ``-`` means standard input, and models.
    """
    for source in inputs:
        is_stream = source == "-"  # no Path equals a text: a model named so is a file
        read = _look_up_file(sys.stdin if is_stream else source)
        name = "standard input" if is_stream else source
        if _is_same(_look_up_file(output), read):
            raise typer.BadParameter(
                f"-o {output} would overwrite {name}, which this command reads; name another file."
            )
        if _is_same(_look_up_file(sys.stdout), read):
            raise typer.BadParameter(
                f"standard output goes into {name}, which this command reads; send it elsewhere."
            )


def _look_up_file(source: str | Path | TextIO | None) -> os.stat_result | None:
    """Return the status of a regular file; None if there is none."""
    if source is None:
        return None
    try:
        found = (
            Path(source).stat() if isinstance(source, str | Path) else os.fstat(source.fileno())
        )
    except (OSError, ValueError):  # it does not exist, or is a stream without a file
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _is_same(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    return one is not None and other is not None and os.path.samestat(one, other)
