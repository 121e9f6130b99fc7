"""Which constants of the exact engine are measured, and the page that says how they compare."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from benchmarks.lines import Line
from benchmarks.summary import TIE, make_table

N_ROUNDS, N_SPLITS = 100, 3
MAX_ROWS, MAX_VALUES = 5_000, 1_000_000  # of a table
CURVES = "curves"
DEFAULT = ("default", "")
COLUMNS = "native/split/columns.hpp"
Edit = tuple[str, str, str]  # path, text, what replaces it


class Choice(NamedTuple):
    """A constant of the core, or a setting of the estimator; the first value is the default."""

    name: str
    values: tuple[float, ...]
    title: str
    verdict: str
    path: str = ""  # of a constant

    def edit(self, value: float) -> list[Edit]:
        """Return what makes a core with a value from the sources."""
        if not self.path:
            return []
        kind = "std::int64_t" if self.name == "small_node" else "int"
        old, new = (f"constexpr {kind} {self.name} = {v:g};" for v in (self.values[0], value))
        edits = [(self.path, old, new)]
        if self.name == "most_bins":
            # A heavy value takes up to two bins: where there are fewer, fewer may be heavy.
            heavy = "constexpr std::uint64_t heavy = {};"
            edits.append((self.path, heavy.format(64), heavy.format(int(value + 1) // 4)))
            # Codes are kept in sets of 256, however few there are.
            loop = "for (int code = 0; code < {}; ++code)"
            edits.append((COLUMNS, loop.format("base::most_codes"), loop.format(256)))
        return edits


CHOICES = (
    Choice(
        "steps_per_std",
        (20, 12, 14, 16, 40),
        "Steps of the grid: 2^n to a standard deviation",
        "2^20 steps: the curves lose 1.5 to 7.5 points with 16 to 12, the other tables next to "
        "nothing. 40, for which the range alone decides, is as good here; steps next to the "
        "deviation were kept so that a heavy-tailed column leaves others their bits of weight. "
        "Targets are on such a grid, too.",
        "native/base/grid.hpp",
    ),
    Choice(
        "grid_bits",
        (30, 16),
        "Bits of the range, at most",
        "All that 32-bit words hold: 16 bits cost the curves 5 points.",
        "native/base/grid.hpp",
    ),
    Choice(
        "direction_bits",
        (12, 8, 10),
        "Bits of columns in directions",
        "12, with which 128 products fit a word of 32 bits: 8 are as good on these tables.",
        "native/split/direction.hpp",
    ),
    Choice(
        "short_bits",
        (15, 8),
        "Bits of gradients in directions",
        "15, all that a word of 16 holds: 8 are as good on these tables.",
        "native/split/direction.hpp",
    ),
    Choice(
        "coefficient_bits",
        (15, 5, 8, 11),
        "Bits of weights of hyperplanes",
        "15: even 5 are as good on these tables, so that models may become smaller.",
        "native/split/direction.hpp",
    ),
    Choice(
        "most_bins",
        (255, 63, 127),
        "Bins of a column",
        "255, all that a byte holds beside missing values: 63 save a fifth of the time and cost "
        "nothing that shows here, where tables have few rows.",
        "native/base/bins.hpp",
    ),
    Choice(
        "small_node",
        (256, 32, 64, 1024),
        "Rows up to which all cuts of projections are tried",
        "256: 64 and 1024 are as accurate; 1024 take a tenth more time, 64 save none.",
        "native/split/projection.hpp",
    ),
    Choice(
        "n_hyperplanes",
        (1, 0, 3, 7),
        "Hyperplanes of a node",
        "1: without, most tables lose, the curves 29 points, for 0.6 of the time; avila gains "
        "0.8 points. 3 and 7 take longer without a gain that shows.",
    ),
    Choice(
        "max_terms",
        (2, 1, 4),
        "Columns drawn for hyperplanes, in square roots of all",
        "2: 1 loses on more tables than it wins, 4 likewise, and it takes longer.",
    ),
    Choice(
        "shrinkage",
        (0.3, 0.05, 0.6),
        "Shrinkage of correlations",
        "0.3, the middle of what was tried: neither 0.05 nor 0.6 is better or worse by more than "
        "chance, except on the curves, which like little of it: 93.8 with 0.05, 89.3 with 0.6.",
    ),
)

# ---- The page

TOP = f"""# Choices of the exact engine

