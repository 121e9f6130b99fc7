"""The page on boosting: ranks, wins, times and sizes next to peers, from their lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import lines
from benchmarks.data import is_of_numbers
from benchmarks.kinds.comparison import FEW_ROWS, KEY, OURS, PEERS
from benchmarks.lines import Line
from benchmarks.models import BOOST, DEFAULTS
from benchmarks.report import summary
from benchmarks.report.summary import PM, Floats, make_table
from benchmarks.run import KINDS

MODELS = (*OURS, *PEERS)
FORESTS = (DEFAULTS, "RF", "ExtraTrees")
FIELDS = {"accuracy": False, "log_loss": True, "rmse": True}  # whether less is better
WORDS = {"accuracy": "accuracy", "log_loss": "log-loss", "rmse": "RMSE"}
COSTS = {"cpu_s": "fit time", "bulk_s": "prediction time", "bytes": "size of the file"}
GOALS = {  # what named tables should reach, in percent: the bar and the aim
    "connect4": (85.0, 86.0), "mnist": (98.0, 98.3), "synth50k": (91.0, 92.0),
    "avila": (99.8, 99.9), "letter": (97.0, 97.5),
}  # fmt: skip


def write(path: Path, out: Path) -> list[Path]:
    """Write the page of a file of lines."""
    found = [line for line in lines.read(path, *KEY) if line["model"] in MODELS]
    (out / "boosting.md").write_text(make_page(found), encoding="utf-8")
    return [out / "boosting.md"]


# ---- Scores


class Scores(NamedTuple):
    """A table for each row, a model for each column; nan where a model failed."""

    tables: list[str]
    models: list[str]
    values: Floats

    def get_ranks(self, *, is_loss: bool) -> Floats:
        """Return the rank of each model on each table; those that failed share the last."""
        worst = np.inf if is_loss else -np.inf
        return summary.rank(np.where(np.isnan(self.values), worst, self.values), is_loss=is_loss)


def collect(found: Iterable[Line], field: str, role: str = "judge") -> Scores:
    """Return means over the seeds that all models have, on tables on which all have run."""
    values: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in found:
        is_measured = is_of_numbers(line["data"]) == (field == "rmse")  # whatever came of it
        if line["role"] == role and line["threads"] == 1 and is_measured:
            value = summary.get_number(line, field) if field in line else np.nan
            values[line["data"]][line["model"]][line["seed"]] = value
    able = {
        model
        for each in values.values()
        for model, seeds in each.items()
        if not np.isnan(list(seeds.values())).all()
    }
    models = [model for model in MODELS if model in able]
    tables, rows = [], []
    for name in sorted(values):
        seeds = set.intersection(*[set(values[name][model]) for model in models])
        if models and seeds:
            tables.append(name)
            rows.append([np.mean([values[name][m][s] for s in sorted(seeds)]) for m in models])
    return Scores(tables, models, np.array(rows).reshape(len(tables), len(models)))


def compute_mean_ranks(found: list[Line], field: str, role: str) -> tuple[dict[str, float], int]:
    """Return the mean rank of each model, and over how many tables."""
    scores = collect(found, field, role)
    if not scores.tables:
        return {}, 0
    ranks = scores.get_ranks(is_loss=FIELDS[field]).mean(axis=0)
    return dict(zip(scores.models, ranks.tolist(), strict=True)), len(scores.tables)


def make_rank_table(found: list[Line], role: str) -> str:
    """Return mean ranks of all models and scores, the best in bold."""
    ranks = {field: compute_mean_ranks(found, field, role) for field in FIELDS}
    header = ["model", *[f"{WORDS[field]} ({n} tables)" for field, (_, n) in ranks.items()]]
    rows = []
    for model in MODELS:
        cells = []
        for means, _ in ranks.values():
            text = f"{means[model]:.2f}" if model in means else ""
            is_best = bool(text) and means[model] == min(means.values())
            cells.append(f"**{text}**" if is_best else text)
        rows.append([model, *cells])
    return make_table(header, [row for row in rows if any(row[1:])])


def compute_win_share(scores: Scores, own: str, peer: str, *, is_loss: bool) -> float:
    """Return the share of tables on which a model is better, a tie counting half."""
    columns = [scores.models.index(own), scores.models.index(peer)]
    pair = scores._replace(values=scores.values[:, columns])
    return float(2 - pair.get_ranks(is_loss=is_loss)[:, 0].mean())


def make_win_table(found: list[Line], own: str) -> str:
    """Return wins and half the ties of a model against all others, in percent of tables."""
    every = {field: collect(found, field) for field in FIELDS}
    rows = []
    for peer in MODELS:
        cells = [
            f"{100 * compute_win_share(scores, own, peer, is_loss=FIELDS[field]):.0f} %"
            if {own, peer} <= set(scores.models) and scores.tables and own != peer
            else ""
            for field, scores in every.items()
        ]
        if any(cells):
            rows.append([peer, *cells])
    return make_table(["against", *[WORDS[field] for field in FIELDS]], rows)


def make_score_table(found: list[Line], field: str) -> str:
    """Return the scores of all models on all tables, to judge by and to choose by."""
    digits = {"accuracy": 2, "log_loss": 4}
    every = [(role, collect(found, field, role)) for role in ("judge", "choose", "named")]
    models = [m for m in MODELS if any(m in scores.models for _, scores in every)]
    rows = []
    for role, scores in every:
        for name, values in zip(scores.tables, scores.values, strict=True):
            cells = dict(zip(scores.models, values.tolist(), strict=True))
            text = {
                m: f"{v:.{digits[field]}f}" if field in digits else f"{v:.5g}"
                for m, v in cells.items()
            }
            rows.append(
                [name.removeprefix("regression/"), role]
                + ["failed" if text.get(m, "") == "nan" else text.get(m, "") for m in models]
            )
    return make_table(["table", "role", *models], rows, n_left=2)


# ---- Times and sizes


def collect_cost(
    found: Iterable[Line], field: str, threads: int = 1
) -> dict[str, dict[str, float]]:
    """Return the cost of each model on each table, with the first seed."""
    cost: dict[str, dict[str, float]] = defaultdict(dict)
    for line in found:
        if field in line and line["seed"] == 0 and line["threads"] == threads:
            cost[line["model"]][line["data"]] = max(float(line[field]), 1e-7)
    return cost


class Ratio(NamedTuple):
    """How two models compare over the tables that both have."""

    mean: float  # geometric
    most: float
    where: str
    n: int


def compare_costs(own: dict[str, float], peer: dict[str, float]) -> Ratio | None:
    """Return the ratio of costs; None without a common table."""
    ratio = {name: own[name] / peer[name] for name in own if name in peer}
    if not ratio:
        return None
    where = max(ratio, key=lambda name: ratio[name])
    mean = float(np.exp(np.mean(np.log(list(ratio.values())))))
    return Ratio(mean, ratio[where], where, len(ratio))


def make_cost_table(found: list[Line]) -> str:
    """Return costs of all models relative to LightGBM, and to XGBoost where they predict."""
    bases = {"cpu_s": "LightGBM", "bulk_s": "XGBoost", "bytes": "LightGBM"}
    costs = {field: collect_cost(found, field) for field in bases}
    header = ["model", "fit time", "largest ratio", "on", "prediction", "file", "tables"]
    rows = []
    for model in MODELS:
        fit, predict, size = (
            compare_costs(costs[field][model], costs[field][bases[field]]) for field in COSTS
        )
        if fit and predict and size:
            more = [f"{predict.mean:.2f}", f"{size.mean:.2f}", fit.n]
            rows.append([model, f"{fit.mean:.2f}", f"{fit.most:.1f}", fit.where, *more])
    return make_table(header, rows)


def make_ratio_table(found: list[Line], own: str) -> str:
    """Return the costs of a model relative to those of each other one."""
    costs = [collect_cost(found, field) for field in COSTS]
    rows = []
    for peer in MODELS:
        ratios = [compare_costs(cost[own], cost[peer]) for cost in costs]
        if peer != own and any(ratios):
            cells = [
                f"{r.mean:.2f} (at most {r.most:.1f}, {r.where})" if r else "" for r in ratios
            ]
            rows.append([peer, *cells])
    return make_table(["relative to", *COSTS.values()], rows)


def describe_failures(found: list[Line]) -> str:
    """Return what ran over the limit or failed, by model."""
    groups: dict[tuple[str, str], set[str]] = defaultdict(set)
    for line in found:
        if "over_s" in line:
            groups[line["model"], f"over the limit of {line['over_s']:.0f} s"].add(line["data"])
        elif "error" in line:
            groups[line["model"], line["error"].replace("|", "/")].add(line["data"])
    rows = [[model, why, ", ".join(sorted(names))] for (model, why), names in groups.items()]
    rows.sort(key=lambda row: MODELS.index(row[0]))
    return make_table(["model", "what happened", "tables"], rows, n_left=3) if rows else "Nothing."


# ---- Goals

Goal = tuple[str, str, str, str, str]  # what, bar, aim, measured, verdict
MISSING = ("", "not measured")


def judge(value: float | None, bar: float, digits: int = 2) -> tuple[str, str]:
    """Return a number that should be at most the bar, and whether it is."""
    if value is None:
        return MISSING
    return f"{value:.{digits}f}", "met" if value <= bar else "not met"


def judge_ranks(found: list[Line]) -> list[Goal]:
    """Compare mean ranks with those of the best booster, and count wins."""
    goals: list[Goal] = []
    for field, is_loss in FIELDS.items():
        means, n = compute_mean_ranks(found, field, "judge")
        boosters = {m: mean for m, mean in means.items() if m not in FORESTS and m != BOOST}
        what = f"mean rank of {WORDS[field]}"
        if BOOST not in means or not boosters:
            goals.append((what, "within 0.3 of the best booster", "first", *MISSING))
            continue
        best = min(boosters, key=lambda model: boosters[model])
        value, verdict = judge(means[BOOST] - boosters[best], 0.3)
        text = f"{means[BOOST]:.2f} on {n} tables, {best} {boosters[best]:.2f}"
        goals.append((what, "within 0.3 of the best booster", "first", text, verdict))
        scores = collect(found, field)
        share = {m: compute_win_share(scores, BOOST, m, is_loss=is_loss) for m in boosters}
        least = min(share, key=lambda model: share[model])
        value, verdict = judge(-100 * share[least], -50, 0)
        what = f"wins and half the ties in {WORDS[field]}"
        text = f"{value.removeprefix('-')} % against {least}"
        if "CatBoost" in share:
            text += f", {100 * share['CatBoost']:.0f} % against CatBoost"
        goals.append((what, "half against each booster", "60 % against CatBoost", text, verdict))
    return goals


def judge_named(found: list[Line]) -> list[Goal]:
    """Compare the accuracy on named tables with the bars, each minus a standard deviation."""
    goals: list[Goal] = []
    for name, (bar, aim) in GOALS.items():
        values = [
            summary.get_number(line, "accuracy")
            for line in found
            if (line["data"], line["model"]) == (name, BOOST) and "accuracy" in line
        ]
        row = (f"accuracy on {name}", f"{bar:.1f} minus one deviation", f"{aim:.1f}")
        if not values:
            goals.append((*row, *MISSING))
            continue
        std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        verdict = "met" if np.mean(values) >= bar - std else "not met"
        text = f"{np.mean(values):.2f}{PM}{std:.2f} ({len(values)} seeds)"
        goals.append((*row, text, verdict))
    return goals


def judge_costs(found: list[Line]) -> list[Goal]:
    """Compare times and sizes with the peers'."""
    goals: list[Goal] = []
    bars = (
        ("cpu_s", "LightGBM", 1.5, "1.0"), ("cpu_s", "ChimeraBoost", 0.5, ""),
        ("cpu_s", "YDF oblique", 0.5, ""), ("cpu_s", "CatBoost", 0.25, ""),
        ("bulk_s", "XGBoost", 1.0, "0.5"), ("bytes", "LightGBM", 1.5, "0.5"),
    )  # fmt: skip
    for field, peer, bar, aim in bars:
        cost = collect_cost(found, field)
        ratio = compare_costs(cost[BOOST], cost[peer])
        measured = judge(ratio.mean if ratio else None, bar)
        goals.append((f"{COSTS[field]} against {peer}", f"at most {bar:g}", aim, *measured))
        if (field, peer) == ("cpu_s", "LightGBM"):
            text, verdict = judge(ratio.most if ratio else None, 5, 1)
            text += f" on {ratio.where}" if ratio else ""
            goals.append(("largest of these ratios", "at most 5", "", text, verdict))
    one = collect_cost(found, "one_ms")[BOOST].get("satimage")
    goals.append(("one row of satimage, ms", "at most 0.1", "0.05", *judge(one, 0.1, 3)))
    walls = [collect_cost(found, "fit_s", threads)[BOOST] for threads in (1, 2)]
    gain = compare_costs(*walls)
    text, verdict = judge(-gain.mean if gain else None, -1.7)
    text = f"{text.removeprefix('-')} over {gain.n} tables" if gain else text
    goals.append(("gain of a second thread", "at least 1.7", "1.9", text, verdict))
    return goals


