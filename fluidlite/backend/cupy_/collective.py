"""Adding up and spreading arrays over several GPUs of one process: NCCL through CuPy, or plain copies without it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base import callsite
from ...base.errors import EnforceNotMet
from . import library
from .device import CudaDevice

_NCCL_TYPES = {
    "float16": "NCCL_FLOAT16",
    "float32": "NCCL_FLOAT32",
    "float64": "NCCL_FLOAT64",
    "int32": "NCCL_INT32",
    "int64": "NCCL_INT64",
    "int8": "NCCL_INT8",
    "uint8": "NCCL_UINT8",
}


class Group:
    """Several GPUs that exchange arrays.

    All work is queued on the compute streams of the devices; nothing waits on the host when NCCL is used.
    `uses_nccl` tells whether it is; without it (CuPy finds no libnccl, or NCCL does not start) arrays are summed on
    the first device, with one warning. Raises ValueError for a device that is named twice.
    """

    def __init__(self, devices: Sequence[CudaDevice]) -> None:
        numbers = [device.number for device in devices]
        if len(set(numbers)) < len(numbers):
            raise ValueError(f"each GPU can be in a group once, got {numbers}")
        self.devices = list(devices)
        self._nccl: Any = None
        self._ranks: list[Any] = []
        if len(devices) > 1:
            self._start(numbers)

    def _start(self, numbers: list[int]) -> None:
        with warnings.catch_warnings():
            # CuPy warns about a missing library at import; our own message names the consequence.
            warnings.simplefilter("ignore")
            nccl = library.nccl()
        if nccl is None:
            reason = "CuPy finds no libnccl (pip install nvidia-nccl-cu12 or nvidia-nccl-cu13)"
        else:
            try:
                self._ranks = nccl.NcclCommunicator.initAll(numbers)
            except nccl.NcclError as error:
                reason = f"NCCL does not start: {error}"
            else:
                self._nccl = nccl
                return
        callsite.warn(
            f"{reason}: gradients of {len(numbers)} GPUs are added up on the first one, which is slower",
            RuntimeWarning,
        )

    @property
    def uses_nccl(self) -> bool:
        return self._nccl is not None

    def all_reduce(self, arrays: Sequence[Sequence[Any]]) -> None:
        """Replace each array by the sum over the devices.

        `arrays[k]` are contiguous arrays of device k, of the same shapes and dtypes on all of them.
        """
        if self._by_nccl(
            arrays,
            lambda rank, array, kind, stream: rank.allReduce(
                array.data.ptr, array.data.ptr, array.size, kind, self._nccl.NCCL_SUM, stream
            ),
        ):
            return
        first = self.devices[0]
        for parts in zip(*arrays, strict=True):
            with first.active():
                total = parts[0].copy()
                for part in parts[1:]:
                    total += first.put(part)
            self._overwrite(total, parts)

    def broadcast(self, arrays: Sequence[Sequence[Any]]) -> None:
        """Overwrite the arrays of all devices with those of the first; see `all_reduce`."""
        if self._by_nccl(
            arrays,
            lambda rank, array, kind, stream: rank.broadcast(
                array.data.ptr, array.data.ptr, array.size, kind, 0, stream
            ),
        ):
            return
        for parts in zip(*arrays, strict=True):
            self._overwrite(parts[0], parts)

    def close(self) -> None:
        """Release NCCL's communicators; the group cannot be used afterwards."""
        for rank in self._ranks:
            rank.destroy()
        self._ranks, self._nccl, self.devices = [], None, []

    def _by_nccl(self, arrays: Sequence[Sequence[Any]], call: Any) -> bool:
        """Check the arrays; then have NCCL exchange them by `call`, if it is used and there is more than one device."""
        self._check(arrays)
        if len(self.devices) > 1 and self._nccl is not None:
            self._call_nccl(arrays, call)
            return True
        return len(self.devices) == 1

    def _check(self, arrays: Sequence[Sequence[Any]]) -> None:
        if len(arrays) != len(self.devices):
            raise ValueError(f"expected arrays of {len(self.devices)} devices, got those of {len(arrays)}")
        for parts in zip(*arrays, strict=True):
            kinds = {(part.shape, str(part.dtype)) for part in parts}
            if len(kinds) > 1:
                raise ValueError(f"the devices hold arrays of different shapes or types: {sorted(kinds)}")

    def _overwrite(self, source: Any, targets: Sequence[Any]) -> None:
        for device, target in zip(self.devices, targets, strict=True):
            if target is not source:
                device.overwrite(target, source)

    def _call_nccl(self, arrays: Sequence[Sequence[Any]], call: Any) -> None:
        """One operation on each array of each device, all in one group call: single calls would wait for each other."""
        try:
            self._nccl.groupStart()
            try:
                for device, rank, own in zip(self.devices, self._ranks, arrays, strict=True):
                    with device.active():
                        for array in own:
                            call(rank, array, self._kind(array.dtype), device.compute.ptr)
            finally:
                self._nccl.groupEnd()
        except self._nccl.NcclError as error:
            raise EnforceNotMet(f"NCCL fails between {len(self.devices)} GPUs: {error}") from error

    def _kind(self, dtype: np.dtype) -> int:
        name = _NCCL_TYPES.get(str(dtype))
        if name is None:
            raise TypeError(
                f"arrays of {dtype} cannot be exchanged between GPUs; NCCL takes {list(_NCCL_TYPES)}"
            )
        return int(getattr(self._nccl, name))
