"""Pictures of trees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, Rectangle

from lhtree.estimators import lookup
from lhtree.model.tree import Tree
from lhtree.plot.canvas import (
    FAINT,
    INK,
    NEGATIVE,
    PLAIN,
    POSITIVE,
    check_count,
    get_axes,
    name_class,
    show_legend,
)
from lhtree.plot.layout import Layout, lay_out

WIDTH, HEIGHT = 0.86, 0.56  # of a node; one unit apart in both directions
INCHES = 0.92  # per unit, in a figure of its own


def plot_tree(model: Any, tree: int = 0, *, max_nodes: int = 60, ax: Axes | None = None) -> Axes:
    """Draw a tree: its splits, its leaves, and their training rows.

    Every node shows its number, the number of its training rows and the fraction of the
    tree's class among them (after shrinkage, if the model uses it), also as a bar. Splits
    have round corners, leaves a thick border.

    Parameters
    ----------
    model : LHTClassifier or LHForestClassifier
        A fitted model.
    tree : int, default=0
        Which tree of ``model.trees_``.
    max_nodes : int, default=60
        A larger tree is cut at the greatest depth with at most this many nodes; the figure
        then says so.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure that fits the tree.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lhtree import LHTClassifier
    >>> from lhtree.plot import plot_tree
    >>> X, y = load_wine(return_X_y=True)
    >>> ax = plot_tree(LHTClassifier(beta=0.25).fit(X, y))
    >>> ax.get_title()
    'Tree 0: class 0 against all other classes'
    """
    lookup.check_is_forest(model, "plot_tree", "lhtree.export.export_text shows its trees")
    which = lookup.look_up_tree(model, tree)
    layout = lay_out(which, check_count("max_nodes", max_nodes))
    n_columns, n_levels = layout.x.max() + 1, int(layout.depth.max()) + 1
    ax = get_axes(ax, (max(4.0, INCHES * n_columns + 0.3), 1.0 + INCHES * n_levels))
    ax.set_axis_off()
    ax.set(xlim=(-0.55, n_columns - 0.45), ylim=(0.4 - n_levels, 0.75))
    name = name_class(model.classes_[which.positive_class])
    ax.set_title(f"Tree {tree}: {name} against all other classes", **PLAIN)
    lettering = _choose_lettering(ax, n_columns, n_levels)
    _draw_edges(ax, which, layout, lettering.size)
    for i in range(len(layout.node)):
        _draw_node(ax, which, layout, i, lettering)
    _explain_marks(ax, which, layout, name)
    return ax


class Lettering(NamedTuple):
    """How the text of a node is written."""

    size: float  # in points
    separator: str  # between the number of rows and the fraction


def _choose_lettering(ax: Axes, n_columns: float, n_levels: int) -> Lettering:
    """Return the larger lettering of two: three short lines, or two longer ones."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    width = 72 * box.width / (n_columns + 0.1) * WIDTH
    height = 72 * box.height / (n_levels + 0.35) * HEIGHT
    tall, flat = (
        min(width / n_letters / 0.58, 0.74 * height / n_lines / 1.2)
        for n_letters, n_lines in ((9, 3), (14, 2))
    )
    size = float(np.clip(max(tall, flat), 1, 9))
    return Lettering(size, "\n" if tall >= min(flat, 9) else ", ")


def _draw_edges(ax: Axes, tree: Tree, layout: Layout, size: float) -> None:
    is_open = (tree.left[layout.node] >= 0) & (layout.n_hidden == 0)
    for i in np.flatnonzero(is_open):
        for side, text in enumerate(("projection < c", "projection ≥ c")):
            child = tree.left[i] + side
            x, y = layout.x[[i, child]], -layout.depth[[i, child]].astype(float)
            y += [-HEIGHT / 2, HEIGHT / 2]
            ax.plot(x, y, color=FAINT, linewidth=0.9, zorder=0)
            if i == 0:  # once is enough: the sides are the same in all splits
                ax.text(
                    x.mean() + (0.1, -0.1)[1 - side],
                    y.mean() + 0.03,
                    text,
                    ha=("right", "left")[side],
                    va="center",
                    fontsize=size * 0.9,
                    color=INK,
                )


def _draw_node(ax: Axes, tree: Tree, layout: Layout, i: int, lettering: Lettering) -> None:
    node, x, y = layout.node[i], layout.x[i], -float(layout.depth[i])
    is_leaf, value = tree.left[node] < 0, float(tree.value[node])
    corner = (x - WIDTH / 2, y - HEIGHT / 2)
    style = "square,pad=0" if is_leaf else "round,pad=0,rounding_size=0.12"
    box = FancyBboxPatch(
        corner,
        WIDTH,
        HEIGHT,
        boxstyle=style,
        facecolor="white",
        edgecolor=(POSITIVE if value >= 0.5 else NEGATIVE) if is_leaf else INK,
        linewidth=2.2 if is_leaf else 1.0,
        linestyle="--" if layout.n_hidden[i] else "-",
        gid=f"leaf {node}" if is_leaf else f"split {node}",
    )
    ax.add_patch(box)
    bar = corner[0] + 0.1 * WIDTH, corner[1] + 0.09 * HEIGHT
    for start, width, color in ((0.0, value, POSITIVE), (value, 1 - value, NEGATIVE)):
        ax.add_patch(
            Rectangle(
                (bar[0] + 0.8 * WIDTH * start, bar[1]),
                0.8 * WIDTH * width,
                0.1 * HEIGHT,
                color=color,
            )
        )
    kind = "leaf" if is_leaf else "split"
    facts = format_rows(int(tree.n_samples[node])), format_percent(value)
    text = f"{kind} {node}\n{lettering.separator.join(facts)}"
    ax.text(
        x,
        y + 0.08 * HEIGHT,
        text,
        ha="center",
        va="center",
        fontsize=lettering.size,
        linespacing=1.1,
        color=INK,
    )
    if layout.n_hidden[i]:
        below = f"+ {layout.n_hidden[i]:,} nodes"
        below_style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": lettering.size}
        ax.text(x, y - 0.72 * HEIGHT, below, color=INK, **below_style)


def format_rows(n_rows: int) -> str:
    """Return a number of rows with its unit."""
    return f"{n_rows:,} row{'' if n_rows == 1 else 's'}"


def format_percent(fraction: float) -> str:
    """Return a fraction in percent; 0% and 100% mean none and all."""
    if fraction in (0.0, 1.0) or 0.01 <= fraction <= 0.99:
        return f"{fraction:.0%}"
    return f"{min(max(fraction, 0.001), 0.999):.1%}"


def _explain_marks(ax: Axes, tree: Tree, layout: Layout, name: str) -> None:
    marks = [
        Patch(color=POSITIVE, label=name),
        Patch(color=NEGATIVE, label="all other classes"),
        Line2D([], [], marker="o", color="w", markeredgecolor=INK, markersize=9, label="split"),
        Line2D(
            [], [], marker="s", color="w", markeredgecolor=INK, markeredgewidth=2.2, label="leaf"
        ),
    ]
    show_legend(ax, handles=marks, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 0.0))
    if len(layout.node) < tree.n_nodes:
        text = (
            f"Cut at depth {layout.depth.max()}: {len(layout.node):,} of {tree.n_nodes:,} nodes; "
            "dashed splits have more below."
        )
        ax.text(
            0.5, 1.0, text, transform=ax.transAxes, ha="center", va="top", color=INK, fontsize=9
        )
