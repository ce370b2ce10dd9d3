"""Sequences as tensor arrays. Sequences of ONNX are immutable: a shared array is copied before it is written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import TensorProto, helper

from ...base.dtypes import VarType, to_vartype
from ...fluid import layers
from ...framework import Variable
from .values import Node, imports


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
