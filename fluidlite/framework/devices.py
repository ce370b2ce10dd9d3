"""`fluid.device_guard`: the device that programs name for operators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..base.context import Slot

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
