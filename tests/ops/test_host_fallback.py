"""Operators of a GPU that work on the host."""

import numpy as np
import pytest

from fluidlite import backend
from fluidlite.backend.cupy_.device import device
from fluidlite.backend.cupy_.recording import NotCapturable, Recording
from fluidlite.base.lod import as_lists
from fluidlite.base.selected_rows import SelectedRows
from fluidlite.ops.host_fallback import hosted
from fluidlite.ops.registry import LodArray, OpDef, find


@hosted
def _several(xp, X):
    assert xp is np and all(type(x) is np.ndarray for x in X)
    return [x + 1 for x in X], LodArray(X[0], [[0, 2]]), None, SelectedRows(np.array([3, 1]), X[0], 5)


SEVERAL = OpDef("several", ("X*",), ("Out*", "Lod", "Left", "Rows"), kernel=_several)


def test_everything_goes_to_the_host_and_back(cuda):
    gpu = device(0)
    x = np.ones((2, 3), "float32")
    with gpu.active():
        given = {"X": [gpu.put(x), gpu.put(2 * x)]}
        made, with_lod, left, rows = SEVERAL.call(gpu.xp, given, {}, None, gpu)
    assert all(map(backend.on_device, (*made, with_lod.array, rows.rows, rows.values)))
    np.testing.assert_array_equal(gpu.get(made[1]), 3 * x)
    assert as_lists(with_lod.lod) == [[0, 2]] and left is None and rows.height == 5
    np.testing.assert_array_equal(gpu.get(rows.rows), [3, 1])


def test_sparse_inputs_are_made_dense_there(cuda):
    gpu = device(0)
    sparse = SelectedRows(gpu.put(np.array([1])), gpu.put(np.ones((1, 3), "float32")), 2)
    with gpu.active():
        made, *_ = SEVERAL.call(gpu.xp, {"X": [sparse]}, {}, None, gpu)
    np.testing.assert_array_equal(gpu.get(made[0]), [[1, 1, 1], [2, 2, 2]])


@pytest.mark.parametrize(
    ("op_type", "expected"), [("inverse", True), ("warpctc", True), ("warpctc_grad", False), ("mul", False)]
)
def test_declarations_tell(op_type, expected):
    assert find(op_type).hosted is expected


def test_no_graph_can_have_one(cuda):
    gpu = device(0)
    with gpu.active():
        x = gpu.put(np.eye(3))

        def work():
            find("inverse").call(gpu.xp, {"Input": [x]}, {}, None, gpu)

        with pytest.raises(NotCapturable, match="on the host"):
            Recording(gpu, work, gpu.xp.cuda.Stream(non_blocking=True))
