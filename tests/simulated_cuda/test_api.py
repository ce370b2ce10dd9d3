"""The simulated CuPy has nothing that CuPy 13 and 14 do not both have."""

import inspect
import sys

import pytest

from . import simulated
from .api import API, signature

CLASSES = [
    "ndarray", "RawModule", "RawKernel", "cuda.Stream", "cuda.Event", "cuda.Device", "cuda.MemoryPool",
    "cuda.MemoryPointer", "cuda.PinnedMemoryPool", "cuda.PinnedMemoryPointer", "cuda.Graph",
]  # fmt: skip


def public(kind):
    return [name for name in dir(kind) if not name.startswith("_")]


@pytest.mark.parametrize("path", CLASSES)
def test_methods(path):
    with simulated() as sim:
        kind = sim.cupy
        for part in path.split("."):
            kind = getattr(kind, part)
        assert set(public(kind)) <= set(API[path])
        for name in public(kind):
            function, recorded = getattr(kind, name), signature(API[path][name])
            if recorded is None or not inspect.isfunction(function):
                continue
            own = list(inspect.signature(function).parameters.values())[1:]
            if all(p.kind is not p.VAR_POSITIONAL for p in own):
                assert {p.name for p in own} <= set(recorded.parameters), name


def test_functions_of_the_runtime():
    with simulated() as sim:
        runtime = sim.cupy.cuda.runtime
        assert set(public(runtime)) <= set(API["cuda.runtime"])
        for name in public(runtime):
            recorded = API["cuda.runtime.parameters"].get(name)
            if recorded is not None and inspect.isfunction(getattr(runtime, name)):
                assert list(inspect.signature(getattr(runtime, name)).parameters) == [
                    p[0] for p in recorded
                ], name


@pytest.mark.parametrize("module", ["linalg", "cupyx", "lib.stride_tricks", "special", "cuda", "cuda.memory"])
def test_modules(module):
    name = {"cupyx": "cupyx", "special": "cupyx.scipy.special"}.get(module, f"cupy.{module}")
    with simulated(nccl=False):
        here = set(public(sys.modules[name]))
    modules = {
        each.rpartition(".")[2] for each in ("stream", "runtime", "driver", "device", "graph", "compiler")
    }
    assert here - modules - {"memory", "pinned_memory", "scipy", "LinAlgError"} <= set(API[module])


def test_functions():
    with simulated() as sim:
        known = {*API["functions"], *API["ufuncs"], *API["values"], *API["types"]}
        rest = {"cuda", "linalg", "lib", "random", "newaxis", "ndarray", "ufunc", "RawModule", "RawKernel"}
        assert set(public(sim.cupy)) - rest <= known
