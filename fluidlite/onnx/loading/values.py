"""What the values of an ONNX graph are while a program is made of it: variables, known numbers, sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from ...base import unique_name
from ...base.dtypes import VarType, to_numpy, to_vartype
from ...base.errors import FormatError, NotSupportedError
from ...executor import LoDTensor, Scope
from ...framework import Program, Variable


@dataclass(frozen=True)
class Size:
    """How many elements a variable has along an axis, which only a run knows."""

    of: str
    axis: int


@dataclass
class Value:
    """One of the three: a variable, an array, or a list of sizes. `scalar`: no dimensions, where Fluid has one of 1."""

    var: Variable | None = None
    array: np.ndarray | None = None
    sizes: list[int | Size] | None = None
    scalar: bool = False


Importer = Callable[["Node"], None]
IMPORTERS: dict[str, Importer] = {}
"""Types of nodes, each with the function that appends its operators."""


def imports(*kinds: str) -> Callable[[Importer], Importer]:
    """Register what appends the operators of nodes of these types."""

    def add(function: Importer) -> Importer:
        for kind in kinds:
            IMPORTERS[kind] = function
        return function

    return add


class Maker:
    """The program in the making, and the values that it has so far."""

    def __init__(self, program: Program, scope: Scope, opset: int) -> None:
        self.opset = opset
        self.program = program
        self.block = program.global_block()
        self.scope = scope
        self.values: dict[str, Value] = {}

    def parameter(self, name: str, array: np.ndarray) -> Variable:
        """A variable that keeps its value; one for each name."""
        if self.block.has_var(name):
            return self.block.var(name)
        array = np.atleast_1d(array)
        kind = to_vartype(array.dtype)
        var: Variable
        if array.dtype.kind == "f":
            var = self.block.create_parameter(name=name, shape=list(array.shape), dtype=kind)
        else:
            var = self.block.create_var(name=name, shape=list(array.shape), dtype=kind, persistable=True)
        self.scope.var(name).set(LoDTensor.wrap(np.ascontiguousarray(array)))
        return var

    def op(
        self, kind: str, inputs: dict[str, Any], slot: str = "Out", more: Sequence[str] = (), **attrs: Any
    ) -> Variable:
        """Append an operator; the variable in its output `slot`. `more`: other outputs that it has to have."""
        made = {
            name: self.block.create_var(name=unique_name.generate(f"{kind}.tmp")) for name in (slot, *more)
        }
        self.block.append_op(type=kind, inputs=inputs, outputs=made, attrs=attrs)
        return made[slot]


class Node:
    """One node and what it reads and makes, for its importer."""

    def __init__(self, maker: Maker, node: NodeProto) -> None:
        self.maker = maker
        self.node = node
        self.kind = node.op_type
        self.attrs = {attr.name: helper.get_attribute_value(attr) for attr in node.attribute}

    def __len__(self) -> int:
        return len(self.node.input)

    def attr(self, name: str, default: Any = None) -> Any:
        value = self.attrs.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def has(self, index: int) -> bool:
        return index < len(self.node.input) and self.node.input[index] != ""

    def value(self, index: int = 0) -> Value:
        name = self.node.input[index]
        if name not in self.maker.values:
            raise FormatError(f"node {self.kind} reads {name!r}, which nothing before it makes")
        return self.maker.values[name]

    def var(self, index: int = 0) -> Variable:
        """An input as a variable; known numbers become parameters."""
        value = self.value(index)
        if value.var is None:
            if value.array is not None:
                value.var = self.maker.parameter(self.node.input[index], value.array)
            else:
                value.var = self._of_sizes(value.sizes or [])
        return value.var

    def _of_sizes(self, sizes: list[int | Size]) -> Variable:
        parts = [self.size(size, "int64") for size in sizes]
        return parts[0] if len(parts) == 1 else self.op("concat", {"X": parts}, axis=0)

    def size(self, size: int | Size, dtype: str = "int32") -> Variable:
        """A size as a tensor of one number."""
        kind = to_vartype(dtype)
        if isinstance(size, int):
            return self.op("fill_constant", {}, shape=[1], value=float(size), dtype=kind)
        shape = self.op("shape", {"Input": self.maker.block.var(size.of)})
        one = self.op("slice", {"Input": shape}, axes=[0], starts=[size.axis], ends=[size.axis + 1])
        if kind == VarType.INT32:
            return one
        return self.op("cast", {"X": one}, in_dtype=VarType.INT32, out_dtype=kind)

    def array(self, index: int) -> np.ndarray:
        """An input whose numbers are known."""
        value = self.value(index)
        if value.array is None and value.sizes is not None and all(isinstance(n, int) for n in value.sizes):
            value.array = np.array(value.sizes, "int64")
        if value.array is None:
            raise self.fail(
                f"computes its input {index} ({self.node.input[index]!r}), which has to be a constant"
            )
        return value.array

    def ints(self, index: int) -> list[int]:
        return [int(n) for n in self.array(index).ravel()]

    def list_of(self, name: str, index: int) -> list[int] | None:
        """Integers that are an attribute in some opsets and an input in others."""
        if self.has(index):
            return self.ints(index)
        given = self.attr(name)
        return None if given is None else [int(n) for n in given]

    def shape(self, index: int = 0) -> tuple[int, ...]:
        return () if self.value(index).scalar else tuple(self.var(index).shape)

    def rank(self, index: int = 0) -> int:
        return len(self.shape(index))

    def dtype(self, index: int = 0) -> np.dtype:
        value = self.value(index)
        if value.var is None:
            return value.array.dtype if value.array is not None else np.dtype("int64")
        return to_numpy(value.var.dtype)

    def op(
        self, kind: str, inputs: dict[str, Any], slot: str = "Out", more: Sequence[str] = (), **attrs: Any
    ) -> Variable:
        return self.maker.op(kind, inputs, slot, more, **attrs)

    def out(self, var: Variable, index: int = 0, scalar: bool = False) -> None:
        if index < len(self.node.output) and self.node.output[index]:
            self.maker.values[self.node.output[index]] = Value(var=var, scalar=scalar)

    def known(
        self, sizes: list[int | Size] | None = None, array: np.ndarray | None = None, scalar: bool = False
    ) -> None:
        self.maker.values[self.node.output[0]] = Value(sizes=sizes, array=array, scalar=scalar)

    def fail(self, problem: str) -> NotSupportedError:
        return NotSupportedError(
            f"node {self.kind} that makes {self.node.output[0]!r} cannot be loaded: it {problem}"
        )
