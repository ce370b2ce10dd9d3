"""Constants of kernels are copied to a device once, and belong to the graph when one is recorded."""

import numpy as np

from fluidlite.backend import functions
from fluidlite.backend.cupy_.device import device
from fluidlite.backend.cupy_.recording import Recording
from fluidlite.backend.functions import constant


def table(n, dtype):
    return np.arange(n, dtype=dtype)


def both(n):
    return np.arange(n), np.ones(n, bool)


def test_numpy_gets_them_as_they_are():
    np.testing.assert_array_equal(constant(np, table, 3, "int64"), [0, 1, 2])


def test_they_are_made_once(cuda):
    gpu = device(0)
    with gpu.active():
        first = constant(gpu.xp, table, 3, "float32")
        assert constant(gpu.xp, table, 3, "float32") is first
        assert constant(gpu.xp, table, 4, "float32") is not first
        numbers, flags = constant(gpu.xp, both, 2)
    np.testing.assert_array_equal(gpu.get(first), np.float32([0, 1, 2]))
    np.testing.assert_array_equal(gpu.get(numbers), [0, 1])
    np.testing.assert_array_equal(gpu.get(flags), [True, True])


def test_only_so_many_are_kept(cuda, monkeypatch):
    monkeypatch.setattr(functions, "LIMIT", 2)
    gpu = device(0)
    with gpu.active():
        first, second = (constant(gpu.xp, table, n, "int32") for n in (1, 2))
        assert constant(gpu.xp, table, 1, "int32") is first
        constant(gpu.xp, table, 3, "int32")
        assert constant(gpu.xp, table, 1, "int32") is first
        assert constant(gpu.xp, table, 2, "int32") is not second


def test_a_graph_has_its_own(cuda):
    gpu = device(0)
    out = gpu.put(np.zeros(3, "float32"))
    with gpu.active():
        kept = constant(gpu.xp, table, 3, "float32")
        made = []

        def work():
            made.append(constant(gpu.xp, table, 3, "float32"))
            out[...] = made[0]

        graph = Recording(gpu, work, gpu.xp.cuda.Stream(non_blocking=True))
        assert made[0] is not kept
        graph.launch()
    np.testing.assert_array_equal(gpu.get(out), [0, 1, 2])
