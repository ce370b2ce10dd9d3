"""Rows of tables, the largest elements, accuracy and layer normalisation on the GPU."""

import numpy as np
import pytest

from .agreement import agree, launched, on_gpu, rand, refused

pytestmark = pytest.mark.usefixtures("cuda")


@pytest.mark.parametrize("op_type", ["lookup_table", "lookup_table_v2"])
@pytest.mark.parametrize("padding", [-1, 2])
def test_lookup(op_type, padding):
    ids = np.array([[3], [0], [2], [3], [6]])
    for dtype in ("int64", "int32"):
        for width in (1, 5, 300):
            table = rand(7, width)
            given = {"W": table, "Ids": ids.astype(dtype)}
            (out,) = agree(op_type, given, padding_idx=padding)
            given["Out@GRAD"] = rand(*out.shape, seed=1)
            agree(op_type + "_grad", given, padding_idx=padding, times=5)


def test_a_table_in_double_and_no_ids():
    agree("lookup_table_v2", {"W": rand(4, 3, dtype="float64"), "Ids": np.zeros((2, 3), "int64")})
    (out,) = launched("lookup_table_v2", on_gpu({"W": rand(4, 3), "Ids": np.zeros(0, "int64")}))
    assert out.shape == (0, 3)


def test_sparse_gradients_are_no_arrays():
    given = {"W": rand(4, 3), "Ids": np.zeros((2, 1), "int64"), "Out@GRAD": rand(2, 3)}
    assert refused("lookup_table_grad", given, is_sparse=True)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_one_hot(dtype):
    agree("one_hot", {"X": np.array([[3], [0]], dtype)}, depth=5)
    agree("one_hot_v2", {"X": np.array([[3, 1], [0, 2]], dtype)}, depth=4)
    agree("one_hot", {"X": np.array([[3], [-1], [7]], dtype)}, depth=5, allow_out_of_range=True)


@pytest.mark.parametrize("shape", [(1, 1), (4, 10), (2, 3, 40), (2, 2000)])
def test_top_k(shape):
    for k in sorted({1, min(5, shape[-1])}):
        agree("top_k", {"X": rand(*shape)}, k=k)


def test_top_k_of_equal_elements_and_nan():
    x = np.array([[1, 3, 3, 1], [np.nan, 2, np.nan, 1], [-np.inf, np.inf, 0, -np.inf]], "float32")
    agree("top_k", {"X": x}, k=4)
    agree("top_k", {"X": np.tile(x, (1, 400))}, k=7)
    assert refused("top_k", {"X": rand(2, 100)}, k=50)


@pytest.mark.parametrize("k", [1, 3])
def test_accuracy(k):
    for rows in (1, 7, 1500):
        draw = np.random.default_rng(rows)
        indices, label = draw.integers(0, 4, (rows, k)), draw.integers(0, 4, (rows, 1))
        given = {"Out": rand(rows, k), "Indices": indices, "Label": label}
        agree("accuracy", given)
        agree("accuracy", {**given, "Label": label.astype("int32")})


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (4, 2, 33), (2, 1500), (1500, 3)])
def test_layer_norm(shape):
    for dtype in ("float32", "float64"):
        x, width = rand(*shape, dtype=dtype), int(np.prod(shape[1:]))
        scale, bias = rand(width, dtype=dtype, seed=1), rand(width, dtype=dtype, seed=2)
        for given in ({"X": x, "Scale": scale, "Bias": bias}, {"X": x}):
            _, mean, variance = agree("layer_norm", given, times=50)
            given = {**given, "Mean": mean, "Variance": variance, "Y@GRAD": rand(*shape, dtype=dtype, seed=3)}
            agree("layer_norm_grad", given, times=500 if shape[0] < 1500 else 5000)


def test_layer_norm_computes_what_is_wanted():
    x, one = rand(3, 7), rand(7)
    given = {"X": x, "Scale": one, "Bias": one, "Mean": rand(3), "Variance": rand(3, low=1), "Y@GRAD": x}
    dx, dscale, dbias = launched("layer_norm_grad", on_gpu(given), ["Bias@GRAD"])
    assert dx is None and dscale is None and dbias.shape == (7,)
