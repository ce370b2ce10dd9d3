"""fusion_repeated_fc_relu, fusion_squared_mat_sub: products fused with following operators."""

from __future__ import annotations

from typing import Any

from ...backend.products import matmul
from ..registry import OpDef, OpView, Sequences, register


def _repeated(xp: Any, X: Any, W: list[Any], Bias: list[Any]) -> Any:
    steps = [X]
    for weight, bias in zip(W, Bias, strict=True):
        steps.append(xp.maximum(matmul(xp, steps[-1], weight) + bias.reshape(1, -1), 0))
    return steps[1:-1], steps[-1]


def _infer_repeated(op: OpView) -> None:
    rows, width = op.shape("X")
    if op.count("W") != op.count("Bias"):
        raise op.fail(f"there must be a Bias for each W, got {op.count('Bias')} for {op.count('W')}")
    last = op.count("W") - 1
    for k in range(op.count("W")):
        weight = op.shape("W", k)
        if len(weight) != 2 or weight[0] != width:
            raise op.fail(f"W[{k}] must be [{width}, n], got {list(weight)}")
        width = weight[1]
        op.set(
            *(
                ("Out", (rows, width), op.dtype("X"))
                if k == last
                else ("ReluOut", (rows, width), op.dtype("X"), k)
            )
        )


register(
    OpDef(
        "fusion_repeated_fc_relu",
        ("X", "W*", "Bias*"),
        ("ReluOut*", "Out"),
        infer=_infer_repeated,
        kernel=_repeated,
        no_grad=("ReluOut", "Out"),
        sequences=Sequences(source={"Out": "X"}),
        doc="relu(X * W + Bias), again and again.",
    )
)


def _squared(xp: Any, X: Any, Y: Any, scalar: float) -> Any:
    xx, yy, product = X * X, Y * Y, matmul(xp, X, Y)
    squared = product * product
    return xx, yy, squared, X.dtype.type(scalar) * (squared - matmul(xp, xx, yy))


def _infer_squared(op: OpView) -> None:
    x, y = op.shape("X"), op.shape("Y")
    if len(x) != 2 or len(y) != 2 or (x[1] != y[0] and min(x[1], y[0]) >= 0):
        raise op.fail(f"X and Y must be matrices [n, m] and [m, k], got {list(x)} and {list(y)}")
    for slot, shape in (("SquaredX", x), ("SquaredY", y), ("SquaredXY", (x[0], y[1])), ("Out", (x[0], y[1]))):
        op.set(slot, shape, op.dtype("X"))


register(
    OpDef(
        "fusion_squared_mat_sub",
        ("X", "Y"),
        ("SquaredX", "SquaredY", "SquaredXY", "Out"),
        {"scalar": 1.0},
        infer=_infer_squared,
        kernel=_squared,
        no_grad=("SquaredX", "SquaredY", "SquaredXY", "Out"),
        sequences=Sequences(source=None),
        doc="scalar * ((X * Y) ** 2 - X ** 2 * Y ** 2), products of matrices.",
    )
)
