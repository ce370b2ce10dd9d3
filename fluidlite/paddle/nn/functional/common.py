"""Linear maps, dropout, tables, padding, resizing, similarity, images warped by grids."""

from __future__ import annotations

from typing import Any

from ....base.dtypes import VarType
from ....eager import Tensor
from ....fluid import layers
from ....fluid.layer_helper import run_op
from ....fluid.layers.checks import check_choice, padding_row
from ....fluid.layers.nn.activations import DROPOUTS, dropout_attrs
from ....fluid.layers.nn.dense import lookup_attrs
from ....fluid.op_functions import of_kind
from ....framework import default_main_program
from ....ops.tensor.random_ import is_reseeded
from ...modes import axes_of, by_arguments, in_mode_of, run
from ...tensor import stat
from ...tensor.linalg import norm
from ...tensor.manipulation import cast, squeeze, unsqueeze
from ...tensor.math import abs, clip, pow, sqrt, square
from ...tensor.random import uniform

__all__ = [
    "affine_grid",
    "alpha_dropout",
    "bilinear",
    "cosine_similarity",
    "dropout",
    "dropout2d",
    "dropout3d",
    "embedding",
    "grid_sample",
    "interpolate",
    "label_smooth",
    "linear",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pixel_shuffle",
    "unfold",
    "upsample",
    "zeropad2d",
]


def linear(x: Any, weight: Any, bias: Any = None, name: str | None = None) -> Any:
    """x @ weight + bias, `weight` being [in, out] (`paddle.nn.functional.linear`)."""
    out = run("matmul", {"X": x, "Y": weight}, name=name)
    return out if bias is None else out + bias


def bilinear(x1: Any, x2: Any, weight: Any, bias: Any = None, name: str | None = None) -> Any:
    """x1 W_k x2 + bias_k by rows, `weight` being [out, in1, in2] (`paddle.nn.functional.bilinear`)."""
    return run("bilinear_tensor_product", {"X": x1, "Y": x2, "Weight": weight, "Bias": bias}, name=name)


