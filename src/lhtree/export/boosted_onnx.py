"""A boosted model as an ONNX graph.

All trees are walked at once: a *walker* is one row in one tree. Integers are kept in doubles,
which hold them exactly, so that sums come out the same in any order. Nodes are renumbered: the
splits of all trees come first, then the leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lhtree.arrays import Ints
from lhtree.export import writing_onnx
from lhtree.export.boosted import PlainBoosted, UsedColumns
from lhtree.export.writing_onnx import add_labels, normalize, split_blocks
from lhtree.model.ensemble import Ensemble
from lhtree.model.ensemble_splits import CATEGORY, HYPERPLANE, NUMBER, list_code_sides
from lhtree.model.link import LOG, LOGIT, SOFTMAX, SORTED, VOTES
from lhtree.model.tree import repeat_roots

if TYPE_CHECKING:
    from lhtree.export.graph import Graph, Name


class Tables:
    """The numbers of all splits and leaves, as the graph gathers them."""

    def __init__(self, ensemble: Ensemble) -> None:
        index = ensemble.index
        split, leaf = np.flatnonzero(ensemble.left >= 0), np.flatnonzero(ensemble.left < 0)
        number = np.empty(len(ensemble.left), dtype=np.int64)
        number[split], number[leaf] = np.arange(len(split)), len(split) + np.arange(len(leaf))
        root = repeat_roots(ensemble.tree_start)
        child = (root + ensemble.left)[split]
        kind, position = index.kind[split], index.position[split]
        self.n_splits = len(split)
        self.depth = int(ensemble.compute_depth().max(initial=0))
        self.root = number[ensemble.tree_start[:-1]]
        self.left, self.right = number[child], number[child + 1]
        self.column = np.maximum(ensemble.column[split], 0).astype(np.int64)
        self.kinds = set(kind.tolist())
        self.is_category, self.is_plane = kind == CATEGORY, kind == HYPERPLANE
        self.threshold = np.zeros(len(split))
        self.threshold[kind == NUMBER] = ensemble.threshold
        self.missing_left = ensemble.missing_left[split].astype(bool)
        self.plane = np.where(self.is_plane, position, 0)
        self._list_codes(ensemble, position)
        self._list_terms(ensemble)

    def _list_codes(self, ensemble: Ensemble, position: Ints) -> None:
        """List which codes go left in all splits by categories, one split after another."""
        self.n_codes = np.where(self.is_category, ensemble.columns.n_codes[self.column], 0)
        sides = [
            list_code_sides(ensemble, int(self.column[k]), int(position[k]))
            for k in np.flatnonzero(self.is_category)
        ]
        self.codes = np.concatenate([*sides, [False]]).astype(bool)
        size = np.where(self.is_category, self.n_codes + 1, 0)
        self.code_start = np.where(self.is_category, np.cumsum(size) - size, 0)

    def _list_terms(self, ensemble: Ensemble) -> None:
        """List the terms of hyperplanes in matrices; those that are not there have no weight."""
        self.used = UsedColumns.of(ensemble)
        size = np.diff(ensemble.term_start)
        shape = len(size), max(1, int(size.max(initial=0)))
        row = np.repeat(np.arange(len(size)), size)
        slot = np.arange(len(row)) - np.repeat(ensemble.term_start[:-1], size)
        self.term = np.zeros(shape, dtype=np.int64)
        self.coefficient, self.fill = np.zeros(shape), np.zeros(shape)
        self.term[row, slot] = self.used.position
        self.coefficient[row, slot] = ensemble.coefficient
        self.fill[row, slot] = ensemble.fill
        self.cut = ensemble.cut.astype(np.float64)

    @property
    def n_bytes(self) -> int:
        """Size of the largest tables."""
        parts = (self.term, self.coefficient, self.fill, self.codes)
        return sum(part.nbytes for part in parts)


class BoostedWriter:
    """Writes the operators, from rows to scores and predictions."""

    def __init__(self, plain: PlainBoosted) -> None:
        from onnx import TensorProto

        self.plain, self.ensemble = plain, plain.ensemble
        self.tables = Tables(plain.ensemble)
        self.double, self.int64 = TensorProto.DOUBLE, TensorProto.INT64
        n_numbers = len(plain.ensemble) * self.tables.term.shape[1]
        self.most_rows = max(64, writing_onnx.NUMBERS_PER_BLOCK // max(1, n_numbers))

    def write(self, graph: Graph, kind: int) -> dict[str, Name]:
        """Return the outputs of the graph by name."""
        rows = graph.add("Cast", "X", to=self.double)
        n_rows = graph.add("Shape", rows, start=0, end=1)
        width = self.ensemble.n_features
        blocks, n_blocks = split_blocks(graph, rows, n_rows, width, self.most_rows)
        [scores] = graph.loop(
            n_blocks,
            [],
            lambda body, step, _: (None, [], [self._score_block(body, blocks, step)]),
            scanned=[self.double],
        )
        flat = graph.add("Reshape", scores, graph.integers(-1, self.ensemble.n_outputs))
        score = graph.add("Slice", flat, graph.integers(0), n_rows, graph.integers(0))
        return self._write_outputs(graph, score, kind)

    def _write_outputs(self, graph: Graph, score: Name, kind: int) -> dict[str, Name]:
        link = self.plain.link
        if link.name == SORTED:
            count = graph.integers(self.ensemble.n_outputs)
            ascending, _ = graph.add_many("TopK", [score, count], 2, axis=1, largest=0)
            return {"prediction": ascending, "scores": score}
        if link.classes is None:
            first = graph.add("Squeeze", score, graph.integers(1))
            if link.name != LOG:
                return {"prediction": first}
            return {"prediction": graph.add("Exp", first), "scores": score}
        if link.name == VOTES:
            votes = self._complete(graph, score)
            best = graph.add("ArgMax", votes, axis=1, keepdims=0)
            probability = normalize(graph, self._calibrate(graph, votes))
        elif link.name == SOFTMAX:
            best = graph.add("ArgMax", score, axis=1, keepdims=0)
            shifted = graph.add("Sub", score, graph.add("ReduceMax", score, graph.integers(1)))
            probability = normalize(graph, graph.add("Exp", shifted))
        else:
            one = graph.constant(1.0)
            exponential = graph.add("Exp", graph.add("Neg", score))
            p = graph.add("Div", one, graph.add("Add", one, exponential))
            probability = graph.add("Concat", graph.add("Sub", one, p), p, axis=1)
            is_second = graph.add("Greater", score, graph.constant(0.0))
            best = graph.add("Cast", is_second, to=self.int64)
            best = graph.add("Squeeze", best, graph.integers(1))
            if link.name != LOGIT:  # a single class
                probability = graph.add("Expand", one, graph.add("Shape", score))
                best = graph.add("Mul", best, graph.constant(0, np.int64))
        label = graph.add("Gather", add_labels(graph, link.classes), best)
        probability = graph.add("Cast", probability, to=kind)
        return {"label": label, "probabilities": probability, "scores": score}

    def _complete(self, graph: Graph, vote: Name) -> Name:
        """Return a vote for each class: of two classes, the scores are those for the second."""
        if not self.plain.link.is_mirrored:
            return vote
        other = graph.add("Sub", graph.constant(1.0), vote)
        return graph.add("Concat", other, vote, axis=1)

    def _calibrate(self, graph: Graph, votes: Name) -> Name:
        """Return what probabilities are proportional to."""
        offset, exponent = self.plain.link.calibration
        votes = graph.add("Add", votes, graph.constant(offset))
        if not self.plain.library:
            return votes
        best = graph.add("ReduceMax", votes, graph.integers(1))
        return graph.add("Pow", graph.add("Div", votes, best), graph.constant(exponent))

    def _score_block(self, graph: Graph, blocks: Name, step: Name) -> Name:
        """Return the raw scores of one block of rows, [n_rows, n_outputs]."""
        ensemble, tables = self.ensemble, self.tables
        rows = graph.add("Gather", blocks, step, axis=0)
        n_rows = graph.add("Shape", rows, start=0, end=1)
        total = graph.constant(ensemble.start[np.newaxis].astype(np.float64))
        shape = graph.add("Concat", n_rows, graph.integers(ensemble.n_outputs), axis=0)
        total = graph.add("Expand", total, shape)
        if len(ensemble):
            leaf = self._walk(graph, rows, n_rows)
            leaf = graph.add("Sub", leaf, graph.constant(tables.n_splits, np.int64))
            value = graph.add("Gather", graph.constant(ensemble.value), leaf, axis=0)
            if ensemble.n_turns > 1:  # trees of an estimator add to one score each
                in_turn = graph.integers(-1, ensemble.n_turns)
                by_tree = graph.add("Concat", in_turn, n_rows, axis=0)
                value = graph.add("Reshape", value, by_tree)
                value = graph.add("Transpose", value, perm=[0, 2, 1])
            else:
                n_trees = graph.integers(len(ensemble))
                by_tree = graph.add("Concat", n_trees, shape, axis=0)
                value = graph.add("Reshape", value, by_tree)
            added = graph.add("ReduceSum", value, graph.integers(0), keepdims=0)
            total = graph.add("Add", total, added)
        if ensemble.n_averaged > 1:
            total = graph.add("Div", total, graph.constant(float(ensemble.n_averaged)))
        total = graph.add("Add", total, graph.constant(ensemble.origin))
        for factor in self.plain.scale:
            total = graph.add("Mul", total, graph.constant(factor))
        return total

    def _walk(self, graph: Graph, rows: Name, n_rows: Name) -> Name:
        """Return the leaf of each walker."""
        tables = self.tables
        shape = graph.add("Concat", graph.integers(len(tables.root)), n_rows, axis=0)
        root = graph.constant(tables.root[:, np.newaxis], np.int64)
        node = graph.add("Reshape", graph.add("Expand", root, shape), graph.integers(-1))
        if not tables.n_splits:
            return node
        step = _Step(self, graph, rows, n_rows)
        walker = step.select(graph, step.is_split(graph, node))
        position = graph.add("Gather", node, walker)
        states = [(node, self.int64), (walker, self.int64), (position, self.int64)]
        depth = graph.constant(tables.depth, np.int64)
        return graph.loop(depth, states, step.move)[0]


class _Step:
    """One step of all walkers of a block that have not arrived at a leaf."""

    def __init__(self, writer: BoostedWriter, graph: Graph, rows: Name, n_rows: Name) -> None:
        self.tables, self.n_rows = writer.tables, n_rows
        self.width = writer.ensemble.n_features
        self.int64 = writer.int64
        flat = graph.integers(-1)
        self.values = graph.add("Reshape", rows, flat)
        if HYPERPLANE in self.tables.kinds:
            self.placed = graph.add("Reshape", self._place(graph, rows), flat)

    def _place(self, graph: Graph, rows: Name) -> Name:
        """Return the values of used columns on their grids; missing ones stay NaN."""
        used = self.tables.used
        x = graph.add("Gather", rows, graph.constant(used.column, np.int64), axis=1)
        z = graph.add("Mul", x, graph.constant(used.first))
        z = graph.add("Mul", z, graph.constant(used.second))
        z = graph.add("Floor", graph.add("Add", z, graph.constant(0.5)))
        z = graph.add("Sub", z, graph.constant(used.origin))
        z = graph.add("Max", z, graph.constant(used.low))
        z = graph.add("Min", z, graph.constant(used.high))
        # Max and Min may turn NaN into a number.
        return graph.add("Where", graph.add("IsNaN", x), graph.constant(np.nan), z)

    def is_split(self, graph: Graph, node: Name) -> Name:
        """Return whether nodes are splits."""
        return graph.add("Less", node, graph.constant(self.tables.n_splits, np.int64))

    def select(self, graph: Graph, condition: Name) -> Name:
        """Return where a condition holds."""
        return graph.add("Squeeze", graph.add("NonZero", condition), graph.integers(0))

    def move(
        self, graph: Graph, step: Name, states: list[Name]
    ) -> tuple[Name, list[Name], list[Name]]:
        """Move the walkers one node down; record and drop those that arrive."""
        del step
        arrived, walker, position = states
        row = graph.add("Mod", walker, self.n_rows)
        following = self._divide(graph, row, position)
        if HYPERPLANE in self.tables.kinds:
            following = self._divide_by_planes(graph, row, position, following)
        arrived = graph.add("ScatterElements", arrived, walker, following, axis=0)
        goes_on = self.is_split(graph, following)
        kept = [graph.add("Compress", each, goes_on, axis=0) for each in (walker, following)]
        is_any_left = graph.add("Greater", graph.add("Size", kept[0]), self._zero(graph))
        return is_any_left, [arrived, *kept], []

    def _zero(self, graph: Graph) -> Name:
        return graph.constant(0, np.int64)

    def _gather(self, graph: Graph, table: Any, position: Name, dtype: Any = np.int64) -> Name:
        return graph.add("Gather", graph.constant(table, dtype), position)

    def _follow(self, graph: Graph, position: Name, is_left: Name) -> Name:
        left = self._gather(graph, self.tables.left, position)
        right = self._gather(graph, self.tables.right, position)
        return graph.add("Where", is_left, left, right)

    def _divide(self, graph: Graph, row: Name, position: Name) -> Name:
        """Return the children of splits by single columns, of others any child."""
        tables = self.tables
        column = self._gather(graph, tables.column, position)
        start = graph.add("Mul", row, graph.constant(self.width, np.int64))
        x = graph.add("Gather", self.values, graph.add("Add", start, column))
        threshold = self._gather(graph, tables.threshold, position, np.float64)
        is_left = graph.add("Less", x, threshold)
        missing_left = self._gather(graph, tables.missing_left, position, np.bool_)
        is_missing = graph.add("And", graph.add("IsNaN", x), missing_left)
        is_left = graph.add("Or", is_left, is_missing)  # NaN is not less than anything
        if CATEGORY in tables.kinds:
            is_category = self._gather(graph, tables.is_category, position, np.bool_)
            has_code = self._look_up_code(graph, x, position)
            has_code = graph.add("And", is_category, has_code)
            is_left = graph.add("And", graph.add("Not", is_category), is_left)
            is_left = graph.add("Or", is_left, has_code)
        return self._follow(graph, position, is_left)

    def _look_up_code(self, graph: Graph, x: Name, position: Name) -> Name:
        """Return whether the codes of categories go left; unknown ones have the last code."""
        tables = self.tables
        n_codes = self._gather(graph, tables.n_codes, position, np.float64)
        is_known = graph.add("GreaterOrEqual", x, graph.constant(0.0))
        for condition in (
            graph.add("Less", x, n_codes),
            graph.add("Equal", x, graph.add("Floor", x)),
        ):
            is_known = graph.add("And", is_known, condition)
        code = graph.add("Cast", graph.add("Where", is_known, x, n_codes), to=self.int64)
        start = self._gather(graph, tables.code_start, position)
        return self._gather(graph, tables.codes, graph.add("Add", start, code), np.bool_)

    def _divide_by_planes(self, graph: Graph, row: Name, position: Name, following: Name) -> Name:
        """Return the children of all splits, those of hyperplanes corrected."""
        tables = self.tables
        is_plane = self._gather(graph, tables.is_plane, position, np.bool_)
        chosen = self.select(graph, is_plane)
        own = graph.add("Gather", position, chosen)
        plane = self._gather(graph, tables.plane, own)
        term = self._gather(graph, tables.term, plane)
        start = graph.add("Gather", row, chosen)
        start = graph.add("Mul", start, graph.constant(len(tables.used.column), np.int64))
        place = graph.add("Add", graph.add("Unsqueeze", start, graph.integers(1)), term)
        z = graph.add("Gather", self.placed, place)
        fill = self._gather(graph, tables.fill, plane, np.float64)
        z = graph.add("Where", graph.add("IsNaN", z), fill, z)
        weight = self._gather(graph, tables.coefficient, plane, np.float64)
        product = graph.add("Mul", weight, z)
        projection = graph.add("ReduceSum", product, graph.integers(1), keepdims=0)
        cut = self._gather(graph, tables.cut, plane, np.float64)
        below = self._follow(graph, own, graph.add("Less", projection, cut))
        return graph.add("ScatterElements", following, chosen, below, axis=0)
