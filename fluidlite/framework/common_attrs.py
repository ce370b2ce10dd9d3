"""Attributes that operators have beside those of their declarations: roles, devices, scopes of names, tuning.

Tuning attributes of Fluid's kernels, such as `use_mkldnn`, have no effect here: operators have them with these
defaults. Saved programs carry them on gradient operators; for all others Fluid fills them in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ..base.context import Slot
from . import mode


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


_device: Slot[str | None] = Slot("op_device", None)


def current_device() -> str | None:
    """The `op_device` of operators built now; None outside of `device_guard`."""
    return _device.get()


def switch_device(device: str | None) -> str | None:
    """Name another device; returns the one named before (`fluid.framework.switch_device`)."""
    before = _device.get()
    _device.set(device)
    return before


@contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """Set `op_device` ('cpu' or 'gpu') of the operators built inside the block (`fluid.device_guard`).

    They run where the executor's place says, all in one place; saved programs keep the note. Raises ValueError for
    another name.
    """
    if device not in ("cpu", "gpu", "", None):
        raise ValueError(
            "The Attr(device) should be 'cpu' or 'gpu', and it can also be empty string or None when there is no need "
            f"to specify device. But received {device}"
        )
    with _device.hold(device):
        yield


class NameScope:
    """A scope of names; children of the same prefix are numbered (`fluid.framework.NameScope`)."""

    def __init__(self, name: str = "", parent: NameScope | None = None) -> None:
        self._children: Counter[str] = Counter()
        self._name = name
        self._parent = parent

    def child(self, prefix: str) -> NameScope:
        """A new scope inside this one: `prefix`, `prefix_1`, ..."""
        known = self._children[prefix]
        self._children[prefix] += 1
        return NameScope(f"{prefix}_{known}" if known else prefix, self)

    def parent(self) -> NameScope | None:
        return self._parent

    def name(self) -> str:
        return self._name


_scope: Slot[NameScope] = Slot("name_scope", NameScope())


@contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Set the name scope of the operators built inside the block (`fluid.name_scope`).

    It is called `prefix`; the second one of that name in the same place `prefix_1`, and so on. Has no effect on eager
    operators. Raises AssertionError without a prefix, while a program is built.
    """
    if mode.in_dygraph_mode():
        yield
        return
    if not prefix:
        raise AssertionError("namescope prefix can not be empty: give name_scope a name")
    with _scope.hold(_scope.get().child(prefix)):
        yield


def _full_name_scope() -> str:
    """The scopes of names that hold now, as operators note them: '/a/b/'."""
    path, scope = "/", _scope.get()
    while (parent := scope.parent()) is not None:
        path, scope = f"/{scope.name()}{path}", parent
    return path
