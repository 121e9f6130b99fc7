"""Write the tables of docs/scaling.md from the lines of benchmarks/results/dask.jsonl.

Of several lines for the same measurement the last counts.

    python -m benchmarks.dask_report
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.dask_scaling import MODELS, RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"
Line = dict[str, Any]


def read_last(kind: str, *names: str, needed: str = "kind") -> list[Line]:
    """Return the last line for each value of the fields that tell measurements apart.

    Lines of earlier versions of the benchmark that lack the field `needed` do not count.
    """
    last: dict[tuple[Any, ...], Line] = {}
    for text in RESULTS.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        if line["kind"] == kind and all(name in line for name in (*names, needed)):
            last[tuple(line[name] for name in names)] = line
    return list(last.values())


def make_table(head: str, rows: Iterable[Iterable[object]]) -> str:
    """Return a table in Markdown."""
    titles = head.split(" | ")
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def format_size(n_bytes: float) -> str:
    """Return a number of bytes for people."""
    for unit in ("B", "kB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} MB"


def tell_overhead() -> str:
    """Return CPU time, rounds and traffic of fits on clusters of several sizes."""
    lines = read_last("overhead", "model", "n_workers", "row_limit", needed="start_cpu")
    known = list(MODELS)
    lines = [line for line in lines if line["model"] in known]
    lines.sort(key=lambda line: (known.index(line["model"]), line["row_limit"], line["n_workers"]))
    return make_table(
        "model | workers | row limit | rounds | passes | statistics sent a round | local CPU "
        "| CPU | against local | same answers | load",
        (
            (
                line["model"],
                line["n_workers"],
                f"{line['row_limit']:,}",
                line["n_rounds"],
                line["n_passes"],
                format_size(line["n_bytes"] / line["n_rounds"]) if line["n_rounds"] else "none",
                f"{line['local_cpu']:.1f} s",
                f"{line['cpu']:.1f} s",
                f"{line['ratio']:.2f}",
                f"{line['same_answers']:.2%}",
                line["load"],
            )
            for line in lines
        ),
    )


def tell_equal() -> str:
    """Return how alike the models of a cluster and of one process are."""
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in read_last("equal", "table", "preset", "standardize", "n_partitions", "n_test"):
        key = line["table"], line["preset"], line["standardize"]
        groups.setdefault(key, []).append(line)
    yes = {True: "yes", False: "no"}
    return make_table(
        "table | preset | standardize | partitions | row limit | rounds | nodes | same trees "
        "| same bits | same answers (least)",
        (
            (
                *key[:2],
                yes[key[2]],
                ", ".join(str(line["n_partitions"]) for line in lines),
                f"{lines[0]['row_limit']:,}",
                lines[0]["n_rounds"],
                f"{lines[0]['n_nodes']:,}",
                yes[all(line["same_structure"] for line in lines)],
                yes[all(line["same_bits"] for line in lines)],
                f"{min(line['same_answers'] for line in lines):.3%}",
            )
            for key, lines in groups.items()
        ),
    )


def tell_memory() -> str:
    """Return what a table took that is larger than the memory of its workers."""
    return make_table(
        "table | workers | limit of each | partitions | rounds | passes | row limit "
        "| peaks of the workers | died",
        (
            (
                f"{line['n_bytes_of_table'] / 1e9:.1f} GB",
                line["n_workers"],
                line["memory_limit"],
                line["n_partitions"],
                line["n_rounds"],
                line["n_passes"],
                f"{line['row_limit']:,}",
                ", ".join(f"{peak} MiB" for peak in line["peak_mib"]),
                "none" if line["no_worker_died"] else "some",
            )
            for line in read_last("memory", "n_members", "max_depth")[-1:]
        ),
    )


TABLES: dict[str, Callable[[], str]] = {
    "overhead": tell_overhead,
    "equal": tell_equal,
    "memory": tell_memory,
}


def replace_table(text: str, name: str, table: str) -> str:
    """Replace what stands between the marks of a table."""
    mark = re.escape(f"% table: {name}\n")
    place = rf"(?<={mark})\n.*?\n(?=\n% end)"
    text, n = re.subn(place, lambda _: f"\n{table}\n", text, flags=re.S)
    if n != 1:
        raise ValueError(f"{PAGE.name} has the mark of the table {name!r} {n} times, not once.")
    return text


def main() -> None:
    """Write all tables into the page."""
    text = PAGE.read_text(encoding="utf-8")
    for name, tell in TABLES.items():
        text = replace_table(text, name, tell())
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
