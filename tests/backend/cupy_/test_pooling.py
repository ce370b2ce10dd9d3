"""Pooling on a GPU against the reference kernels."""

import numpy as np
import pytest

from fluidlite.ops.registry import find

from .agreement import agree, agree_and_replay, launched, lists, on_gpu, rand, refused

pytestmark = pytest.mark.usefixtures("cuda")

CASES = {
    "two by two": ((2, 3, 6, 8), {"ksize": [2, 2], "strides": [2, 2]}),
    "overlapping": ((2, 3, 7, 6), {"ksize": [3, 3], "strides": [2, 2], "paddings": [1, 1]}),
    "stride one": ((1, 2, 5, 5), {"ksize": [3, 2], "strides": [1, 1], "paddings": [1, 0]}),
    "gaps": ((1, 2, 9, 9), {"ksize": [2, 2], "strides": [3, 4]}),
    "sides": ((1, 2, 6, 7), {"ksize": [3, 3], "strides": [2, 2], "paddings": [0, 1, 2, 0]}),
    "ceil": ((2, 1, 8, 8), {"ksize": [3, 3], "strides": [2, 2], "ceil_mode": True}),
    "ceil and padding": (
        (1, 2, 7, 8),
        {"ksize": [3, 2], "strides": [2, 3], "paddings": [1, 1], "ceil_mode": True},
    ),
    "same": ((1, 2, 7, 8), {"ksize": [3, 3], "strides": [2, 2], "padding_algorithm": "SAME"}),
    "valid": ((1, 2, 7, 8), {"ksize": [3, 3], "paddings": [1, 1], "padding_algorithm": "VALID"}),
    "inclusive": ((2, 2, 5, 6), {"ksize": [3, 3], "strides": [2, 1], "paddings": [1, 1], "exclusive": False}),
    "adaptive": ((2, 2, 7, 10), {"ksize": [3, 4], "adaptive": True}),
    "more bins than places": ((1, 2, 3, 4), {"ksize": [5, 6], "adaptive": True}),
    "global": ((2, 3, 4, 5), {"ksize": [1, 1], "global_pooling": True}),
    "wide": ((3, 2, 17, 19), {"ksize": [1, 1], "global_pooling": True, "exclusive": False}),
}


def check_both(op_type, x, grad=agree_and_replay, **attrs):
    """The operator and its gradient, whose inputs belong together."""
    grad(op_type, {"X": x}, **attrs)
    made = agree(op_type, {"X": x}, **attrs)
    names = [slot.name for slot in find(op_type).output_slots]
    known = {"X": x, **dict(zip(names, made, strict=True))}
    known["Out@GRAD"] = rand(*made[0].shape, dtype=str(x.dtype), seed=3)
    takes = [slot.name for slot in find(op_type + "_grad").input_slots]
    agree(op_type + "_grad", {name: known[name] for name in takes}, times=4, **attrs)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("case", CASES)
def test_pool2d(case, kind):
    shape, attrs = CASES[case]
    check_both("pool2d", rand(*shape), pooling_type=kind, **attrs)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("case", ["overlapping", "adaptive", "global", "wide"])
def test_pool2d_with_channels_last(case, kind):
    (n, c, h, w), attrs = CASES[case]
    check_both("pool2d", rand(n, h, w, c), pooling_type=kind, data_format="NHWC", **attrs)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize(
    "attrs",
    [
        {"ksize": [2, 3, 2], "strides": [2, 1, 2], "paddings": [1, 1, 0], "data_format": "NCDHW"},
        {"ksize": [2, 3, 1], "adaptive": True, "data_format": "NCDHW"},
        {"ksize": [2, 2, 2], "strides": [1, 2, 1], "ceil_mode": True, "data_format": "NDHWC"},
    ],
)
def test_pool3d(attrs, kind):
    check_both("pool3d", rand(2, 4, 5, 3, 4), pooling_type=kind, **attrs)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_double_precision(kind):
    attrs = {"ksize": [3, 3], "strides": [2, 2], "paddings": [1, 1]}
    check_both("pool2d", rand(2, 2, 6, 6, dtype="float64"), pooling_type=kind, **attrs)