`python -m benchmarks.engine_choices` measures what is here and makes this page; do not edit it.
[The exact engine](exact-engine.md) says what the constants mean.

Each value takes the place of the default alone. Models have {N_ROUNDS} rounds, one thread, no
early stopping and the defaults otherwise. To choose by serves every other one, by name, of the
paper's data sets, of those with numbers to predict and of those with categories; the others are
left to judge by. Of their training rows up to {MAX_ROWS:,} are used (with many columns fewer, so
that there are at most {MAX_VALUES:,} values), and split {N_SPLITS} times into 75 % to train on and
25 % to score. More than two classes become the most frequent one against the rest.
The curves are a made table: 200 columns, rows that differ by six orders of magnitude in height,
two classes that differ by 5 % in shape. It was made so that small rows need a fine grid; it counts
in no other column but time.

Scores (accuracy, R2) are means over tables, in percent. Differences are those to the default, with
their standard errors over tables; a table is a tie below {TIE} points. Time is the geometric mean
over tables of process times of fits relative to the default's, on a machine that did other work
too: a tenth more or less says nothing. Any other bit lets other splits win, so scores differ even
where nothing is better: differences within two standard errors say nothing, either.
"""
HEADER = ("", "accuracy", "difference", "R2", "difference", "wins/ties/losses", "time", CURVES)
Summary = dict[str, tuple[str, float, float]]  # measure, score and seconds of each table


def summarize(found: list[Line], choice: str, value: str) -> Summary:
    """Return means over splits, of tables that have all of them."""
    groups: dict[str, list[Line]] = {}
    for line in found:
        if (line["choice"], line["value"]) == (choice, value):
            groups.setdefault(line["data"], []).append(line)
    return {
        name: (group[0]["measure"], *np.mean([(g["score"], g["cpu_s"]) for g in group], axis=0))
        for name, group in groups.items()
        if len(group) == N_SPLITS
    }


def make_row(label: str, own: Summary, default: Summary) -> list[str]:
    """Return the row of a value."""
    names = [name for name in own if name in default]
    cells, differences = [label], {n: own[n][1] - default[n][1] for n in names if n != CURVES}
    for measure_ in ("accuracy", "R2"):
        chosen = [name for name in differences if own[name][0] == measure_]
        gain = np.array([differences[name] for name in chosen])
        error = gain.std(ddof=1) / math.sqrt(len(gain))
        cells.append(f"{np.mean([own[name][1] for name in chosen]):.2f}")
        cells.append("" if own is default else f"{gain.mean():+.2f} ± {error:.2f}")
    gain = np.array(list(differences.values()))
    n_wins, n_losses = int((gain > TIE).sum()), int((gain < -TIE).sum())
    counts = f"{n_wins}/{len(gain) - n_wins - n_losses}/{n_losses}"
    ratio = math.exp(np.mean([math.log(own[name][2] / default[name][2]) for name in names]))
    curves = f"{own[CURVES][1]:.1f}" if CURVES in names else ""
    return [*cells, "" if own is default else counts, f"{ratio:.2f}", curves]


def make_page(found: list[Line]) -> str:
    """Return the page: a table and a verdict for each choice."""
    default = summarize(found, *DEFAULT)
    kinds = [measure for name, (measure, *_) in default.items() if name != CURVES]
    commits = ", ".join(sorted({line["commit"] for line in found}))
    counts = f"{kinds.count('accuracy')} tables for accuracy, {kinds.count('R2')} for R2"
    pieces = [
        TOP.rstrip(),
        f"There are lines of {counts}, with the sources of commit {commits}.\n"
        "A start of the command measures what is missing. Few tables for R2 prove little.",
    ]
    for choice in CHOICES:
        rows = [make_row(f"**{choice.values[0]:g}**", default, default)]
        for value in choice.values[1:]:
            own = summarize(found, choice.name, f"{value:g}")
            blank = [f"{value:g}", "not measured", *[""] * (len(HEADER) - 2)]
            rows.append(make_row(f"{value:g}", own, default) if own else blank)
        pieces += [f"## {choice.title}", make_table(HEADER, rows), choice.verdict]
    return "\n\n".join(pieces) + "\n"
