"""Constants: fill_constant and its kin, assign, assign_value, range, linspace, increment, eye, diag."""

import numpy as np
import pytest

from fluidlite.base.dtypes import VarType, to_vartype
from fluidlite.base.errors import EnforceNotMet
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel


def _kind(dtype):
    return int(to_vartype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
def test_fill_constant(dtype):
    attrs = {"shape": [2, 3], "dtype": _kind(dtype), "value": 1.0}
    check("fill_constant", {}, attrs, {"Out": np.ones((2, 3), dtype)})


@pytest.mark.parametrize(("value", "bits"), [(0.3, 0x34CC), (1.0009, 0x3C00), (-70000.0, 0xFC00)])
def test_fill_constant_cuts_to_float16_as_cast_does(value, bits):
    made = run_kernel("fill_constant", {}, {"shape": [2], "dtype": int(VarType.FP16), "value": value})["Out"][
        0
    ]
    np.testing.assert_array_equal(made.view("uint16"), [bits, bits])


def test_fill_constant_keeps_large_integers():
    attrs = {
        "shape": [1],
        "dtype": _kind("int64"),
        "value": 9.007199254740992e15,
        "str_value": "9007199254740993",
    }
    assert run_kernel("fill_constant", {}, attrs)["Out"][0][0] == 9007199254740993


def test_fill_constant_with_shape_from_variables():
    attrs = {"shape": [4, -1], "value": 2.5}
    parts = [np.array([4], "int32"), np.array([2], "int32")]
    check("fill_constant", {"ShapeTensorList": parts}, attrs, {"Out": np.full((4, 2), 2.5, "float32")})
    whole = {"ShapeTensor": np.array([3, 1], "int32"), "ValueTensor": np.array([7.0], "float32")}
    check("fill_constant", whole, {"shape": []}, {"Out": np.full((3, 1), 7, "float32")})


def test_fill_constant_refuses_negative_sizes():
    with pytest.raises(OperatorError, match=r"every number of shape must be 0 or more, got \[-1, 2\]"):
        infer("fill_constant", {}, {"shape": [-1, 2]})


def test_fill_constant_batch_size_like_counts_rows_or_sequences():
    x = np.zeros((5, 2), "float32")
    attrs = {"shape": [9, 3], "value": 1.5}
    for lod, rows in (([], 5), ([[0, 2, 5]], 2)):
        made = run_kernel("fill_constant_batch_size_like", {"Input": x}, attrs, {"Input": [lod]})["Out"][0]
        np.testing.assert_array_equal(made, np.full((rows, 3), 1.5, "float32"))
    columns = {**attrs, "input_dim_idx": 1, "output_dim_idx": 1, "dtype": _kind("int64")}
    made = run_kernel("fill_constant_batch_size_like", {"Input": x}, columns, {"Input": [[[0, 2, 5]]]})[
        "Out"
    ][0]
    assert made.shape == (9, 2)
    assert made.dtype == np.int64
    check("fill_constant_batch_size_like", {"Input": x}, attrs, {"Out": np.full((5, 3), 1.5, "float32")})


def test_fill_constant_batch_size_like_checks_dimensions():
    x = np.zeros((5, 2), "float32")
    with pytest.raises(OperatorError, match=r"input_dim_idx must be in \[0, 2\), got 2"):
        infer("fill_constant_batch_size_like", {"Input": x}, {"shape": [1], "input_dim_idx": 2})
    with pytest.raises(OperatorError, match=r"output_dim_idx must be in \[0, 1\), got 1"):
        infer("fill_constant_batch_size_like", {"Input": x}, {"shape": [1], "output_dim_idx": 1})


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_fill_zeros_like_and_any_like(dtype):
    x = np.ones((2, 3), dtype)
    check("fill_zeros_like", {"X": x}, {}, {"Out": np.zeros_like(x)})
    check("fill_any_like", {"X": x}, {"value": 3.0}, {"Out": np.full_like(x, 3)})
    attrs = {"value": 3.0, "dtype": _kind("float64")}
    check("fill_any_like", {"X": x}, attrs, {"Out": np.full(x.shape, 3, "float64")})


def test_assign_copies():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    check("assign", {"X": x}, {}, {"Out": x}, grads=["X"])
    made = run_kernel("assign", {"X": x})["Out"][0]
    made[0, 0] = 9
    assert x[0, 0] == 0


@pytest.mark.parametrize(
    ("dtype", "slot"),
    [
        ("float32", "fp32_values"),
        ("int32", "int32_values"),
        ("int64", "int64_values"),
        ("bool", "bool_values"),
    ],
)
def test_assign_value(dtype, slot):
    values = np.array([[1, 0, 1]]).astype(dtype)
    attrs = {"shape": [1, 3], "dtype": _kind(dtype), slot: values.ravel().tolist()}
    check("assign_value", {}, attrs, {"Out": values})


def test_assign_value_counts_its_values():
    with pytest.raises(OperatorError, match=r"shape \[2, 2\] holds 4 elements, but 3 values are given"):
        infer("assign_value", {}, {"shape": [2, 2], "fp32_values": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize(
    ("start", "end", "step", "dtype"),
    [
        (0, 5, 2, "int64"),
        (5, 0, -2, "int32"),
        (0, 1, 0.25, "float32"),
        (0, 1, 0.3, "float64"),
        (3, 3, 1, "int64"),
    ],
)
def test_range(start, end, step, dtype):
    inputs = {
        "Start": np.array([start], dtype),
        "End": np.array([end], dtype),
        "Step": np.array([step], dtype),
    }
    check("range", inputs, {}, {"Out": np.arange(start, end, step).astype(dtype)})


@pytest.mark.parametrize(
    "numbers, needed", [((0, 0, 0), "not be 0"), ((5, 0, 1), "be below 0"), ((0, 5, -1), "be above 0")]
)
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_range_refuses_steps_that_do_not_lead_to_the_end(numbers, needed, dtype):
    inputs = dict(zip(("Start", "End", "Step"), np.array(numbers, dtype).reshape(3, 1), strict=True))
    with pytest.raises(EnforceNotMet, match=f"step of range from .* must {needed}"):
        run_kernel("range", inputs)


@pytest.mark.parametrize("num", [1, 5])
def test_linspace(num):
    inputs = {
        "Start": np.array([-1], "float32"),
        "Stop": np.array([3], "float32"),
        "Num": np.array([num], "int32"),
    }
    check("linspace", inputs, {}, {"Out": np.linspace(-1, 3, num, dtype="float32")})


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_increment(dtype):
    check("increment", {"X": np.array([4], dtype)}, {"step": 2.0}, {"Out": np.array([6], dtype)})


def test_increment_takes_one_element():
    with pytest.raises(OperatorError, match=r"X must have one element, got shape \[2\]"):
        infer("increment", {"X": np.zeros(2, "float32")})


def test_eye_and_diag():
    check("eye", {}, {"num_rows": 3}, {"Out": np.eye(3, dtype="float32")})
    check(
        "eye",
        {},
        {"num_rows": 2, "num_columns": 3, "dtype": int(VarType.INT64)},
        {"Out": np.eye(2, 3, dtype="int64")},
    )
    diagonal = np.array([1, 2], "float32")
    check("diag", {"Diagonal": diagonal}, {}, {"Out": np.diag(diagonal)})
    with pytest.raises(OperatorError, match="Diagonal must have one axis"):
        infer("diag", {"Diagonal": np.zeros((2, 2), "float32")})


def test_fill_and_fill_zeros_like2():
    attrs = {"value": [1.0, 2.5, 3.0, 4.0], "shape": [2, 2], "dtype": int(VarType.FP32)}
    check("fill", {}, attrs, {"Out": np.array([[1, 2.5], [3, 4]], "float32")})
    check("fill", {}, {**attrs, "dtype": int(VarType.INT64)}, {"Out": np.array([[1, 2], [3, 4]])})
    with pytest.raises(OperatorError, match="4 numbers for the shape"):
        infer("fill", {}, {**attrs, "value": [1.0]})
    x = np.ones((2, 3), "float32")
    check("fill_zeros_like2", {"X": x}, {"dtype": int(VarType.INT64)}, {"Out": np.zeros((2, 3), "int64")})
