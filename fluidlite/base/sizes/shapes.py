"""Shapes as operators see them: sizes, and how two operands line up."""

from __future__ import annotations

from collections.abc import Sequence

from ..._ext.sizes import product as product

Shape = tuple[int, ...]


def same_shape(x: Shape, y: Shape) -> bool:
    """Whether two shapes are equal; sizes are compared only where that is all that can make a difference."""
    return len(x) == len(y) and x == y


def may_equal(x: Sequence[int], y: Sequence[int]) -> bool:
    """False if two shapes differ in their number of dimensions, or in a size that both know."""
    return len(x) == len(y) and not any(m != n and min(m, n) >= 0 for m, n in zip(x, y, strict=True))


def with_size_of(shape: Sequence[int], other: Shape, dimension: int, at: int) -> list[int]:
    """`shape` with dimension `at` as long as `dimension` of `other`, for `..._batch_size_like` operators."""
    size = [int(n) for n in shape]
    size[at] = other[dimension]
    return size


def aligned(x: Shape, y: Shape, axis: int) -> tuple[Shape, Shape]:
    """Both shapes with as many dimensions: the shorter one is aligned at `axis` of the longer (-1: at its end).

    Ones at the end of the shorter shape that would reach beyond the longer are dropped, as Fluid does.
    """
    if len(x) < len(y):
        long, short = aligned(y, x, axis)
        return short, long
    at = len(x) - len(y) if axis == -1 else axis
    room = len(x) - at
    while len(y) > room and y[-1] == 1:
        y = y[:-1]
    return tuple(x), (1,) * at + tuple(y) + (1,) * (room - len(y))


def middle(x: Shape, y: Shape, axis: int) -> tuple[int, int, int] | None:
    """X seen as (pre, n, post) with Y standing at n, or None if Y does not fill dimensions side by side."""
    if len(y) > len(x) or product(x) == 0:
        return None
    left, right = aligned(x, y, axis)
    if len(left) != len(right):
        return None
    full = [k for k, n in enumerate(right) if n != 1]
    if not full:
        return 1, 1, product(x)
    first, last = full[0], full[-1] + 1
    if not same_shape(left[first:last], right[first:last]):
        return None
    return product(left[:first]), product(left[first:last]), product(left[last:])


def lacking(x: Shape, y: Shape, axis: int) -> tuple[list[int], list[int]] | None:
    """X seen as few dimensions, and for each whether Y has it as well; None if Y has what X lacks.

    Neighbours that Y has, or lacks, are one.
    """
    if len(y) > len(x) or product(x) == 0:
        return None
    left, right = aligned(x, y, axis)
    if len(left) != len(right):
        return None
    sizes: list[int] = []
    stands: list[int] = []
    for m, n in zip(left, right, strict=True):
        there = int(n != 1)
        if there and m != n:
            return None
        if stands and stands[-1] == there:
            sizes[-1] *= m
        elif there or m != 1:
            sizes.append(m)
            stands.append(there)
    return sizes, stands


def rows_along(shape: Shape, axis: int) -> tuple[int, int] | None:
    """(rows, n) when `axis` is the last axis of `shape` that is longer than 1, which row kernels need; else None."""
    axis = axis % len(shape)
    if product(shape[axis + 1 :]) != 1:
        return None
    return product(shape[:axis]), shape[axis]


def reduced_axes(rank: int, dim: list[int] | tuple[int, ...] | int, reduce_all: bool) -> tuple[int, ...]:
    """The axes that a reduction over `dim` removes, sorted and not negative."""
    if reduce_all:
        return tuple(range(rank))
    listed = [dim] if isinstance(dim, int) else dim
    return tuple(sorted({axis % rank for axis in listed}))


def collapse(shape: Shape, axes: tuple[int, ...]) -> tuple[int, int, int] | None:
    """`shape` collapsed to (before, within, after) the `axes`, or None if these are not adjacent."""
    if not axes or axes[-1] - axes[0] + 1 != len(axes):
        return None
    return product(shape[: axes[0]]), product(shape[axes[0] : axes[-1] + 1]), product(shape[axes[-1] + 1 :])
