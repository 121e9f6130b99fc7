"""The pages on speed: of models and peers, of the engine, of growth on a cluster.

Every row names the model that it measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from benchmarks import lines, models
from benchmarks.kinds import speed
from benchmarks.kinds.clocks import SLOW
from benchmarks.lines import Line
from benchmarks.report import summary
from benchmarks.report.summary import group_lines, make_table

PEERS = ("RF", "XGBoost", "LightGBM", "CatBoost")
COLUMNS = (*speed.LHT, "RF", "ExtraTrees", "HistGB", "XGBoost", "LightGBM", "CatBoost", "YDF")
THREADS = {1: "1 thread", 2: "2 threads"}
TIMES = ("fit_s", "bulk_s", "one_ms", "plain_ms", "both_ms", "onnx_s")
TABLES = ("segment", "satimage", "pendigits", "synth50k", "skin", "connect4_onehot", "mnist")
KEY = ("task", "data", "model", "threads", "rows", "columns", "max_depth")


def merge_rounds(found: Iterable[Line]) -> list[Line]:
    """Return one line per job, with the least time of all rounds.

    A busy neighbour slows what happens to be measured; rounds lie minutes apart.
    """
    merged: dict[tuple[object, ...], Line] = {}
    for line in found:
        key = tuple(line.get(name) for name in KEY)
        before = merged.get(key, {})
        times = {name: min(line[name], before.get(name, np.inf)) for name in TIMES if name in line}
        merged[key] = {**before, **line, **times}
    return list(merged.values())


class Measured:
    """The measurements of the newest build, by what they measure."""

    def __init__(self, found: Iterable[Line]) -> None:
        every = list(found)
        self.build = every[-1]["build"] if every else ""
        self.rounds = [line for line in every if line["build"] == self.build]
        self.all = merge_rounds(self.rounds)

    def look_up(
        self, name: str, model: str, threads: int, *, is_busy: bool = False
    ) -> Line | None:
        """Return the line of a model on a table; None if it was not measured."""
        if model in PEERS:
            model = models.name_timed_peer(model, name)
        for line in self.all:
            is_fit = line["task"] not in ("growth", "hardware", "import", "onnx")
            key = line["data"], line["model"], line["threads"], line["task"] == "load"
            if is_fit and key == (name, model, threads, is_busy):
                return line
        return None

    def get(self, field: str, name: str, model: str, threads: int) -> float | None:
        """Return a number of a line; None if it is not there."""
        line = self.look_up(name, model, threads)
        return None if line is None else line.get(field)

    def list_task(self, task: str, field: str = "fit_s") -> list[Line]:
        """Return the lines of a task that have a number."""
        return [line for line in self.all if line["task"] == task and field in line]

    def list_growth(self, model: str, depth: int | None) -> list[Line]:
        """Return the fits of growing tables."""
        grown = self.list_task("growth")
        return [x for x in grown if (x["model"], x["max_depth"]) == (model, depth)]


def format_number(value: float | None, n_digits: int = 3) -> str:
    """Return the first digits of a number."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 10**n_digits / 10 else f"{value:.{n_digits}g}"


def make_model_table(
    measured: Measured,
    field: str,
    threads: tuple[int, ...] = (1, 2),
    best: Callable[[list[float]], float] = min,
) -> str:
    """Return one number of all models on all tables; the best of each row in bold."""

    def format_row(name: str, n: int) -> list[str]:
        values = [measured.get(field, name, model, n) for model in COLUMNS]
        known = [value for value in values if value is not None]
        texts = [format_number(value) for value in values]
        for i, (model, value) in enumerate(zip(COLUMNS, values, strict=True)):
            if value is not None and value == best(known):
                texts[i] = f"**{texts[i]}**"
            elif value is None and measured.get("over_s", name, model, n):  # in every round
                texts[i] = "> limit"
        return [name, str(n), *texts]

    keys = [(name, n) for n in threads for name in TABLES]
    present = [(name, n) for name, n in keys if any(measured.look_up(name, x, n) for x in COLUMNS)]
    return make_table(["table", "threads", *COLUMNS], (format_row(*key) for key in present))