def dropout(
    x: Any,
    p: float = 0.5,
    axis: Any = None,
    training: bool = True,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Any:
    """Elements set to zero at random (`paddle.nn.functional.dropout`).

    Args:
        x: a float tensor.
        p: the probability of each to become zero.
        axis: the axes along which elements are drawn on their own; along the others they share their fate. By default
            all.
        training: whether anything is set to zero.
        mode: 'upscale_in_train' divides what stays by 1 - p; 'downscale_in_infer' multiplies by 1 - p when not
            training.
        name: the name of the result in a program.

    Raises:
        ValueError: `p` outside of [0, 1], or another mode.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p of dropout must be in [0, 1], got {p}")
    check_choice(mode, "mode", ("upscale_in_train", "downscale_in_infer"), "dropout")
    upscale = mode == "upscale_in_train"
    if axis is not None and training:
        kept = _dropout_mask(x, p, [one % len(x.shape) for one in axes_of(axis) or ()])
        return x * kept * (1.0 / (1.0 - p) if upscale and p < 1 else 1.0)
    if upscale and not training:
        return x
    seed = default_main_program().random_seed or None
    attrs = dropout_attrs(p, not training, seed, DROPOUTS[upscale])
    inputs = {"X": x, "Seed": _fresh_seed(x) if training and is_reseeded() and not seed else None}
    return run("dropout", inputs, ("Out", "Mask"), attrs, name, stop_gradient=("Mask",))[0]


def _fresh_seed(x: Any) -> Any:
    """A seed that follows from `paddle.seed`; without it the operator draws faster, from a stream of its own."""
    with in_mode_of(x):
        return run_op("seed", {}, stop_gradient=True)


def _dropout_mask(x: Any, p: float, axes: list[int]) -> Any:
    """Ones where `x` stays, zeros with probability `p`, drawn along `axes` and of size 1 along the others."""
    with in_mode_of(x):
        drawn = uniform([size if axis in axes else 1 for axis, size in enumerate(x.shape)], x.dtype, 0.0, 1.0)
        kept = cast(drawn >= p, x.dtype)
    kept.stop_gradient = True
    return kept


def _channels(x: Any, p: float, training: bool, last: bool, name: str | None) -> Any:
    return dropout(x, p, [0, len(x.shape) - 1 if last else 1], training, name=name)


def dropout2d(
    x: Any, p: float = 0.5, training: bool = True, data_format: str = "NCHW", name: str | None = None
) -> Any:
    """Whole channels of images set to zero at random (`paddle.nn.functional.dropout2d`)."""
    return _channels(x, p, training, data_format == "NHWC", name)


def dropout3d(
    x: Any, p: float = 0.5, training: bool = True, data_format: str = "NCDHW", name: str | None = None
) -> Any:
    """Whole channels of volumes set to zero at random (`paddle.nn.functional.dropout3d`)."""
    return _channels(x, p, training, data_format == "NDHWC", name)


def alpha_dropout(x: Any, p: float = 0.5, training: bool = True, name: str | None = None) -> Any:
    """Dropout that keeps mean and variance of what `selu` gives (`paddle.nn.functional.alpha_dropout`)."""
    if not training or p == 0:
        return x
    floor = -1.7580993408473766  # the limit of selu towards minus infinity
    if p == 1:
        return x * 0.0
    kept = _dropout_mask(x, p, list(range(len(x.shape))))
    slope = ((1 - p) * (1 + p * floor**2)) ** -0.5
    return (x * kept + (1.0 - kept) * floor) * slope - slope * floor * p


def embedding(
    x: Any, weight: Any, padding_idx: int | None = None, sparse: bool = False, name: str | None = None
) -> Any:
    """The rows of `weight` whose numbers `x` holds (`paddle.nn.functional.embedding`).

    `padding_idx`: a row that gives zeros and is not trained; `sparse`: whether the gradient holds only rows used.
    Raises ValueError if there is no such row.
    """
    padding_row(padding_idx, weight.shape[0], "embedding")
    attrs = lookup_attrs(weight.shape[0], sparse, padding_idx=padding_idx)
    return run("lookup_table_v2", {"Ids": x, "W": weight}, attrs=attrs, name=name)


def one_hot(x: Any, num_classes: int, name: str | None = None) -> Any:
    """Rows of zeros with a one at the number that `x` holds, float32 [..., num_classes]
    (`paddle.nn.functional.one_hot`)."""
    return run("one_hot_v2", {"X": x}, attrs={"depth": num_classes, "dtype": int(VarType.FP32)}, name=name)


def label_smooth(label: Any, prior_dist: Any = None, epsilon: float = 0.1, name: str | None = None) -> Any:
    """(1 - epsilon) * label + epsilon * prior_dist, by default evenly over the classes
    (`paddle.nn.functional.label_smooth`)."""
    return run(
        "label_smooth", {"X": label, "PriorDist": prior_dist}, attrs={"epsilon": float(epsilon)}, name=name
    )


def normalize(x: Any, p: float = 2, axis: int = 1, epsilon: float = 1e-12, name: str | None = None) -> Any:
    """x divided by its p-norm along `axis`, at least `epsilon` (`paddle.nn.functional.normalize`)."""
    length = norm(x, p, axis % len(x.shape), keepdim=True)
    return x / run("clip", {"X": length}, attrs={"min": float(epsilon), "max": 3.4e38})


def cosine_similarity(x1: Any, x2: Any, axis: int = 1, eps: float = 1e-8) -> Any:
    """The cosines of the angles between vectors along `axis` (`paddle.nn.functional.cosine_similarity`)."""
    lengths = stat.sum(square(x1), axis) * stat.sum(square(x2), axis)
    return stat.sum(x1 * x2, axis) / sqrt(clip(lengths, eps * eps))


def pairwise_distance(
    x: Any, y: Any, p: float = 2.0, epsilon: float = 1e-06, keepdim: bool = False, name: str | None = None
) -> Any:
    """The p-norms of x - y along the last axis (`paddle.nn.functional.pairwise_distance`)."""
    powers = pow(abs(x - y + float(epsilon)), p)
    return pow(stat.sum(powers, -1, keepdim=keepdim), 1.0 / p)


def pixel_shuffle(x: Any, upscale_factor: int, data_format: str = "NCHW", name: str | None = None) -> Any:
    """Channels laid out as pixels: [N, C * r * r, H, W] to [N, C, H * r, W * r]
    (`paddle.nn.functional.pixel_shuffle`)."""
    check_choice(data_format, "data_format", ("NCHW",), "pixel_shuffle")
    return run("pixel_shuffle", {"X": x}, attrs={"upscale_factor": upscale_factor}, name=name)


def unfold(
    x: Any,
    kernel_sizes: Any,
    strides: Any = 1,
    paddings: Any = 0,
    dilations: Any = 1,
    name: str | None = None,
) -> Any:
    """The windows of images as columns, [N, C * h * w, windows] (`paddle.nn.functional.unfold`)."""
    return by_arguments(layers.unfold)(x, kernel_sizes, strides, paddings, dilations, name)


def pad(
    x: Any,
    pad: Any,
    mode: str = "constant",
    value: float = 0.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Any:
    """`x` with a border (`paddle.nn.functional.pad`).

    Args:
        x: a tensor of any rank with mode 'constant', of rank 3, 4 or 5 otherwise.
        pad: how much before and after: of all axes, from the first on, if there are that many pairs; otherwise of
            the spatial axes, from the last on.
        mode: 'constant', 'reflect', 'replicate' or 'circular'.
        value: what 'constant' puts there.
        data_format: where the channels are: 'NCL', 'NCHW', 'NCDHW', 'NLC', 'NHWC', 'NDHWC'.
        name: the name of the result in a program.
    """
    check_choice(mode, "mode", ("constant", "reflect", "replicate", "circular"), "pad")
    sides = [int(side) for side in (pad.tolist() if isinstance(pad, Tensor) else pad)]
    rank = len(x.shape)
    pairs = [(0, 0)] * rank
    if len(sides) == 2 * rank and mode == "constant":
        pairs = list(zip(sides[::2], sides[1::2], strict=True))
    else:
        spatial = list(range(1, rank - 1)) if data_format[-1] == "C" else list(range(2, rank))
        if len(sides) > 2 * len(spatial) or len(sides) % 2:
            raise ValueError(
                f"pad must have a pair for each of at most {len(spatial)} spatial axes, got {sides}"
            )
        for axis, pair in zip(reversed(spatial), zip(sides[::2], sides[1::2], strict=True), strict=False):
            pairs[axis] = pair
    if mode == "constant":
        flat = [side for pair in pairs for side in pair]
        return run("pad", {"X": x}, attrs={"paddings": flat, "pad_value": float(value)}, name=name)
    for axis, pair in enumerate(pairs):
        if any(pair):
            x = _padded(x, axis, *pair, mode)
    return x


def _padded(x: Any, axis: int, before: int, after: int, mode: str) -> Any:
    """`x` padded along one axis with its own elements."""
    size = x.shape[axis]
    if mode == "reflect" and max(before, after) >= size:
        raise ValueError(
            f"'reflect' must put less than {size} elements around an axis of that size, got {max(before, after)}"
        )
    if mode == "circular" and max(before, after) > size:
        raise ValueError(f"'circular' must put at most {size} elements around an axis of that size")

    def part(start: int, end: int) -> Any:
        return run("slice", {"Input": x}, attrs={"axes": [axis], "starts": [start], "ends": [end]})

    def mirrored(border: Any) -> Any:
        return run("flip", {"X": border}, attrs={"dims": [axis]})

    head: list[Any] = []
    tail: list[Any] = []
    if mode == "replicate":
        head, tail = [part(0, 1)] * before, [part(size - 1, size)] * after
    elif mode == "reflect":
        head = [mirrored(part(1, before + 1))] if before else []
        tail = [mirrored(part(size - after - 1, size - 1))] if after else []
    else:
        head = [part(size - before, size)] if before else []
        tail = [part(0, after)] if after else []
    return run("concat", {"X": [*head, x, *tail]}, attrs={"axis": axis})


def zeropad2d(x: Any, padding: Any, data_format: str = "NCHW", name: str | None = None) -> Any:
    """Images with zeros around them; `padding` is left, right, top, bottom (`paddle.nn.functional.zeropad2d`)."""
    return pad(x, padding, "constant", 0.0, data_format, name)


_RESAMPLERS = ("nearest", "linear", "bilinear", "bicubic", "trilinear")


def _interpolate(
    kind: str,
    x: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Any:
    check_choice(mode, "mode", _RESAMPLERS, kind)
    dims = len(x.shape) - 2
    spatial = x.shape[1:-1] if data_format[-1] == "C" else x.shape[2:]
    if (size is None) == (scale_factor is None):
        raise ValueError(f"{kind} takes either size or scale_factor")
    if size is None:
        factors = list(scale_factor) if isinstance(scale_factor, (list, tuple)) else [scale_factor] * dims
        size = [int(side * factor) for side, factor in zip(spatial, factors, strict=True)]
    elif isinstance(size, Tensor):
        size = size.tolist()
    size = [int(side) for side in size] if isinstance(size, (list, tuple)) else [int(size)] * dims
    last = data_format[-1] == "C"
    if mode == "nearest" and dims == 1:
        axis = 1 if last else 2
        wide = _interpolate(kind, unsqueeze(x, axis), [1, *size], data_format="NHWC" if last else "NCHW")
        return squeeze(wide, axis)
    attrs = {
        "interp_method": mode,
        "align_corners": align_corners,
        "align_mode": align_mode,
        "data_layout": "NHWC" if last else "NCHW",
        **dict(zip(("out_d", "out_h", "out_w")[-dims:], size, strict=True)),
    }
    return run(f"{mode}_interp", {"X": x}, attrs=attrs, name=name)


interpolate = of_kind(
    _interpolate,
    "interpolate",
    """Images, sequences or volumes of another size (`paddle.nn.functional.interpolate`).

    Args:
        x: [N, C, L], [N, C, H, W] or [N, C, D, H, W].
        size: the spatial size of the result, or
        scale_factor: how many times larger it is, a number or one for each axis.
        mode: 'nearest', 'linear' (sequences), 'bilinear', 'bicubic' (images), 'trilinear' (volumes).
        align_corners: whether the centres of the corners stay where they are.
        align_mode: 0: pixels are squares around their centres; 1: they are at whole numbers.
        data_format: where the channels are: 'NCL', 'NCHW', 'NCDHW', 'NLC', 'NHWC', 'NDHWC'.
        name: the name of the result in a program.
    """,
)
upsample = of_kind(_interpolate, "upsample", "The same as `interpolate` (`paddle.nn.functional.upsample`).")


def affine_grid(theta: Any, out_shape: Any, align_corners: bool = True, name: str | None = None) -> Any:
    """The places [N, H, W, 2] that affine maps `theta` [N, 2, 3] send the pixels of an image of `out_shape` to
    (`paddle.nn.functional.affine_grid`)."""
    check_choice(align_corners, "align_corners", (True,), "affine_grid")
    return by_arguments(layers.affine_grid)(theta, out_shape, name)


def grid_sample(
    x: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
    name: str | None = None,
) -> Any:
    """The images `x` at the places `grid`, which are in [-1, 1] (`paddle.nn.functional.grid_sample`).

    Only what is the default of `mode`, `padding_mode` and `align_corners` is there.
    """
    check_choice(mode, "mode", ("bilinear",), "grid_sample")
    check_choice(padding_mode, "padding_mode", ("zeros",), "grid_sample")
    check_choice(align_corners, "align_corners", (True,), "grid_sample")
    return run("grid_sampler", {"X": x, "Grid": grid}, ("Output",), name=name)
