"""Different elements, shards, equality within limits, random orders, and factors of matrices."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

MATRIX = np.array([[4, 1, 0.5], [1, 3, -0.5], [0.5, -0.5, 2]], "float32")


@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_unique(dtype):
    x = np.array([3, 1, 3, 2, 1], dtype)
    outputs = {"Out": np.array([3, 1, 2], dtype), "Index": np.array([0, 1, 0, 2, 1], "int32")}
    check("unique", {"X": x}, {}, outputs)
    outputs = {**outputs, "Index": outputs["Index"].astype("int64"), "Count": np.array([2, 2, 1])}
    check("unique_with_counts", {"X": x}, {"dtype": 3}, outputs)
    with pytest.raises(OperatorError, match="X must be a vector"):
        infer("unique", {"X": x.reshape(1, 5)})


def test_shard_index():
    attrs = {"index_num": 20, "nshards": 2, "shard_id": 1}
    x, expected = np.array([[1], [12], [19], [3]]), np.array([[-1], [2], [9], [-1]])
    check("shard_index", {"X": x}, attrs, {"Out": expected})
    with pytest.raises(OperatorError, match="shard_id in \\[0, nshards\\)"):
        infer("shard_index", {"X": x}, {**attrs, "shard_id": 2})


def test_allclose():
    x = np.array([1.0, np.nan], "float32")
    assert run_kernel("allclose", {"Input": x, "Other": x})["Out"][0].tolist() == [False]
    check("allclose", {"Input": x, "Other": x}, {"equal_nan": True}, {"Out": np.array([True])})
    check("allclose", {"Input": x[:1], "Other": x[:1] + 1e-3}, {"atol": 1e-2}, {"Out": np.array([True])})


def test_randperm():
    # Recorded from Paddle 1.8.5.
    check("randperm", {}, {"n": 7, "seed": 3}, {"Out": np.array([6, 2, 0, 5, 3, 1, 4])})
    first, second = (run_kernel("randperm", {}, {"n": 200, "dtype": 2})["Out"][0] for _ in range(2))
    assert (first != second).any() and first.dtype == "int32"
    np.testing.assert_array_equal(np.sort(first), np.arange(200))
    with pytest.raises(OperatorError, match="n must be positive, got 0"):
        infer("randperm", {}, {"n": 0})


def test_sampling_id():
    rows = np.abs(np.linspace(-1, 1, 6).reshape(2, 3)).astype("float32") / 1.8
    # Recorded from Paddle 1.8.5.
    check("sampling_id", {"X": rows}, {"seed": 2}, {"Out": np.array([0, 1])})
    many = np.tile(np.array([0.25, 0.75], "float32"), (4000, 1))
    assert abs(run_kernel("sampling_id", {"X": many}, {"seed": 5})["Out"][0].mean() - 0.75) < 0.02


@pytest.mark.parametrize("batch", [(), (2,)])
def test_inverse(batch):
    x = np.broadcast_to(MATRIX + np.eye(3, k=1), (*batch, 3, 3)).astype("float32")
    check("inverse", {"Input": x}, {}, {"Output": np.linalg.inv(x)}, grads=["Input"])
    with pytest.raises(OperatorError, match="it is singular"):
        run_kernel("inverse", {"Input": x * 0})


@pytest.mark.parametrize("upper", [True, False])
def test_cholesky(upper):
    low = np.linalg.cholesky(MATRIX)
    expected = np.ascontiguousarray(low.T) if upper else low
    check("cholesky", {"X": MATRIX}, {"upper": upper}, {"Out": expected})
    with pytest.raises(OperatorError, match="symmetric and positive definite"):
        run_kernel("cholesky", {"X": -MATRIX}, {"upper": upper})
    # Only one triangle is read, so that the numbers are moved in pairs to compare with the symmetric gradient.
    weights = np.arange(1.0, 10).reshape(3, 3) / 5
    exact = MATRIX.astype("float64")
    factor = run_kernel("cholesky", {"X": exact}, {"upper": upper})["Out"][0]
    kept = np.triu(weights) if upper else np.tril(weights)
    found = run_kernel("cholesky_grad", {"Out": factor, "Out@GRAD": kept}, {"upper": upper})["X@GRAD"][0]
    for i, j in ((0, 0), (0, 2), (2, 1)):
        step = np.zeros((3, 3))
        step[i, j] = step[j, i] = 1e-6
        sides = [
            (run_kernel("cholesky", {"X": exact + sign * step}, {"upper": upper})["Out"][0] * kept).sum()
            for sign in (1, -1)
        ]
        assert np.isclose((sides[0] - sides[1]) / 2e-6, (found * step).sum() / 1e-6, rtol=1e-6)
