"""A fit on a cluster, step by step."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from distributed import Future

from lhtree import _core
from lhtree.arrays import Floats, Ints
from lhtree.dask import facts as known
from lhtree.dask import passes
from lhtree.dask.bundles import finish_nodes
from lhtree.dask.cluster import Cluster
from lhtree.dask.facts import Facts
from lhtree.dask.partitions import Partition
from lhtree.dask.passes import Draws
from lhtree.dask.rounds import Batch
from lhtree.dask.trees import GrowingTree, finish_forest
from lhtree.model.forest import Forest, Plan, join_forests

FINISH_SHARE = 0.25  # of a thread's memory, for the rows of nodes that it finishes
STATE_SHARE = 0.2  # of the cluster's memory, for which rows are in which nodes
SMALLEST_VARIANCE = 1e-250  # squares below vanish; see native/old/scale.hpp
Scale = tuple[Floats, Floats]


class DistributedRows:
    """The training rows of a fit, where the partitions are.

    Parameters
    ----------
    cluster : Cluster
        Where tasks run.
    partitions : list of Partition
        The lazy pieces of the table.
    names : list of str or None
        Names of the columns, for messages.
    """

    def __init__(
        self, cluster: Cluster, partitions: list[Partition], names: Sequence[str] | None
    ) -> None:
        self.cluster = cluster
        self.tables = cluster.group([partition.X for partition in partitions])
        self._y = cluster.group([partition.y for partition in partitions])
        self._weights = cluster.group([partition.weight for partition in partitions])
        self.labels: list[Future] = []
        surveys = cluster.start(passes.survey, self.tables, self._y, self._weights)
        self.facts: Facts = known.find_facts(cluster.gather_each(surveys), names)
        cluster.drop(surveys)
        if not self.facts.is_weighted:
            self._weights = cluster.group([None] * len(partitions))
        self.weight_sum = float(self.facts.weight.sum())
        self.weight_max = float(self.facts.largest.max())
        self.n_rows = int(self.facts.counts.sum())
        self._factor: Floats | None = None

    @property
    def X(self) -> Any:
        """What `Plan` reads of a table: its shape."""
        return np.broadcast_to(0.0, (self.n_rows, self.facts.n_columns))

    def weigh_classes(self, class_weight: Any) -> None:
        """Multiply the weights of the rows by those of their classes."""
        factor = known.weigh_classes(self.facts, class_weight)
        if factor is None:
            return
        self.facts = known.keep_classes(self.facts, factor > 0)
        self._factor = factor = factor[factor > 0]
        self.n_rows = int(self.facts.counts.sum())
        self.weight_sum = float(self.facts.weight @ factor)
        self.weight_max = float(np.max(self.facts.largest * factor))

    def number(self) -> None:
        """Give numbers to the rows that count, and to their classes."""
        first = np.cumsum([0, *self.facts.counts.sum(axis=1)])[:-1].tolist()
        shared = (self.facts.classes, self.facts.unit, self._factor)
        self.labels = self.cluster.start(
            passes.label_rows,
            self._y,
            self._weights,
            self.cluster.group(first),
            shared=shared,
        )

    def find_scale(self) -> Scale:
        """Return mean and deviation of the columns, weighted by `sample_weight`."""
        facts, ones = self.facts, np.ones(self.facts.n_columns)
        shift, square = self._sum_about(facts.mean, ones)
        mean = facts.mean + shift
        variance = square - shift**2
        is_flat = facts.low == facts.high
        mean = np.where(is_flat, facts.low, mean)
        deviation = np.where(is_flat, 1.0, np.sqrt(np.maximum(variance, 0.0)))
        is_small = ~is_flat & (variance < SMALLEST_VARIANCE)
        if is_small.any():  # in units of the largest distance
            largest = np.maximum(facts.high - mean, mean - facts.low)
            _, square = self._sum_about(mean, np.where(is_small, largest, 1.0))
            deviation = np.where(is_small, largest * np.sqrt(square), deviation)
        return mean, np.where(deviation > 0, deviation, 1.0)

    def _sum_about(self, origin: Floats, unit: Floats) -> tuple[Floats, Floats]:
        sums, _ = self.cluster.total(
            passes.sum_scale, self.tables, self._weights, shared=(origin, unit)
        )
        mean = sums[:-1].reshape(-1, 2) / sums[-1]
        return mean[:, 0], mean[:, 1]


class DistributedGrower:
    """Grows members on the rows of a cluster.

    Parameters
    ----------
    rows : DistributedRows
        The training rows.
    plan : Plan
        The rules.
    scale : tuple of two ndarrays
        Units of the columns.
    row_limit : int or None
        Rows up to which a node is finished by one worker; None: what its memory allows.
    is_verbose : bool
        Whether to report rounds on standard error.
    """

    def __init__(
        self,
        rows: DistributedRows,
        plan: Plan,
        scale: Scale,
        row_limit: int | None,
        *,
        is_verbose: bool,
    ) -> None:
        self._rows, self._plan, self._scale = rows, plan, scale
        self._cluster = rows.cluster
        # A row of a bundle is there three times: in pieces, joined, and in the trees' units.
        bytes_per_row = 3 * 8 * rows.facts.n_columns + 64
        self._most_rows = max(
            1, int(self._cluster.memory_per_thread * FINISH_SHARE / bytes_per_row)
        )
        self.row_limit = self._most_rows if row_limit is None else row_limit
        self._is_verbose = is_verbose
        self.n_rounds = 0
        self._judges: tuple[int, JudgeRows] | None = None
        if plan.n_draws > self.row_limit:
            self._check_rules()

    def describe(self) -> dict[str, int]:
        """Return what growing took."""
        return {
            "n_rounds": self.n_rounds,
            "n_passes": self._cluster.n_passes,
            "n_bytes": self._cluster.n_bytes_sent,
            "row_limit": self.row_limit,
        }

    def _check_rules(self) -> None:
        """Refuse rules that need whole trees on one worker."""
        plan = self._plan
        for name, is_used in (
            ("min_samples_leaf", plan.min_samples_leaf > 0),
            ("max_leaf_nodes", plan.max_leaf_nodes > 0),
            ("ccp_alpha", plan.ccp_alpha > 0),
        ):
            if is_used:
                raise ValueError(
                    f"{name} needs the rows of a tree on one worker, but a tree draws "
                    f"{plan.n_draws} rows and the limit is {self.row_limit}; leave {name} at its "
                    "default, give the workers more memory, or draw fewer rows by max_samples."
                )

    def grow(self, first: int, beta: tuple[float, ...]) -> Forest:
        """Grow the members from number `first` on, in batches whose state fits in memory."""
        size = self._count_trees_per_batch()
        n_members = max(1, size // len(self._plan.target))
        forests = []
        for begin in range(0, len(beta), n_members):
            part = beta[begin : begin + n_members]
            forests.append(self._grow_batch(first + begin, part))
        return join_forests(forests) if len(forests) > 1 else forests[0]

    def _count_trees_per_batch(self) -> int:
        is_weighted = self._rows.facts.is_weighted or self._plan.bootstrap or self._plan.balance
        bytes_per_row = 2 * (12 if is_weighted else 4)  # of this round and the next
        memory = STATE_SHARE * self._cluster.memory_per_thread * self._cluster.n_threads
        return max(1, int(memory / (bytes_per_row * max(self._plan.n_draws, 1))))

    def find_draws(self, first: int, n_members: int) -> Draws:
        """Find which hashes are small enough for each member, spread over the workers."""
        plan, members = self._plan, tuple(range(first, first + n_members))
        n_rows = self._rows.n_rows
        if plan.bootstrap or plan.n_draws >= n_rows:
            return Draws(members, ((0, 0),) * n_members, n_rows)
        size = -(-n_members // self._cluster.n_threads)
        futures = [
            self._cluster.submit(passes.find_limits, plan, members[i : i + size], n_rows)
            for i in range(0, n_members, size)
        ]
        limits = tuple(limit for part in self._cluster.gather(futures) for limit in part)
        self._cluster.drop(futures)
        return Draws(members, limits, n_rows)

    def _grow_batch(self, first: int, beta: tuple[float, ...]) -> Forest:
        plan, cluster, rows = self._plan, self._cluster, self._rows
        draws = self.find_draws(first, len(beta))
        counted = cluster.total(passes.count_members, rows.labels, shared=(plan, draws))
        counts = counted.sum.reshape(len(beta), 2, plan.n_classes)
        factor = _find_balance(counts[:, 0]) if plan.balance else None
        if factor is not None:
            counts[:, 0] *= factor
        trees, roots = self._make_trees(draws, beta, counts)
        batch = Batch(cluster, rows.tables, self._scale, plan, self.row_limit)
        kept = batch.plant(trees, [_count_sides(counts[t.member], t.target) for t in trees])
        if kept:
            numbers = tuple(roots[number] for number in kept)
            batch.states = cluster.start(
                passes.begin, rows.labels, shared=(plan, draws, numbers, factor)
            )
            batch.grow(self._report)
            self.n_rounds += batch.n_rounds
        if batch.nodes:
            finish_nodes(
                cluster, rows.tables, batch.states, batch.nodes, self._scale, plan,
                n_rows=rows.n_rows, most_rows=max(self._most_rows, self.row_limit),
                on_node=lambda n: None,
            )  # fmt: skip
        cluster.drop(batch.states)
        return finish_forest(trees, self._scale)

    def _make_trees(
        self, draws: Draws, beta: tuple[float, ...], counts: Floats
    ) -> tuple[list[GrowingTree], list[tuple[int, int]]]:
        plan, trees = self._plan, []
        for number, member in enumerate(draws.member):
            for target in plan.target:
                key = _core.find_tree_key(plan.seed, member, target)
                columns = _core.list_tree_columns(
                    key, self._rows.facts.n_columns, plan.n_columns_per_tree
                )
                weight_sum = float(counts[number, 0].sum())
                trees.append(GrowingTree(number, target, key, beta[number], weight_sum, columns))
        return trees, [(tree.member, tree.target) for tree in trees]

    def _report(self, n_nodes: int) -> None:
        if self._is_verbose:
            text = f"[lhtree] a round is done: {n_nodes} nodes in progress"
            print(text, file=sys.stderr, flush=True)

    # ---- out-of-bag votes -------------------------------------------------------

    def find_judges(self, n_members: int, most_rows: int) -> JudgeRows:
        """Return every so manieth row, at most `most_rows`, as judges of the members."""
        if self._judges is not None and self._judges[0] == n_members:
            return self._judges[1]
        step = max(1, -(-self._rows.n_rows // most_rows))
        draws = self.find_draws(0, n_members)
        futures = self._cluster.start(
            passes.pick_judges,
            self._rows.tables,
            self._rows.labels,
            shared=(replace(self._plan, beta=()), draws, step),
        )
        self._judges = n_members, JudgeRows(self._cluster, futures)
        return self._judges[1]


class JudgeRows:
    """Rows on the workers whose out-of-bag votes decide; the client knows their classes.

    Parameters
    ----------
    cluster : Cluster
        Where they are.
    futures : list of Future
        The judges of each partition.
    """

    def __init__(self, cluster: Cluster, futures: list[Future]) -> None:
        self._cluster, self._futures = cluster, futures
        described = cluster.start(passes.Judges.forget_rows, futures)
        parts: list[passes.Judges] = cluster.gather_each(described)
        cluster.drop(described)
        self.code = np.concatenate([part.code for part in parts])
        weights = [part.weight for part in parts if part.weight is not None]
        self.counts = np.concatenate(weights) if weights else np.ones(len(self.code))
        self._is_left_out = np.concatenate([part.is_left_out for part in parts], axis=1)

    @property
    def X(self) -> JudgeRows:
        """What may be asked for votes: the rows are not here."""
        return self

    def find_voters(self, n_members: int | None) -> JudgeVoters:
        """Return how many of the first members left each row out; None: of all."""
        n = len(self._is_left_out) if n_members is None else n_members
        return JudgeVoters(n, self._is_left_out[:n].sum(axis=0))

    def vote(self, question: passes.VoteQuestion, axis: int = 0) -> tuple[Floats, Floats, Floats]:
        """Sum what the first members say of rows that they did not see."""
        futures = self._cluster.start(passes.vote_left_out, self._futures, shared=(question,))
        parts = zip(*self._cluster.gather_each(futures), strict=True)
        self._cluster.drop(futures)
        vote, distance, complement = (np.concatenate(part, axis=axis) for part in parts)
        return vote, distance, complement


class JudgeVoters(NamedTuple):
    """The first members of a forest, and how many of them may vote on each judge."""

    n_members: int
    n_voters: Ints


def _count_sides(counts: Floats, target: int) -> Floats:
    """Return weights and numbers of targets and rest."""
    own, every = counts[:, target], counts.sum(axis=1)
    if np.array_equal(counts[0], counts[1]):
        every = np.array([every[1], every[1]])
    return np.array([own[0], every[0] - own[0], own[1], every[1] - own[1]])


def _find_balance(weight: Floats) -> Floats:
    """Return factors that give the classes of each member the same total weight."""
    n_present = np.count_nonzero(weight, axis=1, keepdims=True)
    total = weight.sum(axis=1, keepdims=True)
    factor = np.zeros_like(weight)
    np.divide(total, n_present * weight, out=factor, where=weight > 0)
    return factor
