"""A model as an ONNX graph.

All trees of an estimator are walked at once: a *walker* is one row in one tree. Each step
gathers the hyperplanes of the nodes that the walkers have reached, adds up their
projections in the order that the package defines (so that rows on a hyperplane take the
same side), and drops the walkers that arrive at a leaf. Nodes are renumbered: the splits
of the whole forest come first, then the leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lhtree.arrays import LANES, Ints
from lhtree.estimators.lookup import check_model
from lhtree.export import writing_onnx
from lhtree.export.boosted import read_boosted
from lhtree.export.boosted_onnx import BoostedWriter
from lhtree.export.plain import PlainModel, Terms, place_terms, read_model
from lhtree.export.writing_onnx import add_labels, choose_label_type, normalize, split_blocks
from lhtree.files import PathLike, write_atomically
from lhtree.model.forest import Forest
from lhtree.model.link import is_exact, read_link
from lhtree.model.prediction import MOST_EXTREME, TIE_WEIGHT
from lhtree.model.tree import repeat_roots

if TYPE_CHECKING:
    from onnx import ModelProto

    from lhtree.export.graph import Graph, Name

OPSET = 18  # what the oldest supported onnxruntime knows
IR_VERSION = 8
MOST_BYTES = 2**31 - 2**20  # of a file in the format protobuf


def to_onnx(model: Any, path: PathLike | None = None, *, dtype: str = "float64") -> ModelProto:
    """Write a fitted model as an ONNX graph of standard operators.

    The graph computes in double precision and adds up in the same order as the package:
    its labels are those of ``predict``, its probabilities agree to about 1e-15 (to 1e-7
    where they are float32). Missing values are NaN, as in the package. Columns are those
    of ``column_names_``: for a table with categories, give what ``encode_rows`` returns.
    The raw scores of a boosted model are those of the package bit for bit.

    Parameters
    ----------
    model : classifier or regressor of this package
        A fitted model.
    path : str or path-like, optional
        The file to write; an existing one is replaced once the new one is complete.
    dtype : {"float64", "float32"}, default="float64"
        Type of the input ``X`` and of the output ``probabilities``. The labels of float32
        rows are those of ``predict(X.astype("float32"))``.

    Returns
    -------
    onnx.ModelProto
        The graph: input ``X`` of shape (n_rows, n_columns), outputs ``label`` and
        ``probabilities`` of shapes (n_rows,) and (n_rows, n_classes). A boosted classifier
        has the output ``scores``, too, of shape (n_rows, n_scores) and in double precision;
        a regressor has ``prediction`` of shape (n_rows,), or (n_rows, n_levels) for a list of
        quantiles, and ``scores`` if the trees add to its logarithm, or to several numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lhtree import LHTClassifier
    >>> from lhtree.export import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> graph = to_onnx(LHTClassifier().fit(X, y)).graph
    >>> [output.name for output in graph.output]
    ['label', 'probabilities']
    """
    check_model(model)
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}.")
    proto = _make(model, dtype)
    if path is not None:
        write_atomically(path, proto.SerializeToString())
    return proto


def _make(model: Any, dtype: str) -> ModelProto:
    try:
        from onnx import TensorProto, helper
    except ImportError as error:
        raise ImportError("to_onnx needs the package onnx: pip install 'lhtree[onnx]'.") from error
    from lhtree.export.graph import Graph

    plain, writer, classes = _choose_writer(model)
    if writer.tables.n_bytes > MOST_BYTES:
        raise ValueError(
            f"model takes {writer.tables.n_bytes / 2**30:.1f} GiB, but an ONNX file holds at most "
            "2; use fewer estimators, or keep the trees small."
        )
    kind = TensorProto.FLOAT if dtype == "float32" else TensorProto.DOUBLE
    graph = Graph()
    outputs = writer.write(graph, kind)
    for name, value in outputs.items():
        graph.rename(value, name)
    label = (
        TensorProto.INT64 if classes is None else getattr(TensorProto, choose_label_type(classes))
    )
    n_classes = 0 if classes is None else len(classes)
    levels = read_link(model).levels if is_exact(model) else ()
    n_levels = [len(levels)] if levels else []
    info: dict[str, tuple[int, list[Any]]] = {
        "label": (label, ["n_rows"]),
        "probabilities": (kind, ["n_rows", n_classes]),
        "scores": (TensorProto.DOUBLE, ["n_rows", getattr(model.forest_, "n_outputs", 0)]),
        "prediction": (TensorProto.DOUBLE, ["n_rows", *n_levels]),
    }
    proto = helper.make_graph(
        graph.nodes,
        "lhtree",
        [helper.make_tensor_value_info("X", kind, ["n_rows", model.forest_.n_features])],
        [helper.make_tensor_value_info(name, *info[name]) for name in outputs],
        graph.constants,
    )
    return helper.make_model(
        proto,
        producer_name="lhtree",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        doc_string="Columns: " + ", ".join(plain.column_names),
    )


def _choose_writer(model: Any) -> tuple[Any, Any, Any]:
    """Return the plain parts of a model, what writes its operators, and its classes."""
    if is_exact(model):
        boosted = read_boosted(model)
        return boosted, BoostedWriter(boosted), boosted.link.classes
    plain = read_model(model)
    return plain, _Writer(plain, _Tables.of(plain)), plain.classes


@dataclass(frozen=True)
class _Tables:
    """The forest with the splits of all trees first, then the leaves."""

    split: Ints  # nodes of the forest
    leaf: Ints
    left: Ints  # [n_splits] children in the new numbers
    right: Ints
    root: Ints  # [n_trees]
    split_terms: Terms
    line: Ints  # [n_leaves] row of line_terms; -1: the leaf is constant
    line_terms: Terms
    depth: int

    @classmethod
    def of(cls, plain: PlainModel) -> _Tables:
        forest = plain.forest
        split, leaf = np.flatnonzero(forest.left >= 0), np.flatnonzero(forest.left < 0)
        number = np.empty(len(forest.left), dtype=np.int64)
        number[split], number[leaf] = np.arange(len(split)), len(split) + np.arange(len(leaf))
        start = repeat_roots(forest.tree_start)
        child = (start + forest.left)[split]
        has_line = np.diff(forest.start)[leaf] > 0
        line = np.where(has_line, np.cumsum(has_line) - 1, -1)
        return cls(
            split,
            leaf,
            number[child],
            number[child + 1],
            number[forest.tree_start[:-1]],
            place_terms(forest, split),
            line,
            place_terms(forest, leaf[has_line]),
            int(forest.compute_depth().max()),
        )

    @property
    def n_bytes(self) -> int:
        """Size of the matrices of terms."""
        parts = (self.split_terms, self.line_terms)
        return sum(part.weight.nbytes * (2 + (part.column is not None)) for part in parts)


class _Writer:
    """Writes the operators, from rows to labels and probabilities."""

    def __init__(self, plain: PlainModel, tables: _Tables) -> None:
        from onnx import TensorProto

        self.plain, self.tables = plain, tables
        self.forest: Forest = plain.forest
        self.double, self.int64 = TensorProto.DOUBLE, TensorProto.INT64
        n_numbers = plain.n_trees_per_estimator * tables.split_terms.n_slots
        self.most_rows = max(64, writing_onnx.NUMBERS_PER_BLOCK // max(1, n_numbers))

    def write(self, graph: Graph, kind: int) -> dict[str, Name]:
        """Return the outputs of the graph by name."""
        rows = graph.add("Cast", "X", to=self.double)
        n_rows = graph.add("Shape", rows, start=0, end=1)
        width = self.forest.n_features + -self.forest.n_features % LANES
        blocks, n_blocks = split_blocks(
            graph, self._scale(graph, rows), n_rows, width, self.most_rows
        )
        [scores] = graph.loop(
            n_blocks,
            [],
            lambda body, step, _: (None, [], [self._score_block(body, blocks, step)]),
            scanned=[self.double],
        )
        flat = graph.add("Reshape", scores, graph.integers(-1, self.plain.n_classes))
        score = graph.add("Slice", flat, graph.integers(0), n_rows, graph.integers(0))
        plain = probability = normalize(graph, score)
        if self.plain.is_calibrated:  # which changes no label
            probability = normalize(graph, self._calibrate(graph, score))
        best = graph.add("ArgMax", plain, axis=1, keepdims=0)
        label = graph.add("Gather", add_labels(graph, self.plain.classes), best)
        return {"label": label, "probabilities": graph.add("Cast", probability, to=kind)}

    def _scale(self, graph: Graph, rows: Name) -> Name:
        """Return the standardised rows, padded to whole lanes."""
        forest = self.forest
        shifted = graph.add("Sub", rows, graph.constant(forest.column_mean))
        value = graph.add("Div", shifted, graph.constant(forest.column_std))
        value = graph.add("Max", value, graph.constant(-MOST_EXTREME))
        value = graph.add("Min", value, graph.constant(MOST_EXTREME))
        # Max and Min may turn NaN into a number.
        value = graph.add("Where", graph.add("IsNaN", rows), graph.constant(np.nan), value)
        n_more = -forest.n_features % LANES
        if n_more == 0:
            return value
        return graph.add("Pad", value, graph.integers(0, 0, 0, n_more))

    def _score_block(self, graph: Graph, blocks: Name, step: Name) -> Name:
        """Return the scores of one block of rows, before they are normalised."""
        rows = graph.add("Gather", blocks, step, axis=0)
        n_rows = graph.add("Shape", rows, start=0, end=1)
        n_trees = graph.integers(self.plain.n_trees_per_estimator)
        shape = graph.add("Concat", n_trees, n_rows, axis=0)
        n_walkers = graph.add("Mul", n_trees, n_rows)
        kinds = [self.double] * (3 if self.plain.by_margin else 2)

        def sum_estimators(branch: Graph, has_missing: bool) -> list[Name]:
            walk = _Walk(self, rows, n_rows, n_walkers, shape, has_missing)
            zeros = branch.add("Expand", branch.constant(0.0), shape)
            return branch.loop(
                branch.constant(self.plain.n_estimators, np.int64),
                [(zeros, kind) for kind in kinds],
                lambda body, estimator, states: (
                    None,
                    walk.add_estimator(body, estimator, states),
                    [],
                ),
            )

        has_missing = self._detect_missing(graph, rows)
        return self._compute_scores(graph, graph.choose(has_missing, kinds, sum_estimators))

    def _detect_missing(self, graph: Graph, rows: Name) -> Name:
        """Return whether any value of the rows is missing."""
        count = graph.add("Cast", graph.add("IsNaN", rows), to=self.int64)
        total = graph.add("ReduceSum", count, keepdims=0)
        return graph.add("Greater", total, graph.constant(0, np.int64))

    def _compute_scores(self, graph: Graph, sums: list[Name]) -> Name:
        """Return votes with their tie term, [n_rows, n_classes]; see `lhtree.model.prediction`."""
        n_estimators = graph.constant(float(self.plain.n_estimators))
        vote, distance, *complement = sums
        if not self.plain.by_margin:
            vote = graph.add("Div", vote, n_estimators)
        distance = graph.add("Div", distance, n_estimators)
        if self.plain.n_classes == 2:
            one = graph.constant(1.0)
            other = complement[0] if self.plain.by_margin else graph.add("Sub", one, vote)
            vote = graph.add("Concat", other, vote, axis=0)
            distance = graph.add("Concat", graph.add("Neg", distance), distance, axis=0)
        size = graph.add("Abs", distance)
        one = graph.constant(1.0)
        scale = graph.add("Add", one, size)
        above = graph.add("Add", one, graph.add("Div", size, scale))
        is_below = graph.add("Less", distance, graph.constant(0.0))
        rank = graph.add("Where", is_below, graph.add("Div", one, scale), above)
        tie = graph.add("Mul", graph.constant(TIE_WEIGHT), rank)
        score = graph.add("Add", vote, graph.add("Div", tie, graph.constant(2.0)))
        return graph.add("Transpose", score, perm=[1, 0])

    def _calibrate(self, graph: Graph, score: Name) -> Name:
        offset, exponent = self.plain.calibration
        score = graph.add("Add", score, graph.constant(offset))
        best = graph.add("ReduceMax", score, graph.integers(1))
        return graph.add("Pow", graph.add("Div", score, best), graph.constant(exponent))

    def project(self, graph: Graph, terms: Terms, node: Name, values: Name) -> Name:
        """Return the weighted sums of values [n, n_slots], added in the package's order."""
        weight = graph.add("Gather", graph.constant(terms.weight), node)
        parts = graph.split(graph.add("Mul", weight, values), terms.n_slots // LANES)
        total = parts[0]
        for part in parts[1:]:
            total = graph.add("Add", total, part)
        for _ in range(3):  # ((0+4)+(2+6)) + ((1+5)+(3+7))
            total = graph.add("Add", *graph.split(total, 2))
        return graph.add("Squeeze", total, graph.integers(1))

    def gather_values(self, graph: Graph, terms: Terms, node: Name, rows: Name, row: Name) -> Name:
        """Return the values of the slots of each walker's node, [n, n_slots]."""
        values = graph.add("Gather", rows, row, axis=0)
        if terms.column is None:
            return values
        column = graph.add("Gather", graph.constant(terms.column, np.int64), node)
        return graph.add("GatherElements", values, column, axis=1)


@dataclass(frozen=True)
class _Walk:
    """The walkers of one block: every row in every tree of an estimator."""

    writer: _Writer
    rows: Name
    n_rows: Name
    n_walkers: Name
    shape: Name  # trees, rows
    has_missing: bool

    def add_estimator(self, graph: Graph, estimator: Name, states: list[Name]) -> list[Name]:
        """Return the sums with those of one more estimator."""
        roots = self.writer.tables.root.reshape(-1, self.writer.plain.n_trees_per_estimator)
        root = graph.add("Gather", graph.constant(roots, np.int64), estimator)
        root = graph.add("Unsqueeze", root, graph.integers(1))
        node = graph.add("Reshape", graph.add("Expand", root, self.shape), graph.integers(-1))
        leaf, *distances = self._walk(graph, node)
        membership = self._compute_membership(graph, leaf)
        membership, distance, plain_distance = (
            graph.add("Reshape", value, self.shape)
            for value in (membership, distances[0], distances[-1])
        )
        one = graph.constant(1.0)
        sign = graph.add("Sub", graph.add("Mul", graph.constant(2.0), membership), one)
        added = [membership, graph.add("Mul", sign, distance)]
        if self.writer.plain.by_margin:
            complement = graph.add("Sub", one, membership)
            added[0] = graph.add("Mul", membership, plain_distance)
            added.append(graph.add("Mul", complement, plain_distance))
        return [graph.add("Add", *pair) for pair in zip(states, added, strict=True)]

    def _walk(self, graph: Graph, node: Name) -> list[Name]:
        """Return the leaf of each walker and its distances from the nearest hyperplane."""
        writer, tables = self.writer, self.writer.tables
        zeros = graph.add("Expand", graph.constant(0.0), self.n_walkers)
        n_distances = 2 if writer.plain.by_margin else 1
        arrived = [node] + [zeros] * n_distances
        if len(tables.split) == 0:
            return arrived
        walker = self._select(graph, self._is_split(graph, node))
        position = graph.add("Gather", node, walker)
        far = graph.add("Expand", graph.constant(np.inf), graph.add("Shape", walker))
        kinds = [writer.int64] + [writer.double] * n_distances
        states = list(zip(arrived, kinds, strict=True))
        states += [(walker, writer.int64), (position, writer.int64)]
        states += [(far, writer.double)] * n_distances
        depth = graph.constant(tables.depth, np.int64)
        return graph.loop(depth, states, self._step)[: 1 + n_distances]

    def _is_split(self, graph: Graph, node: Name) -> Name:
        n_splits = graph.constant(len(self.writer.tables.split), np.int64)
        return graph.add("Less", node, n_splits)

    def _select(self, graph: Graph, condition: Name) -> Name:
        return graph.add("Squeeze", graph.add("NonZero", condition), graph.integers(0))

    def _step(
        self, graph: Graph, step: Name, states: list[Name]
    ) -> tuple[Name, list[Name], list[Name]]:
        """Move the walkers one node down; record and drop those that arrive."""
        del step
        n_recorded = len(states) // 2
        recorded, (walker, position, *nearest) = states[:n_recorded], states[n_recorded:]
        score = self._project(graph, walker, position)
        tables, forest = self.writer.tables, self.writer.forest
        threshold = graph.add("Gather", graph.constant(forest.threshold[tables.split]), position)
        is_left = graph.add("Less", score, threshold)
        left = graph.add("Gather", graph.constant(tables.left, np.int64), position)
        right = graph.add("Gather", graph.constant(tables.right, np.int64), position)
        following = graph.add("Where", is_left, left, right)
        gap = graph.add("Abs", graph.add("Sub", score, threshold))
        norm = graph.add("Gather", graph.constant(forest.norm[tables.split]), position)
        gaps = [graph.add("Div", gap, norm), gap][: len(nearest)]
        nearest = [graph.add("Min", *pair) for pair in zip(nearest, gaps, strict=True)]
        recorded = [
            graph.add("ScatterElements", old, walker, new, axis=0)
            for old, new in zip(recorded, [following, *nearest], strict=True)
        ]
        goes_on = self._is_split(graph, following)
        kept = [
            graph.add("Compress", value, goes_on, axis=0)
            for value in (walker, following, *nearest)
        ]
        is_any_left = graph.add("Greater", graph.add("Size", kept[0]), graph.constant(0, np.int64))
        return is_any_left, recorded + kept, []

    def _project(self, graph: Graph, walker: Name, position: Name) -> Name:
        writer, terms = self.writer, self.writer.tables.split_terms
        row = graph.add("Mod", walker, self.n_rows)
        values = writer.gather_values(graph, terms, position, self.rows, row)
        if self.has_missing:
            center = graph.add("Gather", graph.constant(terms.center), position)
            values = graph.add("Where", graph.add("IsNaN", values), center, values)
        return writer.project(graph, terms, position, values)

    def _compute_membership(self, graph: Graph, node: Name) -> Name:
        """Return the outputs of the leaves: their values, plus lines where they have one."""
        writer, tables = self.writer, self.writer.tables
        leaf = graph.add("Sub", node, graph.constant(len(tables.split), np.int64))
        constant = graph.constant(writer.forest.value[tables.leaf])
        value = graph.add("Gather", constant, leaf)
        if len(tables.line_terms.weight) == 0:
            return value
        line = graph.add("Gather", graph.constant(tables.line, np.int64), leaf)
        has_line = graph.add("GreaterOrEqual", line, graph.constant(0, np.int64))
        walker = self._select(graph, has_line)
        line = graph.add("Gather", line, walker)
        base = graph.add("Gather", value, walker)
        row = graph.add("Mod", walker, self.n_rows)
        terms = tables.line_terms
        values = writer.gather_values(graph, terms, line, self.rows, row)
        offset = graph.add("Sub", values, graph.add("Gather", graph.constant(terms.center), line))
        if self.has_missing:
            is_missing = graph.add("IsNaN", offset)
            offset = graph.add("Where", is_missing, graph.constant(0.0), offset)
        total = graph.add("Add", base, writer.project(graph, terms, line, offset))
        clipped = graph.add("Clip", total, graph.constant(0.0), graph.constant(1.0))
        output = graph.add("Where", graph.add("IsNaN", total), base, clipped)
        return graph.add("ScatterElements", value, walker, output, axis=0)
