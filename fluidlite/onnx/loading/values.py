"""The values of an ONNX graph while it is imported: variables, constants, sizes; and the program being built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, helper

from ...base import unique_name
from ...base.dtypes import VarType, to_numpy, to_vartype
from ...base.errors import FormatError, NotSupportedError
from ...executor import LoDTensor, Scope
from ...framework import Block, Program, Variable

Graph = TypeVar("Graph", GraphProto, GraphProto | FunctionProto)


@dataclass(frozen=True)
class Size:
    """The size of a variable along an axis that is unknown until run time."""

    of: str
    axis: int


@dataclass
class Value:
    """A variable, a constant array, or a list of sizes. `scalar`: shape [] in ONNX, [1] in Fluid.

    A sequence is a variable, a tensor array, and `scalar` describes its elements. `own`: no other value shares the
    array, so it may be written to. `without`: the name of the index whose element has been erased.
    """

    var: Variable | None = None
    array: np.ndarray | None = None
    sizes: list[int | Size] | None = None
    scalar: bool = False
    own: bool = False
    without: str = ""


LARGEST = 1 << 20
"""Most elements of a result that is constant-folded while a model is loaded."""

Importer = Callable[["Node"], None]
IMPORTERS: dict[str, Importer] = {}
"""Kinds of nodes, each with the function that appends its operators."""


def kind_of(node: NodeProto) -> str:
    """The type of a node, with its domain in front if that is not ONNX's own."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def imports(*kinds: str) -> Callable[[Importer], Importer]:
    """Register what appends the operators of nodes of these kinds."""

    def add(function: Importer) -> Importer:
        for kind in kinds:
            IMPORTERS[kind] = function
        return function

    return add


def inner_graphs(node: NodeProto) -> list[GraphProto]:
    """The graphs that a node runs."""
    return [attribute.g for attribute in node.attribute if attribute.type == AttributeProto.GRAPH]


def all_graphs(graph: Graph) -> Iterator[Graph]:
    """A graph, or the body of a function, and the graphs inside."""
    yield graph
    for node in graph.node:
        for inner in inner_graphs(node):
            yield from all_graphs(inner)


