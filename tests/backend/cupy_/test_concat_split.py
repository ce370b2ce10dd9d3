"""Joining and cutting arrays on the GPU."""

import numpy as np
import pytest

from fluidlite import backend
from fluidlite.ops.registry import find

from .agreement import agree, gpu, launched, lists, on_gpu, rand, refused

pytestmark = pytest.mark.usefixtures("cuda")

KINDS = ["float32", "float64", "int64", "int32", "uint8", "bool"]


def agree_on_lists(op_type: str, inputs: dict, **attrs) -> list[np.ndarray]:
    """As `agree`, for an operator that gives a list of arrays."""
    (expected,) = find(op_type).call(np, lists(inputs), attrs)
    (found,) = launched(op_type, on_gpu(inputs), **attrs)
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(backend.to_host(mine), theirs)
    return expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat_and_its_gradient(kind, axis):
    for widths in ([3], [1, 4], [2, 0, 5], list(range(1, 21))):
        shapes = [[4, 3, 2] for _ in widths]
        for shape, width in zip(shapes, widths, strict=True):
            shape[axis] = width
        x = [rand(*shape, seed=k, low=-100, high=100).astype(kind) for k, shape in enumerate(shapes)]
        (out,) = agree("concat", {"X": x}, axis=axis)
        agree_on_lists("concat_grad", {"X": x, "Out@GRAD": out}, axis=axis)


def test_split():
    x = rand(4, 12, 3)
    agree_on_lists("split", {"X": x}, num=3, axis=1)
    agree_on_lists("split", {"X": x}, num=12, axis=-2)
    agree_on_lists("split", {"X": x}, sections=[2, -1, 3], axis=1)
    agree_on_lists("split", {"X": np.zeros((0, 4), "float32")}, num=2, axis=1)
    assert refused("split", {"X": x, "AxisTensor": np.array([1])}, num=3)
    assert refused("split", {"X": rand(2, 4).astype("float16")}, num=2, axis=1)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("count", [1, 3, 17])
def test_stack_and_unstack(axis, count):
    x = [rand(3, 5, seed=k) for k in range(count)]
    (y,) = agree("stack", {"X": x}, axis=axis)
    agree_on_lists("stack_grad", {"Y@GRAD": y}, axis=axis)
    parts = agree_on_lists("unstack", {"X": y}, axis=axis, num=count)
    agree("unstack_grad", {"Y@GRAD": parts}, axis=axis, num=count)


def test_parts_need_not_be_dense():
    x, here = rand(6, 4), gpu()
    with here.active():
        across = here.put(x).T
    (out,) = launched("concat", {"X": [across, across]}, axis=0)
    np.testing.assert_array_equal(here.get(out), np.concatenate([x.T, x.T]))
