"""Modes of Paddle 2.0, and how its functions run operators in the mode of their arguments; the device
(`paddle.device`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np

from .. import backend
from ..base.dtypes import to_numpy, to_vartype
from ..base.place import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    Place,
    as_place,
    is_compiled_with_cuda,
    resolve,
)
from ..eager import Tensor, mixture, placing
from ..fluid import layers
from ..fluid.layer_helper import run_op
from ..framework import Variable, mode

__all__ = [
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "disable_dygraph",
    "disable_static",
    "enable_dygraph",
    "enable_static",
    "get_cudnn_version",
    "get_device",
    "in_dygraph_mode",
    "in_dynamic_mode",
    "is_compiled_with_cuda",
    "is_compiled_with_npu",
    "is_compiled_with_xpu",
    "set_device",
]


def enable_static() -> None:
    """From here on names of Paddle 2.0 build programs, until `disable_static` (`paddle.enable_static`)."""
    mode.switch(False)


def disable_static(place: Place | str | None = None) -> None:
    """From here on names of Paddle 2.0 compute at once, as they do at first (`paddle.disable_static`).

    `place` is accepted: there is one device. What names of `paddle.fluid` do does not change, except after
    `enable_static`, and that layers made outside of `program_guard` compute at once too.
    """
    mode.be_modern()
    if not mode.eager_by_default():
        mode.switch(None)


def in_dynamic_mode() -> bool:
    """Whether names of Paddle 2.0 compute at once (`paddle.in_dynamic_mode`)."""
    return mode.eager_by_default()


in_dygraph_mode = in_dynamic_mode


def enable_dygraph(place: Any = None) -> None:
    """The same as `disable_static` (`paddle.enable_dygraph`)."""
    disable_static(place)


def disable_dygraph() -> None:
    """The same as `enable_static` (`paddle.disable_dygraph`)."""
    enable_static()


Function = TypeVar("Function", bound=Callable[..., Any])


run = functools.partial(run_op, any_type=True)
"""`run_op` for the functions of Paddle 2.0."""


def reshaped(op_type: str, x: Any, attrs: dict[str, Any], name: str | None = None) -> Any:
    """The result of `reshape2`, `squeeze2`, `unsqueeze2` or `transpose2`, whose gradients need to know the shape."""
    return run(op_type, {"X": x}, ("Out", "XShape"), attrs, name, stop_gradient=("XShape",))[0]


def follows(*values: Any) -> bool:
    """Whether a call with these arguments runs eagerly: decided by tensors among them, else by the mode."""
    if mixture(values):
        return True
    flat = [item for value in values for item in (value if isinstance(value, (list, tuple)) else (value,))]
    return mode.eager_by_default() and not any(isinstance(item, Variable) for item in flat)


def in_mode_of(*values: Any) -> AbstractContextManager[bool | None]:
    """A context with the mode that `follows` gives, for layers of Fluid, which use the ambient mode."""
    return mode.guard(follows(*values))


def by_arguments(function: Function) -> Function:
    """`function` of Fluid, run in the mode of its arguments."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with mode.guard(follows(*args, *kwargs.values())):
            return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def constant(value: Any, like: Any, dtype: Any = None) -> Any:
    """An array or number as a tensor of the same mode as the tensor `like`, by default of its type."""
    array = np.ascontiguousarray(value, to_numpy(like.dtype if dtype is None else dtype))
    if isinstance(like, Tensor):
        return Tensor(placing.to_device_of(array if array.ndim else array.reshape(1), like.array))
    with mode.guard(False):
        return layers.assign(array)


def operand(value: Any, like: Any) -> Any:
    """`value` if it is a tensor; a number or array as a constant in the mode of the tensor `like`."""
    return value if isinstance(value, Variable) else constant(value, like)


def as_dtype(x: Any, dtype: Any) -> Any:
    """The tensor `x` converted to `dtype`; itself if it is of that type already, or for None."""
    return x if dtype is None or to_vartype(dtype) == x.dtype else x.astype(dtype)


def axes_of(axis: Any) -> list[int] | None:
    """An axis, several, or None for all, as a list or None."""
    if axis is None:
        return None
    return [int(one) for one in axis] if isinstance(axis, (list, tuple)) else [int(axis)]


def eager_array(x: Any, who: str) -> np.ndarray:
    """The elements of the eager tensor `x`, for the function `who`, whose result shape depends on them.

    Raises TypeError for a Variable of a static program.
    """
    if not isinstance(x, Tensor):
        raise TypeError(
            f"paddle.{who} works on eager tensors only (the shape of its result depends on the elements)"
        )
    return x._on_host


def set_device(device: str) -> Place:
    """Choose where tensors are made from now on: 'cpu', or 'gpu:0' where there is one (`paddle.set_device`).

    Operators compute where their arguments are. Returns the place that will be used: without a usable GPU the CPU,
    with a warning. Raises ValueError for another name, and for a GPU that this machine does not have.
    """
    place = resolve(as_place(device))
    backend.device_at(place)
    mode.set_place(place)
    return place


def get_device() -> str:
    """Where tensors are made: 'cpu' or 'gpu:0', ... (`paddle.get_device`)."""
    place = resolve(mode._current_expected_place())
    return f"gpu:{place.device}" if isinstance(place, CUDAPlace) else "cpu"


def get_cudnn_version() -> None:
    """None: there is no cuDNN (`paddle.device.get_cudnn_version`)."""


def is_compiled_with_xpu() -> bool:
    """False (`paddle.is_compiled_with_xpu`)."""
    return False


def is_compiled_with_npu() -> bool:
    """False (`paddle.is_compiled_with_npu`)."""
    return False
