"""The tables of ``docs/scaling.md``: growth on a Dask cluster."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import lines
from benchmarks.lines import Line
from benchmarks.report.summary import group_lines, make_table


def format_size(n_bytes: float) -> str:
    """Return a number of bytes for people."""
    for unit in ("B", "kB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} MB"


def make_overhead_table(measured: list[Line]) -> str:
    """Return CPU time, rounds and traffic of fits on clusters of several sizes."""
    # Lines of the first version of the benchmark counted the start of the workers.
    found = [x for x in measured if x["task"] == "overhead" and "start_cpu" in x]
    last = {(x["model"], x["n_workers"], x["row_limit"]): x for x in found}
    order = sorted(last, key=lambda key: (key[0], key[2], key[1]))
    header = ["model", "workers", "row limit", "rounds", "passes", "statistics sent a round",
              "local CPU", "CPU", "against local", "same predictions", "load"]  # fmt: skip
    rows = [
        [
            *(line["model"], line["n_workers"], f"{line['row_limit']:,}"),
            *(line["n_rounds"], line["n_passes"]),
            format_size(line["n_bytes"] / line["n_rounds"]) if line["n_rounds"] else "none",
            *(f"{line['local_cpu']:.1f} s", f"{line['cpu']:.1f} s", f"{line['ratio']:.2f}"),
            *(f"{line['same_predictions']:.2%}", line["load"]),
        ]
        for line in (last[key] for key in order)
    ]
    return make_table(header, rows)


def make_equal_table(measured: list[Line]) -> str:
    """Return how alike the forests of a cluster and of one process are."""
    fields = ("data", "preset", "standardize", "n_partitions")
    found = [x for x in measured if x["task"] == "equal" and "n_test" in x]
    last = {tuple(x[name] for name in (*fields, "n_test")): x for x in found}
    yes = {True: "yes", False: "no"}
    header = ["model", "table", "standardize", "partitions", "row limit", "rounds", "nodes",
              "same trees", "same bits", "same predictions (least)"]  # fmt: skip
    rows = [
        [
            *(f"LHForest, preset {preset}", name, yes[standardize]),
            ", ".join(str(line["n_partitions"]) for line in group),
            *(f"{group[0]['row_limit']:,}", group[0]["n_rounds"], f"{group[0]['n_nodes']:,}"),
            yes[all(line["same_structure"] for line in group)],
            yes[all(line["same_bits"] for line in group)],
            f"{min(line['same_predictions'] for line in group):.3%}",
        ]
        for (name, preset, standardize), group in group_lines(
            list(last.values()), *fields[:3]
        ).items()
    ]
    return make_table(header, rows)


def make_memory_table(measured: list[Line]) -> str:
    """Return what a table took that is larger than the memory of its workers."""
    header = ["model", "table", "workers", "limit of each", "partitions", "rounds", "passes",
              "row limit", "peaks of the workers", "died"]  # fmt: skip
    found = [line for line in measured if line["task"] == "memory"]
    rows = [
        [
            f"LHForest, n_estimators={line['n_estimators']}, max_depth={line['max_depth']}",
            f"{line['n_bytes_of_table'] / 1e9:.1f} GB",
            *(line["n_workers"], line["memory_limit"], line["n_partitions"]),
            *(line["n_rounds"], line["n_passes"], f"{line['row_limit']:,}"),
            ", ".join(f"{peak} MiB" for peak in line["peak_mib"]),
            "none" if line["no_worker_died"] else "some",
        ]
        for line in found[-1:]
    ]
    return make_table(header, rows)


def replace_table(text: str, name: str, table: str) -> str:
    """Replace what stands between the marks of a table."""
    mark = re.escape(f"% table: {name}\n")
    place = rf"(?<={mark})\n.*?\n(?=\n% end)"
    text, n = re.subn(place, lambda _: f"\n{table}\n", text, flags=re.S)
    if n != 1:
        raise ValueError(f"The page has the mark of the table {name!r} {n} times, not once.")
    return text


def write(path: Path, out: Path) -> list[Path]:
    """Replace the tables of ``scaling.md``, beside the folder `out`."""
    page = out.parent / "scaling.md"
    measured = lines.read(path)
    text = page.read_text(encoding="utf-8")
    text = replace_table(text, "overhead", make_overhead_table(measured))
    text = replace_table(text, "equal", make_equal_table(measured))
    text = replace_table(text, "memory", make_memory_table(measured))
    page.write_text(text, encoding="utf-8")
    return [page]
