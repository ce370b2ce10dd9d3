"""Functions that came with Fluid 1.8: their results in programs, names as in Fluid, and what they refuse."""

import numpy as np
import pytest

from fluidlite import layers
from fluidlite.base.place import CPUPlace
from fluidlite.data import data
from fluidlite.executor import Executor, Scope, scope_guard
from tests.refusals import refuses

A = np.linspace(-1, 1, 6).reshape(2, 3).astype("float32")
B = np.cos(3 * A).astype("float32")
CUBE = np.linspace(-1, 1, 12).reshape(2, 2, 3).astype("float32")


def fed(**arrays):
    return [data(name, list(array.shape), str(array.dtype)) for name, array in arrays.items()]


def results(programs, arrays, *wanted):
    with scope_guard(Scope()):
        return Executor(CPUPlace()).run(programs[0], feed=arrays, fetch_list=list(wanted))


CASES = {
    "bmm": (lambda x, y: layers.bmm(x, y), {"x": CUBE, "y": CUBE.transpose(0, 2, 1).copy()}, None),
    "dot": (layers.dot, {"x": A, "y": B}, (A * B).sum(1, keepdims=True)),
    "kron": (layers.kron, {"x": A, "y": B[0]}, np.kron(A, B[0])),
    "cross": (layers.cross, {"x": A, "y": B}, np.cross(A, B)),
    "dist": (lambda x, y: layers.dist(x, y, 1), {"x": A, "y": B}, np.abs(A - B).sum().reshape(1)),
    "addmm": (
        lambda i, x, y: layers.addmm(i, x, y, 2.0, 0.5),
        {"i": A[:, :2].copy(), "x": A, "y": B.T.copy()},
        A[:, :2] / 2 + 2 * A @ B.T,
    ),
    "addcmul": (lambda i, x, y: layers.addcmul(i, x, y, 2.0), {"i": A, "x": A, "y": B}, A + 2 * A * B),
    "clamp": (lambda x: layers.clamp(x, -0.5, 0.5), {"x": A}, np.clip(A, -0.5, 0.5)),
    "clamp_min": (lambda x: layers.clamp(x, min=0.1), {"x": A}, np.maximum(A, np.float32(0.1))),
    "clamp_keeps_infinities": (
        lambda x: layers.clamp(x, min=0.1),
        {"x": A * np.float32(np.inf)},
        np.where(A > 0, np.inf, np.float32(0.1)),
    ),
    "allclose": (layers.allclose, {"x": A, "y": A + 1e-9}, np.array([True])),
    "trace": (
        lambda x: layers.trace(x, 1, -1, -2),
        {"x": CUBE},
        np.trace(CUBE, 1, 1, 2),
    ),  # the offset counts along the later one
    "index_select": (
        lambda x, i: layers.index_select(x, i, 1),
        {"x": A, "i": np.array([2, 0], "int32")},
        A[:, [2, 0]],
    ),
    "index_sample": (
        layers.index_sample,
        {"x": A, "i": np.array([[2], [0]])},
        np.array([[A[0, 2]], [A[1, 0]]]),
    ),
    "diag_embed": (layers.diag_embed, {"x": A}, np.stack([np.diag(row) for row in A])),
    "roll": (lambda x: layers.roll(x, 4), {"x": A}, np.roll(A, 4)),
    "roll_along": (lambda x: layers.roll(x, [1, 2], [0, 1]), {"x": A}, np.roll(A, (1, 2), (0, 1))),
    "tril": (lambda x: layers.tril(x, -1), {"x": A}, np.tril(A, -1)),
    "triu": (layers.triu, {"x": A}, np.triu(A)),
    "t": (layers.t, {"x": A}, A.T),
    "t_of_a_vector": (layers.t, {"x": A[0]}, A[0]),
    "nonzero": (layers.nonzero, {"x": (A > 0).astype("int32")}, np.argwhere(A > 0)),
    "shard_index": (
        lambda x: layers.shard_index(x, 20, 2, 1),
        {"x": np.array([[1], [12]])},
        np.array([[-1], [2]]),
    ),
    "sampling_id": (lambda x: layers.sampling_id(x, seed=2), {"x": np.abs(A) / 1.8}, np.array([0, 1])),
}
CASES["bmm"] = (*CASES["bmm"][:2], CUBE @ CUBE.transpose(0, 2, 1))


