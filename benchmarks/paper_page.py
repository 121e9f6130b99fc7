"""The page with the paper's tables next to ours."""

from __future__ import annotations

from collections import Counter

from benchmarks import cells, paper, summary


def check_paper(result: summary.Result | None, quoted: tuple[float, float]) -> str:
    """Return how a result stands to the paper's: above, within a deviation, or below."""
    if result is None or result.over_s is not None:
        return "not run"
    value, deviation = quoted
    if round(result.accuracy, 2) >= value:
        return "above"
    return "within" if result.accuracy >= value - deviation else "below"


def make_reproduction(results: summary.Results) -> str:
    """Return LHT's rows (a), (b), (c) next to the paper's column."""
    quoted = paper.read_accuracy("LHT")
    kinds = ("LHT paper", *cells.OURS)
    rows, counts = [], {kind: Counter[str]() for kind in (*kinds, "better", "forest")}
    for name in cells.select_datasets(results):
        if name not in quoted:
            continue
        is_forest = paper.read_forest(name)["max_samples"] is not None
        found = [results.get((name, kind)) for kind in kinds]
        if cells.is_absent(name):
            rows.append([name, cells.format_quoted(quoted, name), "data not available", *[""] * 6])
            continue
        checks = [check_paper(result, quoted[name]) for result in found]
        best = next((c for c in ("above", "within", "below") if c in checks[1:]), "not run")
        for kind, check in zip((*kinds, "better"), (*checks, best), strict=True):
            counts[kind][check] += 1
        if is_forest:
            counts["forest"][checks[0]] += 1
        texts = [cells.format_result(result) for result in found]
        mixed = [text for pair in zip(texts, checks, strict=True) for text in pair]
        rows.append([name, cells.format_quoted(quoted, name), *mixed, "yes" if is_forest else ""])
    header = ["data set", "paper", "(a) paper settings", "", "(b) defaults", "", "(c) tuned", "",
              "max_samples < 1"]  # fmt: skip
    text = {
        "forest": "(a), rows with max_samples < 1",
        "LHT paper": "(a), all rows",
        "LHT default": "(b)",
        "LHT tuned": "(c)",
        "better": "the better of (b) and (c)",
    }
    total = cells.make_table(
        ["", "above", "within", "below", "not run"],
        [
            [title, *[str(counts[kind][c]) for c in ("above", "within", "below", "not run")]]
            for kind, title in text.items()
        ],
    )
    return cells.make_table(header, rows) + "\n" + total


def make_table_1(results: summary.Results) -> str:
    """Return the paper's single oblique trees, quoted, next to CART and LHT here."""
    quoted = {m: paper.read_accuracy(m) for m in ("CART", "TAO", "DGT", "DTSemNet", "LHT")}
    here = ("CART", "LHT paper", *cells.OURS)
    rows = [
        [row["dataset"], *[cells.format_quoted(c, row["dataset"]) for c in quoted.values()],
         *cells.format_row(results, row["dataset"], here)]
        for row in paper.read_table(paper.TABLE_1)
    ]  # fmt: skip
    header = ["data set", *[f"{m} (quoted)" for m in quoted], *[f"{m} (here)" for m in here]]
    return cells.make_table(header, rows)


def make_table_2(results: summary.Results) -> str:
    """Return the paper's ensembles, quoted, next to the same settings here."""
    peers = ("RF", "XGBoost", "CatBoost", "LightGBM")
    quoted = {m: paper.read_accuracy(m) for m in (*peers, "LHT")}
    here = [*[f"{m} (table 6)" for m in peers], "LHT paper", *cells.OURS]
    rows = []
    for row in paper.read_table(paper.TABLE_2):
        name = row["dataset"]
        texts = cells.format_row(results, name, here)
        for i, peer in enumerate(peers):
            if texts[0] != "data not available" and paper.read_peer(name, peer) is None:
                texts[i] = "no settings"
        rows.append([name, *[cells.format_quoted(c, name) for c in quoted.values()], *texts])
    header = ["data set", *[f"{m} (quoted)" for m in quoted], *[f"{m} (here)" for m in here]]
    return cells.make_table(header, rows)


def make_table_3(results: summary.Results) -> str:
    """Return training times: the paper's seconds, and CPU seconds on one thread here."""
    peers = ("RF", "XGBoost", "CatBoost", "LightGBM")
    rows = []
    for row in paper.read_table(paper.TABLE_3):
        name = row["dataset"]
        here = [results.get((name, model)) for model in [*[f"{p} (table 6)" for p in peers],
                                                         "LHT paper"]]  # fmt: skip
        times = [f"{r.cpu_s:.2f}" if r and r.over_s is None else "not run" for r in here]
        rows.append([name, *[f"{row[m]:g}" for m in (*peers, "LHT")], *times])
    header = ["data set", *[f"{m} (quoted)" for m in (*peers, "LHT")],
              *[f"{m} (here)" for m in (*peers, "LHT")]]  # fmt: skip
    return cells.make_table(header, rows)


def make_table_4(results: summary.Results) -> str:
    """Return Wine by beta."""
    rows = []
    for row in paper.read_table(paper.TABLE_4):
        here = results.get(("wine", f"LHT beta={row['beta']:g}"))
        rows.append(
            [
                f"{row['beta']:g}",
                f"{row['accuracy']:g}{cells.PM}{row['std']:g}",
                cells.format_result(here),
            ]
        )
    return cells.make_table(["beta", "paper", "here"], rows)


def make_table_5(measured: list[summary.Line]) -> str:
    """Return LHT's settings in the paper, and what the search chose most often."""
    rows = []
    for row in paper.read_table(paper.TABLE_5):
        chosen = Counter(
            line["setting"]
            for line in measured
            if line["data"] == row["dataset"] and "setting" in line
        )
        name, n = chosen.most_common(1)[0] if chosen else ("", 0)
        ours = f"{name} ({n} of {chosen.total()})" if n else ""
        rows.append([str(v) for k, v in row.items() if k != "normalized"] + [ours])
    header = ["data set", "gamma and min_samples", "beta' or beta", "trees per class",
              "forest rate", "alpha", "chosen by the search"]  # fmt: skip
    return cells.make_table(header, rows)


def make_page(measured: list[summary.Line], results: summary.Results) -> str:
    """Return the page of the paper's tables."""
    return f"""# The paper's tables, next to ours

{cells.NOTE}
"Quoted" is as printed in the paper; "here" was run by this package's benchmarks on the same
data sets (`data not available`: no complete public copy could be reached).

## Does it reproduce?

LHT's column of the paper against (a) the paper's settings, table 5 as written; (b) the defaults
of `LHForestClassifier`; (c) the tuned forest. "within": less than one of the paper's standard
deviations below the paper's number.

{make_reproduction(results)}
![Gap to the paper's LHT](paper.svg)

## Table 1: single oblique trees

TAO, DGT and DTSemNet are quoted only.

{make_table_1(results)}
## Table 2: ensembles

Here: peers with the settings of the paper's table 6.

{make_table_2(results)}
## Table 3: training time in seconds

Here: CPU time on one thread, of fits with the settings of tables 5 and 6.

{make_table_3(results)}
## Table 4: Wine by beta

One tree per class.

{make_table_4(results)}
## Table 5: settings of LHT

{make_table_5(measured)}"""
