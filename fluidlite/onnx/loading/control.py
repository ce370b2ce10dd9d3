"""If, Loop and Scan: inner graphs as blocks. Sequences as tensor arrays.

Sequences of ONNX are immutable: a shared array is copied before it is written.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from onnx import GraphProto, TensorProto, helper

from ...base.dtypes import VarType, to_vartype
from ...fluid import layers
from ...fluid.dygraph.dygraph_to_static.runtime.branching import Checkpoint
from ...framework import Variable
from .reading import follow
from .values import Maker, Node, Value, imports

_FOREVER = 2**62
"""Trip counts from here on mean no limit: exporters write the largest integer for loops that a condition ends."""


class _VarValue(NamedTuple):
    """A value held in a variable; `array`: its elements if they are constant."""

    var: Variable
    scalar: bool
    array: np.ndarray | None = None

    @property
    def sequence(self) -> bool:
        return bool(self.var.type == VarType.LOD_TENSOR_ARRAY)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a tensor; () for a sequence, whose elements may differ."""
        return () if self.scalar or self.sequence else tuple(self.var.shape)


def _results(maker: Maker, graph: GraphProto) -> list[_VarValue]:
    """The outputs of a graph as variables of the current block or an outer one."""
    names = [(info.name, f"graph {graph.name!r}") for info in graph.output]
    return [
        _VarValue(maker.var(*name), maker.value(*name).scalar, maker.value(*name).array) for name in names
    ]


def _common_shape(n: Node, name: str, one: _VarValue, other: _VarValue) -> tuple[int, ...]:
    """The shape common to both values, -1 where sizes differ; fails for different ranks."""
    if one.sequence:
        return tuple(one.var.shape)
    if len(one.shape) != len(other.shape):
        raise n.fail(f"gives {name!r} shapes {one.shape} and {other.shape}, expected equal ranks")
    return tuple(a if a == b else -1 for a, b in zip(one.var.shape, other.var.shape, strict=True))


@imports("If")
def _if(n: Node) -> None:
    graphs = [n.attr("then_branch"), n.attr("else_branch")]
    known, taken_out = n.value().array, _erased_sequence(n, *graphs)
    if taken_out is not None:
        n.maker.values[n.node.output[0]] = taken_out
        return
    if known is not None:
        with n.maker.inside():
            follow(n.maker, graphs[0 if bool(known) else 1])
            made = [n.maker.value(info.name, "the graph") for info in graphs[0 if bool(known) else 1].output]
        n.maker.values.update(zip(n.node.output, made, strict=True))
        return
    sides: list[list[_VarValue]] = []

    def build(graph: GraphProto) -> Any:
        with n.maker.inside():
            follow(n.maker, graph)
            sides.append(_results(n.maker, graph))
        return [held.var for held in sides[-1]]

    condition = layers.reshape(n.var(), [1]) if n.shape() not in ((), (1,)) else n.var()
    chosen = layers.cond(condition, lambda: build(graphs[0]), lambda: build(graphs[1]))
    for index, (var, yes, no) in enumerate(zip(chosen, *sides, strict=True)):
        var._shape = _common_shape(n, n.node.output[index], yes, no)
        n.out(var, index, scalar=yes.scalar, own=True)


def _erased_sequence(n: Node, then: GraphProto, other: GraphProto) -> Value | None:
    """Recognise the If by which exporters erase an element before inserting its replacement: the sequence without it.

    None for other branches.
    """
    if [[node.op_type for node in graph.node] for graph in (then, other)] != [
        ["SequenceErase"],
        ["Identity"],
    ]:
        return None
    name, place = then.node[0].input[0], (*then.node[0].input, "")[1]
    condition = n.maker.makers.get(n.node.input[0])
    if condition is None or condition.op_type != "Less" or condition.input[0] != place:
        return None
    length = n.maker.makers.get(condition.input[1])
    if length is None or length.op_type != "SequenceLength":
        return None
    if length.input[0] != name or other.node[0].input[0] != name:
        return None
    value = n.maker.value(name, "node SequenceErase")
    # Both branches and the length read the sequence: without other readers it may be changed in place.
    return replace(value, own=value.own and n.maker.uses[name] == 3, without=place)


