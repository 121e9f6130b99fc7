"""The page on other values of the constants behind boosting's defaults."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from benchmarks import lines
from benchmarks.kinds.boosting_choices import CHOICES, MOST_ROWS
from benchmarks.kinds.choices import DEFAULT, KEY
from benchmarks.lines import Line
from benchmarks.report import summary
from benchmarks.report.summary import Floats
from lhtree.estimators.boosting.params import MANY_ROWS

ADDED = 0.01  # to log-losses
TIE = 0.2  # percent
TOP = f"""# Choices of boosting

`python -m benchmarks.run boosting_choices` measures what is here, `python -m benchmarks.report`
makes this page; do not edit it.

Each value takes the place of one default alone. Only training rows of tables to choose by take
part: of up to {MOST_ROWS:,} of them, or of all if there are more than {MANY_ROWS:,}, 75 % train
and 25 % score. Losses are geometric means over tables relative to the default's, in percent, with
their standard errors over tables: below 0 is better. To log-losses {ADDED} is added before, so
that tables that are as good as solved do not count more than all others. A table is a tie within
{TIE} %. Times are relative, on a machine that did other work too. Differences within two standard
errors say nothing."""
TRIED = """## What else was tried

On the same tables, other splits:

- **A temperature** of the scores, the one of least log-loss on the held-out rows: worse on 9 of 15
  tables, since rounds end where these rows are calibrated already. On tables that are as good as
  solved it runs away (banknote, wdbc, avila). With a prior (20 log² T) and T at most 1, it
  takes 0.2 to 3 % off eight tables and 0.6 % in the mean without banknote, whose log-loss rises by
  78 %. The best temperature of the scored rows themselves would gain 0.5 % on large tables: there
  is little to gain.
- **More or fewer rounds for the model that grows anew** from all rows than rows are to training
  rows: as many as before lose 1.3 % log-loss and 0.8 % RMSE, 1.5 times as many change nothing
  (+0.1 %, -0.4 %).
- What looked best in the first split, in four to eight others: half the growth of rates
  -0.7 ± 0.7 % log-loss and -0.8 ± 0.5 % RMSE for a tenth more time, a first rate of 0.025
  -0.3 ± 1.1 and -0.9 ± 0.5, three hyperplanes -0.5 ± 0.6 and -1.0 ± 0.5 for a quarter more time;
  a least gain of 0.5, a shrinkage of 0.15, fewer held-out rows and smaller leaves nothing."""
FIRST_BUILD = "1e3b465bfff8"
FIRST_DEFAULTS = {("first_rate", FIRST_BUILD): "0.05 (now 0.025 for numbers)"}
OF_FIRST_BUILD = """\
The first rate of numbers became 0.025 by these lines; they have 0.05 for all, as the default of
that time. For classes it gains less than chance may explain, and would cost a seventh more time.
"""
HEADER = ("value", "log-loss", "RMSE", "accuracy", "wins/ties/losses", "time")


def compare(own: Line, default: Line) -> dict[str, float]:
    """Return by how much losses and accuracy differ in percent, and the logarithm of times."""
    change = {"time": math.log((own["cpu_s"] + 1e-3) / (default["cpu_s"] + 1e-3))}
    if "rmse" in own:
        return {**change, "rmse": 100 * math.log(own["rmse"] / default["rmse"])}
    ratio = (own["log_loss"] + ADDED) / (default["log_loss"] + ADDED)
    points = 100 * (own["accuracy"] - default["accuracy"])
    return {**change, "log_loss": 100 * math.log(ratio), "accuracy": points}


def make_row(label: str, pairs: list[tuple[Line, Line]]) -> list[str]:
    """Return the row of a value: means over tables of means over splits."""
    changes = [{"data": own["data"], **compare(own, default)} for own, default in pairs]

    def average(field: str) -> Floats:
        having = [change for change in changes if field in change]
        groups = summary.group_lines(having, "data").values()
        return np.array([np.mean([each[field] for each in group]) for group in groups])

    fields = [average(field) for field in ("log_loss", "rmse", "accuracy")]
    counts = summary.count_wins(-np.concatenate(fields[:2]), TIE)
    cells = [*map(summary.format_change, fields), "/".join(map(str, counts))]
    return [label, *cells, summary.format_ratio(average("time"))]


def make_section(newest: list[Line], name: str) -> list[str]:
    """Return the table of a choice, from lines of the same sources."""
    title = f"## {CHOICES[name].title}"
    if not newest:
        return [title, "Not measured."]
    groups = summary.group_lines(newest, "choice", "value")
    default = {(line["data"], line["split"]): line for line in groups.get(DEFAULT, ())}
    rows = []
    for value in map(str, CHOICES[name].values):
        own = {(line["data"], line["split"]): line for line in groups.get((name, value), ())}
        pairs = [(own[place], default[place]) for place in own if place in default]
        rows.append(make_row(value, pairs) if pairs else summary.leave_blank(value, HEADER))
    told = FIRST_DEFAULTS.get((name, newest[0]["build"]), CHOICES[name].default)
    return [title, f"Default: {told}.", summary.make_table(HEADER, rows)]


def make_page(found: list[Line]) -> str:
    """Return the page: a section for each choice."""
    newest = {name: summary.choose_newest(found, name) for name in CHOICES}
    builds = {line["build"] for each in newest.values() for line in each}
    shown = [line["data"] for line in found if line["build"] in builds]
    counts = f"There are {len(shown)} lines on {len(set(shown))} tables."
    pieces = [piece for name in CHOICES for piece in make_section(newest[name], name)]
    remark = [OF_FIRST_BUILD] if FIRST_BUILD in builds else []
    return "\n\n".join([TOP, counts, *pieces, TRIED, *remark]).rstrip() + "\n"


def write(path: Path, out: Path) -> list[Path]:
    """Write the page, in the folder ``design`` beside `out`."""
    found = [line for line in lines.read(path, *KEY, "build") if "over_s" not in line]
    return [summary.write_design(out, "boosting-choices", make_page(found))]
