"""Fixtures for all tests."""

import functools
import gc
import os
import random
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import fluidlite
from fluidlite._ext import kernels
from fluidlite.base import seeds, unique_name
from fluidlite.executor import Scope, scope_guard
from fluidlite.framework import Program, program_guard

from .engines import run_by
from .simulated_cuda import simulated

# No test asks the network for data sets, neither in this process nor in those it starts.
os.environ["FLUIDLITE_OFFLINE"] = "1"
os.environ.pop("FLUIDLITE_DATA", None)


@pytest.fixture(scope="module", autouse=True)
def collected_quickly() -> None:
    """Freeze what stays (modules, tests, reports) once it is much: many tests collect garbage, which passes over it."""
    if len(gc.get_objects(generation=2)) > 20_000:
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Have SIGINT interrupt, also where the shell that started the tests in the background made it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def compiled(tmp_path_factory):
    """Keep what started processes compile, also where PYTHONDONTWRITEBYTECODE is set: it is most of what they do."""
    with pytest.MonkeyPatch.context() as patch:
        if sys.dont_write_bytecode:
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("pycache")))
        yield


@pytest.fixture(autouse=True)
def repeatable(request):
    """Have each test see the same random numbers in every run, those of its name: also where it seeds nothing."""
    seed = zlib.crc32(request.node.nodeid.encode())
    np.random.seed(seed)
    random.seed(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seeds, "_unpredictable", random.Random(seed))
        kernels.seeds_from(seed or 1)
        yield
        kernels.seeds_from(0)


@functools.cache
def real_gpu() -> bool:
    """Whether tests run on a real GPU: there is one, or FLUIDLITE_TEST_REAL_GPU=1 says so (0: simulate)."""
    wish = os.environ.get("FLUIDLITE_TEST_REAL_GPU")
    if wish is not None:
        return wish == "1"
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:  # noqa: BLE001  (not installed, no driver, a driver that is too old)
        return False


@pytest.fixture
def cuda():
    """The module `cupy` with at least one device: of a real GPU if there is one, simulated otherwise."""
    if real_gpu():
        import cupy

        yield cupy
        return
    with simulated() as simulation:
        yield simulation.cupy


@pytest.fixture
def simulation():
    """A simulated machine with one device, also where there is a real GPU; see `tests/simulated_cuda`."""
    with simulated() as found:
        yield found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the fixture `cuda`, so that `pytest -m cuda` runs it."""
    for item in items:
        if "cuda" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cuda)


@pytest.fixture
def programs():
    """Fresh main and startup programs (random_seed 90) to build in, with names that count from 0."""
    main, startup = Program(), Program()
    main.random_seed = startup.random_seed = 90
    with program_guard(main, startup), unique_name.guard():
        yield main, startup


@pytest.fixture
def alone():
    """Fresh default programs (random_seed 5), names that count from 0, and a scope of its own."""
    main, startup = Program(), Program()
    main.random_seed = startup.random_seed = 5
    with program_guard(main, startup), unique_name.guard(), scope_guard(Scope()):
        yield


@pytest.fixture(params=["plan", "interpret"])
def engine(request):
    """Both ways of running a program."""
    with run_by(request.param):
        yield request.param


@pytest.fixture
def python(tmp_path):
    """A function that runs the interpreter with some arguments, in an empty folder; returns the finished
    process."""
    root = str(Path(fluidlite.__file__).parents[1])

    def run(*args, text_in=None, timeout=120, env=None):
        return subprocess.run(
            [sys.executable, *map(str, args)],
            input=text_in,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": root, **(env or {})},
        )

    return run
