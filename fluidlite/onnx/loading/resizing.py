"""Resized images, and depth to space and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from .indexing import gathered
from .values import Node, Size, imports


@imports("DepthToSpace")
def _depth_to_space(n: Node) -> None:
    x, size = n.var(), n.attr("blocksize")
    if n.attr("mode", "DCR") != "CRD":
        channels = n.shape()[1]
        if channels < 0:
            raise n.fail("has mode DCR and a number of channels that is unknown until run time")
        order = np.arange(channels).reshape(size, size, -1).transpose(2, 0, 1).ravel()
        x = gathered(n, x, n.maker.constant(order), 1)
    n.out(n.op("pixel_shuffle", {"X": x}, upscale_factor=size))


@imports("SpaceToDepth")
def _space_to_depth(n: Node) -> None:
    """Strided slices of rows and columns, one for each offset within a block."""
    size, far = n.attr("blocksize"), 2**31 - 1
    attrs: dict[str, Any] = {"axes": [2, 3], "ends": [far, far], "strides": [size, size]}
    parts = [
        n.op("strided_slice", {"Input": n.var()}, starts=[row, column], **attrs)
        for row in range(size)
        for column in range(size)
    ]
    n.out(n.op("concat", {"X": parts}, axis=1))


@imports("Resize", "Upsample")
def _resize(n: Node) -> None:
    """By Fluid's interpolation where it is equivalent, else one axis at a time by a product with a matrix."""
    if n.maker.opset < 11:
        # Upsample and opset 10 have scales only, and asymmetric coordinates.
        n.attrs |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    if n.attr("antialias", 0) or n.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise n.fail("has antialias or keep_aspect_ratio_policy")
    axes = [axis % n.rank() for axis in n.attr("axes") or range(n.rank())]
    scales: list[float | None] = [1.0] * n.rank()
    sizes = [*n.shape()]
    if n.has(3):
        given = n.value(3).sizes or n.ints(3)
        for axis, size in zip(axes, given, strict=True):
            if size == Size(n.var().name, axis):
                continue
            if not isinstance(size, int):
                raise n.fail("computes the sizes of images")
            sizes[axis], known = size, n.shape()[axis] > 0
            scales[axis] = size / n.shape()[axis] if known else None
    else:
        for axis, times in zip(axes, _scales(n), strict=True):
            scales[axis] = times
            sizes[axis] = int(np.floor(n.shape()[axis] * times)) if n.shape()[axis] > 0 else -1
    changed = [axis for axis in range(n.rank()) if scales[axis] != 1]
    if _by_fluid(n, changed, scales, sizes):
        return
    x = n.var()
    for axis in changed:
        size, scale = n.shape()[axis], scales[axis]
        if size < 0 or scale is None:
            raise n.fail(
                f"changes axis {axis}, whose size is unknown until run time, in a way that Fluid has not"
            )
        n.table(sizes[axis] * (1 if n.attr("mode", "nearest") == "nearest" else size))
        at = _sources(n, size, sizes[axis], scale)
        if n.attr("mode", "nearest") == "nearest":
            x = gathered(n, x, n.maker.constant(_nearest(n, at, size, scale)), axis)
        else:
            matrix = _weights(n, at, size).astype("float32")
            order = [*(k for k in range(n.rank()) if k != axis), axis]
            out = n.op("mul", {"X": n.transposed(x, order), "Y": n.maker.constant(matrix.T)},
                       x_num_col_dims=n.rank() - 1, y_num_col_dims=1)  # fmt: skip
            x = n.transposed(out, np.argsort(order).tolist())
    n.out(x)


def _scales(n: Node) -> list[float]:
    """Input 2; an attribute before opset 9, and input 1 before 11."""
    given = n.attr("scales") if n.maker.opset < 9 else n.array(2 if n.maker.opset > 10 else 1)
    return [float(scale) for scale in np.asarray(given, float)]


