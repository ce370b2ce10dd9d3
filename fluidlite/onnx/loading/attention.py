"""Rotary position embeddings."""

from __future__ import annotations

from typing import Any

from ...framework import Variable
from .values import Node, imports


@imports("RotaryEmbedding")
def _rotated(n: Node) -> None:
    """Inputs: [B, heads, T, D] or [B, T, heads * D], cosines and sines [B, T, D / 2], or [count, D / 2] and indices."""
    flat = n.rank() == 3
    x, (cosines, sines) = n.var(), (n.var(1), n.var(2))
    if n.has(3):
        cosines, sines = (_rows_at(n, table) for table in (cosines, sines))
    if flat:
        heads = n.attr("num_heads", 0)
        if heads < 1 or n.shape()[2] < 1:
            raise n.fail("has an input of rank 3, and neither num_heads nor a known head size")
        x = n.op("reshape2", {"X": x}, more=["XShape"], shape=[0, 0, heads, n.shape()[2] // heads])
    # The same table for every head.
    cosines, sines = (
        n.op("unsqueeze2", {"X": table}, more=["XShape"], axes=[2 if flat else 1])
        for table in (cosines, sines)
    )
    size, far = n.attr("rotary_embedding_dim", 0) or x.shape[-1], 2**31 - 1
    if size < 1:
        raise n.fail("rotates an axis whose size is unknown until run time")

    def part(start: int, end: int, step: int = 1) -> Variable:
        attrs: dict[str, Any] = {"axes": [3], "starts": [start], "ends": [end]}
        if step == 1:
            return n.op("slice", {"Input": x}, **attrs)
        return n.op("strided_slice", {"Input": x}, strides=[step], **attrs)

    mixed = bool(n.attr("interleaved", 0))
    one, other = (part(k, size, 2) if mixed else part(k * size // 2, (k + 1) * size // 2) for k in (0, 1))
    sides = [
        n.pair("sub", n.pair("mul", one, cosines), n.pair("mul", other, sines)),
        n.pair("add", n.pair("mul", one, sines), n.pair("mul", other, cosines)),
    ]
    if mixed:
        whole = n.op("stack", {"X": sides}, "Y", axis=4)
        sides = [n.op("reshape2", {"X": whole}, more=["XShape"], shape=[0, 0, 0, size])]
    if size < x.shape[-1]:
        sides.append(part(size, far))
    out = n.op("concat", {"X": sides}, axis=3) if len(sides) > 1 else sides[0]
    n.out(n.op("reshape2", {"X": out}, more=["XShape"], shape=[0, 0, n.shape()[2]]) if flat else out)


def _rows_at(n: Node, table: Variable) -> Variable:
    """The rows of a table at the positions [B, T]."""
    places = n.op("unsqueeze2", {"X": n.var(3)}, more=["XShape"], axes=[2])
    return n.op("gather_nd", {"X": table, "Index": places})
