"""Write the pages of ``docs/results``, and those of ``docs`` that have measurements.

::

    python -m benchmarks.report                      # all pages
    python -m benchmarks.report accuracy speed       # some of them

Everything in them comes from the lines in ``benchmarks/results`` and from the paper.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks import lines
from benchmarks.report import accuracy, boosting_choices, comparison, engine_choices, speed

DOCS = Path(__file__).parents[2] / "docs"

Writer = Callable[[Path, Path], list[Path]]

# By page: its lines, and what writes it.
PAGES: dict[str, tuple[str, Writer]] = {
    "accuracy": ("accuracy", accuracy.write),
    "speed": ("speed", speed.write),
    "robustness": ("robustness", accuracy.write_robustness),
    "probabilities": ("defaults", accuracy.write_probabilities),
    "scaling": ("dask", speed.write_scaling),
    "boosting": ("comparison", comparison.write),
    "engine_speed": ("engine_speed", speed.write_engine),
    "engine_choices": ("engine_choices", engine_choices.write),
    "boosting_choices": ("boosting_choices", boosting_choices.write),
}


def main(arguments: list[str] | None = None) -> None:
    """Write the pages that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.report",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("pages", nargs="*", help=f"of: {', '.join(PAGES)} (default: all)")
    parser.add_argument("--results", type=Path, default=lines.RESULTS, help="folder of lines")
    parser.add_argument("--out", type=Path, default=DOCS / "results", help="folder of pages")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.pages or PAGES:
        if name not in PAGES:
            parser.error(f"no page is called {name!r}; there are {', '.join(PAGES)}")
        kind, write = PAGES[name]
        path = options.results / f"{kind}.jsonl"
        if not lines.read(path):
            raise SystemExit(f"{path} has no lines: run python -m benchmarks.run {kind} first.")
        for made in write(path, options.out):
            print(made)


if __name__ == "__main__":
    main()