def _by_fluid(n: Node, changed: list[int], scales: list[float | None], sizes: list[int]) -> bool:
    """Append Fluid's interpolation of height and width if its scales, ratios of sizes, are those of the node."""
    how, mode = n.attr("coordinate_transformation_mode", "half_pixel"), n.attr("mode", "nearest")
    near = n.attr("nearest_mode", "round_prefer_floor")
    times = all(scale is not None and scale == int(scale) for scale in scales)
    linear: dict[str, dict[str, Any]] = {
        "align_corners": {"align_corners": True},
        "half_pixel": {"align_corners": False, "align_mode": 0},
        "asymmetric": {"align_corners": False, "align_mode": 1},
    }
    if n.maker.opset < 11 and mode == "nearest" and not times:
        return False
    whole = times and "half_pixel" in how and near.startswith("round")
    if mode == "linear":
        attrs = linear.get(how)
    elif mode == "nearest" and (whole or how == "asymmetric" and near == "floor"):
        attrs = {"align_corners": False}
    else:
        attrs = None
    if attrs is None or n.rank() != 4 or not changed or min(changed) < 2:
        return False
    attrs = dict(attrs)
    own = [n.shape()[axis] for axis in (2, 3)]
    if min(sizes[2:]) > 0:
        ratios = [size * (scales[axis] or 1) == sizes[axis] for axis, size in zip((2, 3), own, strict=True)]
        if min(own) > 0 and not all(ratios):
            return False
        attrs["out_h"], attrs["out_w"] = sizes[2:]
    elif times and scales[2] == scales[3]:
        attrs["scale"] = scales[2]
    else:
        return False
    kind = "bilinear" if mode == "linear" else "nearest"
    n.out(n.op(f"{kind}_interp", {"X": n.var()}, interp_method=kind, data_layout="NCHW", **attrs))
    return True


def _sources(n: Node, size: int, out: int, scale: float) -> np.ndarray:
    """The source coordinate of each element, in float32, whose rounding decides between neighbours."""
    how, place = n.attr("coordinate_transformation_mode", "half_pixel"), np.arange(out, dtype="float32")
    if how == "asymmetric":
        return place / np.float32(scale)
    if how == "align_corners":
        return place * np.float32((size - 1) / (out - 1) if out > 1 else 0.0)
    if how == "half_pixel" or how == "pytorch_half_pixel" and out > 1:
        return (place + np.float32(0.5)) / np.float32(scale) - np.float32(0.5)
    if how == "pytorch_half_pixel":
        return np.zeros(out, "float32")
    raise n.fail(f"has coordinate_transformation_mode {how!r}")


def _nearest(n: Node, at: np.ndarray, size: int, scale: float) -> np.ndarray:
    near = n.attr("nearest_mode", "round_prefer_floor")
    if n.maker.opset < 11 and scale < 1:
        near = "ceil"
    found = {
        "round_prefer_floor": np.ceil(at - 0.5),
        "round_prefer_ceil": np.floor(at + 0.5),
        "floor": np.floor(at),
        "ceil": np.ceil(at),
    }[near]
    return np.clip(found, 0, size - 1).astype("int64")


def _weights(n: Node, at: np.ndarray, size: int) -> np.ndarray:
    """Interpolation weights [out, size]; the first and last elements continue beyond the ends."""
    matrix = np.zeros([len(at), size])
    below = np.floor(at).astype("int64")
    part = at - below
    if n.attr("mode") == "linear":
        shares = {0: 1 - part, 1: part}
    else:
        if n.attr("exclude_outside", 0):
            raise n.fail("has exclude_outside=1")
        a = n.attr("cubic_coeff_a", -0.75)

        def near(t: np.ndarray) -> np.ndarray:
            return ((a + 2) * t - (a + 3)) * t * t + 1

        def far(t: np.ndarray) -> np.ndarray:
            return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

        shares = {-1: far(part + 1), 0: near(part), 1: near(1 - part), 2: far(2 - part)}
    for offset, share in shares.items():
        np.add.at(matrix, (np.arange(len(at)), np.clip(below + offset, 0, size - 1)), share)
    return matrix
