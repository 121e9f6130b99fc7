"""Tables of speed, memory and size from the lines of `benchmarks.speed`.

::

    python -m benchmarks.speed_report      # writes docs/results/speed.md
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import models, speed, speed_jobs

Line = dict[str, Any]
OUT = Path(__file__).parents[1] / "docs" / "results" / "speed.md"
PEERS = ("RF", "XGBoost", "LightGBM", "CatBoost")
ALL = (*models.LHT, *models.PEERS)
TIMES = ("fit_s", "bulk_s", "one_ms", "plain_ms", "both_ms")
TABLES = ("segment", "satimage", "pendigits", "synth50k", "skin", "connect4_onehot", "mnist")


def merge_rounds(found: Iterable[Line]) -> list[Line]:
    """Return one line per job, with the least time of all rounds.

    A busy neighbour slows what happens to be measured; rounds lie minutes apart.
    """
    merged: dict[str, Line] = {}
    for line in found:
        before = merged.get(line["job"], {})
        times = {name: min(line[name], before.get(name, np.inf)) for name in TIMES if name in line}
        merged[line["job"]] = {**before, **line, **times}
    return list(merged.values())


class Lines:
    """The measurements of the newest build, found by what they measure."""

    def __init__(self, found: Iterable[Line]) -> None:
        every = list(found)
        self.build = every[-1]["build"] if every else ""
        self.rounds = [line for line in every if line["build"] == self.build]
        self.all = merge_rounds(self.rounds)

    def find(self, name: str, model: str, threads: int, *, loaded: bool = False) -> Line | None:
        """Return the line of a model on a table; None if it was not measured."""
        for line in self.all:
            key = line["data"], line["model"], line["threads"], line.get("loaded", False)
            is_fit = line["task"] not in ("growth", "hardware", "import")
            if is_fit and key == (name, model, threads, loaded):
                return line
        return None

    def get(self, field: str, name: str, model: str, threads: int) -> float | None:
        """Return a number of a line; None if it is not there."""
        line = self.find(name, model, threads)
        return None if line is None else line.get(field)

    def growth(self, model: str, depth: int | None) -> list[Line]:
        """Return the fits of growing tables."""
        return [
            line
            for line in self.all
            if (line["task"], line["model"]) == ("growth", model)
            and line["depth"] == depth
            and "fit_s" in line
        ]


def make_table(header: list[str], rows: Iterable[list[str]]) -> str:
    """Return a table in Markdown."""
    marks = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, marks, *rows))


def format_number(value: float | None, n_digits: int = 3) -> str:
    """Return the first digits of a number."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 10**n_digits / 10 else f"{value:.{n_digits}g}"


def make_model_table(
    lines: Lines,
    field: str,
    threads: tuple[int, ...] = (1, 2),
    best: Callable[[list[float]], float] = min,
) -> str:
    """Return one number of all models on all tables; the best of each row in bold."""

    def format_row(name: str, n: int) -> list[str]:
        values = [lines.get(field, name, model, n) for model in ALL]
        known = [value for value in values if value is not None]
        texts = [format_number(value) for value in values]
        for i, (model, value) in enumerate(zip(ALL, values, strict=True)):
            if value is not None and value == best(known):
                texts[i] = f"**{texts[i]}**"
            elif value is None and is_over(name, model, n):  # in every round
                texts[i] = "> limit"
        return [name, str(n), *texts]

    def is_over(name: str, model: str, n: int) -> bool:
        line = lines.find(name, model, n)
        return line is not None and "longer than" in line.get("error", "")

    keys = [(name, n) for n in threads for name in TABLES]
    present = [(name, n) for name, n in keys if any(lines.find(name, x, n) for x in ALL)]
    return make_table(["table", "threads", *ALL], (format_row(*key) for key in present))


