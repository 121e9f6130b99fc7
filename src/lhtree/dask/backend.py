"""The backend of a fit whose rows are the partitions of a Dask collection."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from lhtree import _core
from lhtree.arrays import Floats, Ints, Scale
from lhtree.dask import summary, tasks
from lhtree.dask.chunks import finish_nodes
from lhtree.dask.cluster import Cluster
from lhtree.dask.partitions import Partition
from lhtree.dask.rounds import Batch
from lhtree.dask.summary import TableSummary
from lhtree.dask.tasks import Draws
from lhtree.dask.trees import GrowingTree, assemble_forest
from lhtree.model.building import join_forests
from lhtree.model.forest import Forest, Votes
from lhtree.model.prediction import Voting
from lhtree.training.backend import Report
from lhtree.training.plan import Plan

FINISH_FRACTION = 0.25  # of a thread's memory, for the rows of nodes that it finishes
STATE_FRACTION = 0.2  # of the cluster's memory, for which rows are in which nodes
SMALLEST_VARIANCE = 1e-250  # squares below vanish; see native/old/scale.hpp


class DaskBackend:
    """Grows trees where the partitions of a table are.

    Parameters
    ----------
    cluster : Cluster
        Where tasks run.
    partitions : list of Partition
        The lazy partitions of the table.
    names : list of str or None
        Names of the columns, for messages.
    row_limit : int or None
        Rows up to which a node is finished by one worker; None: what its memory allows.
    is_verbose : bool
        Whether to report rounds on standard error.
    """

    def __init__(
        self,
        cluster: Cluster,
        partitions: list[Partition],
        names: Sequence[str] | None,
        *,
        row_limit: int | None,
        is_verbose: bool,
    ) -> None:
        self._cluster, self._names, self._is_verbose = cluster, names, is_verbose
        self._tables = cluster.to_batches([partition.X for partition in partitions])
        self._y = cluster.to_batches([partition.y for partition in partitions])
        self._weights = cluster.to_batches([partition.weight for partition in partitions])
        surveys = cluster.start(tasks.survey, self._tables, self._y, self._weights)
        self._summary: TableSummary = summary.summarize(cluster.gather_each(surveys), names)
        cluster.drop(surveys)
        if not self._summary.is_weighted:
            self._weights = cluster.to_batches([None] * len(partitions))
        self._factor: Floats | None = None  # of the weights of each class
        self._labels: list[Future] = []  # made when first needed
        self._sample: tuple[tuple[int, int | None], DaskOutOfBagRows] | None = None
        # A row of a chunk is there three times: as taken, joined, and in the trees' units.
        bytes_per_row = 3 * 8 * self.n_columns + 64
        memory = cluster.memory_per_thread * FINISH_FRACTION
        self._most_rows = max(1, int(memory / bytes_per_row))
        self._row_limit = self._most_rows if row_limit is None else row_limit
        self._n_rounds = 0

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""
        return int(self._summary.counts.sum())

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self._summary.n_columns

    @property
    def weight_sum(self) -> float:
        """Weighted number of rows."""
        weight = self._summary.weight
        return float(weight.sum() if self._factor is None else weight @ self._factor)

    @property
    def weight_max(self) -> float:
        """Largest weight of a row."""
        factor = 1.0 if self._factor is None else self._factor
        return float(np.max(self._summary.largest * factor))

    @property
    def classes(self) -> NDArray[Any]:
        """Labels of the classes, ascending."""
        return self._summary.classes

    def check_overflow(self, weight_sum: float) -> None:
        """Refuse columns whose sums of squares, weighted by so much, leave the doubles."""
        summary.check_overflow(self._summary, self._names, weight_sum)

    def compute_scale(self, *, standardize_indicators: bool) -> Scale:
        """Return mean and std of the columns, weighted by `sample_weight`; all are numbers."""
        known, ones = self._summary, np.ones(self.n_columns)
        shift, square = self._sum_about(known.mean, ones)
        mean = known.mean + shift
        variance = square - shift**2
        is_flat = known.low == known.high
        mean = np.where(is_flat, known.low, mean)
        std = np.where(is_flat, 1.0, np.sqrt(np.maximum(variance, 0.0)))
        is_small = ~is_flat & (variance < SMALLEST_VARIANCE)
        if is_small.any():  # in units of the largest distance
            largest = np.maximum(known.high - mean, mean - known.low)
            _, square = self._sum_about(mean, np.where(is_small, largest, 1.0))
            std = np.where(is_small, largest * np.sqrt(square), std)
        return mean, np.where(std > 0, std, 1.0)

    def _sum_about(self, origin: Floats, unit: Floats) -> tuple[Floats, Floats]:
        sums, _ = self._cluster.total(
            tasks.sum_scale, self._tables, self._weights, shared=(origin, unit)
        )
        mean = sums[:-1].reshape(-1, 2) / sums[-1]
        return mean[:, 0], mean[:, 1]

    def weigh_classes(self, class_weight: Any) -> None:
        """Multiply the weights of the rows by those of their classes."""
        factor = summary.weigh_classes(self._summary, class_weight)
        if factor is not None:
            self._summary = summary.keep_classes(self._summary, factor > 0)
            self._factor = factor[factor > 0]

    def _number_rows(self) -> list[Future]:
        """Return, for each partition, the numbers and classes of the rows that count."""
        if not self._labels:
            first = np.cumsum([0, *self._summary.counts.sum(axis=1)])[:-1].tolist()
            shared = (self._summary.classes, self._summary.unit, self._factor)
            self._labels = self._cluster.start(
                tasks.label_rows,
                self._y,
                self._weights,
                self._cluster.to_batches(first),
                shared=shared,
            )
        return self._labels

    def describe(self) -> dict[str, int]:
        """Return what growing took."""
        return {
            "n_rounds": self._n_rounds,
            "n_passes": self._cluster.n_passes,
            "n_bytes": self._cluster.n_bytes_sent,
            "row_limit": self._row_limit,
        }

    # ---- growing ------------------------------------------------------------------

    def grow(self, plan: Plan, scale: Scale | None, report: Report) -> Forest:
        """Grow the estimators of a plan, in batches whose state fits in memory."""
        if plan.n_draws > self._row_limit:
            self._check_plan(plan)
        n = self.n_columns
        units = (np.zeros(n), np.ones(n)) if scale is None else scale
        n_trees = len(plan.positive_class)
        n_estimators = max(1, self._count_trees_per_batch(plan) // n_trees)
        forests = []
        for begin in range(0, len(plan.beta), n_estimators):
            beta = plan.beta[begin : begin + n_estimators]
            forests.append(self._grow_batch(plan, units, plan.first_estimator + begin, beta))
            report(min(begin + n_estimators, len(plan.beta)) * n_trees)
        return join_forests(forests) if len(forests) > 1 else forests[0]

    def _check_plan(self, plan: Plan) -> None:
        """Refuse parameters that need whole trees on one worker."""
        for name, is_used in (
            ("min_samples_leaf", plan.min_samples_leaf > 0),
            ("max_leaf_nodes", plan.max_leaf_nodes > 0),
            ("ccp_alpha", plan.ccp_alpha > 0),
        ):
            if is_used:
                raise ValueError(
                    f"{name} needs the rows of a tree on one worker, but a tree draws "
                    f"{plan.n_draws} rows and the limit is {self._row_limit}; leave {name} at its "
                    "default, give the workers more memory, or draw fewer rows by max_samples."
                )

    def _count_trees_per_batch(self, plan: Plan) -> int:
        is_weighted = self._summary.is_weighted or plan.bootstrap or plan.balance
        bytes_per_row = 2 * (12 if is_weighted else 4)  # of this round and the next
        memory = STATE_FRACTION * self._cluster.memory_per_thread * self._cluster.n_threads
        return max(1, int(memory / (bytes_per_row * max(plan.n_draws, 1))))

    def _limit_draws(self, plan: Plan, first: int, n_estimators: int) -> Draws:
        """Find which hashes are small enough for each estimator, spread over the workers."""
        estimators = tuple(range(first, first + n_estimators))
        if plan.bootstrap or plan.n_draws >= self.n_rows:
            return Draws(estimators, ((0, 0),) * n_estimators, self.n_rows)
        size = -(-n_estimators // self._cluster.n_threads)
        futures = [
            self._cluster.submit(
                tasks.compute_draw_limits, plan, estimators[i : i + size], self.n_rows
            )
            for i in range(0, n_estimators, size)
        ]
        limits = tuple(limit for some in self._cluster.gather(futures) for limit in some)
        self._cluster.drop(futures)
        return Draws(estimators, limits, self.n_rows)

    def _grow_batch(self, plan: Plan, scale: Scale, first: int, beta: tuple[float, ...]) -> Forest:
        cluster, labels = self._cluster, self._number_rows()
        draws = self._limit_draws(plan, first, len(beta))
        counted = cluster.total(tasks.sum_draws, labels, shared=(plan, draws))
        counts = counted.sum.reshape(len(beta), 2, plan.n_classes)
        factor = _compute_balance(counts[:, 0]) if plan.balance else None
        if factor is not None:
            counts[:, 0] *= factor
        trees = self._make_trees(plan, draws, beta, counts)
        batch = Batch(cluster, self._tables, scale, plan, self._row_limit)
        sides = [_count_sides(counts[tree.estimator], tree.positive_class) for tree in trees]
        kept = batch.init_roots(trees, sides)
        if kept:
            roots = tuple((trees[k].estimator, trees[k].positive_class) for k in kept)
            batch.states = cluster.start(tasks.begin, labels, shared=(plan, draws, roots, factor))
            batch.grow(self._report_round)
            self._n_rounds += batch.n_rounds
        if batch.nodes:
            finish_nodes(
                cluster, self._tables, batch.states, batch.nodes, scale, plan,
                n_rows=self.n_rows, most_rows=max(self._most_rows, self._row_limit),
            )  # fmt: skip
        cluster.drop(batch.states)
        return assemble_forest(trees, scale)

    def _make_trees(
        self, plan: Plan, draws: Draws, beta: tuple[float, ...], counts: Floats
    ) -> list[GrowingTree]:
        trees = []
        for number, estimator in enumerate(draws.estimator):
            for k in plan.positive_class:
                key = _core.make_tree_key(plan.seed, estimator, k)
                columns = _core.list_tree_columns(key, self.n_columns, plan.max_features_per_tree)
                weight_sum = float(counts[number, 0].sum())
                trees.append(GrowingTree(number, k, key, beta[number], weight_sum, columns))
        return trees

    def _report_round(self, n_nodes: int) -> None:
        if self._is_verbose:
            text = f"[lhtree] a round is done: {n_nodes} nodes in progress"
            print(text, file=sys.stderr, flush=True)

    # ---- out-of-bag votes -----------------------------------------------------------

    def take_out_of_bag(
        self, plan: Plan, n_estimators: int, most_rows: int | None
    ) -> DaskOutOfBagRows:
        """Return rows, evenly spread, at most so many, with the draws of the first estimators."""
        key = n_estimators, most_rows
        if self._sample is not None and self._sample[0] == key:
            return self._sample[1]
        step = 1 if most_rows is None else max(1, -(-self.n_rows // most_rows))
        draws = self._limit_draws(plan, 0, n_estimators)
        futures = self._cluster.start(
            tasks.take_out_of_bag,
            self._tables,
            self._number_rows(),
            shared=(plan, draws, step),
        )
        self._sample = key, DaskOutOfBagRows.from_futures(self._cluster, futures)
        return self._sample[1]


@dataclass(frozen=True)
class DaskOutOfBagRows:
    """Rows on the workers; the client knows their classes and which estimators drew them."""

    cluster: Cluster
    futures: list[Future]  # the rows of each partition
    y_encoded: NDArray[np.int32]
    counts: Floats
    is_out_of_bag: NDArray[np.bool_]  # (n_estimators, n_rows)
    has_voters: bool

    @classmethod
    def from_futures(cls, cluster: Cluster, futures: list[Future]) -> DaskOutOfBagRows:
        """Learn all but the values of rows on the workers."""
        described = cluster.start(tasks.OutOfBagPartition.without_rows, futures)
        some: list[tasks.OutOfBagPartition] = cluster.gather_each(described)
        cluster.drop(described)
        y_encoded = np.concatenate([each.y_encoded for each in some])
        weights = [each.weight for each in some if each.weight is not None]
        return cls(
            cluster,
            futures,
            y_encoded,
            np.concatenate(weights) if weights else np.ones(len(y_encoded)),
            np.concatenate([each.is_out_of_bag for each in some], axis=1),
            any(each.has_voters for each in some),
        )

    def count_voters(self, n_estimators: int | None = None) -> Ints:
        """Return how many of the first estimators did not draw each row; None: of all."""
        count: Ints = self.is_out_of_bag[:n_estimators].sum(axis=0)
        return count

    def vote(self, forest: Forest, voting: Voting) -> Votes:
        """Sum the votes of the estimators that did not draw a row."""
        return self._vote(tasks.VoteRequest(forest, voting, len(self.is_out_of_bag), None))

    def vote_shrunk(
        self, forest: Forest, voting: Voting, strengths: Sequence[float], n_estimators: int | None
    ) -> Iterator[tuple[slice, Votes]]:
        """Yield rows, and the votes of the first estimators if shrunk by each strength."""
        # All at once: a pass over the cluster takes longer than the memory of few rows counts.
        n = len(self.is_out_of_bag) if n_estimators is None else n_estimators
        request = tasks.VoteRequest(forest, voting, n, tuple(strengths))
        yield slice(None), self._vote(request, axis=1)

    def _vote(self, request: tasks.VoteRequest, axis: int = 0) -> Votes:
        futures = self.cluster.start(tasks.vote_out_of_bag, self.futures, shared=(request,))
        votes = zip(*self.cluster.gather_each(futures), strict=True)
        self.cluster.drop(futures)
        vote, distance, complement = (np.concatenate(each, axis=axis) for each in votes)
        return vote, distance, complement


def _count_sides(counts: Floats, positive_class: int) -> Floats:
    """Return weights and numbers of positive and negative rows."""
    own, every = counts[:, positive_class], counts.sum(axis=1)
    if np.array_equal(counts[0], counts[1]):
        every = np.array([every[1], every[1]])
    return np.array([own[0], every[0] - own[0], own[1], every[1] - own[1]])


def _compute_balance(weight: Floats) -> Floats:
    """Return factors that give the classes of each estimator the same total weight."""
    n_present = np.count_nonzero(weight, axis=1, keepdims=True)
    total = weight.sum(axis=1, keepdims=True)
    factor = np.zeros_like(weight)
    np.divide(total, n_present * weight, out=factor, where=weight > 0)
    return factor
