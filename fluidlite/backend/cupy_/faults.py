"""Errors detected by kernels: class and row indices out of range.

A kernel cannot raise. It notes the first number that does not fit, goes on without reading or writing out of range, and
the next synchronization raises the error that the CPU raises (`raise_pending`).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...base.errors import OperatorError, out_of_range
from . import launch, library
from .pools import pinned_array

if TYPE_CHECKING:
    from .device import CudaDevice


class Check(NamedTuple):
    """The arguments of the error; see `errors.out_of_range`."""

    op_type: str
    slot: str
    bound: int
    what: str
    ignore: int | None


_NONE = np.array([0, 2**64 - 1], np.uint64)
"""No code, and a position above all others."""


class _Words:
    """The memory that kernels report to: a `Faults` of common.cuh, whose last word is the address of `seen`."""

    def __init__(self, device: CudaDevice) -> None:
        self.seen = pinned_array((1,), np.int32)
        self.seen[0] = 0
        # Not from the pool of the first program's plan.
        with device.active(), device.xp.cuda.using_allocator(device.xp.get_default_memory_pool().malloc):
            self.array: Any = device.put(np.append(_NONE, np.uint64(self.seen.ctypes.data)))


_lock = threading.Lock()
_words: dict[int, _Words] = {}
_checks: list[Check | str] = []
_codes: dict[Check | str, int] = {}


def mark(
    device: CudaDevice, op_type: str, slot: str, bound: int, what: str, ignore: int | None = None
) -> tuple[Any, np.int64]:
    """The arguments `Faults *faults, i64 code` of a kernel that checks the numbers in `slot`; see `check`."""
    return _mark(device, Check(op_type, slot, bound, what, ignore))


def _mark(device: CudaDevice, found: Check | str) -> tuple[Any, np.int64]:
    words, code = _words.get(device.number), _codes.get(found)
    if words is None or code is None:
        with _lock:
            words = _words.get(device.number)
            if words is None:
                words = _words[device.number] = _Words(device)
            code = _codes.get(found)
            if code is None:
                _checks.append(found)
                code = _codes[found] = len(_checks)
    return words.array, np.int64(code)


def check(
    device: CudaDevice, op_type: str, slot: str, ids: Any, bound: int, what: str, ignore: int | None = None
) -> None:
    """Report a fault unless every element of `ids` (integers or booleans) is in [0, bound) or equal to `ignore`.

    `what` names the things that `bound` counts. Asynchronous.
    """
    if not launch.is_index(ids):
        ids = ids.astype("int64")
    # An ignored index outside the range; -1 is never in range.
    ignored = -1 if ignore is None else ignore
    args = (launch.dense(device, ids), launch.wide(ids), ids.size, bound, ignored, ignore is not None)
    launch.each(
        "faults", "check", "float32", ids.size, *args, *mark(device, op_type, slot, bound, what, ignore)
    )


def forbid(device: CudaDevice, bad: Any, message: str) -> None:
    """Report an OperatorError with this message if any element of `bad` (booleans) is true. Asynchronous."""
    flags = launch.dense(device, bad.astype("int64"))
    launch.each(
        "faults", "check", "float32", bad.size, flags, launch.wide(flags), bad.size, 1, -1, False,
        *_mark(device, message),
    )  # fmt: skip


def raise_pending(device: CudaDevice) -> None:
    """Raise the OperatorError that kernels have reported since the last call, if any, and clear it.

    To be called when all work on the compute stream is done. Without an error it costs one read of host memory.
    """
    words = _words.get(device.number)
    if words is None or not words.seen[0]:
        return
    with _lock:
        code, first, _ = (int(word) for word in device.get(words.array))
        if code:
            device.overwrite(words.array[:2], _NONE)
            device.synchronize()
        words.seen[0] = 0
    if not code:
        return  # another thread was faster
    found = _checks[code - 1]
    if isinstance(found, str):
        raise OperatorError(found)
    op_type, slot, bound, what, ignore = found
    value = int(np.uint32(first & 0xFFFFFFFF).view(np.int32))
    raise out_of_range(op_type, slot, bound, what, ignore, value, first >> 32)


@library.on_forget
def _forget() -> None:
    _words.clear()