def find_exponent(x: list[float], y: list[float]) -> float | None:
    """Return p of y ~ x^p by least squares over logarithms; None for fewer than three."""
    if len(x) < 3:
        return None
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def find_exponents(lines: Lines, model: str, depth: int | None) -> dict[str, float | None]:
    """Return the exponents of the fit time over rows, columns and work."""
    grown = lines.growth(model, depth)
    by_rows = [line for line in grown if line["columns"] == 50]
    by_columns = [line for line in grown if line["rows"] == speed_jobs.GROWTH_ROWS[0]]
    work = [line["rows_in_splits"] * line["columns"] for line in grown]
    return {
        "rows": find_exponent([x["rows"] for x in by_rows], [x["fit_s"] for x in by_rows]),
        "columns": find_exponent(
            [x["columns"] for x in by_columns], [x["fit_s"] for x in by_columns]
        ),
        "work": find_exponent(work, [x["fit_s"] for x in grown]),
    }


# ---- The bars


class Bars:
    """Rows of the table of bars: what is asked, what was measured, whether it holds."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []

    def add(self, what: str, asked: str, value: float | None, holds: bool | None) -> None:
        """Add a bar; a value of None was not measured."""
        verdict = "not measured" if value is None else "holds" if holds else "falls short"
        # One more digit than elsewhere: what falls just short must not look as if it held.
        self.rows.append([what, asked, format_number(value, 4), verdict])

    def at_least(self, what: str, value: float | None, least: float) -> None:
        """Add a ratio that is to be at least `least`."""
        self.add(what, f"at least {least:g}", value, value is not None and value >= least)

    def at_most(self, what: str, value: float | None, most: float) -> None:
        """Add a number that is to be at most `most`."""
        self.add(what, f"at most {most:g}", value, value is not None and value <= most)

    def compare(self, what: str, value: float | None) -> None:
        """Add a number of a peer, of which nothing is asked."""
        self.rows.append([what, "", format_number(value), "for comparison"])


def divide(a: float | None, b: float | None) -> float | None:
    """Return a / b; None if either is not known."""
    return None if a is None or not b else a / b


def smallest(values: Iterable[float | None]) -> float | None:
    """Return the least of the numbers that are known."""
    return min((value for value in values if value is not None), default=None)


def add_fit_bars(bars: Bars, lines: Lines) -> None:
    """Add what is asked of the fit times: how many times as fast."""

    def ratio(name: str, peer: str, ours: str, n: int) -> float | None:
        peers = lines.get("fit_s", name, peer, n)
        return divide(peers, lines.get("fit_s", name, ours, n))

    for name in speed_jobs.TABLE_3:
        for n in (1, 2):
            fastest = smallest(ratio(name, peer, "LHT paper", n) for peer in PEERS)
            bars.at_least(f"fit, {name}, {n} thread(s), against the fastest peer", fastest, 1)
    for peer, least in (("LightGBM", 2), ("RF", 10)):
        value = ratio("synth50k", peer, "LHT paper", 1)
        bars.at_least(f"fit, synth50k, paper rules, 1 thread, against {peer}", value, least)
    for n in (1, 2):
        for peer, least in (("RF", 3), ("LightGBM", 1)):
            value = ratio("synth50k", peer, "LHT default", n)
            bars.at_least(f"fit, synth50k, defaults, {n} thread(s), against {peer}", value, least)
    value = ratio("mnist", "LightGBM", "LHT paper", 2)
    bars.at_least("fit, MNIST, paper settings, 2 threads, against LightGBM", value, 1)
    for model in models.LHT:
        one, two = (lines.get("fit_s", "synth50k", model, n) for n in (1, 2))
        bars.at_least(f"fit, synth50k, {model}, 2 threads against 1", divide(one, two), 1.8)


def find_memory_excess(line: Line, key: str) -> float:
    """Return the MB that a fit took beyond the memory that it may take."""
    return float(line["memory_mb"] - (1.1 * line["X_mb"] + line[key]))


def find_memory_share(line: Line, key: str) -> float:
    """Return what a fit took of the memory that it may take: 1.1 X, and the model's size."""
    return float(line["memory_mb"] / (1.1 * line["X_mb"] + line[key]))