# ---- Goals


class Goals:
    """Rows of the table of goals: what was measured of which model, and whether it is enough."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []

    def add(self, model: str, what: str, goal: str, value: float | None, is_met: bool) -> None:
        """Add a goal; a value of None was not measured."""
        verdict = "not measured" if value is None else "met" if is_met else "not met"
        # One more digit than elsewhere: what is just not met must not look as if it were.
        self.rows.append([f"{model}: {what}", goal, format_number(value, 4), verdict])

    def at_least(self, model: str, what: str, value: float | None, least: float) -> None:
        """Add a ratio that should be at least `least`."""
        self.add(model, what, f"at least {least:g}", value, value is not None and value >= least)

    def at_most(self, model: str, what: str, value: float | None, most: float) -> None:
        """Add a number that should be at most `most`."""
        self.add(model, what, f"at most {most:g}", value, value is not None and value <= most)


def divide(a: float | None, b: float | None) -> float | None:
    """Return a / b; None if either is not known."""
    return None if a is None or not b else a / b


def select_fastest(
    measured: Measured, field: str, name: str, n: int, peers: Iterable[str] = PEERS
) -> tuple[str, float | None]:
    """Return the name and the time of the fastest peer."""
    times = {peer: measured.get(field, name, peer, n) for peer in peers}
    known = {peer: time for peer, time in times.items() if time is not None}
    if not known:
        return "none", None
    fastest = min(known, key=lambda peer: known[peer])
    return models.name_timed_peer(fastest, name), known[fastest]


def add_fit_goals(goals: Goals, measured: Measured) -> None:
    """Add goals of the fit times: how many times as fast."""

    def ratio(name: str, peer: str, ours: str, n: int) -> float | None:
        peers = measured.get("fit_s", name, peer, n)
        return divide(peers, measured.get("fit_s", name, ours, n))

    for name in speed.TABLE_3:
        for n in (1, 2):
            peer, seconds = select_fastest(measured, "fit_s", name, n)
            value = divide(seconds, measured.get("fit_s", name, models.PAPER, n))
            what = f"fit, {name}, {THREADS[n]}, against the fastest peer, {peer}"
            goals.at_least(models.PAPER, what, value, 1)
    for name, ours, n, peer, least in (
        ("synth50k", models.PAPER, 1, "LightGBM", 2),
        ("synth50k", models.PAPER, 1, "RF", 10),
        ("synth50k", models.DEFAULTS, 1, "RF", 3),
        ("synth50k", models.DEFAULTS, 1, "LightGBM", 1),
        ("synth50k", models.DEFAULTS, 2, "RF", 3),
        ("synth50k", models.DEFAULTS, 2, "LightGBM", 1),
        ("mnist", models.PAPER, 2, "LightGBM", 1),
    ):
        against = models.name_timed_peer(peer, name)
        what = f"fit, {name}, {THREADS[n]}, against {against}"
        goals.at_least(ours, what, ratio(name, peer, ours, n), least)
    for model in speed.LHT:
        one, two = (measured.get("fit_s", "synth50k", model, n) for n in (1, 2))
        goals.at_least(model, "fit, synth50k, 2 threads against 1", divide(one, two), 1.8)


def compute_exponent(x: list[float], y: list[float]) -> float | None:
    """Return p of y ~ x^p by least squares over logarithms; None for fewer than three."""
    if len(x) < 3:
        return None
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def get_allowance(line: Line, key: str) -> float:
    """Return the MB that a fit may take: 1.1 X, and the size of the model."""
    return float(1.1 * line["X_mb"] + line[key])


def add_growth_goals(goals: Goals, measured: Measured) -> None:
    """Add goals of the growth of fit times and memory."""
    for model in speed.LHT:
        limited, full = (measured.list_growth(model, depth) for depth in (10, None))
        rows = [x for x in limited if x["columns"] == 50]
        columns = [x for x in limited if x["rows"] == speed.GROWTH_ROWS[0]]
        for what, found, work in (
            ("rows, depth 10", rows, [x["rows"] for x in rows]),
            ("columns, depth 10", columns, [x["columns"] for x in columns]),
            ("rows in splits times columns, fully grown", full,
             [x["rows_in_splits"] * x["columns"] for x in full]),
        ):  # fmt: skip
            value = compute_exponent(work, [x["fit_s"] for x in found])
            goals.at_most(model, f"exponent of the fit time over {what}", value, 1.1)
        # In small tables, what does not grow with the rows counts.
        grown = [*limited, *full]
        large = [x for x in grown if x["X_mb"] > 100]
        parts = [x["memory_mb"] / get_allowance(x, "arrays_mb") for x in large]
        what = "memory of the fit, growth, X of more than 100 MB, of 1.1 X and the model's arrays"
        goals.at_most(model, f"{what}, at worst", max(parts, default=None), 1)
        small = [x for x in grown if x["X_mb"] <= 100]
        excess = [x["memory_mb"] - get_allowance(x, "arrays_mb") for x in small]
        what = "memory of the fit, growth, smaller X, beyond 1.1 X and the model's arrays, in MB"
        goals.at_most(model, f"{what}, at worst", max(excess, default=None), 0)


def add_predict_goals(goals: Goals, measured: Measured) -> None:
    """Add goals of predictions."""
    for model in speed.LHT:
        ours = measured.get("bulk_s", "synth50k", model, 1)
        for peer in ("RF", "LightGBM"):
            value = divide(measured.get("bulk_s", "synth50k", peer, 1), ours)
            goals.at_least(model, f"bulk, synth50k, 1 thread, against {peer}", value, 1)
    ours = measured.get("one_ms", "satimage", models.PAPER, 1)
    goals.at_most(models.PAPER, "one row, satimage, in ms", ours, 0.2)
    peers = [peer for peer in PEERS if peer != "CatBoost"]
    peer, theirs = select_fastest(measured, "one_ms", "satimage", 1, peers)
    what = f"one row, satimage, against the fastest peer but CatBoost, {peer}"
    goals.at_least(models.PAPER, what, divide(theirs, ours), 1)


def add_size_goals(goals: Goals, measured: Measured) -> None:
    """Add goals of memory, size, import and load."""
    for model in speed.LHT:
        line = measured.look_up("synth50k", model, 1)
        for key, name in (("arrays_mb", "the model's arrays"), ("model_mb", "its pickle")):
            value = line["memory_mb"] / get_allowance(line, key) if line and key in line else None
            goals.at_most(model, f"memory of the fit, synth50k, of 1.1 X and {name}", value, 1)
    for model in speed.LHT:
        size = measured.get("model_mb", "synth50k", model, 1)
        value = divide(measured.get("model_mb", "synth50k", "RF", 1), size)
        goals.at_least(model, "pickle, synth50k: times smaller than RF's", value, 4)
    found = measured.list_task("import", "both_ms")
    # The noise of the measurement may be larger than what is measured.
    added = max(found[-1]["both_ms"] - found[-1]["plain_ms"], 0.0) if found else None
    goals.at_most("lhtree", "import after sklearn.ensemble, in ms", added, 50)
    for model in (*speed.LHT, "LightGBM", "HistGB"):
        busy = measured.look_up("synth50k", model, 2, is_busy=True)
        seconds = busy.get("fit_s") if busy else None
        value = divide(seconds, measured.get("fit_s", "synth50k", model, 2))
        what = "fit, synth50k, 2 threads, beside a busy core: times slower"
        if model in speed.LHT:
            goals.at_most(model, what, value, 2.5)
        else:  # a peer has no goal
            goals.rows.append([f"{model}: {what}", "", format_number(value), "for comparison"])


def make_goals(measured: Measured) -> str:
    """Return the table of all goals."""
    goals = Goals()
    for fill in (add_fit_goals, add_growth_goals, add_predict_goals, add_size_goals):
        fill(goals, measured)
    return make_table(["model: what", "goal", "measured", ""], goals.rows)


# ---- Growth, hardware and ONNX


def make_growth_table(measured: Measured) -> str:
    """Return the fits of growing tables."""
    rows = [
        [
            model, depth or "full", line["rows"], line["columns"], format_number(line["fit_s"]),
            line["depth"], format_number(line["rows_in_splits"] / line["rows"]),
            format_number(line["memory_mb"] / line["X_mb"]),
        ]
        for model in speed.LHT
        for depth in (10, None)
        for line in measured.list_growth(model, depth)
    ]  # fmt: skip
    header = ["model", "max_depth", "rows", "columns", "fit, s", "depth"]
    return make_table([*header, "rows in splits / n", "memory / X"], rows)


def make_hardware_table(measured: Measured) -> str:
    """Return the distance from the machine's copy bandwidth."""
    rows = [
        [
            f"{line['model']}: {line['data']}", format_number(line["fit_s"]),
            format_number(line["bytes_gb"]),
            format_number(line["bytes_gb"] / line["trees"] / line["depth"]),
            format_number(line["bandwidth_gb_s"]), format_number(line["factor"]),
        ]
        for line in measured.list_task("hardware", "factor")
    ]  # fmt: skip
    header = ["model: table", "fit, s", "must be read, GB", "per tree and level, GB"]
    return make_table([*header, "copy, GB/s", "fit / ideal"], rows)


