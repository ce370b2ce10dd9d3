"""An ONNX graph in the making: nodes, constants, and which value each variable of a block has at the moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..base.dtypes import VarType, to_numpy
from ..base.errors import NotSupportedError
from ..framework import Block, Variable
from ..framework.operator import Operator
from ..framework.sequences import remembered, same_rows

OPSET = 17
"""The operator set version of exported models."""

LENGTHS = ".lengths"
"""Suffix of the inputs and outputs that hold the lengths of sequences."""

Exporter = Callable[["Exported"], "str | None"]
EXPORTERS: dict[str, Exporter] = {}
"""Types of operators, each with the function that writes its nodes and returns the value of its first output, or sets
outputs itself."""


def exports(*types: str) -> Callable[[Exporter], Exporter]:
    """Register what writes the nodes of operators of these types."""

    def add(function: Exporter) -> Exporter:
        for kind in types:
            EXPORTERS[kind] = function
        return function

    return add


def element_type(dtype: VarType | np.dtype | str) -> int:
    """ONNX's number for an element type of Fluid or NumPy."""
    known = to_numpy(dtype) if isinstance(dtype, VarType) else np.dtype(dtype)
    return int(helper.np_dtype_to_tensor_dtype(known))


class Graph:
    """The graph of one block; those of inner blocks see the names of outer ones, as in ONNX."""

    def __init__(self, block: Block, outer: Graph | None = None) -> None:
        self.block = block
        self.outer = outer
        self.nodes: list[onnx.NodeProto] = []
        self.values: dict[str, str] = {}
        self.lengths: dict[str, str] = {}
        self.known: dict[Any, str] = {}
        root = outer.root if outer is not None else self
        self.root: Graph = root
        if outer is None:
            self.initializers: list[onnx.TensorProto] = []
            self._used: set[str] = set()
            self.wanted: set[str] = set()
            self.fed: set[str] = set()

    def fresh(self, hint: str) -> str:
        """A name that the model does not use yet."""
        used, name, number = self.root._used, hint, 0
        while name in used:
            number += 1
            name = f"{hint}_{number}"
        used.add(name)
        return name

    def constant(self, array: Any, hint: str = "constant") -> str:
        """The name of a constant; equal small ones are one."""
        array = np.asarray(array)
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size <= 64 else None
        root = self.root
        if key is None or key not in root.known:
            name = root.fresh(hint)
            root.initializers.append(
                numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
            )
            if key is None:
                return name
            root.known[key] = name
        return root.known[key]

    def node(self, kind: str, inputs: Sequence[str], count: int = 1, hint: str = "", **attrs: Any) -> Any:
        """Append a node; the name of its output, or a tuple of `count` names."""
        outputs = [self.fresh(hint or kind.lower()) for _ in range(count)]
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, **attrs))
        return outputs[0] if count == 1 else tuple(outputs)

    def value(self, name: str) -> str | None:
        """The current ONNX value of variable `name`, or None if it has not been computed."""
        graph: Graph | None = self
        while graph is not None:
            if name in graph.values:
                return graph.values[name]
            graph = graph.outer
        return None

    def lengths_of(self, name: str) -> str | None:
        """The lengths of the sequences of variable `name`, or None if it has none."""
        graph: Graph | None = self
        while graph is not None:
            if name in graph.values:
                return graph.lengths.get(name)
            graph = graph.outer
        return None

    def set(self, name: str, value: str, lengths: str | None = None) -> None:
        """Variable `name` is `value` from now on."""
        self.values[name] = value
        self.lengths.pop(name, None)
        if lengths is not None:
            self.lengths[name] = lengths

    def write(self, ops: Iterable[Operator]) -> None:
        """Append the nodes of operators, in their order."""
        for op in ops:
            exporter = EXPORTERS.get(op.type)
            if exporter is None:
                raise NotSupportedError(f"operator {op.type} has no counterpart in ONNX")
            before = {name: self.lengths_of(name) for name in op.input_arg_names}
            exported = Exported(self, op)
            result = exporter(exported)
            if result is not None:
                exported.out(next(iter(op.definition.outputs_by_name)), result)
            for one in remembered(op):
                lengths = before.get(one.source) if same_rows(op.block, one) else None
                if lengths and one.out in self.values and one.out not in self.lengths:
                    self.lengths[one.out] = lengths


