"""Loading CuPy on first use, with clear errors if it cannot be used."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...base.errors import EnforceNotMet


def _folders(packages: Sequence[str]) -> Iterator[str]:
    """Folders in which Python packages (`nvidia.cudnn`, ...) keep shared libraries. None of them is imported."""
    for package in packages:
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:  # its parent package is not installed
            continue
        for place in (spec.submodule_search_locations or ()) if spec is not None else ():
            yield os.path.join(place, "lib")
    yield os.path.join(sys.prefix, "lib")


def open_first(names: Sequence[str], packages: Sequence[str], variable: str) -> ctypes.CDLL:
    """The first of some shared libraries that can be opened.

    Args:
        names: file names, the best first.
        packages: Python packages in whose folder `lib` to look before asking the system's loader.
        variable: an environment variable that may hold the path of the library instead; 0 refuses it.

    Raises OSError that lists the attempts.
    """
    chosen = os.environ.get(variable, "")
    if chosen == "0":
        raise OSError(f"refused by {variable}=0")
    if chosen:
        return ctypes.CDLL(chosen)
    folders = list(_folders(packages))
    placed = (os.path.join(folder, name) for name in names for folder in folders)
    found = [path for path in placed if os.path.isfile(path)]
    problems = []
    for path in (*found, *names):
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            problems.append(str(error))
    raise OSError("; ".join(problems) + f" (set {variable} to its path if it is somewhere else)")


def load_builtins(nvrtc: ctypes.CDLL) -> None:
    """Load the builtins library from NVRTC's folder, because NVRTC opens it by name, without a path."""
    folder = os.path.dirname(nvrtc._name)
    for name in os.listdir(folder) if folder else ():  # the system's loader finds both
        if name.startswith("libnvrtc-builtins.so"):
            ctypes.CDLL(os.path.join(folder, name))


INSTALL = "install it with `pip install 'cupy-cuda12x[ctk]'` (or 'cupy-cuda13x[ctk]', for drivers of CUDA 13)"

array_type: type | None = None
"""`cupy.ndarray` once CuPy is loaded. As long as it is not, no array can be one."""

inherited = False
"""Whether this process is the child of a fork, and its parent had looked for GPUs: CUDA cannot be used here."""

_lock = threading.RLock()
_cupy: Any = None
_count: int | None = None
_problem = ""


def load() -> Any:
    """The module `cupy`; RuntimeError if it is not installed or cannot be imported."""
    global _cupy, array_type
    if _cupy is None:
        with _lock:
            if _cupy is None:
                try:
                    found = importlib.import_module("cupy")
                except ImportError as error:
                    raise RuntimeError(f"CuPy cannot be imported ({error}); {INSTALL}") from error
                array_type = found.ndarray
                _cupy = found
    return _cupy


def special() -> Any:
    """CuPy's special functions (`cupyx.scipy.special`)."""
    load()
    return importlib.import_module("cupyx.scipy.special")


def nccl() -> Any | None:
    """CuPy's binding of NCCL, None if the library cannot be found."""
    load()
    try:
        found = importlib.import_module("cupy.cuda.nccl")
    except ImportError:
        return None
    return found if getattr(found, "available", False) else None


def device_count() -> int:
    """How many GPUs can be used; 0 if CuPy is not installed, or finds no driver or device (see `problem`)."""
    global _count, _problem
    if _count is None:
        with _lock:
            if _count is None:
                _problem, _count = "", 0
                _count = _find()
    return _count


def problem() -> str:
    """The reason why no GPU can be used, for a message; empty if there is one."""
    device_count()
    return _problem


def describe(number: int = 0) -> str:
    """GPU `number`, its driver, and the versions of CUDA and CuPy, in one line.

    Raises RuntimeError if there is no usable GPU.
    """
    if not device_count():
        raise RuntimeError(_problem)
    cupy = load()
    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(number)
    name = properties["name"]
    name = name.decode() if isinstance(name, bytes) else name
    drives, built = _version(runtime.driverGetVersion()), _version(runtime.runtimeGetVersion())
    size = properties["totalGlobalMem"] / 2**30
    return f"{name}, {size:.0f} GiB; driver for CUDA {drives}; CuPy {cupy.__version__} for CUDA {built}"