@pytest.mark.parametrize("channels", [1, 3])
def test_gradient_goes_to_the_first_of_equal_maxima(channels):
    """Most of these windows have several; overlapping ones share them."""
    x = np.random.default_rng(0).integers(0, 3, (2, 6, 7, channels)).astype("float32")
    attrs = {"ksize": [3, 3], "strides": [1, 2], "paddings": [1, 1]}
    check_both("pool2d", x, agree_and_replay, pooling_type="max", data_format="NHWC", **attrs)


def test_nan_and_infinities():
    x = rand(1, 2, 6, 6)
    x[0, 0, 1, 1] = x[0, 0, 4, 5] = np.nan
    x[0, 1, 2, :3] = -np.inf
    x[0, 1, 5, 5] = np.inf
    for attrs in ({"ksize": [2, 2], "strides": [2, 2]}, {"ksize": [3, 3], "strides": [1, 1]}):
        check_both("pool2d", x, pooling_type="max", **attrs)
    check_both("pool2d", np.tile(x, (1, 1, 3, 3)), pooling_type="max", ksize=[1, 1], global_pooling=True)


@pytest.mark.parametrize("sizes", [(2, 2), (40, 40)])
def test_no_maximum_is_minus_infinity(sizes):
    x = np.full((1, 2, *sizes), -np.inf, "float32")
    for attrs in ({"ksize": [1, 1], "strides": [2, 2], "paddings": [1, 0]}, {"global_pooling": True}):
        (out,) = agree("pool2d", {"X": x}, pooling_type="max", **attrs)
        assert (out == np.finfo("float32").min).all()


def test_no_images():
    how = {"ksize": [2, 2], "strides": [2, 2]}
    for kind in ("max", "avg"):
        (out,) = launched("pool2d", on_gpu({"X": rand(0, 2, 4, 4)}), pooling_type=kind, **how)
        assert out.shape == (0, 2, 2, 2)
        inputs = {"X": rand(0, 2, 4, 4), "Out": rand(0, 2, 2, 2), "Out@GRAD": rand(0, 2, 2, 2)}
        assert launched("pool2d_grad", on_gpu(inputs), pooling_type=kind, **how)[0].shape == (0, 2, 4, 4)


@pytest.mark.parametrize(
    "attrs",
    [
        {"ksize": [2, 2], "strides": [2, 2]},
        {"ksize": [3, 2], "strides": [1, 2], "paddings": [1, 1]},
        {"ksize": [3, 4], "adaptive": True},
        {"ksize": [1, 1], "global_pooling": True},
    ],
)
def test_max_pool2d_with_index(attrs):
    x = np.random.default_rng(0).integers(0, 5, (2, 3, 6, 7)).astype("float32")
    check_both("max_pool2d_with_index", x, **attrs)


def test_max_pool3d_with_index():
    attrs = {"ksize": [2, 2, 3], "strides": [1, 2, 2], "paddings": [1, 0, 1]}
    check_both("max_pool3d_with_index", rand(2, 2, 4, 5, 6), **attrs)


def test_whole_numbers_are_left_to_the_reference_kernel():
    assert refused("pool2d", {"X": np.ones((1, 1, 4, 4), "int32")}, ksize=[2, 2], pooling_type="max")


def test_gradient_out_of_a_graph():
    attrs = {"ksize": [2, 2], "strides": [1, 1], "pooling_type": "avg"}
    out = find("pool2d").call(np, lists({"X": rand(2, 2, 5, 5)}), attrs)[0]
    agree_and_replay(
        "pool2d_grad", {"X": rand(2, 2, 5, 5), "Out": out, "Out@GRAD": rand(*out.shape)}, **attrs
    )
