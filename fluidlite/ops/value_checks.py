"""Checks of elements, such as class labels and row numbers in range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backend import device_of
from ..backend.cupy_ import faults
from ..base.errors import OperatorError, out_of_range


def require_in_range(
    xp: Any, op_type: str, slot: str, ids: Any, bound: int, what: str, ignore: int | None = None
) -> None:
    """Raise OperatorError unless every element of `ids` is in [0, bound) or equal to `ignore`.

    `what`: the name of the things that `bound` counts ("classes", "rows of W"). The error names operator, slot, value
    and position. On a GPU the check is asynchronous: `faults.raise_pending` raises the error.
    """
    device = device_of(ids)
    if device is not None:
        faults.check(device, op_type, slot, ids, bound, what, ignore)
        return
    bad = (ids < 0) | (ids >= bound)
    if ignore is not None:
        bad = bad & (ids != ignore)
    if not bool(bad.any()):
        return
    position = int(xp.argmax(bad.ravel()))
    raise out_of_range(op_type, slot, bound, what, ignore, int(ids.ravel()[position]), position)


def forbid(bad: Any, message: str, more: Callable[[], str] = str) -> None:
    """Raise OperatorError(message) if any element of `bad`, an array of booleans, is true.

    `more()`: an addition to the message, where it can be computed at once. On a GPU the check is asynchronous.
    """
    device = device_of(bad)
    if device is not None:
        faults.forbid(device, bad, message)
    elif bool(bad.any()):
        raise OperatorError(message + more())
