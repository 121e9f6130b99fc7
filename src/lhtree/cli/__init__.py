"""The command ``lhtree``.

Each command has a module that parses, calls and prints. :mod:`lhtree.cli.tables` reads and
writes files, :mod:`lhtree.cli.overwrite` keeps a command from overwriting its inputs, and
:mod:`lhtree.cli.screen` prints.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command ``lhtree``.

    Exits with 0 on success, 2 on wrong usage and 130 on an interrupt. Any other error exits
    with 1 and one sentence on standard error; ``--debug`` shows its traceback.
    """
    try:
        from lhtree.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "pandas", "pyarrow"):
            raise
        sys.exit(f'The command lhtree needs {error.name}: install with pip install "lhtree[cli]".')
    except KeyboardInterrupt:
        sys.exit(130)
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough; the interpreter must not flush again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
