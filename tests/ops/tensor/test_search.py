"""arg_max, arg_min, argsort."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer

X = np.random.default_rng(4).permutation(24).reshape(2, 3, 4).astype("float32")


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arg_max_and_min(axis):
    check("arg_max", {"X": X}, {"axis": axis}, {"Out": X.argmax(axis)})
    check("arg_min", {"X": X}, {"axis": axis}, {"Out": X.argmin(axis)})


def test_arg_max_takes_the_first_and_can_keep_the_axis():
    x = np.array([[7, 7, 1], [1, 5, 5]], "float32")
    check("arg_max", {"X": x}, {"axis": 1, "keepdims": True}, {"Out": np.array([[0], [1]])})
    check("arg_max", {"X": x[0]}, {"axis": 0}, {"Out": np.array([0])})


def test_axis_is_checked():
    with pytest.raises(OperatorError, match=r"axis must be in \[-3, 3\), got 3"):
        infer("arg_max", {"X": X}, {"axis": 3})


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("descending", [False, True])
def test_argsort(axis, descending):
    order = np.argsort(-X if descending else X, axis=axis, kind="stable")
    outputs = {"Out": np.take_along_axis(X, order, axis), "Indices": order}
    check("argsort", {"X": X}, {"axis": axis, "descending": descending}, outputs, grads=["X"])


@pytest.mark.parametrize(
    ("descending", "expected"), [(False, [[0, 2, 1], [2, 0, 1]]), (True, [[1, 0, 2], [0, 1, 2]])]
)
def test_argsort_keeps_the_order_of_equals(descending, expected):
    x = np.array([[1, 5, 1], [7, 7, 1]], "float32")
    check("argsort", {"X": x}, {"descending": descending}, {"Indices": np.array(expected)})
