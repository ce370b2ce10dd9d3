"""Parameters and operations of a network (`fluid.contrib.model_stat`)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ..base import missing
from ..framework import Block, Operator, Program

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


__getattr__ = missing.reporter(__name__)