@imports("Loop")
def _loop(n: Node) -> None:
    """A While loop over the trip count and the condition.

    The first outputs of the body are the loop-carried inputs of the next iteration; the others are stacked.
    """
    maker, body = n.maker, n.attr("body")
    count = len(n) - 2
    most = n.value(0) if n.has(0) else None
    if most is not None and most.array is not None and int(most.array) >= _FOREVER:
        most = None
    start = n.value(1) if n.has(1) else Value(array=np.array(True))
    limit = None if most is None else n.var(0)
    first = [_VarValue(copied(n.var(k)), n.value(k).scalar) for k in range(2, len(n))]
    iteration = layers.fill_constant([1], "int64", 0)
    asked = start.array is None or not bool(start.array)
    goes_on = layers.assign(n.var(1)) if asked else layers.fill_constant([1], "bool", True)
    if limit is not None:
        counted = layers.less_than(iteration, limit)
        goes_on = layers.logical_and(goes_on, counted) if asked else counted
    checkpoint = Checkpoint(maker.program)
    while True:
        loop = layers.While(goes_on)
        with loop.block():
            made = _iteration(n, body, iteration, first)
            shapes = [
                _common_shape(n, name, *both)
                for name, *both in zip(n.node.output, first, made[1:], strict=False)
            ]
            fits = all(shape == tuple(held.var.shape) for shape, held in zip(shapes, first, strict=True))
            stacks = _end_iteration(n, made, first, iteration, limit, goes_on) if fits else []
        if fits:
            break
        checkpoint.roll_back()
        for shape, held in zip(shapes, first, strict=True):
            held.var._shape = shape
    for index, held in enumerate(first):
        n.out(held.var, index, held.scalar, own=True)
    for index, (array, scalar) in enumerate(stacks, count):
        n.out(layers.tensor_array_to_tensor(array, 0, use_stack=not scalar)[0], index)


def _iteration(n: Node, body: GraphProto, iteration: Variable, first: list[_VarValue]) -> list[_VarValue]:
    """Append the body to the current block; returns the condition, the loop-carried values and the stacked outputs."""
    names = [info.name for info in body.input]
    with n.maker.inside():
        n.maker.values[names[0]] = Value(var=iteration, scalar=True)
        n.maker.values[names[1]] = Value(
            array=np.array(True), scalar=True
        )  # true in every iteration that runs
        for name, held in zip(names[2:], first, strict=True):
            n.maker.values[name] = Value(held.var, scalar=held.scalar, own=held.sequence)
        follow(n.maker, body)
        return _results(n.maker, body)


def _end_iteration(
    n: Node,
    made: list[_VarValue],
    first: list[_VarValue],
    iteration: Variable,
    limit: Variable | None,
    goes_on: Variable,
) -> list[tuple[Variable, bool]]:
    """Assign the loop-carried variables; returns the arrays of the stacked outputs, and whether these are scalars."""
    stacks = []
    for held in made[1 + len(first) :]:
        outside = n.maker.program.block(n.maker.block.parent_idx)
        array = outside.create_var(type=VarType.LOD_TENSOR_ARRAY, dtype=held.var.dtype)
        layers.array_write(held.var, iteration, array)
        stacks.append((array, held.scalar))
    befores = [held.var for held in first]
    # A new value that is the old value of another carried variable is copied before that one is overwritten.
    afters = [
        copied(held.var) if held.var is not before and any(held.var is var for var in befores) else held.var
        for before, held in zip(befores, made[1:], strict=False)
    ]
    for before, after in zip(befores, afters, strict=True):
        if after is not before:
            layers.assign(after, before)
    layers.increment(iteration, 1)
    says = made[0].array
    conditions = [] if says is not None and bool(says) else [made[0].var]
    if limit is not None:
        conditions.append(layers.less_than(iteration, limit))
    if not conditions:
        raise n.fail("never ends")
    layers.assign(
        conditions[0] if len(conditions) == 1 else layers.logical_and(conditions[0], conditions[1]), goes_on
    )
    return stacks