def add_growth_bars(bars: Bars, lines: Lines) -> None:
    """Add what is asked of the growth of fit times."""
    for model in models.LHT:
        limited, full = find_exponents(lines, model, 10), find_exponents(lines, model, None)
        bars.at_most(f"growth over rows, depth 10, {model}: exponent", limited["rows"], 1.1)
        bars.at_most(f"growth over columns, depth 10, {model}: exponent", limited["columns"], 1.1)
        name = f"growth over rows in splits times columns, fully grown, {model}: exponent"
        bars.at_most(name, full["work"], 1.1)
        # In small tables, what does not grow with the rows counts.
        grown = [x for depth in (10, None) for x in lines.growth(model, depth)]
        large = [x for x in grown if x["X_mb"] > 100]
        worst = max((find_memory_share(x, "arrays_mb") for x in large), default=None)
        name = f"memory of the fit, growth, X of more than 100 MB, {model}"
        bars.at_most(f"{name}, of 1.1 X and the model's arrays, at worst", worst, 1)
        name = f"memory of the fit, growth, smaller X, {model}"
        small = [x for x in grown if x["X_mb"] <= 100]
        worst = max((find_memory_excess(x, "arrays_mb") for x in small), default=None)
        bars.at_most(f"{name}, beyond 1.1 X and the model's arrays, in MB, at worst", worst, 0)


def add_other_bars(bars: Bars, lines: Lines) -> None:
    """Add what is asked of predictions, memory, size, import and load."""
    for model in models.LHT:
        ours = lines.get("bulk_s", "synth50k", model, 1)
        for peer in ("RF", "LightGBM"):
            value = divide(lines.get("bulk_s", "synth50k", peer, 1), ours)
            bars.at_least(f"bulk, synth50k, {model}, 1 thread, against {peer}", value, 1)
    bars.at_most("one row, satimage, LHT paper, in ms", lines.get(
        "one_ms", "satimage", "LHT paper", 1), 0.2)  # fmt: skip
    peers = smallest(lines.get("one_ms", "satimage", x, 1) for x in PEERS if x != "CatBoost")
    ours = lines.get("one_ms", "satimage", "LHT paper", 1)
    bars.at_least(
        "one row, satimage, against the fastest peer but CatBoost", divide(peers, ours), 1
    )
    for model in models.LHT:
        line = lines.find("synth50k", model, 1)
        for key, name in (("arrays_mb", "the model's arrays"), ("model_mb", "its pickle")):
            value = find_memory_share(line, key) if line and key in line else None
            bars.at_most(f"memory of the fit, synth50k, {model}, of 1.1 X and {name}", value, 1)
    for model in models.LHT:
        size = lines.get("model_mb", "synth50k", model, 1)
        value = divide(lines.get("model_mb", "synth50k", "RF", 1), size)
        bars.at_least(f"pickle, synth50k, {model}: times smaller than RF's", value, 4)
    found = [line for line in lines.all if line["task"] == "import"]
    added = found[-1]["both_ms"] - found[-1]["plain_ms"] if found else None
    if added is not None:
        added = max(added, 0.0)  # the noise of the measurement may be larger
    bars.at_most("import of lhtree after sklearn.ensemble, in ms", added, 50)
    for model in ("LHT paper", "LHT default", "LightGBM", "HistGB"):
        busy = lines.find("synth50k", model, 2, loaded=True)
        value = divide(
            busy.get("fit_s") if busy else None, lines.get("fit_s", "synth50k", model, 2)
        )
        what = f"2-thread fit beside a busy core, {model}: times slower"
        if model in models.LHT:
            bars.at_most(what, value, 2.5)
        else:
            bars.compare(what, value)


def make_bars(lines: Lines) -> str:
    """Return the table of all bars."""
    bars = Bars()
    for fill in (add_fit_bars, add_growth_bars, add_other_bars):
        fill(bars, lines)
    return make_table(["what", "bar", "measured", ""], bars.rows)


# ---- Growth and hardware


