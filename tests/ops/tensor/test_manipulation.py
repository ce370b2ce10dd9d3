"""transpose2, expand, expand_as, reverse, flip, stack, unstack."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

RNG = np.random.default_rng(7)
X = RNG.uniform(-1, 1, (2, 3, 4)).astype("float32")


@pytest.mark.parametrize("perm", [[0, 1, 2], [2, 0, 1], [1, 0, 2], [2, 1, 0]])
def test_transpose(perm):
    check("transpose2", {"X": X}, {"axis": perm}, {"Out": X.transpose(perm)}, grads=["X"])
    check("transpose", {"X": X}, {"axis": perm}, {"Out": X.transpose(perm)}, grads=["X"])
    assert run_kernel("transpose2", {"X": X}, {"axis": perm})["XShape"][0].shape == (0, 2, 3, 4)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "int64", "float64"])
def test_transpose_of_other_types(dtype):
    x = (X * 100).astype(dtype)
    check("transpose2", {"X": x}, {"axis": [2, 0, 1]}, {"Out": x.transpose(2, 0, 1)})


@pytest.mark.parametrize("perm", [[0, 1], [0, 1, 1], [0, 1, 3]])
def test_transpose_by_what_is_no_permutation(perm):
    with pytest.raises(OperatorError, match="permutation of 0 to 2"):
        infer("transpose2", {"X": X}, {"axis": perm})


@pytest.mark.parametrize("times", [[2, 1, 3], [1, 1, 1], [1, 4, 1]])
def test_expand(times):
    check("expand", {"X": X}, {"expand_times": times}, {"Out": np.tile(X, times)}, grads=["X"])


def test_expand_by_tensors():
    expected = {"Out": np.tile(X, (2, 1, 3))}
    check("expand", {"X": X, "ExpandTimes": np.array([2, 1, 3], "int32")}, {}, expected, grads=["X"])
    parts = [np.array([n], "int32") for n in (2, 1, 3)]
    check(
        "expand", {"X": X, "expand_times_tensor": parts}, {"expand_times": [2, 1, -1]}, expected, grads=["X"]
    )


def test_expand_needs_a_number_for_each_dimension():
    with pytest.raises(OperatorError, match="each of the 3 dimensions"):
        infer("expand", {"X": X}, {"expand_times": [2]})


def test_expand_as():
    target = np.zeros((4, 3, 4), "float32")
    check("expand_as", {"X": X, "target_tensor": target}, {}, {"Out": np.tile(X, (2, 1, 1))}, grads=["X"])
    with pytest.raises(OperatorError, match="must be a multiple"):
        infer("expand_as", {"X": X, "target_tensor": target[:3]})


@pytest.mark.parametrize("axis", [[0], [1], [0, -1]])
def test_reverse_and_flip(axis):
    expected = np.flip(X, tuple(axis))
    check("reverse", {"X": X}, {"axis": axis}, {"Out": expected}, grads=["X"])
    check("flip", {"X": X}, {"dims": axis}, {"Out": expected}, grads=["X"])


@pytest.mark.parametrize("axis", [0, 1, 3, -1, -2])
def test_stack_and_unstack(axis):
    parts = [X, X + 1, X * 2]
    whole = np.stack(parts, axis)
    check("stack", {"X": parts}, {"axis": axis}, {"Y": whole}, grads=["X"])
    check("unstack", {"X": whole}, {"axis": axis, "num": 3}, {"Y": parts}, grads=["X"])


def test_stack_of_different_shapes():
    with pytest.raises(OperatorError, match="same shape"):
        infer("stack", {"X": [X, X[:1]]}, {})


def test_unstack_into_a_wrong_number():
    with pytest.raises(OperatorError, match="has 2 entries, got num=3"):
        infer("unstack", {"X": X}, {"num": 3}, {"Y": 3})
