"""GridSample: images and volumes sampled at the positions of a grid."""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np

from ...base.dtypes import VarType
from ...framework import Variable
from .elementwise import half_to_even
from .indexing import axis_indices
from .values import Node, imports

_CUBIC = -0.75


@imports("GridSample")
def _grid_sample(n: Node) -> None:
    mode, outside = n.attr("mode", "linear").removeprefix("bi"), n.attr("padding_mode", "zeros")
    sizes, corners = n.shape()[2:], bool(n.attr("align_corners", 0))
    if -1 in sizes or mode not in ("linear", "nearest", "cubic"):
        raise n.fail(f"has mode {mode} and samples axes of sizes {list(sizes)}, expected known ones")
    if mode != "cubic" and outside != "reflection" and len(sizes) == 2 and 1 not in sizes:
        _by_grid_sampler(n, mode, outside, corners)
        return
    if mode == "cubic" and len(sizes) != 2:
        raise n.fail(f"is cubic over {len(sizes)} axes, expected 2")
    # Axes are in the order of the image; the grid has them reversed.
    places = []
    for k, size in enumerate(sizes):
        column = len(sizes) - 1 - k
        at = n.op("slice", {"Input": n.var(1)}, axes=[n.rank(1) - 1], starts=[column], ends=[column + 1])
        at = n.op("squeeze2", {"X": at}, more=["XShape"], axes=[n.rank(1) - 1])
        at = n.scaled(at, (size - corners) / 2, (size - 1) / 2)
        places.append(half_to_even(n, at) if mode == "nearest" else at)
    if (
        mode != "cubic" or outside != "border"
    ):  # there the elements are brought in, not the place between them
        places = _in_range(n, places, sizes, outside, corners)
    shares = [_interpolation_weights(n, at, mode) for at in places]
    x = n.transposed(n.var(), [0, *range(2, n.rank()), 1])
    parts = []
    for combination in itertools.product(*shares):
        here = [place for place, _ in combination]
        weights = [weight for _, weight in combination if weight is not None]
        inside = [_inside(n, place, size) for place, size in zip(here, sizes, strict=True)]
        if outside == "zeros":
            weights += inside
        else:
            here = _in_range(n, here, sizes, outside, corners)
        index = [n.cast(n.op("clip", {"X": place}, min=0.0, max=float(size - 1)), VarType.INT64)
                 for place, size in zip(here, sizes, strict=True)]  # fmt: skip
        index = [axis_indices(n, index[0], 0), *index]
        found = n.op("gather_nd", {"X": x, "Index": n.op("stack", {"X": index}, "Y", axis=n.rank(1) - 1)})
        if weights:
            weight = reduce(lambda a, b: n.pair("mul", a, b), weights)
            weight = n.op("unsqueeze2", {"X": weight}, more=["XShape"], axes=[n.rank(1) - 1])
            found = n.pair("mul", found, weight)
        parts.append(found)
    total = reduce(lambda a, b: n.pair("add", a, b), parts)
    n.out(n.transposed(total, [0, n.rank() - 1, *range(1, n.rank() - 1)]))


def _by_grid_sampler(n: Node, mode: str, outside: str, corners: bool) -> None:
    """By `grid_sampler`, which has align_corners=True: -1 and 1 are the centres of the outermost elements."""
    grid, sizes = n.var(1), n.shape()[2:]
    if not corners:
        wider = np.array([size / (size - 1) for size in reversed(sizes)], "float32")
        grid = n.pair("mul", grid, n.maker.constant(wider))
    if outside == "border":
        grid = n.op("clip", {"X": grid}, min=-1.0, max=1.0)
    if mode == "nearest":
        half = n.maker.constant(np.array([(size - 1) / 2 for size in reversed(sizes)], "float32"))
        place = half_to_even(n, n.pair("add", n.pair("mul", grid, half), half))
        grid = n.pair("div", n.pair("sub", place, half), half)
    n.out(n.op("grid_sampler", {"X": n.var(), "Grid": grid}, "Output"))


def _in_range(
    n: Node, places: list[Variable], sizes: tuple[int, ...], outside: str, corners: bool
) -> list[Variable]:
    """Positions outside the image clamped to the border or reflected; unchanged with zero padding."""
    if outside == "zeros":
        return places
    if outside == "border":
        return [
            n.op("clip", {"X": at}, min=0.0, max=float(size - 1))
            for at, size in zip(places, sizes, strict=True)
        ]
    made = []
    for at, size in zip(places, sizes, strict=True):
        low, wide = (0.0, float(size - 1)) if corners else (-0.5, float(size))
        far = n.op("abs", {"X": n.scaled(at, 1.0, -low)})
        phase = n.pair("mod", far, n.number(max(2 * wide, 1.0), at.dtype))
        back = n.scaled(n.op("abs", {"X": n.scaled(phase, 1.0, -wide)}), -1.0, wide + low)
        made.append(back)
    return made


def _inside(n: Node, at: Variable, size: int) -> Variable:
    """1 where a position is within an axis, else 0."""
    both = [
        n.pair("greater_equal", at, n.number(0, at.dtype)),
        n.pair("less_than", at, n.number(size, at.dtype)),
    ]
    return n.cast(n.pair("logical_and", *both), at.dtype)


def _interpolation_weights(n: Node, at: Variable, mode: str) -> list[tuple[Variable, Variable | None]]:
    """The elements of an axis that contribute to a position, and their interpolation weights."""
    if mode == "nearest":
        return [(at, None)]
    below = n.op("floor", {"X": at})
    part = n.pair("sub", at, below)
    if mode == "linear":
        return [(below, n.scaled(part, -1.0, 1.0)), (n.scaled(below, 1.0, 1.0), part)]
    made: list[tuple[Variable, Variable | None]] = []
    for offset in (-1, 0, 1, 2):
        t = n.scaled(part, 1.0 if offset < 1 else -1.0, -offset if offset < 1 else offset)
        a = _CUBIC
        factors = [a + 2, -(a + 3), 0.0, 1.0] if offset in (0, 1) else [a, -5 * a, 8 * a, -4 * a]
        total = n.filled(t, factors[0], t.dtype)
        for factor in factors[1:]:
            total = n.scaled(n.pair("mul", total, t), 1.0, factor)
        made.append((n.scaled(below, 1.0, offset), total))
    return made
