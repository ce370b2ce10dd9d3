"""The simulated machine: its devices, their memory, its pinned host memory, options and counters.

There is one machine at a time, `machine()`. Device memory is a range of host memory per device, so that device
pointers are addresses that C code compiled for the host can use; which device a pointer belongs to is known from the
range it lies in.
"""

import bisect
import gc
import mmap
import os
import random
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import errors
from .errors import CUDARuntimeError

GUARD = 0xAB  # the value of bytes that nobody may write
UNWRITTEN = 0xFF  # the value of bytes that nobody has written: NaN as a float, -1 as an integer
ALIGNMENT = 512
GUARD_BYTES = 512
MAP_NORESERVE = 0x4000


@dataclass
class Options:
    """How the machine is made up; see `simulated`."""

    devices: int = 1
    memory: int = 1 << 30
    pinned: int = 1 << 30
    cupy_version: str = "13.6.0"
    driver_version: int = 12080
    runtime_version: int = 12090
    driver_too_old: bool = False
    no_driver: bool = False
    seed: int | None = int(os.environ["SIMULATED_CUDA_SEED"]) if "SIMULATED_CUDA_SEED" in os.environ else None
    nccl: bool = True
    compute_capability: str = "90"
    late: bool = os.environ.get("SIMULATED_CUDA_LATE") == "1"


@dataclass
class Counters:
    """What was done so far: calls by kind, bytes copied by kind ("h2d", "d2h", "d2d", "h2h")."""

    launches: int = 0
    array_calls: int = 0
    graph_launches: int = 0
    captures: int = 0
    syncs: int = 0
    mallocs: int = 0
    host_mallocs: int = 0
    copies: Counter = field(default_factory=Counter)
    bytes: Counter = field(default_factory=Counter)
    kernels: Counter = field(default_factory=Counter)

    def reset(self) -> None:
        """Count from zero again."""
        self.__init__()  # type: ignore[misc]


class Region:
    """A range of addresses with first-fit allocation; blocks are aligned and surrounded by guard bytes."""

    def __init__(self, size: int, what: str) -> None:
        self.what = what
        self.size = size
        # Reserved address space is not memory: pages come into being when they are touched.
        self.map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
        self.bytes = np.frombuffer(self.map, np.uint8)
        self.start = self.bytes.ctypes.data
        first = -self.start % ALIGNMENT
        self.holes: list[tuple[int, int]] = [(self.start + first, size - first)]
        self.blocks: dict[int, int] = {}
        self.used = 0
        self._bounds: np.ndarray | None = None

    def __contains__(self, pointer: int) -> bool:
        return self.start <= pointer < self.start + self.size

    def allocate(self, size: int, limit: int | None = None) -> int | None:
        """The address of `size` fresh bytes, or `None` when there is no room."""
        whole = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT + GUARD_BYTES
        if limit is not None and self.used + size > limit:
            return None
        for i, (start, free) in enumerate(self.holes):
            if free >= whole:
                self.holes[i : i + 1] = [(start + whole, free - whole)] if free > whole else []
                self.blocks[start] = size
                self.used += size
                self._bounds = None
                return start
        return None

    def release(self, start: int) -> None:
        size = self.blocks.pop(start)
        self.used -= size
        self._bounds = None
        whole = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT + GUARD_BYTES
        i = bisect.bisect(self.holes, (start, 0))
        if i < len(self.holes) and self.holes[i][0] == start + whole:
            whole += self.holes.pop(i)[1]
        if i and sum(self.holes[i - 1]) == start:
            i -= 1
            start, before = self.holes.pop(i)
            whole += before
        self.holes.insert(i, (start, whole))

    def block_of(self, pointer: int) -> tuple[int, int] | None:
        """(start, size) of the live block that holds an address."""
        whole = self.blocks.get(pointer)
        if whole is not None:
            return pointer, whole
        for start, size in self.blocks.copy().items():  # one step: finalizers and other threads may free some
            if start <= pointer < start + max(size, 1):
                return start, size
        return None

    def bounds(self) -> np.ndarray:
        """Begin and end of each live block, by address; call it with the machine's lock."""
        if self._bounds is None:
            bounds = [(start, start + size) for start, size in sorted(self.blocks.items())]
            self._bounds = np.array(bounds, np.uint64).reshape(-1, 2)
        return self._bounds

    def view(
        self, pointer: int, shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None
    ) -> np.ndarray:
        return np.ndarray(
            tuple(shape), dtype, self.bytes, pointer - self.start, None if strides is None else tuple(strides)
        )

    def raw(self, pointer: int, size: int) -> np.ndarray:
        offset = pointer - self.start
        return self.bytes[offset : offset + size]


class Lock:
    """A lock that a thread may take several times; no garbage is collected meanwhile, as in CuPy's pools.

    Finalizers give memory back, for which queued work must be done: none may run in the middle of that, or of a change.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._collects = False

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1:
            self._collects = gc.isenabled()
            gc.disable()

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._collects:
            gc.enable()
        self._lock.release()


LOCK = Lock()


class Machine:
    """Devices and host of a simulation. `lock` is held by whoever changes anything."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.counters = Counters()
        self.lock = LOCK
        # More addresses than memory: guards and fragmentation are not part of a device's size.
        self.devices = [Region(options.memory * 2 + (1 << 26), f"device {i}") for i in range(options.devices)]
        self.pinned = Region(options.pinned, "pinned memory")
        self.registered: dict[int, int] = {}
        self.queues: dict[Any, Any] = {}
        self.captures: list[Any] = []
        self.advancing = False
        self.random = random.Random(options.seed if options.seed is not None else 1)
        self.local = threading.local()
        self.peers: set[tuple[int, int]] = set()

    @property
    def device(self) -> int:
        """The current device of this thread."""
        return getattr(self.local, "device", 0)

    @device.setter
    def device(self, index: int) -> None:
        self.local.device = index

    def check_driver(self) -> None:
        """Raise what every call raises on a machine without a usable driver."""
        if self.options.driver_too_old or self.options.no_driver:
            raise CUDARuntimeError(errors.INSUFFICIENT_DRIVER)
        if not self.devices:
            raise CUDARuntimeError(errors.NO_DEVICE)
        if getattr(self.local, "in_callback", False):
            raise CUDARuntimeError(errors.NOT_PERMITTED, "a host function may not call CUDA")

    def device_of(self, pointer: int) -> int | None:
        """The device whose memory an address is in, or `None`."""
        for i, region in enumerate(self.devices):
            if pointer in region:
                return i
        return None

    def is_pinned(self, pointer: int) -> bool:
        """Whether an address is in page-locked host memory."""
        if pointer in self.pinned:
            return True
        return any(start <= pointer < start + size for start, size in self.registered.items())


_current: Machine | None = None


def machine() -> Machine:
    """The machine that is simulated now."""
    if _current is None:
        raise RuntimeError("no CUDA is simulated at the moment: use it within `with simulated():`")
    return _current


def is_simulated() -> bool:
    """Whether a machine is simulated now; otherwise `cupy` is the real one."""
    return _current is not None


def set_machine(new: Machine | None) -> Machine | None:
    """Simulate another machine, or none; returns the one before."""
    global _current
    before, _current = _current, new
    return before