# ---- The page


LIMIT, N_SEEDS = KINDS["comparison"].limit, KINDS["comparison"].n_seeds
INTRODUCTION = f"""All models have their defaults, one thread, the same splits and a limit of
{LIMIT:.0f} s. YDF's oblique boosting has its template `benchmark_rank1v1`. Tables are the paper's
data sets (numbers only), and, as people have them, those of `regression/` and `frames/`. Of each
kind, sorted by name, every other table is to choose defaults by, the others judge.
The rule for learning rates was changed once after it had been measured on tables that judge:
these are not fully independent of it. Ranks are
means over the tables on which all models have run, and a model that fails there or runs over the
limit is last. Tables of up to {FEW_ROWS:,} rows without a given split have {N_SEEDS} seeds.
Times are of the processor."""


def describe_lines(found: Sequence[Line]) -> str:
    """Return how many lines and tables there are of ours and of peers, and of which versions."""
    counts = []
    for title, group in (("ours", OURS), ("peers", PEERS)):
        chosen = [line for line in found if line["model"] in group]
        tables = {line["data"] for line in chosen}
        counts.append(f"{len(chosen):,} of {title} on {len(tables)} tables")
    versions = {
        f"{package} {version}"
        for line in found
        for package, version in line.get("versions", {}).items()
        if version and package not in ("lhtree", "numpy")
    }
    return (
        f"There are {len(found):,} lines: {' and '.join(counts)}. "
        f"Versions: {', '.join(sorted(versions))}."
    )


