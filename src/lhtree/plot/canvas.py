"""What all pictures use: axes, colours, names that fit, and checks of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.legend import Legend

from lhtree.estimators import lookup
from lhtree.explain import wording

# Okabe and Ito's colours: distinct for colour-blind readers, and by lightness in print.
POSITIVE = "#0072B2"
NEGATIVE = "#E69F00"
UP = POSITIVE
DOWN = "#D55E00"
INK = "#222222"
FAINT = "#767676"
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
MARKERS = "os^DvPX*<>"

# Names are data, not formulas: a dollar sign in them is a dollar sign.
PLAIN: dict[str, Any] = {"parse_math": False}


def get_axes(ax: Axes | None, size: tuple[float, float] | None = None) -> Axes:
    """Return the given axes, or new ones in a new figure."""
    if ax is None:
        from matplotlib import pyplot as plt

        return plt.figure(figsize=size, layout="constrained").subplots()
    if not isinstance(ax, Axes):
        raise TypeError(
            f"ax must be matplotlib Axes or None, got {type(ax).__name__}; to draw several "
            "panels, call the function once for each."
        )
    return ax


def check_count(name: str, value: Any) -> int:
    """Return a positive integer; refuse anything else."""
    return lookup.check_number(name, value, 1, np.iinfo(np.int64).max)


def shorten(name: object, length: int = 28) -> str:
    """Return a name on one line, with an ellipsis in the middle if it is too long."""
    text = " ".join(str(name).split()) or "(no name)"
    if len(text) <= length:
        return text
    tail = (length - 1) // 3
    return f"{text[: length - 1 - tail]}…{text[-tail:]}"


def name_class(label: object, length: int = 28) -> str:
    """Return the name of a class: "class" is added to a bare number."""
    return shorten(wording.name_label(label), length)


def choose_decimals(values: Sequence[float]) -> int:
    """Return how many decimals show four digits of the largest value, and three of votes."""
    decimals = wording.choose_decimals(values)
    return 3 if decimals == 4 else decimals


def format_plain(value: float, decimals: int) -> str:
    """Return a number with its decimals."""
    return f"{value:,.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def format_change(value: float, decimals: int) -> str:
    """Return a signed number with its decimals."""
    return f"{value:+,.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def show_legend(ax: Axes, **options: Any) -> Legend:
    """Add a legend whose labels are plain text."""
    legend = ax.legend(**{"frameon": False, "fontsize": "small", **options})
    for text in legend.get_texts():
        text.set_parse_math(False)
    return legend


def remove_frame(ax: Axes) -> None:
    """Remove the lines above and to the right of the picture."""
    ax.spines[["top", "right"]].set_visible(False)
