"""Putting the simulated `cupy` where `import cupy` finds it, and taking it out again."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np

from . import (
    array,
    capture,
    devices,
    dlpack,
    errors,
    functions,
    kernels,
    memory,
    methods,
    nccl,
    pools,
    runtime,
    streams,
    ufuncs,
)  # fmt: skip
from .api import API
from .cublas import FakeCublas, patched
from .machine import Machine, Options, machine, set_machine

_hidden: dict[str, ModuleType] = {}


class Simulation:
    """What tests see of a simulation."""

    def __init__(self, made: Machine) -> None:
        self.machine = made
        self.counters = made.counters
        self.cupy = sys.modules["cupy"]
        self.cublas: FakeCublas | None = None


def _loaded() -> list[str]:
    """The modules of CuPy's packages that are imported now, real or simulated."""
    packages = ("cupy", "cupyx", "cupy_backends")
    return [name for name in sys.modules if name.startswith("cupy") and name.partition(".")[0] in packages]


def install(**options: Any) -> Simulation:
    """Simulate a machine from now on.

    Args:
        devices: number of devices.
        memory, pinned: bytes of each device, and of page-locked host memory.
        cupy_version: what `cupy.__version__` says; the rules for NumPy scalars go by it.
        driver_version, runtime_version: as the runtime gives them (12080 is 12.8).
        driver_too_old, no_driver: have every call fail as without a usable driver.
        seed: let queues advance at random moments instead of as late as possible.
        nccl: whether NCCL is installed.
        compute_capability: of all devices, such as "90".
        late: have array functions, too, read their operands only when their stream gets there. It takes twice as long;
            the environment variable SIMULATED_CUDA_LATE=1 makes it the default.
    """
    if set_machine(made := Machine(Options(**options))) is not None:
        raise RuntimeError("a machine is simulated already")
    for name in _loaded():
        _hidden[name] = sys.modules.pop(name)
    methods.attach()
    pools.allocators.reset()
    for name, module in modules(made.options).items():
        sys.modules[name] = module
    forget()
    return Simulation(made)


def uninstall() -> None:
    """Simulate no machine any more."""
    made = machine()
    try:
        forget()
    finally:
        for name in _loaded():
            del sys.modules[name]
        sys.modules.update(_hidden)
        _hidden.clear()
        with made.lock:
            for queue in made.queues.values():
                queue.entries.clear()
                queue.parts.clear()
                queue.executed = queue.issued
        set_machine(None)


def forget() -> None:
    """Have the package look for CuPy again, and let go of devices that it has kept with what ran on them."""
    library = sys.modules.get("fluidlite.backend.cupy_.library")
    if library is not None:
        library.forget()
    dispatch = sys.modules.get("fluidlite.eager.dispatch")
    if dispatch is not None:
        dispatch._forms.clear()


@contextmanager
def simulated(**options: Any) -> Iterator[Simulation]:
    """Simulate a machine for a while; options as for `install`."""
    found = install(**options)
    try:
        with patched() as found.cublas:
            yield found
    finally:
        uninstall()


def modules(options: Options) -> dict[str, ModuleType]:
    """The modules of the simulated packages, by name."""
    made: dict[str, ModuleType] = {}

    def module(name: str, **content: Any) -> ModuleType:
        new = made[name] = ModuleType(name)
        new.__spec__ = ModuleSpec(name, None)
        new.__spec__ = ModuleSpec(name, None)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(made[parent], last, new)
        if name in ("cupy", "cupy.cuda", "cupyx", "cupyx.scipy", "cupy.lib", "cupy._core"):
            new.__path__ = []
        vars(new).update(content)
        return new

    module("cupy", **namespace_of_cupy(options))
    module("cupy.linalg", LinAlgError=np.linalg.LinAlgError, **functions.namespace("linalg"))
    module("cupy.lib")
    module("cupy.lib.stride_tricks", **functions.namespace("lib.stride_tricks"))
    module("cupy._core")
    module("cupy._core.core", ndarray=array.ndarray)
    module("cupy.cuda", **namespace_of_cuda())
    constants = {name: value for name, value in runtime.CONSTANTS.items() if name in API["cuda.runtime"]}
    calls = {name: value for name, value in vars(runtime).items() if name in API["cuda.runtime"]}
    module("cupy.cuda.runtime", **constants, **calls)
    module("cupy.cuda.driver", CUDADriverError=errors.CUDADriverError)
    module("cupy.cuda.compiler", CompileException=errors.CompileException)
    module("cupy.cuda.nvrtc", getVersion=lambda: divmod(options.runtime_version // 10, 100))
    module("cupy.cuda.device", Device=devices.Device)
    module("cupy.cuda.graph", Graph=capture.Graph)
    stream_names = ("Stream", "ExternalStream", "Event", "get_current_stream", "get_elapsed_time")
    module("cupy.cuda.stream", **{name: getattr(streams, name) for name in stream_names})
    module(
        "cupy.cuda.memory",
        **{
            name: value
            for name, value in {**vars(memory), **vars(pools)}.items()
            if name in API["cuda.memory"]
        },
    )
    pinned = ("PinnedMemory", "PinnedMemoryPointer", "PinnedMemoryPool", "alloc_pinned_memory")
    module("cupy.cuda.pinned_memory", **{name: getattr(pools, name) for name in pinned})
    made["cupy.cuda.pinned_memory"].is_memory_pinned = lambda pointer: machine().is_pinned(pointer)
    if options.nccl:
        module("cupy.cuda.nccl", available=True, **nccl.NAMES)
    module("cupyx", **functions.cupyx())
    module("cupyx.scipy")
    module("cupyx.scipy.special", **functions.special())
    return made


def namespace_of_cupy(options: Options) -> dict[str, Any]:
    """What `import cupy` gives."""
    values = {name: getattr(np, name.lower(), None) for name in API["values"] if name in vars(np)}
    types = {name: getattr(np, name) for name in API["types"] if name in vars(np)}
    return {
        "__version__": options.cupy_version,
        **values,
        **types,
        **functions.namespace(),
        "newaxis": None,
        "ndarray": array.ndarray,
        "ufunc": ufuncs.ufunc,
        "RawModule": kernels.RawModule,
        "RawKernel": kernels.RawKernel,
        "from_dlpack": dlpack.from_dlpack,
        "get_default_memory_pool": lambda: pools.allocators.pool,
        "get_default_pinned_memory_pool": lambda: pools.allocators.pinned_pool,
        "is_available": devices.is_available,
    }


def namespace_of_cuda() -> dict[str, Any]:
    """What `cupy.cuda` has."""
    found = {}
    for source in (devices, streams, memory, pools, capture):
        found.update({name: value for name, value in vars(source).items() if name in API["cuda"]})
    return found
