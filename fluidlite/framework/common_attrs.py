"""Attributes that operators have beside those of their declarations.

Tuning attributes of Fluid's kernels, such as `use_mkldnn`, have no effect here: operators have them with these
defaults. Saved programs carry them on gradient operators; for all others Fluid fills them in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


class OpRole:
    """The phase of training that an operator belongs to, as saved programs number it."""

    Forward = 0
    Backward = 1
    Optimize = 2
    RPC = 4
    Dist = 8
    LRSched = 16
    Loss = 256


COMMON_ATTRS: dict[str, Callable[[], Any]] = {
    "op_callstack": list,
    "op_device": str,
    "op_namescope": lambda: "/",
    "op_role": lambda: OpRole.Forward,
    "op_role_var": list,
}
"""Attributes that every operator has, and the factories of their defaults."""

_CONV = "conv2d depthwise_conv2d"
_CONV3 = f"{_CONV} conv3d"
_FUSED = f"{_CONV3} conv2d_transpose depthwise_conv2d_transpose"
_FUNCTIONS = (
    "abs ceil cos exp floor gelu log log1p logsigmoid reciprocal relu round rsqrt sigmoid sin softplus softsign sqrt "
    "square tanh tanh_shrink"
)
_TREES = "hierarchical_sigmoid nce"

_VALUES: list[tuple[str, Any, str]] = [
    (
        "use_mkldnn",
        False,
        f"{_FUNCTIONS} {_FUSED} addmm batch_norm concat conv3d_transpose gaussian_random leaky_relu lrn matmul mul "
        "pool2d pool3d softmax sum swish transpose transpose2",
    ),
    ("use_cudnn", False, _FUNCTIONS),
    ("use_quantizer", False, f"{_CONV} concat matmul pool2d reshape2 transpose transpose2"),
    ("fuse_relu_before_depthwise_conv fuse_brelu", False, _CONV),
    ("fuse_brelu_threshold", 6.0, _CONV),
    ("Scale_in Scale_in_eltwise", 1.0, _CONV),
    ("Scale_weights", [1.0], _CONV),
    ("Scale_out", 1.0, f"{_CONV} matmul"),
    ("fuse_residual_connection exhaustive_search", False, _CONV3),
    ("fuse_relu", False, _FUSED),
    ("fuse_activation", "", _FUSED),
    ("fuse_alpha fuse_beta", 0.0, _FUSED),
    ("workspace_size_MB", 512, f"{_FUSED} conv3d_transpose"),
    ("is_test", False, "conv2d_transpose depthwise_conv2d_transpose"),
    ("force_fp32_output", False, f"{_CONV3} matmul mul"),
    ("fused_reshape_Out fused_transpose_Out", [], "matmul"),
    ("Scale_x Scale_y", 1.0, "matmul"),
    ("head_number", 1, "matmul"),
    ("scale_x scale_out", 1.0, "mul"),
    ("scale_y", [1.0], "mul"),
    ("trainer_id", 0, _TREES),
    ("height_sections epmap table_names", [], _TREES),
]


@cache
def tuning(op_type: str) -> dict[str, Any]:
    """The attributes of this kind that operators of a type have, with their values; not to be changed.

    Gradient operators have those of the operators that they belong to.
    """
    op_type = op_type.removesuffix("_grad").removesuffix("_grad")
    return {name: value for names, value, ops in _VALUES if op_type in ops.split() for name in names.split()}