def make_onnx_table(measured: Measured) -> str:
    """Return prediction by the package and by onnxruntime."""
    rows = [
        [
            f"{line['model']}: {line['data']}", format_number(line["bulk_s"]),
            format_number(line["onnx_s"]), format_number(line["onnx_s"] / line["bulk_s"]),
        ]
        for line in measured.list_task("onnx", "onnx_s")
    ]  # fmt: skip
    return make_table(["model: table", "package, s", "onnxruntime, s", "ratio"], rows)


# ---- The page


def describe_run(measured: Measured) -> str:
    """Return machine, versions and load in a sentence."""
    first, last = measured.rounds[0], measured.rounds[-1]
    versions = ", ".join(f"{name} {text}" for name, text in last["versions"].items() if text)
    loads = [line["load"] for line in measured.rounds if line["task"] != "load"]
    return (
        f"{last['cpu']}, {last['cores']} cores, Python {last['python']}, {versions}; build "
        f"{measured.build}, {first['at']} to {last['at']}; load average before a measurement: "
        f"median {np.median(loads):.1f}, largest {max(loads):.1f}."
    )


HEAD = f"""# Speed, memory and size

`python -m benchmarks.report` makes this page from the lines of `python -m benchmarks.run speed`;
do not edit it.

"{models.PAPER}" has the settings of the paper's table 5, and on `synth50k` gamma 2,
20 estimators and max_samples 0.8; "{models.DEFAULTS}" is `LHForestClassifier()`. RF, XGBoost,
LightGBM and CatBoost have the settings of the paper's table 6, and 100 trees on `synth50k`, which
the paper does not have. ExtraTrees and YDF have 100 trees, HistGB has its 100 rounds.

**The lines of "{models.DEFAULTS}" are of version 0.1**, before these forests moved to the exact
engine. [Boosting and its peers](boosting.md) has their times since then; the command measures
these here again."""