@pytest.mark.parametrize("name", CASES)
def test_value(programs, name):
    function, arrays, expected = CASES[name]
    out = function(*fed(**arrays))
    (got,) = results(programs, arrays, out)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    assert got.shape == expected.shape


def test_cos_sim(programs):
    out = layers.cos_sim(*fed(x=A, y=B))
    assert out.name == "cos_sim_0.tmp_0"
    (got,) = results(programs, {"x": A, "y": B}, out)
    np.testing.assert_allclose(got, [[0.620736], [-0.620736]], rtol=1e-5)


def test_several_results(programs):
    x = np.array([3, 1, 3, 2, 1], "float32")
    arrays = {"x": x, "y": A[0]}
    vector, other = fed(**arrays)
    found = [
        *layers.unique_with_counts(vector, "int64"),
        *layers.unique(vector),
        *layers.meshgrid([vector, other]),
    ]
    assert [v.name for v in found[:3]] == [f"unique_with_counts_0.tmp_{k}" for k in range(3)]
    assert [str(v.dtype) for v in found[:3]] == ["VarType.FP32", "VarType.INT64", "VarType.INT64"]
    got = results(programs, arrays, *found)
    expected = [
        [3, 1, 2],
        [0, 1, 0, 2, 1],
        [2, 2, 1],
        [3, 1, 2],
        [0, 1, 0, 2, 1],
        *np.meshgrid(x, A[0], indexing="ij"),
    ]
    for value, want in zip(got, expected, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-6)
    rows, columns = layers.nonzero(fed(z=A)[0], as_tuple=True)
    assert rows.shape == columns.shape == (-1, 1)


def test_randperm(programs):
    out = layers.randperm(7, seed=3)
    assert out.name == "randperm_0.tmp_0" and out.stop_gradient
    (got,) = results(programs, {}, out)
    assert got.tolist() == [6, 2, 0, 5, 3, 1, 4]
    refuses(lambda: layers.randperm(0), ValueError, "'n' of randperm must be positive, got 0")


def test_clamp_without_a_lower_limit_has_0(programs):
    array = np.array([-5, -0.5, 1, np.inf], "float32")
    with pytest.warns(UserWarning, match="clamp without min"):
        out = layers.clamp(*fed(x=array), max=2.0)
    assert out.op.attr("min") == 0.0
    np.testing.assert_array_equal(results(programs, {"x": array}, out)[0], [0, 0, 1, 2])


def test_given_outputs(programs):
    x, y = fed(x=A, y=B)
    out = layers.create_tensor("float32")
    assert layers.kron(x, y, out=out) is out and out.op.type == "kron"
    assert layers.trace(x, out=out) is out and out.op.type == "trace"
    assert layers.clamp(x, 0.0, output=out) is out and out.op.type == "clip"
    limited = layers.clamp(x, min=out, max=2).op
    assert limited.input("Min") == [out.name] and limited.attr("min") == 0.0
    assert limited.attr("max") == 2.0
    assert layers.addcmul(x, x, y, out=out) is out and out.op.type == "assign"


def test_bad_arguments(programs):
    x, cube = fed(x=A, c=CUBE)
    refuses(lambda: layers.clamp(x), ValueError, "either 'min' or 'max' of clamp")
    refuses(lambda: layers.t(cube), ValueError, "'input' of t must have at most 2 dimensions")
    refuses(lambda: layers.meshgrid(x), TypeError, "'input' of meshgrid must be a list or a tuple")
    refuses(lambda: layers.index_select(x, x), TypeError, "data type of 'index' in index_select")
    with pytest.raises(ValueError, match="'shard_id' of shard_index must be in \\[0, 2\\), got 2"):
        layers.shard_index(fed(i=np.array([[1]]))[0], 20, 2, 2)
