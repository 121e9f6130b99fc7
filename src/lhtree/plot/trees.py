"""Pictures of trees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, Rectangle

from lhtree.estimators import lookup
from lhtree.plot.canvas import FAINT, INK, PLAIN, check_count, get_axes, show_legend
from lhtree.plot.layout import Layout, lay_out
from lhtree.plot.nodes import INCHES, TreeStyle, describe_nodes

WIDTH, HEIGHT = 0.86, 0.56  # of a node; one unit apart in both directions


def plot_tree(model: Any, tree: int = 0, *, max_nodes: int = 60, ax: Axes | None = None) -> Axes:
    """Draw a tree: its splits, its leaves, and their training rows.

    Every node of an LHTClassifier, or of a forest of such trees, shows its number, the number
    of its training rows and the fraction of the tree's class among them (after shrinkage, if
    the model uses it), also as a bar. All other nodes show their condition (rows that fulfil
    it go left), their fraction of the training rows and a value, also as a bar: in a forest
    of classes the share of the tree's class, in a forest of numbers the prediction (its bar
    is how far that is from the mean), in a boosted tree what the node adds to the raw score
    (a split: on average); with many classes, to the score that it changes most. Splits have
    round corners, leaves a thick border.

    Parameters
    ----------
    model : classifier or regressor of this package
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
    lookup.check_model(model)
    which = lookup.look_up_tree(model, tree)
    layout = lay_out(which, check_count("max_nodes", max_nodes))
    style = describe_nodes(model, which)
    n_columns, n_levels = layout.x.max() + 1, int(layout.depth.max()) + 1
    size = (max(4.0, style.inches * n_columns + 0.3), 1.0 + INCHES * n_levels)
    ax = get_axes(ax, size)
    ax.set_axis_off()
    ax.set(xlim=(-0.55, n_columns - 0.45), ylim=(0.4 - n_levels, 0.75))
    ax.set_title(f"Tree {tree}: {style.task}", **PLAIN)
    lettering = _choose_lettering(ax, n_columns, n_levels, style)
    _draw_edges(ax, which, layout, style, lettering.size)
    for i in range(len(layout.node)):
        _draw_node(ax, which, layout, i, style, lettering)
    _explain_marks(ax, which, layout, style)
    return ax


class Lettering(NamedTuple):
    """How the text of a node is written."""

    size: float  # in points
    separator: str  # between the facts of a node


def _choose_lettering(ax: Axes, n_columns: float, n_levels: int, style: TreeStyle) -> Lettering:
    """Return the larger lettering of two: three short lines, or two longer ones."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    width = 72 * box.width / (n_columns + 0.1) * WIDTH
    height = 72 * box.height / (n_levels + 0.35) * HEIGHT
    tall, flat = (
        min(width / n_letters / 0.58, 0.74 * height / n_lines / 1.2)
        for n_letters, n_lines in style.shapes
    )
    size = float(np.clip(max(tall, flat), 1, 9))
    return Lettering(size, "\n" if tall >= min(flat, 9) else ", ")


def _draw_edges(ax: Axes, tree: Any, layout: Layout, style: TreeStyle, size: float) -> None:
    is_open = (tree.left[layout.node] >= 0) & (layout.n_hidden == 0)
    for i in np.flatnonzero(is_open):
        for side, text in enumerate(style.sides):
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


def _draw_node(
    ax: Axes, tree: Any, layout: Layout, i: int, style: TreeStyle, lettering: Lettering
) -> None:
    node, x, y = layout.node[i], layout.x[i], -float(layout.depth[i])
    is_leaf, facts = tree.left[node] < 0, style.describe(int(node))
    corner = (x - WIDTH / 2, y - HEIGHT / 2)
    box = FancyBboxPatch(
        corner,
        WIDTH,
        HEIGHT,
        boxstyle="square,pad=0" if is_leaf else "round,pad=0,rounding_size=0.12",
        facecolor="white",
        edgecolor=facts.color if is_leaf else INK,
        linewidth=2.2 if is_leaf else 1.0,
        linestyle="--" if layout.n_hidden[i] else "-",
        gid=f"leaf {node}" if is_leaf else f"split {node}",
    )
    ax.add_patch(box)
    bar = corner[0] + 0.1 * WIDTH, corner[1] + 0.09 * HEIGHT
    for start, width, color in facts.bars:
        ax.add_patch(
            Rectangle(
                (bar[0] + 0.8 * WIDTH * start, bar[1]),
                0.8 * WIDTH * width,
                0.1 * HEIGHT,
                color=color,
            )
        )
    ax.text(
        x,
        y + 0.08 * HEIGHT,
        f"{facts.title}\n{lettering.separator.join(facts.lines)}",
        ha="center",
        va="center",
        fontsize=lettering.size,
        linespacing=1.1,
        color=INK,
        **PLAIN,
    )
    if layout.n_hidden[i]:
        below = f"+ {layout.n_hidden[i]:,} nodes"
        below_style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": lettering.size}
        ax.text(x, y - 0.72 * HEIGHT, below, color=INK, **below_style)


def _explain_marks(ax: Axes, tree: Any, layout: Layout, style: TreeStyle) -> None:
    marks = [
        *(Patch(color=color, label=label) for color, label in style.colors),
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
