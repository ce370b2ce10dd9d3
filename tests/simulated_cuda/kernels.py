"""`RawModule` and `RawKernel`: CUDA C++ that runs on the CPU when its stream gets there."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import calls, errors, streams
from .compiler import Compiled, compile_module, scheduler
from .errors import CUDADriverError, CUDARuntimeError
from .machine import Machine, Region, machine
from .memory import MemoryPointer, check_guard, guard

STATIC_SHARED, MOST_SHARED = 48 * 1024, 227 * 1024
MOST_THREADS, MOST_BLOCKS = (1024, 1024, 64), (2**31 - 1, 65535, 65535)


class RawModule:
    """CUDA C++ source that is compiled when first needed."""

    def __init__(
        self,
        code: str | None = None,
        *,
        path: str | None = None,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Sequence[str] | None = None,
        jitify: bool | None = None,
    ) -> None:
        if code is None or path is not None:
            raise TypeError("only source code is simulated: give `code`")
        if not isinstance(code, str):
            raise TypeError(f"Expected str for code, got {type(code).__name__}")
        if not isinstance(options, tuple):
            raise TypeError(
                f"Argument 'options' has incorrect type (expected tuple, got {type(options).__name__})"
            )
        if backend not in ("nvrtc", "nvcc"):
            raise ValueError(f"backend must be either 'nvrtc' or 'nvcc', not {backend!r}")
        if jitify or enable_cooperative_groups or translate_cucomplex:
            raise NotImplementedError("jitify, cooperative groups and cuComplex are not simulated")
        if name_expressions is not None and not any(each.startswith(("-std=", "--std=")) for each in options):
            raise ValueError("need to specify C++ standard for compiling template code")
        self.code, self.options, self.backend, self.file_path = code, options, backend, None
        self.name_expressions = tuple(name_expressions or ())
        self._functions: dict[str, RawKernel] = {}

    def compile(self, log_stream: Any = None) -> None:
        """Compile now."""
        machine().check_driver()
        self._compiled()

    def _compiled(self) -> Compiled:
        return compile_module(self.code, self.options, self.name_expressions)

    def get_function(self, name: str) -> "RawKernel":
        """A kernel by name: declared extern "C", or one of `name_expressions`."""
        machine().check_driver()
        if name not in self._functions:
            compiled = self._compiled()
            if name not in compiled.kernels:
                raise CUDADriverError(500, f"{name}: the kernels are {', '.join(compiled.kernels) or 'none'}")
            self._functions[name] = RawKernel._of(compiled, name)
        return self._functions[name]

    def get_global(self, name: str) -> MemoryPointer:
        raise NotImplementedError("global variables of modules are not simulated")


class RawKernel:
    """A kernel, called as `kernel(grid, block, arguments)`."""

    def __init__(
        self,
        code: str,
        name: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        *,
        enable_cooperative_groups: bool = False,
        jitify: bool = False,
    ) -> None:
        self.code, self.name, self.options, self.backend = code, name, options, backend
        self._compiled: Compiled | None = None
        self._limit = STATIC_SHARED
        self._plan: Any = None

    @classmethod
    def _of(cls, compiled: Compiled, name: str) -> "RawKernel":
        self = object.__new__(cls)
        self.code, self.name, self.options, self.backend = "", name, (), "nvrtc"
        self._compiled, self._limit, self._plan = compiled, STATIC_SHARED, None
        return self

    def compile(self, log_stream: Any = None) -> None:
        """Compile now."""
        self._ready()

    def _ready(self) -> Compiled:
        machine().check_driver()
        if self._compiled is None:
            found = compile_module(self.code, self.options, ())
            if self.name not in found.kernels:
                raise CUDADriverError(
                    500, f"{self.name}: the kernels are {', '.join(found.kernels) or 'none'}"
                )
            self._compiled = found
        if self._plan is None:
            found = self._compiled
            self._plan = found.parameters(self.name), found.entry(self.name), found.kernels[self.name][1]
        return self._compiled

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """How much dynamic shared memory a launch may ask for."""
        return self._limit

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, value: int) -> None:
        if value + self._ready().shared_size > MOST_SHARED:
            raise CUDADriverError(1, f"{value} bytes of dynamic shared memory")
        self._limit = value

    @property
    def attributes(self) -> dict[str, int]:
        """What the driver knows of the kernel."""
        compiled = self._ready()
        return {
            "max_threads_per_block": self._plan[2] or 1024,
            "shared_size_bytes": compiled.shared_size,
            "const_size_bytes": 0,
            "local_size_bytes": 0,
            "num_regs": 32,
            "max_dynamic_shared_size_bytes": self._limit,
        }

    max_threads_per_block = property(lambda self: self.attributes["max_threads_per_block"])
    shared_size_bytes = property(lambda self: self.attributes["shared_size_bytes"])
    num_regs = property(lambda self: 32)

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
        stream: Any = None,
        enable_cooperative_groups: bool = False,
    ) -> None:
        compiled = self._ready()
        for what, value in (("grid", grid), ("block", block)):
            if not isinstance(value, tuple):
                raise TypeError(
                    f"Argument '{what}' has incorrect type (expected tuple, got {type(value).__name__})"
                )
        grids, blocks = _three(grid), _three(block)
        self._check_sizes(grids, blocks, shared_mem, compiled)
        parameters, entry, _ = self._plan
        if len(args) != len(parameters):
            raise CUDADriverError(1, f"{self.name} has {len(parameters)} parameters, got {len(args)}")
        packed = [_packed(self.name, i, value, *parameters[i]) for i, value in enumerate(args)]
        m = machine()
        queue = (stream or streams.get_current_stream())._queue
        if queue.device != m.device:
            raise CUDARuntimeError(
                errors.INVALID_HANDLE, "the stream is of another device than the current one"
            )
        blocks_used = []
        for i, value in enumerate(args):
            if calls.is_array(value) and value.size:
                if value.data.device_id != m.device:
                    text = f"{self.name}: argument {i} is memory of device {value.data.device_id}, run on {m.device}"
                    raise CUDARuntimeError(errors.ILLEGAL_ADDRESS, text)
                mem = value.data.mem
                blocks_used.append((value.data.ptr, mem.ptr, getattr(mem, "guarded", None)))
        m.counters.launches += 1
        m.counters.kernels[self.name] += 1
        region, name = m.devices[m.device], self.name

        def work() -> None:
            for pointer, base, guarded in blocks_used:
                if region.block_of(base if guarded is not None else pointer) is None:
                    raise CUDARuntimeError(errors.ILLEGAL_ADDRESS, f"{name} uses memory that was freed")
            sizes = {base: guarded for _, base, guarded in blocks_used if guarded is not None}
            before = {base: guard(region, base, size).copy() for base, size in sizes.items()}
            memory = _accessible(m, region, sizes)
            _launch(
                name, entry, compiled, packed, grids, blocks, shared_mem, memory, m.random.getrandbits(32)
            )
            for base, size in sizes.items():
                check_guard(region, base, size, before[base], name)

        streams.push(queue, work)

    def _check_sizes(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, compiled: Compiled
    ) -> None:
        most = self._plan[2] or 1024
        threads = block[0] * block[1] * block[2]
        if any(not 0 < n <= limit for n, limit in zip(grid, MOST_BLOCKS, strict=True)):
            raise CUDADriverError(1, f"{self.name}: grid {grid}")
        if any(not 0 < n <= limit for n, limit in zip(block, MOST_THREADS, strict=True)) or threads > most:
            raise CUDADriverError(1, f"{self.name}: block {block}, at most {most} threads")
        if shared < 0 or shared > self._limit or shared + compiled.shared_size > MOST_SHARED:
            raise CUDADriverError(1, f"{self.name}: {shared} bytes of shared memory, at most {self._limit}")


def _three(size: tuple[int, ...]) -> tuple[int, int, int]:
    found = (*(int(n) for n in size), 1, 1)[: max(3, len(size))]
    if len(found) != 3:
        raise CUDADriverError(1, f"grid or block of {len(size)} dimensions")
    return found  # type: ignore[return-value]


def _packed(kernel: str, number: int, value: Any, kind: str, size: int) -> bytes:
    """The bytes of an argument, which must be what the parameter takes; on a device the others would be garbage."""
    expected = {"p": "a pointer", "f": f"a float of {size} bytes", "i": f"an integer of {size} bytes"}.get(
        kind, f"a struct of {size} bytes"
    )

    def wrong() -> TypeError:
        shown = value.dtype if isinstance(value, (np.generic, np.ndarray)) else type(value).__name__
        return TypeError(f"{kernel}: parameter {number} is {expected}, the argument is {shown}")

    if value is None:
        found, given = bytes(8), "p"
    elif calls.is_array(value):
        found, given = value.data.ptr.to_bytes(8, "little"), "p"
    elif isinstance(value, MemoryPointer):
        found, given = value.ptr.to_bytes(8, "little"), "p"
    elif isinstance(value, bool):
        found, given = bytes([value]), "i"
    elif isinstance(value, int):
        found, given = value.to_bytes(8, "little", signed=value < 0), "ip"
        if kind == "i" and size < 8 and -(1 << 8 * size - 1) <= value < 1 << 8 * size:
            found = found[:size]  # the lower bytes come first
    elif isinstance(value, float):
        found, given = np.float64(value).tobytes(), "f"
    elif isinstance(value, (np.generic, np.ndarray)):
        if isinstance(value, np.ndarray) and value.size != 1:
            raise TypeError(f"Unsupported type {type(value)}")
        found = value.tobytes()
        given = {"f": "f", "b": "i", "i": "ip", "u": "ip", "c": "s", "V": "s"}.get(value.dtype.kind, "")
    else:
        raise TypeError(f"Unsupported type {type(value)}")
    if kind not in given or len(found) != size:
        raise wrong()
    return found


def _accessible(m: Machine, region: Region, sizes: dict[int, int]) -> np.ndarray:
    """Begin and end of the blocks that a kernel may touch: of its device, and page-locked ones of the host."""
    found = region.bounds().copy()
    for start, size in sizes.items():
        found[np.searchsorted(found[:, 0], np.uint64(start)), 1] = start + size
    host = [(start, start + size) for start, size in (*m.pinned.blocks.items(), *m.registered.items())]
    if not host:
        return found
    found = np.concatenate([found, np.array(host, np.uint64)])
    return found[found[:, 0].argsort()]


def _launch(
    name: str, entry: int, compiled: Compiled, packed: list[bytes], grid: Sequence[int], block: Sequence[int],
    shared: int, memory: np.ndarray, seed: int,
) -> None:  # fmt: skip
    """Run all threads of a launch now."""
    values = [ctypes.create_string_buffer(each + bytes(16), len(each) + 16) for each in packed]
    pointers = (ctypes.c_void_p * (len(values) + 1))(*(ctypes.addressof(each) for each in values))
    sizes = [(ctypes.c_uint * 3)(*each) for each in (grid, block)]
    module = (ctypes.c_size_t * 2)(*compiled.memory)
    problem = scheduler().sim_launch(
        entry, pointers, sizes[0], sizes[1], shared, seed, compiled.shared, compiled.shared_size,
        memory.ctypes.data, len(memory), module,
    )  # fmt: skip
    if problem is not None:
        raise CUDARuntimeError(errors.LAUNCH_FAILURE, f"{name}: {problem.decode()}")


for _class in (RawModule, RawKernel):
    _class.__module__ = "cupy"
