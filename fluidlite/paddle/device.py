"""The device that computes (`paddle.device`): the CPU."""

from __future__ import annotations

from ..base.place import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    Place,
    is_compiled_with_cuda,
    resolve,
)

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
    """Choose where tensors live: 'cpu', or 'gpu:0' where there is one (`paddle.set_device`).

    Returns the place that will be used: without a usable GPU the CPU, with a warning. Raises ValueError for another
    name.
    """
    kind, _, number = device.partition(":")
    if kind == "cpu" and not number:
        return CPUPlace()
    if kind == "gpu" and (not number or number.isdigit()):
        return resolve(CUDAPlace(int(number or 0)))
    raise ValueError(f"the device must be 'cpu', 'gpu' or 'gpu:NUMBER', got {device!r}")


def get_device() -> str:
    """'cpu': eager tensors live there (`paddle.get_device`)."""
    return "cpu"


def get_cudnn_version() -> None:
    """None: there is no cuDNN (`paddle.device.get_cudnn_version`)."""


def is_compiled_with_xpu() -> bool:
    """False (`paddle.is_compiled_with_xpu`)."""
    return False


def is_compiled_with_npu() -> bool:
    """False (`paddle.is_compiled_with_npu`)."""
    return False