def make_page(found: list[Line]) -> str:
    """Return the page."""
    own = [model for model in OURS if any(line["model"] == model for line in found)]
    header = ["what", "bar", "aim", "measured", ""]
    goals = [*judge_ranks(found), *judge_named(found), *judge_costs(found)]
    pieces = [
        "# Boosting and its peers",
        "`python -m benchmarks.report boosting` makes this page from the lines of\n"
        "`python -m benchmarks.run comparison`; do not edit it.",
        INTRODUCTION,
        describe_lines(found),
        "## Goals",
        make_table(header, goals, n_left=5),
        "## Mean ranks on the tables that judge",
        make_rank_table(found, "judge"),
        "## Mean ranks on the tables to choose by",
        make_rank_table(found, "choose"),
        "## Times and sizes",
        "Geometric means over all tables that both have: fit time and size of the saved file\n"
        "relative to LightGBM's, prediction of up to 10,000 rows relative to XGBoost's.",
        make_cost_table(found),
    ]
    for model in own:
        pieces += [
            f"## {model}: wins and half the ties",
            "Of the tables that judge.",
            make_win_table(found, model),
            f"## {model}: times and sizes",
            make_ratio_table(found, model),
        ]
    for field, title in (("accuracy", "Accuracy, %"), ("log_loss", "Log-loss"), ("rmse", "RMSE")):
        pieces += [f"## {title}", make_score_table(found, field)]
    pieces += ["## What did not run", describe_failures(found)]
    return "\n\n".join(pieces) + "\n"
