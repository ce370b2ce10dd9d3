"""reshape2, squeeze2, unsqueeze2, flatten2."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

X = np.random.default_rng(6).uniform(-1, 1, (2, 1, 3, 4)).astype("float32")


def _check(op_type, attrs, shape, inputs=None, programs=True):
    inputs = {"X": X, **(inputs or {})}
    check(op_type, inputs, attrs, {"Out": X.reshape(shape)}, grads=["X"], programs=programs)
    assert run_kernel(op_type, inputs, attrs)["XShape"][0].shape == (0, 2, 1, 3, 4)


@pytest.mark.parametrize(
    ("target", "shape"),
    [
        ([-1, 12], (2, 12)),
        ([0, 0, -1], (2, 1, 12)),
        ([0, 4, 3], (2, 4, 3)),
        ([24], (24,)),
        ([2, 1, 3, 4], (2, 1, 3, 4)),
    ],
)
def test_reshape(target, shape):
    _check("reshape2", {"shape": target}, shape)
    check("reshape", {"X": X}, {"shape": target}, {"Out": X.reshape(shape)}, grads=["X"])


def test_reshape_by_tensors():
    _check("reshape2", {"shape": []}, (4, 6), {"Shape": np.array([-1, 6], "int32")})
    parts = [np.array([-1], "int32"), np.array([6], "int64")]
    _check("reshape2", {"shape": [-1, -1]}, (4, 6), {"ShapeTensor": parts})


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ([5, -1], "cannot divide"),
        ([5, 5], "24 elements"),
        ([-1, -1], "one -1"),
        ([1, 1, 1, 1, 0], "only 4 dimensions"),
    ],
)
def test_reshape_to_what_does_not_fit(target, words):
    with pytest.raises(OperatorError, match=words):
        infer("reshape2", {"X": X}, {"shape": target})


def test_gradient_of_the_gradient():
    inputs = {"XShape": np.zeros((0, 2, 3), "float32"), "Out@GRAD": np.arange(6.0).reshape(3, 2)}
    check(
        "reshape2_grad",
        inputs,
        {"shape": [3, 2]},
        {"X@GRAD": np.arange(6.0).reshape(2, 3)},
        grads=["Out@GRAD"],
        programs=False,
    )


@pytest.mark.parametrize(("axes", "shape"), [([1], (2, 3, 4)), ([-3], (2, 3, 4)), ([], (2, 3, 4))])
def test_squeeze(axes, shape):
    _check("squeeze2", {"axes": axes}, shape)


def test_squeeze_of_a_larger_dimension():
    with pytest.raises(OperatorError, match="dimension 2 of .* is 3"):
        infer("squeeze2", {"X": X}, {"axes": [2]})


# One after another, as Fluid does: recorded from Paddle 1.8.5.
@pytest.mark.parametrize(
    ("axes", "shape"),
    [
        ([0, 3], (1, 2, 1, 1, 3, 4)),
        ([-1], (2, 1, 3, 4, 1)),
        ([-1, 0], (1, 2, 1, 3, 4, 1)),
        ([2, 0], (1, 2, 1, 1, 3, 4)),
    ],
)
def test_unsqueeze(axes, shape):
    _check("unsqueeze2", {"axes": axes}, shape)


def test_unsqueeze_by_tensors():
    _check("unsqueeze2", {"axes": []}, (2, 1, 1, 3, 4), {"AxesTensor": np.array([1], "int32")})
    _check("unsqueeze2", {"axes": []}, (1, 2, 1, 3, 4), {"AxesTensorList": [np.array([0], "int32")]})


def test_unsqueeze_beyond_the_end():
    with pytest.raises(OperatorError, match=r"axes must be in \[-5, 4\], got 5"):
        infer("unsqueeze2", {"X": X}, {"axes": [5]})


@pytest.mark.parametrize(("axis", "shape"), [(0, (1, 24)), (1, (2, 12)), (3, (6, 4)), (4, (24, 1))])
def test_flatten(axis, shape):
    _check("flatten2", {"axis": axis}, shape)


def test_flatten_beyond_the_end():
    with pytest.raises(OperatorError, match="axis must be in"):
        infer("flatten2", {"X": X}, {"axis": 5})


@pytest.mark.parametrize(
    "op_type, attrs, shape",
    [
        ("squeeze", {"axes": [1]}, (2, 3, 4)),
        ("unsqueeze", {"axes": [-1, 0]}, (1, 2, 1, 3, 4, 1)),
        ("flatten", {"axis": 3}, (6, 4)),
        ("reshape", {"shape": [4, -1]}, (4, 6)),
    ],
)
def test_older_forms_have_no_xshape(op_type, attrs, shape):
    check(op_type, {"X": X}, attrs, {"Out": X.reshape(shape)}, grads=["X"])