def make_growth_table(lines: Lines) -> str:
    """Return the fits of growing tables."""
    rows = [
        [
            model, str(depth or "full"), str(line["rows"]), str(line["columns"]),
            format_number(line["fit_s"]), str(line["depth_grown"]),
            format_number(line["rows_in_splits"] / line["rows"]),
            format_number(line["memory_mb"] / line["X_mb"]),
        ]
        for model in models.LHT
        for depth in (10, None)
        for line in lines.growth(model, depth)
    ]  # fmt: skip
    header = ["model", "max_depth", "rows", "columns", "fit, s", "depth"]
    return make_table([*header, "rows in splits / n", "memory / X"], rows)


def make_hardware_table(lines: Lines) -> str:
    """Return the distance from the machine's copy bandwidth."""
    rows = [
        [
            line["data"], format_number(line["fit_s"]), format_number(line["bytes_gb"]),
            format_number(line["bytes_gb"] / line["trees"] / line["depth"]),
            format_number(line["bandwidth_gb_s"]), format_number(line["factor"]),
        ]
        for line in lines.all
        if line["task"] == "hardware" and "factor" in line
    ]  # fmt: skip
    header = ["table", "fit, s", "must be read, GB", "per tree and level, GB"]
    return make_table([*header, "copy, GB/s", "fit / ideal"], rows)


def describe_run(lines: Lines) -> str:
    """Return machine, versions and load in a sentence."""
    first, last = lines.rounds[0], lines.rounds[-1]
    versions = ", ".join(f"{name} {text}" for name, text in last["versions"].items() if text)
    loads = [line["load"] for line in lines.rounds if not line.get("loaded")]
    return (
        f"{last['cpu']}, {last['cores']} cores, Python {last['python']}, {versions}; build "
        f"{lines.build}, {first['at']} to {last['at']}; load average before a measurement: "
        f"median {np.median(loads):.1f}, largest {max(loads):.1f}."
    )


SECTIONS: tuple[tuple[str, str, Callable[[Lines], str]], ...] = (
    ("The bars", "Ratios of times in this run; above one means that lhtree is faster.", make_bars),
    ("Fit, seconds", "Best of several repeats and rounds; a fit of more than "
     f"{speed_jobs.SLOW:.0f} s is timed once "
     "in each. `> limit`: the measurement was ended.", lambda x: make_model_table(x, "fit_s")),
    ("Prediction in bulk, seconds", "`predict_proba` of 10,000 test rows, or all of them where "
     "there are fewer.", lambda x: make_model_table(x, "bulk_s")),
    ("One row, milliseconds", "`predict_proba` of one row, best of 200.",
     lambda x: make_model_table(x, "one_ms", (1,))),
    ("Memory while fitting, MB", "Peak of the resident memory minus that before the fit.",
     lambda x: make_model_table(x, "memory_mb", (1,))),
    ("Size of the model, MB", "Length of the pickle.",
     lambda x: make_model_table(x, "model_mb", (1,))),
    ("Accuracy", "On the rows that were predicted in bulk; this is no comparison of accuracy, but "
     "says what the times buy.", lambda x: make_model_table(x, "accuracy", (1,), max)),
    ("Growth", "Two members on five classes, one thread.", make_growth_table),
    ("Distance from the hardware", "What the paper's rules must read against what a copy of a "
     "large array reads and writes; see [performance](../performance.md).", make_hardware_table),
)  # fmt: skip


def write(path: Path, out: Path) -> None:
    """Write the page from the lines."""
    found = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    for line in found:
        # The job's limit on the depth and the depth of the model share a name.
        given = json.loads(line["job"])
        line["depth_grown"] = line.get("depth")
        line.update(given)
    lines = Lines(found)
    parts = [
        "# Speed, memory and size",
        "Made by `python -m benchmarks.speed_report` from the lines of "
        "`python -m benchmarks.speed`; do not edit.",
        describe_run(lines),
    ]
    for title, text, make in SECTIONS:
        parts += [f"## {title}", text, make(lines)]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def main() -> None:
    """Write the page that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--lines", type=Path, default=speed.RESULTS)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if not options.lines.exists():
        raise SystemExit(f"{options.lines} is not there; run python -m benchmarks.speed first.")
    write(options.lines, options.out)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
