"""partial_concat, partial_sum: the same columns of several matrices, side by side or added up."""

from __future__ import annotations

from typing import Any

from ..grad_pairs import register_pair
from ..registry import OpView


def _columns(width: int, start: int, length: int) -> tuple[int, int]:
    """The first column and how many: all that follow for a negative length."""
    start += width if start < 0 else 0
    return start, width - start if length < 0 else length


def _parts(X: list[Any], start_index: int, length: int) -> list[Any]:
    start, count = _columns(X[0].shape[1], start_index, length)
    return [x[:, start : start + count] for x in X]


def _concat(xp: Any, X: list[Any], start_index: int, length: int) -> Any:
    return xp.concatenate(_parts(X, start_index, length), axis=1)


def _sum(xp: Any, X: list[Any], start_index: int, length: int) -> Any:
    first, *rest = _parts(X, start_index, length)
    result = first.copy()
    for part in rest:
        result += part
    return result


def _put_back(xp: Any, X: list[Any], parts: list[Any], start: int) -> list[Any]:
    result = [xp.zeros_like(x) for x in X]
    for whole, part in zip(result, parts, strict=True):
        whole[:, start : start + part.shape[1]] = part
    return result


def _concat_grad(xp: Any, X: list[Any], Out_grad: Any, start_index: int, length: int) -> Any:
    start, count = _columns(X[0].shape[1], start_index, length)
    parts = [Out_grad[:, k * count : (k + 1) * count] for k in range(len(X))]
    return _put_back(xp, X, parts, start)


def _sum_grad(xp: Any, X: list[Any], Out_grad: Any, start_index: int, length: int) -> Any:
    start, _ = _columns(X[0].shape[1], start_index, length)
    return _put_back(xp, X, [Out_grad] * len(X), start)


def _infer(op: OpView, sides: int, lowest: int) -> None:
    shapes = [op.shape("X", k) for k in range(op.count("X"))]
    first = shapes[0]
    for shape in shapes:
        if len(shape) != 2 or any(m != n and min(m, n) >= 0 for m, n in zip(shape, first, strict=False)):
            raise op.fail(f"X must be matrices [rows, width] of one shape, got {[list(s) for s in shapes]}")
    width, start, length = first[1], op.attr("start_index"), op.attr("length")
    if width < 0:
        op.set("Out", (first[0], -1), op.dtype("X"))
        return
    begin, count = _columns(width, start, length)
    if not lowest * width <= start < width or begin + count > width:
        raise op.fail(
            f"start_index must be in [{lowest * width}, {width}) and the columns end at {width}, "
            f"got start_index {start} and length {length}"
        )
    op.set("Out", (first[0], count * sides), op.dtype("X"))


def _infer_concat(op: OpView) -> None:
    _infer(op, op.count("X"), -1)


def _infer_sum(op: OpView) -> None:
    _infer(op, 1, 0)


_ATTRS = {"start_index": 0, "length": -1}

register_pair(
    "partial_concat",
    ("X*",),
    _concat,
    _concat_grad,
    _infer_concat,
    "`length` columns of each matrix from start_index on, side by side.",
    attrs=_ATTRS,
    keep=("X#",),
)
register_pair(
    "partial_sum",
    ("X*",),
    _sum,
    _sum_grad,
    _infer_sum,
    "`length` columns of each matrix from start_index on, added up.",
    attrs=_ATTRS,
    keep=("X#",),
)