SECTIONS: tuple[tuple[str, str, Callable[[Measured], str]], ...] = (
    ("Goals", "Ratios of times in this run; above one means that lhtree is faster.", make_goals),
    ("Fit, seconds", f"Best of several repeats and rounds; a fit of more than {SLOW:.0f} s "
     "is timed once in each. `> limit`: the measurement was ended.",
     lambda x: make_model_table(x, "fit_s")),
    ("Prediction in bulk, seconds", "`predict_proba` of 10,000 test rows, or all of them where "
     "there are fewer.", lambda x: make_model_table(x, "bulk_s")),
    ("One row, milliseconds", "`predict_proba` of one row, best of 200.",
     lambda x: make_model_table(x, "one_ms", (1,))),
    ("Memory while fitting, MB", "Peak of the resident memory minus that before the fit.",
     lambda x: make_model_table(x, "memory_mb", (1,))),
    ("Size of the model, MB", "Length of the pickle.",
     lambda x: make_model_table(x, "model_mb", (1,))),
    ("Accuracy", "On the rows that were predicted in bulk: what the times buy. "
     "[Accuracy](accuracy.md) compares models properly.",
     lambda x: make_model_table(x, "accuracy", (1,), max)),
    ("Growth", "Two estimators on five classes, one thread.", make_growth_table),
    ("Distance from the hardware", "What the paper's splits must read against what a copy of a "
     "large array reads and writes; see [performance](../performance.md).", make_hardware_table),
    ("ONNX", "`predict_proba` of 10,000 rows on one thread.", make_onnx_table),
)  # fmt: skip


