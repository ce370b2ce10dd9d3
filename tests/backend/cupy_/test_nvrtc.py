"""The CUDA C of the package is accepted by NVIDIA's own compiler, where there is one; no GPU is needed."""

import ctypes
import pathlib
from importlib import util

import pytest

from fluidlite.backend.cupy_ import launch
from fluidlite.backend.cupy_.launchers import elementwise
from fluidlite.backend.cupy_.launchers.elementwise import Chain, Step
from fluidlite.backend.cupy_.library import load_builtins

FILES = sorted(path.stem for path in pathlib.Path(launch.__file__).with_name("cuda").glob("*.cu"))
MACROS = {"rows": ["RATE"], "updates": ["RATE"]}
"""Further macros that must be defined, as element types."""
NAMES = ("libnvrtc.so.13", "libnvrtc.so.12")


def libraries() -> list[pathlib.Path | str]:
    """NVRTC where CuPy's wheels put it; else what the system's loader may find."""
    spec = util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec is not None else None
    found = [
        path
        for name in NAMES
        for folder in folders or ()
        for path in pathlib.Path(folder).glob(f"*/lib/{name}")
    ]
    return [*found, *NAMES]


@pytest.fixture(scope="module")
def nvrtc() -> ctypes.CDLL:
    for path in libraries():
        try:
            found = ctypes.CDLL(str(path))
        except OSError:
            continue
        load_builtins(found)
        return found
    pytest.skip("there is no NVRTC here")


def messages(nvrtc: ctypes.CDLL, source: str, types: list[str]) -> str:
    """The compiler's log for a source, after "failed" if it does not compile."""
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"source", 0, None, None) == 0
    options = [b"-std=c++17", b"--gpu-architecture=sm_90", *(f"-D{each}".encode() for each in types)]
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return "failed: " * bool(status) + log.value.decode()


@pytest.mark.parametrize("scalar", ["float", "double"])
@pytest.mark.parametrize("name", FILES)
def test_it_compiles_without_warnings(nvrtc, name, scalar):
    types = [f"{macro}={scalar}" for macro in ["SCALAR", *MACROS.get(name, ())]]
    assert not messages(nvrtc, launch.source(name), types)


@pytest.mark.parametrize("scalar", ["float", "double"])
def test_chains_compile_without_warnings(nvrtc, scalar):
    steps = (Step("sub_of_both", (0, 1)), Step("gelu_slope", (None, 2), 3), Step("floor_of", (3,), 3))
    source = elementwise.source(Chain((False, True), (*steps, Step("scaled", (4,), 3)), (3, 5)))
    assert not messages(nvrtc, source, [f"SCALAR={scalar}"])
