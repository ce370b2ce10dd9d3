"""Memory pools: device memory kept per stream, and page-locked host memory.

As in the real pools, a block that is given back can be had again at once, but only on the stream it came from: work of
that stream is ordered, work of other streams is not. Fresh blocks hold garbage.
"""

import ctypes
import functools
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import errors, streams
from .capture import forbid_in_capture
from .errors import CUDARuntimeError, OutOfMemoryError
from .machine import ALIGNMENT, LOCK, Region, machine
from .memory import BaseMemory, Memory, MemoryPointer, mark


def rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class PooledMemory(BaseMemory):
    """A block of a pool, which goes back there when nobody holds it."""

    def __init__(self, block: BaseMemory, key: tuple[int, int], pool: "MemoryPool", guarded: int) -> None:
        self.ptr, self.size, self.device_id = block.ptr, block.size, block.device_id
        self.guarded = guarded
        self._block, self._key, self._pool = block, key, weakref.ref(pool)

    def free(self) -> None:
        """Give the block back now."""
        pool = self._pool()
        if pool is not None and self.ptr:
            pool._give_back(self._block, self._key)
        self.ptr = 0

    def __del__(self) -> None:
        if getattr(self, "ptr", 0):
            self.free()


class MemoryPool:
    """Blocks of device memory, kept per device and stream."""

    def __init__(self, allocator: Callable[[int], MemoryPointer] | None = None) -> None:
        self._allocator = allocator or (lambda size: MemoryPointer(Memory(size), 0))
        self._free: dict[tuple[int, int], dict[int, list[BaseMemory]]] = defaultdict(
            lambda: defaultdict(list)
        )
        # Held here as well: the collector ends all objects of a cycle, and a block must outlive the array on it.
        self._blocks: dict[int, BaseMemory] = {}
        self._used: dict[int, int] = defaultdict(int)
        self._limit: dict[int, int] = defaultdict(int)

    def malloc(self, size: int) -> MemoryPointer:
        """A block for the current stream.

        Raises:
            OutOfMemoryError: the device, or the pool's limit, has no room.
        """
        m = machine()
        m.check_driver()
        if size == 0:
            return MemoryPointer(Memory(0), 0)
        whole, queue = rounded(size), streams.current_queue()
        key = (m.device, queue.pointer)
        with LOCK:
            free = self._free[key][whole]
            block = free.pop() if free else self._fresh(size, whole)
            self._blocks[block.ptr] = block
            self._used[m.device] += block.size
        region = m.devices[m.device]
        pointer = block.ptr
        if queue.capture is None and pointer in region:
            # Garbage, when the stream gets there: work that is queued may still read what was here.
            streams.push(queue, lambda: _garbage(region, pointer, size, whole))
        # Nothing is written while a graph is captured, so that the guard stays where the whole block ends.
        guarded = size if queue.capture is None else whole
        return MemoryPointer(PooledMemory(block, key, self, guarded), 0)

    def _fresh(self, size: int, whole: int) -> BaseMemory:
        m = machine()
        limit = self._limit[m.device]
        if limit and self.total_bytes() + whole > limit:
            self.free_all_blocks()
            if self.total_bytes() + whole > limit:
                raise OutOfMemoryError(size, self.total_bytes(), limit)
        try:
            return self._allocator(whole).mem
        except CUDARuntimeError as e:
            if e.status != errors.NO_MEMORY:
                raise
        self.free_all_blocks()
        try:
            return self._allocator(whole).mem
        except CUDARuntimeError as e:
            if e.status != errors.NO_MEMORY:
                raise
            raise OutOfMemoryError(size, self.total_bytes(), limit) from None

    def _give_back(self, block: BaseMemory, key: tuple[int, int]) -> None:
        with LOCK:
            self._free[key][block.size].append(block)
            self._used[key[0]] -= block.size

    def free_all_blocks(self, stream: Any = None) -> None:
        """Give what nobody uses back to the device: of a stream, by default of all."""
        device = machine().device
        for key, sizes in list(self._free.items()):
            if key[0] == device and stream in (None, *((stream,) if stream and key[1] == stream.ptr else ())):
                if any(sizes.values()):
                    forbid_in_capture("cudaFree")
                for block in [block for blocks in sizes.values() for block in blocks]:
                    self._blocks.pop(block.ptr, None)
                sizes.clear()

    def n_free_blocks(self) -> int:
        """Number of unused blocks of the current device."""
        device = machine().device
        return sum(
            len(blocks) for key, sizes in self._free.items() if key[0] == device for blocks in sizes.values()
        )

    def used_bytes(self) -> int:
        """Bytes in use on the current device."""
        return self._used[machine().device]

    def free_bytes(self) -> int:
        """Bytes kept for later on the current device."""
        device = machine().device
        return sum(
            size * len(blocks)
            for key, sizes in self._free.items()
            if key[0] == device
            for size, blocks in sizes.items()
        )

    def total_bytes(self) -> int:
        """Bytes in use and kept for later on the current device."""
        return self.used_bytes() + self.free_bytes()

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Have the pool take no more than some bytes, or part of the device; 0 is no limit."""
        if (size is None) == (fraction is None):
            if size is not None:
                raise ValueError("size and fraction cannot be specified at one time")
            size = 0
        m = machine()
        self._limit[m.device] = int(m.options.memory * fraction) if fraction is not None else int(size or 0)

    def get_limit(self) -> int:
        """The limit of the current device."""
        return self._limit[machine().device]


def _garbage(region: Region, pointer: int, size: int, whole: int) -> None:
    if region.blocks.get(pointer) == whole:
        mark(region, pointer, whole)
        region.raw(pointer + size, whole - size)[...] = 0xAB


class PinnedMemory:
    """A block of page-locked host memory."""

    def __init__(self, size: int, flags: int = 0) -> None:
        m = machine()
        m.check_driver()
        forbid_in_capture("cudaHostAlloc")
        self.size, self.ptr, self._machine = size, 0, m
        if size:
            with m.lock:
                pointer = m.pinned.allocate(size)
            if pointer is None:
                raise CUDARuntimeError(errors.NO_MEMORY)
            m.counters.host_mallocs += 1
            mark(m.pinned, pointer, size)
            self.ptr = pointer

    def __int__(self) -> int:
        return self.ptr

    def __del__(self) -> None:
        if getattr(self, "ptr", 0):
            m = self._machine
            with m.lock:
                for queue in list(m.queues.values()):
                    if queue.capture is None and not queue.busy:
                        queue.drain()
                m.pinned.release(self.ptr)


class PooledPinnedMemory:
    """A block of a pinned pool."""

    def __init__(self, block: PinnedMemory, pool: "PinnedMemoryPool") -> None:
        self.ptr, self.size, self._block, self._pool = block.ptr, block.size, block, weakref.ref(pool)

    def free(self) -> None:
        """Give the block back now."""
        pool = self._pool()
        if pool is not None and self.ptr:
            with LOCK:
                pool._free[self.size].append(self._block)
        self.ptr = 0

    def __del__(self) -> None:
        self.free()


class PinnedMemoryPointer:
    """An address in page-locked memory, and a buffer of what is there."""

    ptr: int
    mem: Any

    def __new__(cls, mem: Any, offset: int) -> "PinnedMemoryPointer":
        m = machine()
        size = mem.size - offset
        if not mem.ptr:
            self = _buffer_class(0)()
        else:
            self = _buffer_class(size).from_buffer(m.pinned.map, mem.ptr + offset - m.pinned.start)
        self.ptr, self.mem = mem.ptr + offset, mem
        return self

    def __init__(self, *_: Any) -> None:
        pass  # the bytes of a block stay as they are

    def size(self) -> int:
        """Bytes up to the end of the block."""
        return self.mem.size - (self.ptr - self.mem.ptr)

    def __int__(self) -> int:
        return self.ptr

    def __add__(self, offset: int) -> "PinnedMemoryPointer":
        return PinnedMemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)

    __radd__ = __add__

    def __sub__(self, offset: int) -> "PinnedMemoryPointer":
        return self + -offset


@functools.cache
def _buffer_class(size: int) -> Any:
    """A pointer class whose objects are buffers of some bytes, which before Python 3.12 only ctypes can make."""
    body = {"_type_": ctypes.c_uint8, "_length_": size, "__new__": ctypes.Array.__new__}
    return type(ctypes.Array)("PinnedMemoryPointer", (PinnedMemoryPointer, ctypes.Array), body)


class PinnedMemoryPool:
    """Blocks of page-locked memory. What is given back can be had again at once, also while copies still read it."""

    def __init__(self, allocator: Callable[[int], PinnedMemoryPointer] | None = None) -> None:
        self._allocator = allocator or (lambda size: PinnedMemoryPointer(PinnedMemory(size), 0))
        self._free: dict[int, list[Any]] = defaultdict(list)

    def malloc(self, size: int) -> PinnedMemoryPointer:
        """At least `size` bytes."""
        machine().check_driver()
        if size == 0:
            return PinnedMemoryPointer(PinnedMemory(0), 0)
        with LOCK:
            free = self._free[rounded(size)]
            block = free.pop() if free else self._allocator(rounded(size)).mem
        return PinnedMemoryPointer(PooledPinnedMemory(block, self), 0)

    def free_all_blocks(self) -> None:
        """Give what nobody uses back to the system."""
        self._free.clear()

    def n_free_blocks(self) -> int:
        """Number of unused blocks."""
        return sum(map(len, self._free.values()))


class Allocators:
    """The allocators of a process; `reset` makes new pools for a new machine."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Fresh default pools."""
        self.pool, self.pinned_pool = MemoryPool(), PinnedMemoryPool()
        self.device: Callable[[int], MemoryPointer] = self.pool.malloc
        self.pinned: Callable[[int], PinnedMemoryPointer] = self.pinned_pool.malloc


