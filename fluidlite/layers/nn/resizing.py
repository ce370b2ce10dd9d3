"""Images and volumes of another size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.errors import ArgumentAssertion, ArgumentError
from ...eager import as_number_list, as_numbers
from ...framework import Variable
from ...layer_helper import LayerHelper, check_variable
from ...op_functions import of_kind
from ..checks import FORMATS, check_choice
from ..tensor.shape_arguments import has_variables, one_by_one

__all__ = [
    "image_resize",
    "image_resize_short",
    "interpolate",
    "resize_bilinear",
    "resize_nearest",
    "resize_trilinear",
]

OutShape = Variable | Sequence[int | Variable] | None

_METHODS = {"BILINEAR": "bilinear", "TRILINEAR": "trilinear", "NEAREST": "nearest", "BICUBIC": "bicubic"}
_SIZES = {4: ("out_h", "out_w"), 5: ("out_d", "out_h", "out_w")}


def _interpolate(
    kind: str,
    input: Variable,
    out_shape: OutShape = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    resample: str = "BILINEAR",
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    known = [name for name in _METHODS if name != "BICUBIC" or kind == "interpolate"]
    if resample not in known:
        listed = ", ".join(map(repr, known))
        raise ArgumentError(f"The 'resample' of {kind} can only be {listed}, got {resample!r}")
    check_variable(input, "input", kind)
    method, rank = _METHODS[resample], 5 if resample == "TRILINEAR" else 4
    if len(input.shape) != rank:
        raise ArgumentError(
            f"'input' of {kind} must have {rank} dimensions for {resample}, got {input.shape}"
        )
    check_choice(data_format, "data_format", FORMATS[rank - 2], kind)
    if not isinstance(align_corners, bool):
        raise TypeError(f"'align_corners' of {kind} must be True or False, got {align_corners!r}")
    check_choice(align_mode, "align_mode", (0, 1), kind)
    helper = LayerHelper(f"{method}_interp", name=name)
    attrs: dict[str, Any] = {
        "out_d": -1,
        "out_h": -1,
        "out_w": -1,
        "interp_method": method,
        "align_corners": align_corners,
        "align_mode": align_mode,
        "data_layout": "NHWC" if data_format.endswith("C") else "NCHW",
        "scale": 0.0,
    }
    inputs: dict[str, Any] = {"X": input}
    if out_shape is not None:
        inputs.update(_given_sizes(kind, out_shape, _SIZES[rank], attrs, helper))
    elif isinstance(scale, Variable):
        scale.stop_gradient = True
        inputs["Scale"] = scale
    elif scale is None:
        raise ArgumentError(f"One of 'out_shape' and 'scale' of {kind} must not be None")
    elif scale <= 0:
        raise ArgumentError(f"'scale' of {kind} must be greater than zero, got {scale}")
    else:
        attrs["scale"] = float(as_numbers(scale))
    if actual_shape is not None:
        actual_shape.stop_gradient = True
        inputs["OutSize"] = actual_shape
    return helper.run(f"{method}_interp", inputs, attrs=attrs)


def _given_sizes(
    kind: str, out_shape: OutShape, names: Sequence[str], attrs: dict[str, Any], helper: LayerHelper
) -> dict[str, Any]:
    """The inputs for sizes given as Variables; those given as numbers go into `attrs`."""
    out_shape = as_number_list(out_shape)
    if isinstance(out_shape, Variable):
        out_shape.stop_gradient = True
        return {"OutSize": out_shape}
    if not isinstance(out_shape, (list, tuple)):
        raise TypeError(f"'out_shape' of {kind} must be a list or a Variable, got {out_shape!r}")
    if len(out_shape) != len(names):
        raise ArgumentError(
            f"'out_shape' of {kind} must have {len(names)} elements for this input, got {list(out_shape)}"
        )
    for name, size in zip(names, out_shape, strict=True):
        if not isinstance(size, Variable):
            if int(size) <= 0:
                raise ArgumentAssertion(
                    f"the numbers in 'out_shape' of {kind} must be positive, got {list(out_shape)}"
                )
            attrs[name] = int(size)
    return {"SizeTensor": one_by_one(helper, out_shape)} if has_variables(out_shape) else {}


interpolate = of_kind(
    _interpolate,
    "interpolate",
    """Images or volumes of another size (`fluid.layers.interpolate`).

    Args:
        input: float images [N, C, H, W] ([N, H, W, C] with `data_format='NHWC'`), or for 'TRILINEAR' volumes
            [N, C, D, H, W] ('NDHWC': channels last).
        out_shape: the new height and width (depth, height and width): integers, variables of one element, or one int32
            variable that holds them all.
        scale: instead of it, by how much the sizes are multiplied; a number or a float32 variable of one element.
        name: the name of the result.
        resample: 'BILINEAR', 'BICUBIC' (Keys 1981), 'NEAREST', or 'TRILINEAR' for volumes.
        actual_shape: an int32 variable with the new sizes that goes before `out_shape`, which then only says what is
            known of them.
        align_corners: the corners of both images lie on one another; else their edges do.
        align_mode: without `align_corners`, 0: coordinates are those of elements' centres, 1: of their corners.

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """,
)
image_resize = of_kind(
    _interpolate,
    "image_resize",
    "`interpolate`, which has the arguments, but for 'BICUBIC' (`fluid.layers.image_resize`).",
)


def _resize(
    kind: str,
    input: Variable,
    out_shape: OutShape = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    how = (kind.removeprefix("resize_").upper(), actual_shape, align_corners, align_mode, data_format)
    return image_resize(input, out_shape, scale, name, *how)


resize_bilinear = of_kind(
    _resize,
    "resize_bilinear",
    "`image_resize` by linear interpolation along both axes (`fluid.layers.resize_bilinear`).",
)
resize_trilinear = of_kind(
    _resize,
    "resize_trilinear",
    "`image_resize` of volumes by linear interpolation along all axes (`fluid.layers.resize_trilinear`).",
    data_format="NCDHW",
)


def resize_nearest(
    input: Variable,
    out_shape: OutShape = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """`image_resize` by the nearest element (`fluid.layers.resize_nearest`)."""
    return image_resize(input, out_shape, scale, name, "NEAREST", actual_shape, align_corners, 1, data_format)


def image_resize_short(input: Variable, out_short_len: int, resample: str = "BILINEAR") -> Variable:
    """Images [N, C, H, W] whose shorter side is `out_short_len`, in proportion (`fluid.layers.image_resize_short`).

    Height and width must be known.
    """
    check_variable(input, "input", "image_resize_short")
    if len(input.shape) != 4:
        raise ArgumentError(f"'input' of image_resize_short must have 4 dimensions, got {list(input.shape)}")
    sizes = list(input.shape[2:])
    short = sizes.index(min(sizes))
    other = 1 - short
    out_shape = list(sizes)
    out_shape[short] = out_short_len
    out_shape[other] = int(sizes[other] * (out_short_len / sizes[short]) + 0.5)
    return image_resize(input, out_shape=out_shape, resample=resample)
