"""Messages for users when no GPU can be used, or not the requested one."""

import importlib
import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.backend.cupy_ import library
from fluidlite.backend.cupy_.device import device

from ...simulated_cuda import simulated


@pytest.fixture
def afresh():
    """Looks for CuPy again, before and after."""
    library.forget()
    yield
    library.forget()


def test_without_cupy(afresh, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "cupy" else found(name))
    assert library.device_count() == 0
    assert "not installed" in library.problem() and "pip install 'cupy-cuda12x[ctk]'" in library.problem()
    with pytest.raises(RuntimeError, match="not installed"):
        library.describe()


def test_cupy_that_cannot_be_imported(afresh, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    taken = importlib.import_module

    def broken(name, *more):
        if name == "cupy":
            raise ImportError("libcudart.so is missing")
        return taken(name, *more)

    monkeypatch.setattr(importlib, "import_module", broken)
    assert library.device_count() == 0
    assert "libcudart.so is missing" in library.problem() and "pip install" in library.problem()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"no_driver": True}, "no NVIDIA driver is installed"),
        (
            {"driver_too_old": True},
            "the driver is for CUDA 11.4, CuPy was built for CUDA 12.9; update the driver",
        ),
        ({"devices": 0}, "finds no"),
    ],
)
def test_machines_without_a_usable_gpu(options, words):
    with simulated(**options):
        assert library.device_count() == 0
        assert words in library.problem()


def test_the_first_line_of_a_report():
    with simulated(driver_version=13000, runtime_version=12090):
        assert "driver for CUDA 13.0; CuPy" in library.describe()
        assert library.describe().endswith("for CUDA 12.9")


def _without_compiler(sim, monkeypatch, folder, loadable):
    """Have NVRTC missing until a library named like it is opened, which works if `loadable`; gives the names tried."""
    tried = []

    def version():
        if not (tried and loadable):
            raise RuntimeError("CuPy failed to load libnvrtc.so.12: cannot open shared object file")
        return 12, 9

    def opened(names, packages, variable):
        tried.extend([*names, *packages, variable])
        if not loadable:
            raise OSError("no such file")
        return SimpleNamespace(_name=str(folder / names[0]))

    monkeypatch.setattr(sim.cupy.cuda.nvrtc, "getVersion", version)
    monkeypatch.setattr(library, "open_first", opened)
    return tried


def test_without_the_compiler(simulation, monkeypatch, tmp_path):
    _without_compiler(simulation, monkeypatch, tmp_path, loadable=False)
    assert library.device_count() == 0
    assert "not NVRTC" in library.problem() and "pip install 'cupy-cuda12x[ctk]'" in library.problem()


def test_the_compiler_of_a_python_package_is_loaded(simulation, monkeypatch, tmp_path):
    tried = _without_compiler(simulation, monkeypatch, tmp_path, loadable=True)
    (tmp_path / "libnvrtc-builtins.so.12.9").touch()
    opened = []
    monkeypatch.setattr(library.ctypes, "CDLL", opened.append)
    assert library.device_count() == 1 and not library.problem()
    assert tried[:2] == ["libnvrtc.so.12", "nvidia.cuda_nvrtc"]
    assert opened == [
        str(tmp_path / "libnvrtc-builtins.so.12.9")
    ]  # which NVRTC looks for by name when it compiles


def test_a_gpu_that_is_not_there(simulation, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    with pytest.raises(
        ValueError, match=r"CUDAPlace\(1\) does not exist: there is CUDAPlace\(0\), as CUDA_VIS"
    ):
        fluid.Executor(fluid.CUDAPlace(1))
    monkeypatch.setenv("FLAGS_selected_gpus", "3")
    with pytest.raises(ValueError, match=r"got '3'; there is CUDAPlace\(0\)"):
        fluid.cuda_places()


def test_several_gpus(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with simulated(devices=2):
        with pytest.raises(
            ValueError, match=r"\(7\) does not exist: there are CUDAPlace\(0\) to CUDAPlace\(1\)"
        ):
            fluid.Executor(fluid.CUDAPlace(7))
        with pytest.raises(ValueError, match=r"CUDAPlace\(2\) does not exist"):
            fluid.create_lod_tensor(np.ones((3, 1), "float32"), [[3]], fluid.CUDAPlace(2))


def test_a_full_gpu():
    with simulated(memory=64 << 20):
        gpu = device(0)
        with pytest.raises(
            MemoryError, match=r"allocating memory on GPU 0: .*[^.]; the GPU has .* MiB free\. Use smaller"
        ):
            gpu.empty((1 << 30,), "float32")