allocators = Allocators()


def get_allocator() -> Callable[[int], MemoryPointer]:
    """The allocator of device memory in use: of this thread, or else of all."""
    stack = getattr(machine().local, "allocators", None)
    return stack[-1] if stack else allocators.device


def set_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> None:
    """Use another allocator for device memory everywhere; `None` allocates without a pool."""
    if getattr(machine().local, "allocators", None):
        raise ValueError("Can't change the global allocator inside `using_allocator` context manager")
    allocators.device = allocator or (lambda size: MemoryPointer(Memory(size), 0))


@contextmanager
def using_allocator(allocator: Callable[[int], MemoryPointer] | None = None) -> Iterator[None]:
    """Use another allocator in this thread for a while."""
    local = machine().local
    stack = local.allocators = getattr(local, "allocators", None) or []
    stack.append(allocator or (lambda size: MemoryPointer(Memory(size), 0)))
    try:
        yield
    finally:
        stack.pop()


def alloc_pinned_memory(size: int) -> PinnedMemoryPointer:
    """Page-locked host memory from the allocator in use."""
    machine().check_driver()
    return allocators.pinned(size)


def set_pinned_memory_allocator(allocator: Callable[[int], PinnedMemoryPointer] | None = None) -> None:
    """Use another allocator for page-locked memory; `None` allocates without a pool."""
    allocators.pinned = allocator or (lambda size: PinnedMemoryPointer(PinnedMemory(size), 0))
