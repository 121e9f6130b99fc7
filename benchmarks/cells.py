"""Cells of the report's Markdown tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from benchmarks import summary
from benchmarks.datasets import ALL, DATASETS

OURS = ("LHT default", "LHT tuned")
PM = "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"
NOTE = (
    "Made by `python -m benchmarks.report` from `benchmarks/results/accuracy.jsonl`; "
    "do not edit.\n"
)


def make_table(header: Sequence[str], rows: Iterable[Sequence[str]], n_left: int = 1) -> str:
    """Return a Markdown table; all columns but the first ones are aligned to the right."""
    rule = ["---"] * n_left + ["---:"] * (len(header) - n_left)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows]) + "\n"


def format_result(result: summary.Result | None, *, is_best: bool = False) -> str:
    """Return accuracy ± deviation, or why there is none."""
    if result is None:
        return "not run"
    if result.over_s is not None:
        return "not run: over the time limit"
    digits = 2 if result.accuracy > 99.5 else 1
    text = f"{result.accuracy:.{digits}f}"
    text = f"**{text}**" if is_best else text
    return text if math.isnan(result.deviation) else f"{text}{PM}{result.deviation:.{digits}f}"


def format_quoted(column: dict[str, tuple[float, float]], name: str) -> str:
    """Return a number of the paper."""
    if name not in column:
        return ""
    value, deviation = column[name]
    return f"{value:g}{PM}{deviation:g}"


def format_row(results: summary.Results, name: str, columns: Sequence[str]) -> list[str]:
    """Return the cells of a data set; the best ones of those printed are marked."""
    if is_absent(name):
        return ["data not available", *[""] * (len(columns) - 1)]
    found = [results.get((name, model)) for model in columns]
    best = max((round(r.accuracy, 2) for r in found if r and r.over_s is None), default=math.nan)
    return [
        format_result(r, is_best=r is not None and round(r.accuracy, 2) == best) for r in found
    ]


def is_absent(name: str) -> bool:
    """Return whether no complete copy of a data set could be had."""
    return not ALL[name].checksum


def describe_splits(results: summary.Results, name: str, columns: Sequence[str]) -> str:
    """Return how many random splits a row rests on."""
    if ALL[name].n_train is not None:
        return "given"
    seeds = {results[name, m].n_seeds for m in columns if (name, m) in results} - {0}
    if not seeds:
        return ""
    return str(max(seeds)) if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"


def select_datasets(results: summary.Results) -> list[str]:
    """Return the paper's data sets; or, for a partial run, those that were run."""
    run = {key[0] for key in results}
    return [name for name in ALL if name in run or (len(run) > 20 and name in DATASETS)]