@imports("Scan")
def _scan(n: Node) -> None:
    """A Scan as a StaticRNN: its states, and the steps of the scanned inputs."""
    maker, body, scanned = n.maker, n.attr("body"), n.attr("num_scan_inputs")
    states = len(n) - scanned
    outputs = len(body.output) - states

    def along(name: str, count: int) -> list[int]:
        return list(n.attr(name) or [0] * count)

    axes, backwards = along("scan_input_axes", scanned), along("scan_input_directions", scanned)
    first = [n.value(k) for k in range(states)]
    starts = [n.var(k) for k in range(states)]
    inputs = []
    for k, (axis, backward) in enumerate(zip(axes, backwards, strict=True), states):
        x, rank = n.var(k), n.rank(k)
        if axis % rank:
            order = [axis % rank, *(other for other in range(rank) if other != axis % rank)]
            x = layers.transpose(x, order)
        x = layers.unsqueeze(x, [1]) if rank == 1 else x
        inputs.append(layers.reverse(x, [0]) if backward else x)
    scalars = [n.rank(k) == 1 for k in range(states, len(n))]
    loop = layers.StaticRNN()
    with loop.step():
        memories = [loop.memory(init=start) for start in starts]
        given = [Value(var=var, scalar=value.scalar) for var, value in zip(memories, first, strict=True)]
        given += [Value(var=loop.step_input(x), scalar=one) for x, one in zip(inputs, scalars, strict=True)]
        with maker.inside():
            maker.values.update(zip((info.name for info in body.input), given, strict=True))
            follow(maker, body)
            made = _results(maker, body)
        for memory, held in zip(memories, made, strict=False):
            loop.update_memory(memory, held.var)
        for held in made:
            loop.step_output(held.var)
    whole = loop()
    steps = list(whole) if isinstance(whole, (list, tuple)) else [whole]
    for k in range(states):
        last = layers.slice(steps[k], [0], [-1], [2**31 - 1])
        n.out(layers.squeeze(last, [0]) if len(last.shape) > 1 else last, k, first[k].scalar)
    for k, (axis, backward) in enumerate(
        zip(along("scan_output_axes", outputs), along("scan_output_directions", outputs), strict=True), states
    ):
        x = layers.reverse(steps[k], [0]) if backward else steps[k]
        x = layers.squeeze(x, [1]) if made[k].scalar else x
        rank = len(x.shape)
        if axis % rank:
            order = list(range(1, rank))
            order.insert(axis % rank, 0)
            x = layers.transpose(x, order)
        n.out(x, k)


def copied(var: Variable) -> Variable:
    """A copy of a tensor or a sequence."""
    if var.type != VarType.LOD_TENSOR_ARRAY:
        return layers.assign(var)
    array: Variable = layers.create_array(var.dtype)
    layers.assign(var, array)
    array._shape = var.shape
    return array


def _place(n: Node, index: int) -> Variable:
    """An index into a sequence, int64 [1]; a negative constant counts from its end."""
    known = n.value(index).array
    if known is not None:
        at = layers.fill_constant([1], "int64", int(known))
        return at if int(known) >= 0 else at + layers.array_length(n.var(0))
    place = n.var(index)
    return place if place.dtype == VarType.INT64 else layers.cast(place, "int64")


@imports("SequenceEmpty")
def _empty(n: Node) -> None:
    kind = to_vartype(helper.tensor_dtype_to_np_dtype(n.attr("dtype", TensorProto.FLOAT)))
    n.out(layers.create_array(kind), own=True)


