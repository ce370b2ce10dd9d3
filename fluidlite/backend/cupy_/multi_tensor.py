"""Multi-tensor apply: one launch for many arrays, for clipping gradients by their global norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import launch
from .launchers.updates import tickets

if TYPE_CHECKING:
    from .device import CudaDevice

ENTRIES = 96
"""The number of arrays that one launch takes."""

_SHARE = 8192
_TABLE = np.dtype([("words", np.uint64, (4 * ENTRIES + 1,))])


def _table(sources: Sequence[Any], targets: Sequence[Any]) -> tuple[np.ndarray, int]:
    """The `Table` of `many.cu`, and the number of blocks. It is passed by value, so nothing is uploaded."""
    words: list[int] = []
    blocks = 0
    for source, target in zip(sources, targets, strict=True):
        words += [source.data.ptr, 0 if target is None else target.data.ptr, source.size, blocks]
        blocks += max(1, -(-source.size // _SHARE))
    table = np.zeros((), _TABLE)
    table["words"][: len(words)] = words
    table["words"][-1] = len(sources)
    return table, blocks


def sums_of_squares(device: CudaDevice, arrays: Sequence[Any]) -> list[Any]:
    """The sum of the squares of each array, as arrays of one element. All are float32, or all float64."""
    found: list[Any] = []
    for start in range(0, len(arrays), ENTRIES):
        some = [launch.dense(device, array) for array in arrays[start : start + ENTRIES]]
        table, blocks = _table(some, [None] * len(some))
        out, part = (device.xp.empty((count,), some[0].dtype) for count in (len(some), blocks))
        args = (table, part, out, tickets(device))
        launch.grid("many", "sums_of_squares", out.dtype, blocks, launch.THREADS, *args)
        found += [out[k : k + 1] for k in range(len(some))]
    return found


def scaled(device: CudaDevice, arrays: Sequence[Any], factor: Any) -> list[Any]:
    """Each array times the one element of `factor`. All are of one type, float32 or float64."""
    found: list[Any] = []
    for start in range(0, len(arrays), ENTRIES):
        some = [launch.dense(device, array) for array in arrays[start : start + ENTRIES]]
        made = [device.xp.empty(array.shape, array.dtype) for array in some]
        table, blocks = _table(some, made)
        launch.grid("many", "scaled", factor.dtype, blocks, launch.THREADS, table, factor)
        found += made
    return found
