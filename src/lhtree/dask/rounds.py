"""Growing a batch of trees round by round, all nodes of a level at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from lhtree import _core
from lhtree.arrays import Floats, Ints, Scale
from lhtree.dask import tasks
from lhtree.dask.cluster import Cluster
from lhtree.dask.cuts import Candidates, Cut, choose_cuts
from lhtree.dask.merging import Sums
from lhtree.dask.tasks import Hyperplanes, NodeUpdates, Request
from lhtree.dask.trees import GrowingTree, Record
from lhtree.training.plan import CONTRASTS, Plan

FISHER = CONTRASTS.index("fisher")
READY, SUM_ANEW = 1, 2  # see ColumnUse in native/old/decide.hpp


@dataclass
class Node:
    """A node whose rows are still with the partitions."""

    tree: GrowingTree
    number: int  # of its record
    key: int
    depth: int
    count: Floats  # weights and numbers of rows: positive, negative
    waits: bool = False  # small: to be finished on one worker
    is_leaf: bool = False
    column: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    origin: Floats = field(default_factory=lambda: np.empty(0))
    n_drawn: int = 0  # columns looked at so far
    sum: Floats = field(default_factory=lambda: np.empty(0))
    end: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def record(self) -> Record:
        """The node in its tree."""
        return self.tree.records[self.number]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.count[2] + self.count[3])


class Batch:
    """Trees that grow together.

    Parameters
    ----------
    cluster : Cluster
        Where the partitions are.
    tables : list
        The partitions of the table.
    scale : tuple of two ndarrays
        Units of the columns.
    plan : Plan
        The rules.
    row_limit : int
        Nodes with more rows grow in rounds; the others are left for one worker each.
    """

    def __init__(
        self,
        cluster: Cluster,
        tables: Sequence[Any],
        scale: Scale,
        plan: Plan,
        row_limit: int,
    ) -> None:
        self._cluster = cluster
        self._tables = tables
        self._scale = scale
        self._plan = plan
        self._row_limit = row_limit
        self.nodes: list[Node] = []
        self.states: list[Future] = []
        self.n_rounds = 0

    def init_roots(self, trees: list[GrowingTree], counts: list[Floats]) -> list[int]:
        """Begin with the roots; returns the numbers of those whose rows are needed."""
        kept = []
        for number, (tree, count) in enumerate(zip(trees, counts, strict=True)):
            tree.records = [Record()]
            root = Node(tree, 0, tree.key, 0, count)
            if self._keeps(root):
                kept.append(number)
                self.nodes.append(root)
        return kept

    def _keeps(self, node: Node) -> bool:
        """Decide what becomes of a new node: whether its rows are needed, and what for."""
        plan, count = self._plan, node.count
        node.record.describe(count)
        if count[2] == 0 or count[3] == 0:
            return False
        node.waits = node.n_rows <= self._row_limit
        is_light = count[0] + count[1] < plan.min_samples_split
        node.is_leaf = node.depth >= plan.max_depth or is_light
        least = min(count[0], count[1])
        return node.waits or not node.is_leaf or least >= self._min_weight(node)

    def _min_weight(self, node: Node) -> float:
        return self._plan.min_weight_fraction_leaf * node.tree.weight_sum

    def grow(self, on_round: Callable[[int], None]) -> None:
        """Grow until only nodes are left that wait for one worker."""
        while active := [node for node in self.nodes if not node.waits]:
            self._measure(active)
            leaves = [node for node in active if node.is_leaf]
            for node in leaves:
                self._finish_leaf(node)
            splits = [node for node in active if not node.is_leaf]
            cuts = self._choose(splits)
            self._split(dict(zip(map(id, splits), cuts, strict=True)), set(map(id, leaves)))
            self.n_rounds += 1
            on_round(len(self.nodes))

    def _run(self, function: Callable[..., Any], *shared: Any) -> Any:
        return self._cluster.total(
            function, self._tables, self.states, shared=(self._scale, *shared)
        )

    # ---- sums of columns ------------------------------------------------------

    def _measure(self, active: list[Node]) -> None:
        """Get the sums of the columns that each node draws, or of all for a leaf."""
        pending = active
        for node in active:
            node.column, node.origin, node.n_drawn = np.empty(0, np.int32), np.empty(0), 0
            self._draw_more(node)
        while pending:
            kinds = [
                [node for node in pending if not node.is_leaf],
                [node for node in pending if node.is_leaf],
            ]
            requests = [
                (nodes, self._request(nodes, with_products=k == 0 and self._needs_products))
                for k, nodes in enumerate(kinds)
                if nodes
            ]
            sums = self._run(tasks.measure, tuple(request for _, request in requests))
            self._hand_out(requests, sums)
            pending = [node for node in pending if not self._is_ready(node)]

    @property
    def _needs_products(self) -> bool:
        return self._plan.contrast == FISHER and self._plan.n_hyperplanes > 0

    def _draw_more(self, node: Node) -> None:
        """Ask for as many further columns as are wanted and there are."""
        n_all = len(node.tree.columns)
        n_wanted = n_all if node.is_leaf else min(self._plan.max_features or n_all, n_all)
        n_more = min(n_wanted - len(node.column), n_all - node.n_drawn)
        if n_more <= 0:
            return
        if node.is_leaf:
            drawn = node.tree.columns
        else:
            drawn = _core.draw_columns(node.key, node.tree.columns, node.n_drawn + n_more)
        node.column = np.concatenate([node.column, drawn[node.n_drawn :]])
        node.origin = np.concatenate([node.origin, np.zeros(n_more)])
        node.n_drawn += n_more

    def _request(self, nodes: list[Node], *, with_products: bool) -> Request:
        position = {id(node): k for k, node in enumerate(self.nodes)}
        size = np.zeros(len(self.nodes) + 1, dtype=np.int64)
        for node in nodes:
            size[position[id(node)] + 1] = len(node.column)
        return Request(
            np.cumsum(size),
            np.concatenate([node.column for node in nodes]),
            np.concatenate([node.origin for node in nodes]),
            with_products,
        )

    def _hand_out(self, requests: list[tuple[list[Node], Request]], sums: Sums) -> None:
        at_sum = at_end = 0
        for nodes, request in requests:
            for node in nodes:
                p = len(node.column)
                n_sums = 3 * p + (p * (p - 1) // 2 if request.with_products else 0)
                node.sum = sums[0][at_sum : at_sum + n_sums]
                node.end = sums[1][at_end : at_end + 2 * p]
                at_sum, at_end = at_sum + n_sums, at_end + 2 * p

    def _is_ready(self, node: Node) -> bool:
        """Whether the sums can be used; otherwise the node asks for others."""
        alpha = -1.0 if node.is_leaf else self._plan.alpha
        positive_weight, negative_weight = map(float, node.count[:2])
        use = _core.classify_columns(
            node.column,
            node.origin,
            node.sum,
            node.end,
            positive_weight,
            negative_weight,
            alpha,
        )
        node.origin = np.where(use == SUM_ANEW, -node.end[::2], node.origin)
        if np.all(use == READY) or len(use) == 0:
            return True
        is_last = node.n_drawn == len(node.tree.columns) and not np.any(use == SUM_ANEW)
        if is_last and (node.is_leaf or not self._needs_products):
            self._keep_columns(node, use == READY)
            return True
        kept = use != 0
        node.column, node.origin = node.column[kept], node.origin[kept]
        self._draw_more(node)
        return len(node.column) == 0

    @staticmethod
    def _keep_columns(node: Node, kept: NDArray[np.bool_]) -> None:
        node.column, node.origin = node.column[kept], node.origin[kept]
        node.sum = np.ascontiguousarray(node.sum.reshape(-1, 3)[kept].ravel())
        node.end = np.ascontiguousarray(node.end.reshape(-1, 2)[kept].ravel())

    # ---- decisions ------------------------------------------------------------

    def _finish_leaf(self, node: Node) -> None:
        if len(node.column):
            node.record.terms = _core.make_leaf(
                node.column, node.origin, node.sum, *map(float, node.count[:2])
            )

    def _choose(self, splits: list[Node]) -> list[tuple[_core.Terms, Cut] | None]:
        """Return the hyperplane and the cut of each node, None for those that become leaves."""
        made = [self._make_hyperplanes(node) for node in splits]
        position = {id(node): k for k, node in enumerate(self.nodes)}
        node_of = [position[id(n)] for n, some in zip(splits, made, strict=True) for _ in some]
        terms = [each for some in made for each in some]
        hyperplanes = join_hyperplanes(np.array(node_of, dtype=np.int64), terms)
        bounds = [
            compute_bounds(node, each)
            for node, some in zip(splits, made, strict=True)
            for each in some
        ]
        candidates = [
            Candidates(node.count, self._min_weight(node), len(some))
            for node, some in zip(splits, made, strict=True)
        ]
        cuts = choose_cuts(
            self._run, self._plan, candidates, hyperplanes, np.array(bounds).reshape(-1, 2)
        )
        return [
            None if cut is None else (some[cut.hyperplane], cut)
            for some, cut in zip(made, cuts, strict=True)
        ]

    def _make_hyperplanes(self, node: Node) -> list[_core.Terms]:
        if len(node.column) == 0:
            return []
        beta, weights = node.tree.beta, map(float, node.count[:2])
        return _core.make_hyperplanes(
            self._plan, beta, node.column, node.origin, node.sum, *weights
        )

    def _split(self, cuts: dict[int, tuple[_core.Terms, Cut] | None], finished: set[int]) -> None:
        """Divide the rows of the nodes that have a cut; go on with what is left."""
        n = len(self.nodes)
        stays, keeps = np.zeros(n, np.uint8), np.zeros(2 * n, np.uint8)
        chosen: list[tuple[int, _core.Terms, Cut]] = []
        following: list[Node] = []
        for k, node in enumerate(self.nodes):
            found = cuts.get(id(node))
            if id(node) in finished:
                continue
            if found is None:
                if not node.waits:
                    node.is_leaf = True
                    if min(node.count[0], node.count[1]) < self._min_weight(node):
                        continue
                stays[k] = 1
                following.append(node)
                continue
            chosen.append((k, *found))
            for side, child in enumerate(self._make_children(node, *found)):
                if self._keeps(child):
                    keeps[2 * k + side] = 1
                    following.append(child)
        number = np.array([k for k, _, _ in chosen], dtype=np.int64)
        hyperplanes = join_hyperplanes(number, [terms for _, terms, _ in chosen])
        updates = NodeUpdates(np.array([cut.threshold for _, _, cut in chosen]), stays, keeps)
        old = self.states
        self.states = self._cluster.start(
            tasks.split, self._tables, old, shared=(self._scale, hyperplanes, updates)
        )
        self._cluster.drop(old)
        self.nodes = following

    def _make_children(self, node: Node, terms: _core.Terms, cut: Cut) -> list[Node]:
        record = node.record
        record.threshold, record.threshold_kind = cut.threshold, cut.threshold_kind
        record.extremes = cut.extremes
        record.terms, record.norm = terms, _core.compute_norm(terms[0], terms[1])
        first = node.tree.add_children(record)
        right = np.maximum(node.count - cut.left, 0.0)
        right[:2] *= right[2:] > 0  # rounding must not leave a weight where there is no row
        counts = (cut.left, right)
        return [
            Node(
                node.tree,
                first + side,
                _core.make_child_key(node.key, bool(side)),
                node.depth + 1,
                count,
            )
            for side, count in enumerate(counts)
        ]


def join_hyperplanes(node: Ints, terms: list[_core.Terms]) -> Hyperplanes:
    """Put the terms of hyperplanes one after the other."""
    start = np.cumsum([0, *(len(term[0]) for term in terms)]).astype(np.int64)
    nothing = [(np.empty(0, np.int32), np.empty(0))]
    some = terms or nothing
    return Hyperplanes(
        node,
        start,
        np.concatenate([term[0] for term in some]),
        np.concatenate([term[1] for term in some]),
    )


def compute_bounds(node: Node, terms: _core.Terms) -> tuple[float, float]:
    """Return a range that projections on a hyperplane hardly leave, from those of its columns."""
    feature, weight, *_ = terms
    order = np.argsort(node.column)
    position = order[np.searchsorted(node.column, feature, sorter=order)]
    a, b = -weight * node.end[2 * position], weight * node.end[2 * position + 1]
    return float(np.minimum(a, b).sum()), float(np.maximum(a, b).sum())
