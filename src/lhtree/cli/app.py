"""The commands together, and what happens to their errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from lhtree import __version__
from lhtree.cli import demo, explain, export, fit, info, predict, report
from lhtree.cli.interrupt import EXIT_CODE, ending_on_interrupt
from lhtree.cli.screen import Examples

# In the order in which a new user needs them.
COMMANDS: dict[str, tuple[Callable[..., None], Examples]] = {
    "fit": (fit.fit, fit.EXAMPLES),
    "predict": (predict.predict, predict.EXAMPLES),
    "explain": (explain.explain, explain.EXAMPLES),
    "report": (report.report, report.EXAMPLES),
    "export": (export.export, export.EXAMPLES),
    "info": (info.info, info.EXAMPLES),
    "demo": (demo.demo, demo.EXAMPLES),
}


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"lhtree {__version__}")
        raise typer.Exit


def _start(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Learning Hyperplane Trees: oblique decision trees and forests in closed form.

    To start, "lhtree demo --csv wine.csv" writes a table, "lhtree fit wine.csv --target
    cultivar -o wine.safetensors" trains a model on it, and the other commands read the
    model. "lhtree COMMAND --help" shows examples.
    """


def make_app() -> typer.Typer:
    """Return the command with its subcommands."""
    app = typer.Typer(
        name="lhtree",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_start)
    for name, (command, examples) in COMMANDS.items():
        app.command(name, epilog=str(examples))(command)
    return app


app = make_app()

# Typer has its own copy of Click or imports Click: take the class from Typer.
UsageError: Any = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; print an error as one sentence."""
    shows_traceback = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        with ending_on_interrupt():
            code = app(args=arguments, prog_name="lhtree", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_CODE
    except BrokenPipeError:  # the reader of our output has closed it
        return 0
    except Exception as error:
        if isinstance(error, UsageError):
            error.show()
            return int(error.exit_code)
        if shows_traceback:
            traceback.print_exc()
        else:
            print(f"lhtree: {describe(error)}", file=sys.stderr)
        return 1
    return code if isinstance(code, int) else 0


def describe(error: Exception) -> str:
    """Return an error as one line."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}."
    text = " ".join(str(error).split())
    return text or repr(error)
