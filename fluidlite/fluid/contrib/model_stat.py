"""Parameters and operations of a network (`fluid.contrib.model_stat`)."""

from __future__ import annotations

import numbers
from collections import Counter, OrderedDict
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ...base.dtypes import FLOATS, VarType, to_numpy
from ...base.sizes import product
from ...framework import Block, Operator, Parameter, Program

__all__ = ["summary"]

_ACTIVATIONS = ("sigmoid", "tanh", "relu", "leaky_relu", "prelu")
_HEADER = ("No.", "TYPE", "INPUT", "OUTPUT", "PARAMs", "FLOPs")


class _Row(NamedTuple):
    """A row of the table: shapes without the batch, parameters, multiplications and additions for one sample."""

    type: str
    input: tuple[int, ...]
    output: tuple[int, ...]
    params: int
    flops: int


def summary(main_prog: Program) -> None:
    """Print parameters and operations of the layers of `main_prog` (`fluid.contrib.summary`).

    Convolutions, products (`mul`), batch_norm, 2-D pooling and the most common activations count, of all blocks. The
    numbers are Fluid's: those of an activation include the batch, as -1 if it is unknown.
    """
    rows = [row for block in main_prog.blocks for op in block.ops if (row := _row(block, op)) is not None]
    cells = [(str(at), row.type, *(str(value) for value in row[1:])) for at, row in enumerate(rows)]
    print(_table([_HEADER, *cells]))
    params, flops = sum(row.params for row in rows), sum(row.flops for row in rows)
    print(f"Total PARAMs: {params}({params / 1e6:.4f}M)")
    print(f"Total FLOPs: {flops}({flops / 1e9:.2f}G)")
    print(
        "Notice: \n now supported ops include [Conv, DepthwiseConv, FC(mul), BatchNorm, Pool, "
        "Activation(sigmoid, tanh, relu, leaky_relu, prelu)]"
    )


def _row(block: Block, op: Operator) -> _Row | None:
    """The row of an operator; None for types that are not counted."""

    def shape(slot: str, output: bool = False) -> tuple[int, ...]:
        (name,) = op.output(slot) if output else op.input(slot)
        return block._var_recursive(name).shape

    if op.type in ("conv2d", "depthwise_conv2d"):
        shape_in, shape_out, kernel = shape("Input"), shape("Output", True), shape("Filter")
        one = prod(kernel[1:]) / op.attr("groups")
        bias = int(bool(op.input("Bias")))
        params = int(kernel[0] * (one + bias))
        flops = int(2 * prod(shape_out[2:]) * shape_out[1] * (one + bias))
    elif op.type == "pool2d":
        shape_in, shape_out = shape("X"), shape("Out", True)
        params, flops = 0, prod(shape_out[1:]) * prod(op.attr("ksize"))
    elif op.type == "mul":
        shape_in, shape_out, (rows, columns) = shape("X"), shape("Out", True), shape("Y")
        params, flops = rows * columns + 1, rows * columns
    elif op.type in _ACTIVATIONS:
        shape_in, shape_out = shape("X"), shape("Out", True)
        params, flops = int(op.type == "prelu"), prod(shape_in)
    elif op.type == "batch_norm":
        shape_in, shape_out = shape("X"), shape("Y", True)
        params, flops = 2 * shape_in[1], 2 * prod(shape_in[1:])
    else:
        return None
    return _Row(op.type, shape_in[1:], shape_out[1:], params, flops)


def _table(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "+".join(["", *("-" * (width + 2) for width in widths), ""])
    rows = [
        "|".join(["", *(f" {cell:>{width}} " for cell, width in zip(line, widths, strict=True)), ""])
        for line in lines
    ]
    return "\n".join([rule, rows[0], rule, *rows[1:], rule])


_WHOLE = {VarType.INT16, VarType.INT32, VarType.INT64, VarType.BOOL, VarType.UINT8}
_LEAST, _MOST = 1.05, 1.1
_UNITS = ("B", "KB", "MB")

DEBUG = False

dtype_to_size = {kind: to_numpy(kind).itemsize for kind in sorted(FLOATS | _WHOLE)}
"""The bytes of one element of each type."""


def memory_usage(program: Program, batch_size: int) -> tuple[float, float, str]:
    """Bounds of the memory of the results of a program's operators (`fluid.contrib.memory_usage`).

    The sum of their declared sizes, plus 5 to 10 percent. A plan, in which results share memory, needs less: see
    `Executor.describe`.

    Args:
        program: a program; its first block counts.
        batch_size: the size of dimensions of -1; positive.

    Returns:
        The least, the most, and their unit: 'B', 'KB' or 'MB'.

    Raises:
        TypeError: `program` is no Program.
        ValueError: `batch_size` is not positive, or a result has several open dimensions.
    """
    if not isinstance(program, Program):
        raise TypeError(f"memory_usage takes a Program, got {type(program).__name__}")
    if not isinstance(batch_size, numbers.Real):
        raise TypeError(f"batch_size must be a number, got {batch_size!r}")
    if batch_size <= 0:
        raise ValueError(f"batch_size must be positive, got {batch_size}")
    block = program.global_block()
    names = dict.fromkeys(name for op in block.ops for name in op.output_arg_names)
    total = 0.0
    for name in names:
        var = block.vars.get(name)
        if var is None or var.type != VarType.LOD_TENSOR or var.dtype is None:
            continue
        if sum(size < 0 for size in var.shape) > 1:
            raise ValueError(f"{name} has several open dimensions, {list(var.shape)}: its size is unknown")
        elements = product([-size * batch_size if size < 0 else size for size in var.shape])
        total += elements * to_numpy(var.dtype).itemsize
    power = 0
    while total > 1024 and power < len(_UNITS) - 1:
        total, power = total / 1024, power + 1
    return total * _LEAST, total * _MOST, _UNITS[power]


def op_freq_statistic(program: Program) -> tuple[OrderedDict[str, int], OrderedDict[str, int]]:
    """Counts of operator types in the first block, and of adjacent pairs, most frequent first
    (`fluid.contrib.op_freq_statistic`).

    A pair `PRODUCER->CONSUMER` is the first operator that writes a variable and one that reads it. Raises TypeError if
    `program` is no Program.
    """
    if not isinstance(program, Program):
        raise TypeError(f"The input type should be Porgram.But you passed in {type(program)}")
    makers: dict[str, Operator] = {}
    single: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    block = program.global_block()
    for op in block.ops:
        single[op.type] += 1
        for name in op.input_arg_names:
            maker = makers.get(name)
            if maker is not None and not isinstance(block.vars.get(name), Parameter):
                pairs[f"{maker.type}->{op.type}"] += 1
        for name in op.output_arg_names:
            makers.setdefault(name, op)
    return OrderedDict(single.most_common()), OrderedDict(pairs.most_common())
