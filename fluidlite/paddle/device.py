"""The device where tensors are made (`paddle.device`)."""

from __future__ import annotations

from .. import backend
from ..base.place import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    Place,
    as_place,
    is_compiled_with_cuda,
    resolve,
)
from ..framework import mode

__all__ = [
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "get_cudnn_version",
    "get_device",
    "is_compiled_with_cuda",
    "is_compiled_with_npu",
    "is_compiled_with_xpu",
    "set_device",
]


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
