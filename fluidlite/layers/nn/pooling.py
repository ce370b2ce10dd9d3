"""Pooling layers."""

from __future__ import annotations

from typing import Any

from ...base.dtypes import VarType
from ...base.errors import ArgumentError, ArgumentTypeError
from ...framework import Variable
from ...layer_helper import check_variable, run_op
from ...op_functions import of_kind
from ..checks import FLOAT_TYPES, FORMATS, alone, check_choice, check_dtype, check_switch, numbers, paddings

__all__ = ["adaptive_pool2d", "adaptive_pool3d", "pool2d", "pool3d"]


def _pool(
    kind: str,
    input: Variable,
    pool_size: Any = -1,
    pool_type: str = "max",
    pool_stride: Any = 1,
    pool_padding: Any = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    given = {**locals(), "input": alone(input)}
    check_variable(given["input"], "input", kind)
    attrs = pooling_attrs(kind, int(kind[4]), given)
    return run_op(kind, {"X": given["input"]}, attrs=attrs, name=name)


pool2d = of_kind(
    _pool,
    "pool2d",
    """The maximum or the mean of each window of an image (`fluid.layers.pool2d`).

    Args:
        input: float images [N, C, H, W] (or [N, H, W, C] with `data_format='NHWC'`).
        pool_size: the window: an integer or [height, width].
        pool_type: 'max' or 'avg'.
        pool_stride: an integer or [height, width].
        pool_padding: an integer, [height, width], [top, bottom, left, right], a pair for each dimension,
            'SAME' or 'VALID'.
        global_pooling: the window is the whole image; size and padding are ignored.
        use_cudnn: accepted and without effect.
        ceil_mode: keep a last window that reaches beyond the image.
        name: the prefix of the result's name.
        exclusive: average only the elements inside the image.
        data_format: 'NCHW' or 'NHWC'.

    Raises:
        TypeError, ValueError: for arguments that do not fit; they name the argument.
    """,
)
pool3d = of_kind(
    _pool,
    "pool3d",
    """Pooling of volumes [N, C, D, H, W] (or NDHWC); otherwise as `pool2d` (`fluid.layers.pool3d`).""",
    data_format="NCDHW",
)


def pooling_attrs(layer: str, dims: int, given: dict[str, Any]) -> dict[str, Any]:
    """The attributes of `pool2d` or `pool3d` for the arguments of `layer`. Raises ValueError for what does not fit."""
    data_format, size = given.get("data_format", FORMATS[dims][0]), given["pool_size"]
    check_choice(given["pool_type"], "pool_type", ("max", "avg"), layer)
    check_switch(given["use_cudnn"], "use_cudnn", layer, ArgumentTypeError)
    check_choice(data_format, "data_format", FORMATS[dims], layer)
    if size == -1 and not given["global_pooling"]:
        raise ArgumentError(f"{layer} needs 'pool_size' unless 'global_pooling' is True, got {size}")
    pads, algorithm = paddings(given["pool_padding"], dims, data_format == FORMATS[dims][1], layer)
    return {
        "pooling_type": given["pool_type"],
        "ksize": numbers(size, dims, "pool_size", layer),
        "strides": numbers(given["pool_stride"], dims, "pool_stride", layer),
        "paddings": pads,
        "padding_algorithm": algorithm,
        **{name: given[name] for name in ("global_pooling", "use_cudnn", "ceil_mode", "exclusive")},
        "data_format": data_format,
    }


def _adaptive_pool(
    kind: str,
    input: Variable,
    pool_size: Any,
    pool_type: str = "max",
    require_index: bool = False,
    name: str | None = None,
) -> Variable | tuple[Variable, Variable]:
    check_dtype(input, "input", kind, (*FLOAT_TYPES, VarType.INT32, VarType.INT64))
    check_choice(pool_type, "pool_type", ("max", "avg"), kind)
    check_switch(require_index, "require_index", kind)
    if pool_type == "avg" and require_index:
        raise ArgumentError("invalid setting 'require_index' true when 'pool_type' is 'avg'.")
    op_type = kind.removeprefix("adaptive_")
    ksize = numbers(pool_size, int(op_type[4]), "pool_size", kind)
    attrs: dict[str, Any] = {"ksize": ksize, "adaptive": True, "pooling_type": pool_type}
    if pool_type == "avg":
        return run_op(op_type, {"X": input}, attrs=attrs, name=name)
    # Fluid takes the operator that returns indices even if `require_index` is false.
    made: tuple[Variable, Variable] = run_op(
        f"max_{op_type}_with_index", {"X": input}, ("Out", "Mask"), attrs, name, stop_gradient=("Mask",)
    )
    return made if require_index else made[0]


adaptive_pool2d = of_kind(
    _adaptive_pool,
    "adaptive_pool2d",
    """Pools images into `pool_size` bins, whatever their size (`fluid.layers.adaptive_pool2d`).

    Args:
        input: float images [N, C, H, W].
        pool_size: how many bins: an integer or [height, width].
        pool_type: 'max' or 'avg'.
        require_index: with 'max', also return where in the flattened image each maximum is (int32).

    Raises:
        ValueError: for another `pool_type`, or `require_index` with 'avg'.
    """,
)
adaptive_pool3d = of_kind(
    _adaptive_pool,
    "adaptive_pool3d",
    """Pools volumes [N, C, D, H, W] into bins; otherwise as `adaptive_pool2d`
    (`fluid.layers.adaptive_pool3d`).
    """,
)