def _find() -> int:
    global _problem
    if importlib.util.find_spec("cupy") is None:
        _problem = f"CuPy is not installed: {INSTALL}"
        return 0
    try:
        cupy = load()
        runtime = cupy.cuda.runtime
    except (RuntimeError, AttributeError) as error:
        _problem = str(error)
        return 0
    try:
        count = int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError as error:
        _problem = f"CuPy {cupy.__version__} finds no usable GPU ({error}){_driver_advice(runtime)}"
        return 0
    if not count:
        _problem = f"CuPy {cupy.__version__} finds no GPU"
        return 0
    _problem = _compiler_problem(cupy)
    return 0 if _problem else count


def _compiler_problem(cupy: Any) -> str:
    """The reason why CUDA C cannot be compiled, for a message; empty if it can.

    CuPy 13 does not look for NVRTC in Python packages, but takes one that the process has loaded.
    """
    nvrtc = cupy.cuda.nvrtc
    failures = (ImportError, OSError, RuntimeError)
    try:
        nvrtc.getVersion()
        return ""
    except failures as error:
        reason = error
    major = int(cupy.cuda.runtime.runtimeGetVersion()) // 1000
    try:
        packages = ["nvidia.cuda_nvrtc", f"nvidia.cu{major}"]
        load_builtins(open_first([f"libnvrtc.so.{major}"], packages, "FLUIDLITE_NVRTC"))
        nvrtc.getVersion()
        return ""
    except failures:
        return (
            f"CuPy {cupy.__version__} finds a GPU, but not NVRTC, the compiler for its kernels ({reason}): install "
            f"NVIDIA's CUDA toolkit, or its parts with `pip install 'cupy-cuda{major}x[ctk]'`"
        )


def _driver_advice(runtime: Any) -> str:
    """Advice for a missing driver, or one older than the CUDA of CuPy; else empty."""
    try:
        has, wants = int(runtime.driverGetVersion()), int(runtime.runtimeGetVersion())
    except runtime.CUDARuntimeError:
        return ""
    if not has:
        return ": no NVIDIA driver is installed"
    if has < wants:
        return (
            f": the driver is for CUDA {_version(has)}, CuPy was built for CUDA {_version(wants)}; update the "
            "driver or install the CuPy for its version"
        )
    return ""


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def refuse_inherited() -> None:
    """Raise RuntimeError if CUDA cannot be used because this process was forked from one that used it."""
    if inherited:
        raise RuntimeError(
            "GPUs cannot be used in this process: it was forked from one that had used CUDA. Start processes with "
            "multiprocessing.set_start_method('spawn'), or fork them before the first use of a GPU"
        )


def _forked() -> None:
    global _lock, inherited
    _lock = threading.RLock()
    inherited = inherited or _cupy is not None


os.register_at_fork(after_in_child=_forked)


def forget() -> None:
    """Reset the search for CuPy and GPUs, which is repeated on next use."""
    global _cupy, _count, _problem, array_type
    with _lock:
        _cupy = array_type = _count = None
        _problem = ""
        for reset in _resets:
            reset()


_resets: list[Any] = []


def on_forget(reset: Any) -> Any:
    """Decorator: have `reset` called by `forget`, to drop cached objects of CuPy."""
    _resets.append(reset)
    return reset


@contextmanager
def errors(what: str) -> Iterator[None]:
    """Context: raise errors of CuPy and CUDA as MemoryError or EnforceNotMet with `what` was going on."""
    cupy = load()
    try:
        yield
    except cupy.cuda.memory.OutOfMemoryError as error:
        free, total = cupy.cuda.runtime.memGetInfo()
        raise MemoryError(
            f"{what}: {str(error).rstrip('.')}; the GPU has {free / 2**20:.0f} of {total / 2**20:.0f} MiB free. Use "
            "smaller batches, or free what other programs hold"
        ) from error
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
        raise EnforceNotMet(f"{what}: CUDA reports {error}") from error
    except cupy.cuda.compiler.CompileException as error:
        raise EnforceNotMet(f"{what}: a CUDA kernel could not be compiled: {error}") from error