def write(path: Path, out: Path) -> list[Path]:
    """Write the page of a file of lines; return the files made."""
    measured = Measured(lines.read(path))
    pieces = [HEAD, describe_run(measured)]
    for title, text, make in SECTIONS:
        table = make(measured)
        if table.count("\n") > 1:  # more than a header
            pieces += [f"## {title}", text, table]
    (out / "speed.md").write_text("\n\n".join(pieces) + "\n", encoding="utf-8")
    return [out / "speed.md"]


# ---- The engine next to LightGBM

ENGINE_TOP = """# Speed of the exact engine

Fit times of boosting on one thread next to LightGBM's at the same settings: 100 rounds of trees
with 31 leaves, learning rate 0.1, l2 regularisation 1, no early stopping, processor time, the
fastest of three. Columns of `lhtree` say how many times LightGBM's time they take.
`python -m benchmarks.run engine_speed` measures; `python -m benchmarks.report` makes this page.
"""


def make_engine_page(found: list[Line]) -> str:
    """Return the page for the measurements of one build."""
    header = ("table", f"{speed.PEER_OF_BOOSTS}, s", *(f"{name}, of it" for name in speed.BOOSTS))
    ratios = [
        [line["fit_s"][name] / line["fit_s"][speed.PEER_OF_BOOSTS] for name in speed.BOOSTS]
        for line in found
    ]
    rows = [
        [
            line["data"].removeprefix("regression/"),
            f"{line['fit_s'][speed.PEER_OF_BOOSTS]:.2f}",
            *(f"{each:.2f}" for each in own),
        ]
        for line, own in zip(found, ratios, strict=True)
    ]
    means = np.exp(np.log(ratios).mean(axis=0))
    rows.append(["geometric mean", "", *(f"{mean:.2f}" for mean in means)])
    return f"{ENGINE_TOP}\n{make_table(header, rows)}\n"


def write_engine(path: Path, out: Path) -> list[Path]:
    """Write the page of the newest build, in the folder ``design`` beside `out`."""
    found = lines.read(path, "data", "build")
    newest = [line for line in found if line["build"] == found[-1]["build"]]
    return [summary.write_design(out, "engine-speed", make_engine_page(newest))]


# ---- A Dask cluster


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


def write_scaling(path: Path, out: Path) -> list[Path]:
    """Replace the tables of ``scaling.md``, beside the folder `out`."""
    page = out.parent / "scaling.md"
    measured = lines.read(path)
    text = page.read_text(encoding="utf-8")
    text = replace_table(text, "overhead", make_overhead_table(measured))
    text = replace_table(text, "equal", make_equal_table(measured))
    text = replace_table(text, "memory", make_memory_table(measured))
    page.write_text(text, encoding="utf-8")
    return [page]
