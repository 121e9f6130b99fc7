"""A small writer of ONNX graphs: operators by name, constants, loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

Name = str  # of a value in the graph


class Graph:
    """Nodes in the order of their evaluation.

    The bodies of loops are graphs of their own. They see all values of the graphs around
    them and use the same constants, which are stored once.
    """

    def __init__(self, parent: Graph | None = None) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = parent.constants if parent else []
        self._known: dict[tuple[Any, ...], Name] = parent._known if parent else {}
        self._count: list[int] = parent._count if parent else [0]

    def _name(self, kind: str) -> Name:
        self._count[0] += 1
        return f"{kind}_{self._count[0]}"

    def constant(self, value: ArrayLike, dtype: Any = np.float64) -> Name:
        """Return the name of an array."""
        array = np.ascontiguousarray(value, dtype=dtype).reshape(np.shape(value))
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self._name("constant")
            self.constants.append(numpy_helper.from_array(array, self._known[key]))
        return self._known[key]

    def integers(self, *values: int) -> Name:
        """Return the name of a vector of int64."""
        return self.constant(values, np.int64)

    def add(self, kind: str, *inputs: Name, **attributes: Any) -> Name:
        """Append an operator with one output and return its name."""
        return self.add_many(kind, inputs, 1, **attributes)[0]

    def add_many(
        self, kind: str, inputs: Sequence[Name], n_outputs: int, **attributes: Any
    ) -> list[Name]:
        """Append an operator and return the names of its outputs."""
        outputs = [self._name(kind) for _ in range(n_outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, **attributes))
        return outputs

    def rename(self, value: Name, name: Name) -> None:
        """Give a value the name of an output."""
        self.nodes.append(helper.make_node("Identity", [value], [name]))

    def split(self, value: Name, n_parts: int) -> list[Name]:
        """Split the last axis into equal parts."""
        if n_parts == 1:
            return [value]
        return self.add_many("Split", [value], n_parts, axis=-1, num_outputs=n_parts)

    def loop(
        self,
        n_steps: Name,
        states: Sequence[tuple[Name, int]],
        body: Callable[[Graph, Name, list[Name]], tuple[Name | None, list[Name], list[Name]]],
        *,
        scanned: Sequence[int] = (),
    ) -> list[Name]:
        """Repeat a body and return the last states, then the scanned values of all steps.

        Parameters
        ----------
        n_steps : str
            Largest number of steps, a scalar.
        states : sequence of (name, type)
            First value of each state and the type of its elements.
        body : callable
            Gets its graph, the number of the step and the states; returns the condition
            to go on (None for always), the new states and the values to scan.
        scanned : sequence of int
            Types of the scanned values.
        """
        inner = Graph(self)
        step, goes_on = inner._name("step"), inner._name("goes_on")
        names = [inner._name("state") for _ in states]
        condition, following, values = body(inner, step, names)
        if condition is None:
            condition = inner.add("Identity", goes_on)
        outputs = inner._own([condition, *following, *values])
        kinds = [TensorProto.BOOL, *(kind for _, kind in states), *scanned]
        graph = inner.make(
            "body",
            [_info(step, TensorProto.INT64, ()), _info(goes_on, TensorProto.BOOL, ())]
            + [_info(name, kind) for name, (_, kind) in zip(names, states, strict=True)],
            [_info(name, kind) for name, kind in zip(outputs, kinds, strict=True)],
        )
        first = [n_steps, "", *(name for name, _ in states)]
        return self.add_many("Loop", first, len(outputs) - 1, body=graph)

    def _own(self, values: Sequence[Name]) -> list[Name]:
        """Return values that this graph computes: its outputs must be its own, and distinct."""
        made = {name for node in self.nodes for name in node.output}
        result: list[Name] = []
        for value in values:
            is_free = value in made and value not in result
            result.append(value if is_free else self.add("Identity", value))
        return result

    def choose(
        self, condition: Name, kinds: Sequence[int], build: Callable[[Graph, bool], list[Name]]
    ) -> list[Name]:
        """Build two branches; the condition selects the one that is evaluated."""
        branches = []
        for holds in (True, False):
            inner = Graph(self)
            outputs = inner._own(build(inner, holds))
            infos = [_info(name, kind) for name, kind in zip(outputs, kinds, strict=True)]
            branches.append(inner.make("branch", [], infos))
        return self.add_many(
            "If", [condition], len(kinds), then_branch=branches[0], else_branch=branches[1]
        )

    def make(
        self, name: str, inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]
    ) -> GraphProto:
        """Return the graph without constants: those belong to the outermost one."""
        return helper.make_graph(self.nodes, name, inputs, outputs)


def _info(name: Name, kind: int, shape: tuple[int, ...] | None = None) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)
