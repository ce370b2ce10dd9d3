"""Fixtures for all tests."""

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import fluidlite
from fluidlite.base import unique_name
from fluidlite.executor import Scope, scope_guard
from fluidlite.framework import Program, program_guard

# No test asks the network for data sets, neither in this process nor in those it starts.
os.environ["FLUIDLITE_OFFLINE"] = "1"
os.environ.pop("FLUIDLITE_DATA", None)


def pytest_collection_finish() -> None:
    """Have the collector pass over what is there for good (modules, tests): many fixtures collect after each test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Have SIGINT interrupt, also where the shell that started the tests in the background made it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