@imports("SequenceConstruct")
def _construct(n: Node) -> None:
    array = layers.create_array(n.var().dtype)
    for index in range(len(n)):
        layers.array_write(n.var(index), layers.fill_constant([1], "int64", index), array)
    n.out(array, scalar=n.value().scalar, own=True)


@imports("SequenceInsert")
def _insert(n: Node) -> None:
    """Append an element, or insert it where one has been erased."""
    given = n.value()
    if given.without:
        if not n.has(2) or n.node.input[2] != given.without:
            raise n.fail("inserts at another position than the erased one")
        place = _place(n, 2)
    elif n.has(2) and not _is_append(n):
        raise n.fail("inserts elsewhere than at the end")
    else:
        place = layers.array_length(n.var())
    array = given.var
    assert array is not None
    if not (given.own and n.maker.uses[n.node.input[0]] == 1):
        array = copied(array)
    layers.array_write(n.var(1), place, array)
    n.out(array, scalar=n.value(1).scalar, own=True)


def _is_append(n: Node) -> bool:
    length = n.maker.makers.get(n.node.input[2])
    return length is not None and length.op_type == "SequenceLength" and length.input[0] == n.node.input[0]


@imports("SequenceErase")
def _erase(n: Node) -> None:
    """Erase an element; only a SequenceInsert at the same position can follow."""
    if not n.has(1):
        raise n.fail("erases the last element")
    given = n.value()
    own = given.own and n.maker.uses[n.node.input[0]] == 1
    n.maker.values[n.node.output[0]] = replace(given, own=own, without=n.node.input[1])


@imports("SequenceAt")
def _at(n: Node) -> None:
    n.out(layers.array_read(n.var(), _place(n, 1)), scalar=n.value().scalar)


@imports("SequenceLength")
def _length(n: Node) -> None:
    n.out(layers.array_length(n.var()), scalar=True)


@imports("ConcatFromSequence")
def _joined(n: Node) -> None:
    stacked = bool(n.attr("new_axis", 0)) and not n.value().scalar
    n.out(layers.tensor_array_to_tensor(n.var(), n.attr("axis"), use_stack=stacked)[0])


@imports("SplitToSequence")
def _split(n: Node) -> None:
    """Split into parts of given sizes, or of one size with a shorter last part."""
    axis, x = n.attr("axis", 0) % n.rank(), n.var()
    squeezed, far = not n.has(1) and not n.attr("keepdims", 1), 2**31 - 1
    given = n.array(1) if n.has(1) else np.array(1)
    size = n.shape()[axis]
    if given.ndim or size >= 0:
        sizes = given.tolist() if given.ndim else [int(given)] * (-(-size // int(given)))
        ends = np.cumsum(sizes).tolist()
        made = layers.create_array(x.dtype)
        for number, (end, length) in enumerate(zip(ends, sizes, strict=True)):
            part = layers.slice(x, [axis], [end - length], [min(end, far)])
            part = layers.squeeze(part, [axis]) if squeezed and n.rank() > 1 else part
            layers.array_write(part, layers.fill_constant([1], "int64", number), made)
        n.out(made, scalar=squeezed and n.rank() == 1, own=True)
        return
    array: Variable = layers.create_array(x.dtype)
    index: Variable = layers.fill_constant([1], "int64", 0)
    begin = layers.fill_constant([1], "int32", 0)
    whole = layers.slice(layers.shape(x), [0], [axis], [axis + 1])
    goes_on = layers.less_than(begin, whole)
    loop = layers.While(goes_on)
    with loop.block():
        end = begin + int(given)
        part = layers.slice(x, [axis], [begin], [end])
        part = layers.squeeze(part, [axis]) if squeezed and n.rank() > 1 else part
        layers.array_write(part, index, array)
        layers.increment(index)
        layers.assign(end, begin)
        layers.less_than(begin, whole, cond=goes_on)
    n.out(array, scalar=squeezed and n.rank() == 1, own=True)