def all_nodes(graph: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    """The nodes of a graph and those of the graphs inside."""
    return (node for one in all_graphs(graph) for node in one.node)


class Maker:
    """The program being built, and the values computed so far."""

    def __init__(self, program: Program, scope: Scope, model: ModelProto, opset: int) -> None:
        self.model = model
        self.opset = opset
        self.program = program
        self.scope = scope
        self.values: dict[str, Value] = {}
        self.makers = {name: node for node in all_nodes(model.graph) for name in node.output}
        self.uses = Counter(name for node in all_nodes(model.graph) for name in node.input)
        self.uses.update(info.name for graph in all_graphs(model.graph) for info in graph.output)
        self._kept: dict[str, tuple[np.ndarray, Variable]] = {}

    @property
    def block(self) -> Block:
        """The block that operators are appended to."""
        return self.program.current_block()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """A scope for the values of an inner graph, which also reads those of the outer ones."""
        outer = self.values
        self.values = {name: replace(value, own=False) for name, value in outer.items()}
        try:
            yield
        finally:
            self.values = outer

    def value(self, name: str, reader: str) -> Value:
        if name not in self.values:
            raise FormatError(f"{reader} reads {name!r}, which no earlier node computes")
        return self.values[name]

    def var(self, name: str, reader: str) -> Variable:
        """A value as a variable; known numbers become parameters."""
        value = self.value(name, reader)
        if value.without:
            raise NotSupportedError(
                f"{reader} reads {name!r}, a sequence with an element erased: only an insertion there may follow"
            )
        if value.var is None:
            if value.array is not None:
                value.var = self.parameter(name, value.array)
            else:
                value.var = self.of_sizes(value.sizes or [])
        return value.var

    def parameter(self, name: str, array: np.ndarray) -> Variable:
        """A variable that keeps its value; one for each array."""
        if name in self._kept and self._kept[name][0] is array:
            return self._kept[name][1]
        block, given, whole = self.program.global_block(), name, np.atleast_1d(array)
        while block.has_var(name):
            name = unique_name.generate(given)
        kind = to_vartype(array.dtype)
        var: Variable
        if array.dtype.kind == "f":
            var = block.create_parameter(name=name, shape=list(whole.shape), dtype=kind)
        else:
            var = block.create_var(name=name, shape=list(whole.shape), dtype=kind, persistable=True)
        self.scope.var(name).set(LoDTensor.wrap(np.ascontiguousarray(whole)))
        self._kept[given] = array, var
        return var

    def constant(self, array: np.ndarray) -> Variable:
        """A variable with these values that is not trained."""
        name = unique_name.generate("constant")
        kind, shape = to_vartype(array.dtype), list(array.shape)
        var = self.program.global_block().create_var(name=name, shape=shape, dtype=kind, persistable=True)
        var.stop_gradient = True
        self.scope.var(name).set(LoDTensor.wrap(np.ascontiguousarray(array)))
        return var

    def of_sizes(self, sizes: Sequence[int | Size]) -> Variable:
        """Sizes as a tensor."""
        parts = [self.size(size, "int64") for size in sizes]
        return parts[0] if len(parts) == 1 else self.op("concat", {"X": parts}, axis=0)

    def size(self, size: int | Size, dtype: str = "int32") -> Variable:
        """A size as a tensor of one number."""
        kind = to_vartype(dtype)
        if isinstance(size, int):
            return self.op("fill_constant", {}, shape=[1], value=float(size), dtype=kind)
        shape = self.op("shape", {"Input": self.block._var_recursive(size.of)})
        one = self.op("slice", {"Input": shape}, axes=[0], starts=[size.axis], ends=[size.axis + 1])
        if kind == VarType.INT32:
            return one
        return self.op("cast", {"X": one}, in_dtype=VarType.INT32, out_dtype=kind)

    def op(
        self, kind: str, inputs: dict[str, Any], slot: str = "Out", more: Sequence[str] = (), **attrs: Any
    ) -> Variable:
        """Append an operator; the variable in its output `slot`. `more`: other outputs that it has to have."""
        made = {
            name: self.block.create_var(name=self.block._new_name(f"{kind}.tmp")) for name in (slot, *more)
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
        return self.maker.value(self.node.input[index], f"node {self.kind}")

    def var(self, index: int = 0) -> Variable:
        """An input as a variable; known numbers become parameters."""
        return self.maker.var(self.node.input[index], f"node {self.kind}")

    def array(self, index: int) -> np.ndarray:
        """An input that is a constant array."""
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

    def unary(self, kind: str, x: Variable, **attrs: Any) -> Variable:
        """Append an operator with one input, X, and one output, Out."""
        return self.op(kind, {"X": x}, **attrs)

    def pair(self, kind: str, x: Variable, y: Variable) -> Variable:
        """Append the operator `elementwise_KIND`, with operands broadcast as in NumPy."""
        if kind in ("add", "sub", "mul", "div", "max", "min", "mod", "pow", "floordiv"):
            kind = f"elementwise_{kind}"
        return self.op(kind, {"X": x, "Y": y}, axis=-1)

    def cast(self, x: Variable, kind: int) -> Variable:
        """`x` with elements of this type."""
        return x if x.dtype == kind else self.unary("cast", x, in_dtype=x.dtype, out_dtype=kind)

    def scaled(self, x: Variable, scale: float, bias: float = 0.0) -> Variable:
        return self.unary("scale", x, scale=scale, bias=bias)

    def filled(self, like: Variable, value: float, kind: int) -> Variable:
        """A variable of the shape of `like` filled with `value`."""
        return self.unary("fill_any_like", like, value=value, dtype=int(kind))

    def number(self, value: float, kind: int) -> Variable:
        """A constant of one element."""
        return self.op("fill_constant", {}, shape=[1], value=value, dtype=kind)

    def choose(self, condition: Variable, x: Variable, y: Variable) -> Variable:
        """`x` where the condition holds, else `y`; all of one shape."""
        return self.op("where", {"Condition": condition, "X": x, "Y": y})

    def transposed(self, x: Variable, order: Sequence[int]) -> Variable:
        """`x` with its axes in this order."""
        if list(order) == sorted(order):
            return x
        return self.op("transpose2", {"X": x}, more=["XShape"], axis=[int(axis) for axis in order])

    def shaped(self, x: Variable, shape: Sequence[int]) -> Variable:
        """`x` in another shape."""
        return self.op("reshape2", {"X": x}, more=["XShape"], shape=list(shape))

    def flat(self, x: Variable) -> Variable:
        """`x` flattened to one dimension."""
        return self.shaped(x, [-1])

    def unsqueezed(self, x: Variable, axes: Sequence[int]) -> Variable:
        """`x` with axes of size 1 inserted."""
        return self.op("unsqueeze2", {"X": x}, more=["XShape"], axes=list(axes))

    def squeezed(self, x: Variable, axes: Sequence[int]) -> Variable:
        """`x` without these axes of size 1."""
        return self.op("squeeze2", {"X": x}, more=["XShape"], axes=list(axes))

    def sliced(
        self, x: Variable, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]
    ) -> Variable:
        """`x` from `starts` to, without, `ends` along these axes."""
        return self.op("slice", {"Input": x}, axes=list(axes), starts=list(starts), ends=list(ends))

    def ordered(self, x: Variable, axis: int = 0, descending: bool = False) -> tuple[Variable, Variable]:
        """A stable sort along an axis: the sorted elements and their indices."""
        out = self.op("argsort", {"X": x}, more=["Indices"], axis=axis, descending=descending)
        return out, self.maker.block.var(self.maker.block.ops[-1].output("Indices")[0])

    def out(self, var: Variable, index: int = 0, scalar: bool = False, own: bool = False) -> None:
        if index < len(self.node.output) and self.node.output[index]:
            self.maker.values[self.node.output[index]] = Value(var=var, scalar=scalar, own=own)

    def known(
        self, sizes: list[int | Size] | None = None, array: np.ndarray | None = None, scalar: bool = False
    ) -> None:
        self.maker.values[self.node.output[0]] = Value(sizes=sizes, array=array, scalar=scalar)

    def table(self, size: float) -> int:
        """`size` as an integer. Raises NotSupportedError if a table of so many elements is too large."""
        if not size <= 16 * LARGEST:
            raise self.fail(f"needs a table of {size:.0f} numbers")
        return int(size)

    def fail(self, problem: str) -> NotSupportedError:
        return NotSupportedError(
            f"node {self.kind} that makes {self.node.output[0]!r} cannot be loaded: it {problem}"
        )


def _drawn(n: Node, kind: str, like: Variable | None, dtype: VarType, **attrs: Any) -> Variable:
    """Random numbers in the shape of the node's attribute, or in that of a variable whose first size may be open."""
    attrs |= {"seed": int(n.attr("seed", 0)), "dtype": int(dtype)}
    if like is None:
        return n.op(kind, {}, shape=[int(size) for size in n.attr("shape")] or [1], **attrs)
    if -1 in like.shape[1:]:
        raise n.fail("has sizes that are unknown until run time, other than the first")
    return n.op(f"{kind}_batch_size_like", {"Input": like}, shape=list(like.shape), **attrs)


@imports("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
def _random(n: Node) -> None:
    like = n.var() if n.kind.endswith("Like") else None
    given = n.attr("dtype")
    dtype = VarType.FP32 if given is None else to_vartype(helper.tensor_dtype_to_np_dtype(given))
    if given is None and like is not None:
        dtype = like.dtype
    if dtype not in (VarType.FP32, VarType.FP64):
        raise n.fail(f"makes elements of {dtype.name}, expected FP32 or FP64")
    if "Normal" in n.kind:
        attrs = {"mean": n.attr("mean", 0.0), "std": n.attr("scale", 1.0)}
        n.out(_drawn(n, "gaussian_random", like, dtype, **attrs))
        return
    attrs = {"min": n.attr("low", 0.0), "max": n.attr("high", 1.0)}
    n.out(_drawn(n, "uniform_random", like, dtype, **attrs))


@imports("Bernoulli")
def _bernoulli(n: Node) -> None:
    chances, given = n.var(), n.attr("dtype")
    dtype = chances.dtype if given is None else to_vartype(helper.tensor_dtype_to_np_dtype(given))
    numbers = _drawn(n, "uniform_random", chances, VarType.FP32, min=0.0, max=1.0)
    n.out(n.cast(n.pair("less_than", n.cast(numbers, chances.dtype), chances), dtype))