class Exported:
    """One operator and the graph that its nodes go to: what its exporter reads and writes."""

    def __init__(self, graph: Graph, op: Operator) -> None:
        self.graph = graph
        self.op = op

    def has(self, slot: str) -> bool:
        return bool(self.op.inputs.get(slot))

    def wants(self, slot: str) -> bool:
        """Whether the operator has an output in this slot."""
        return bool(self.op.outputs.get(slot))

    def attr(self, name: str) -> Any:
        value = self.op.attr(name) if self.op.has_attr(name) else None
        return self.op.definition.attrs.get(name) if value is None else value

    def names(self, slot: str) -> list[str]:
        return self.op.inputs.get(slot, [])

    def inputs(self, slot: str) -> list[str]:
        """The values of a slot's variables."""
        return [self._value(name) for name in self.names(slot)]

    def input(self, slot: str) -> str:
        """The value of a slot's one variable."""
        return self._value(self.names(slot)[0])

    def _value(self, name: str) -> str:
        value = self.graph.value(name)
        if value is None:
            raise self.fail(f"reads {name!r}, which nothing has made: it is neither fed nor in the scope")
        return value

    def var(self, slot: str, index: int = 0) -> Variable:
        return self.graph.block._var_recursive(self.names(slot)[index])

    def shape(self, slot: str, index: int = 0) -> tuple[int, ...]:
        """The declared shape, -1 where it is open."""
        return tuple(self.var(slot, index).shape)

    def rank(self, slot: str) -> int:
        return len(self.shape(slot))

    def dtype(self, slot: str) -> VarType:
        return self.var(slot).dtype

    def lengths(self, slot: str) -> str:
        """The lengths of the sequences of an input; fails if it has none."""
        found = self.graph.lengths_of(self.names(slot)[0])
        if found is None:
            raise self.fail(f"needs sequences in {slot}, but {self.names(slot)[0]!r} has none")
        return found

    def constant(self, value: Any, dtype: Any = None) -> str:
        return self.graph.constant(np.asarray(value, dtype))

    def ints(self, *values: int) -> str:
        """A constant of one dimension."""
        return self.graph.constant(np.array(values, "int64"))

    def node(self, kind: str, *inputs: str, **attrs: Any) -> str:
        """Append a node with one output."""
        return self.nodes(kind, *inputs, count=1, **attrs)[0]

    def nodes(self, kind: str, *inputs: str, count: int, **attrs: Any) -> tuple[str, ...]:
        """Append a node with `count` outputs."""
        hint = next(iter(self.op.output_arg_names), "")
        made = self.graph.node(kind, inputs, count, hint and f"{hint}.{kind}", **attrs)
        return (made,) if count == 1 else made

    def out(self, slot: str, value: str, lengths: str | None = None, index: int = 0) -> None:
        """The output in `slot` is `value`; nothing if the operator does not have it."""
        names = self.op.outputs.get(slot, [])
        if index < len(names):
            self.graph.set(names[index], value, lengths)

    def cast(self, value: str, dtype: Any) -> str:
        return self.node("Cast", value, to=element_type(dtype))

    def static(self, slot: str, *axes: int) -> list[int]:
        """The declared sizes along `axes`; fails if one is open."""
        shape = self.shape(slot)
        for axis in axes:
            if shape[axis] < 0:
                raise self.fail(
                    f"needs the size of {slot} along axis {axis}, which is open: its shape is {list(shape)}"
                )
        return [shape[axis] for axis in axes]

    def given(self, name: str) -> np.ndarray | None:
        """The array of a parameter, if the value of the variable is one."""
        value = self.graph.value(name)
        found = next((t for t in self.graph.root.initializers if t.name == value), None)
        return None if found is None else numpy_helper.to_array(found)

    def read_later(self) -> set[str]:
        """The variables that later operators read, or that are results of the model."""
        ops = self.graph.block.ops
        read = {name for op in ops[ops.index(self.op) + 1 :] for name in op.input_arg_names}
        return read | self.graph.root.wanted

    def fail(self, problem: str) -> NotSupportedError:
        outputs = ", ".join(self.op.output_arg_names)
        return NotSupportedError(
            f"operator {self.op.type} (makes {outputs}) has no counterpart in ONNX: it {problem}"
        )
