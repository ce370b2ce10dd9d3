"""slice, strided_slice, shape, size."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer

X = np.random.default_rng(9).uniform(-1, 1, (5, 4, 3)).astype("float32")
CASES = [
    ({"axes": [0, 2], "starts": [1, 0], "ends": [4, 2]}, X[1:4, :, :2]),
    ({"axes": [1], "starts": [-3], "ends": [-1]}, X[:, -3:-1]),
    ({"axes": [0], "starts": [2], "ends": [100]}, X[2:]),
    ({"axes": [0], "starts": [-100], "ends": [2]}, X[:2]),
    ({"axes": [0], "starts": [1], "ends": [2], "decrease_axis": [0]}, X[1]),
    ({"axes": [0, 1, 2], "starts": [1, 1, 1], "ends": [2, 2, 2], "decrease_axis": [0, 1, 2]}, X[1:2, 1, 1]),
]


@pytest.mark.parametrize(("attrs", "expected"), CASES)
def test_slice(attrs, expected):
    check("slice", {"Input": X}, attrs, {"Out": expected}, grads=["Input"])


def test_slice_by_tensors():
    attrs = {"axes": [0, 1], "starts": [], "ends": [3, 3], "infer_flags": [-1, -1]}
    check(
        "slice",
        {"Input": X, "StartsTensor": np.array([1, -3], "int32")},
        attrs,
        {"Out": X[1:3, -3:3]},
        grads=["Input"],
    )
    attrs = {"axes": [0], "starts": [-1], "ends": [-1], "infer_flags": [-1], "decrease_axis": [0]}
    for start in (2, -1):
        lists = {"StartsTensorList": [np.array([start])], "EndsTensorList": [np.array([start + 1])]}
        check("slice", {"Input": X, **lists}, attrs, {"Out": X[start]}, grads=["Input"])


STEPPED = np.arange(60.0).reshape(3, 4, 5)


@pytest.mark.parametrize(
    ("index", "want"),
    [
        (lambda x, n: x[n(-1)], STEPPED[-1]),
        (lambda x, n: x[: n(2), n(1) :, n(-1)], STEPPED[:2, 1:, -1]),
        (lambda x, n: x[0 : 3 : n(2)], STEPPED[::2]),
        (lambda x, n: x[:, 0 : n(9) : n(1), n(-1) : 1 : n(-2)], STEPPED[:, :, 4:1:-2]),
        (lambda x, n: x[:: n(-1)], STEPPED[::-1]),
    ],
)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_indices_and_steps_that_are_variables(index, want, dtype):
    main = fluid.Program()
    with fluid.program_guard(main):
        x = fluid.data("x", [3, 4, 5], "float64")
        x.stop_gradient = False
        got = index(x, lambda number: fluid.layers.fill_constant([1], dtype, number))
        (dx,) = fluid.gradients(fluid.layers.reduce_sum(got), x)
    values, grad = fluid.Executor().run(main, {"x": STEPPED}, [got, dx])
    np.testing.assert_array_equal(values, want)
    np.testing.assert_array_equal(grad, np.isin(STEPPED, want))


@pytest.mark.parametrize(
    "index", [np.s_[0, ::-1], np.s_[:, 1, ::-1], np.s_[0, 0, ::-1], np.s_[::-1, 1, ::-1], np.s_[1, ::-2, 0]]
)
def test_integers_with_steps_in_programs(index):
    main = fluid.Program()
    with fluid.program_guard(main):
        part = fluid.data("x", [3, 4, 5], "float64")[index]
    (got,) = fluid.Executor().run(main, {"x": STEPPED}, [part])
    np.testing.assert_array_equal(got, STEPPED[index])


@pytest.mark.parametrize(("starts", "ends"), [([5], [9]), ([2], [1])])
def test_slice_of_nothing_is_an_error(starts, ends):
    with pytest.raises(OperatorError, match="start must be before end in a dimension of 5"):
        infer("slice", {"Input": X}, {"axes": [0], "starts": starts, "ends": ends})


@pytest.mark.parametrize(
    ("axes", "starts", "ends", "strides", "expected"),
    [
        ([0, 1], [0, 3], [5, 0], [2, -1], X[0:5:2, 3:0:-1]),
        ([0], [-1], [-10], [-1], X[::-1]),
        ([0], [1], [100], [3], X[1::3]),
        ([0], [4], [0], [-2], X[4:0:-2]),
        ([2], [0], [2], [1], X[:, :, :2]),
    ],
)
def test_strided_slice(axes, starts, ends, strides, expected):
    attrs = {"axes": axes, "starts": starts, "ends": ends, "strides": strides}
    check("strided_slice", {"Input": X}, attrs, {"Out": expected}, grads=["Input"])


def numbers_as_tensors(**named):
    return {
        f"{name.capitalize()}TensorList": [np.array([n], "int32") for n in values]
        for name, values in named.items()
    }


@pytest.mark.parametrize("start", [1, -1])
def test_a_dimension_of_a_strided_slice_is_dropped(start):
    lists = numbers_as_tensors(starts=[start, -1], ends=[start + 1, 0], strides=[1, -1])
    attrs = {"axes": [0, 2], "infer_flags": [-1, -1], "decrease_axis": [0]}
    check("strided_slice", {"Input": X, **lists}, attrs, {"Out": X[start, :, :0:-1]}, grads=["Input"])


@pytest.mark.usefixtures("alone")
def test_sizes_that_no_tensor_says_are_known():
    """As real Paddle 1.8.5 declares them."""
    x = fluid.data("x", [3, 4, 5, 6])
    minus = layers.fill_constant([1], "int32", -1)
    cut = layers.strided_slice(x, [0, 1, 3], [minus, 0, 2], [3, 100, minus], [1, 2, 1])
    assert cut.shape == (-1, 2, 5, -1)
    assert x[minus, 0:100:2, :, -1:2:-1].shape == (2, 5, 3)
    with pytest.raises(OperatorError, match="nothing is left of a dimension of 4 from 3 to 2"):
        layers.strided_slice(x, [0, 1], [minus, 3], [3, 2], [1, 1])


def test_strided_slice_of_nothing_is_an_error():
    attrs = {"axes": [0], "starts": [3], "ends": [1], "strides": [1]}
    with pytest.raises(OperatorError, match="nothing is left"):
        infer("strided_slice", {"Input": X}, attrs)
    with pytest.raises(OperatorError, match="strides must not be 0"):
        infer("strided_slice", {"Input": X}, {**attrs, "strides": [0]})


def test_shape_and_size():
    check("shape", {"Input": X}, {}, {"Out": np.array([5, 4, 3], "int32")})
    check("size", {"Input": X}, {}, {"Out": np.array([60])})
