"""Pooling and spp against windows written out one by one, and against numbers of real Fluid at the borders."""

import itertools

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

rng = np.random.default_rng(0)
RAMP = np.arange(25, dtype="float32").reshape(1, 1, 5, 5)


def images(*shape):
    """Values without ties, so that the maximum has a gradient."""
    return rng.permutation(int(np.prod(shape))).reshape(shape).astype("float32") / 10


def pooled(x, kind, windows, exclusive=True, full=1):
    """The definition: `windows` lists (start, end) by dimension, perhaps beyond the image."""
    out = np.zeros((*x.shape[:2], *(len(w) for w in windows)))
    for place in itertools.product(*(range(len(w)) for w in windows)):
        cut = tuple(
            slice(max(w[p][0], 0), min(w[p][1], n))
            for w, p, n in zip(windows, place, x.shape[2:], strict=True)
        )
        part = x[(slice(None), slice(None), *cut)].reshape(*x.shape[:2], -1)
        value = (
            part.max(axis=2) if kind == "max" else part.sum(axis=2) / (part.shape[2] if exclusive else full)
        )
        out[(slice(None), slice(None), *place)] = value
    return out.astype("float32")


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_windows(kind):
    x = images(2, 2, 5, 4)
    attrs = {"pooling_type": kind, "ksize": [3, 2], "strides": [2, 1], "paddings": [1, 0]}
    windows = [[(-1, 2), (1, 4), (3, 6)], [(0, 2), (1, 3), (2, 4)]]
    check("pool2d", {"X": x}, attrs, {"Out": pooled(x, kind, windows)}, grads=("X",))
    attrs["exclusive"] = False
    check("pool2d", {"X": x}, attrs, {"Out": pooled(x, kind, windows, False, 6)}, grads=("X",))


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_global_pooling(kind):
    x = images(2, 3, 4, 3)
    want = getattr(x, {"max": "max", "avg": "mean"}[kind])(axis=(2, 3), keepdims=True)
    attrs = {"pooling_type": kind, "ksize": [-1, -1], "global_pooling": True, "paddings": [1, 1]}
    check("pool2d", {"X": x}, attrs, {"Out": want}, grads=("X",))


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_adaptive_bins(kind):
    x = images(1, 2, 5, 5)
    windows = [[(0, 2), (1, 4), (3, 5)], [(0, 3), (2, 5)]]
    attrs = {"pooling_type": kind, "ksize": [3, 2], "adaptive": True}
    check("pool2d", {"X": x}, attrs, {"Out": pooled(x, kind, windows)}, grads=("X",))


def test_channels_last():
    x = images(2, 4, 4, 3)
    want = pooled(x.transpose(0, 3, 1, 2), "max", [[(0, 2), (2, 4)]] * 2).transpose(0, 2, 3, 1)
    attrs = {"pooling_type": "max", "ksize": [2, 2], "strides": [2, 2], "data_format": "NHWC"}
    check("pool2d", {"X": x}, attrs, {"Out": want}, grads=("X",))


def test_same_padding_as_in_fluid():
    attrs = {"pooling_type": "avg", "ksize": [3, 3], "strides": [2, 2], "padding_algorithm": "SAME"}
    want = np.array([[[[3, 4.5, 6], [10.5, 12, 13.5], [18, 19.5, 21]]]], "float32")
    check("pool2d", {"X": RAMP}, attrs, {"Out": want})


def test_ceil_mode_as_in_fluid():
    attrs = {"pooling_type": "avg", "ksize": [2, 2], "strides": [2, 2], "ceil_mode": True}
    want = np.array([[[[3, 5, 6.5], [13, 15, 16.5], [20.5, 22.5, 24]]]], "float32")
    check("pool2d", {"X": RAMP}, attrs, {"Out": want}, grads=("X",))
    want = np.array([[[[3, 5, 3.25], [13, 15, 8.25], [10.25, 11.25, 6]]]], "float32")
    check("pool2d", {"X": RAMP}, {**attrs, "exclusive": False}, {"Out": want}, grads=("X",))


def test_first_of_equal_maxima_has_the_gradient():
    x = np.zeros((1, 1, 2, 4), "float32")
    attrs = {"pooling_type": "max", "ksize": [2, 2], "strides": [2, 2]}
    out = np.zeros((1, 1, 1, 2), "float32")
    dx = run_kernel("pool2d_grad", {"X": x, "Out": out, "Out@GRAD": out + 1}, attrs)["X@GRAD"][0]
    np.testing.assert_array_equal(dx[0, 0], [[1, 0, 1, 0], [0, 0, 0, 0]])


def test_pool3d():
    x = images(1, 2, 3, 4, 2)
    attrs = {"pooling_type": "avg", "ksize": [2, 2, 1], "strides": [1, 2, 1]}
    want = pooled(x, "avg", [[(0, 2), (1, 3)], [(0, 2), (2, 4)], [(0, 1), (1, 2)]])
    check("pool3d", {"X": x}, attrs, {"Out": want}, grads=("X",))


@pytest.mark.parametrize("dims", [2, 3])
def test_where_the_maxima_are(dims):
    x = images(2, 2, *[4] * dims)
    attrs = {"ksize": [2] * dims, "strides": [2] * dims, "paddings": [0] * dims}
    op_type = f"max_pool{dims}d_with_index"
    check(op_type, {"X": x}, attrs, {"Out": pooled(x, "max", [[(0, 2), (2, 4)]] * dims)}, grads=("X",))
    made = run_kernel(op_type, {"X": x}, attrs)
    flat = x.reshape(2, 2, -1)
    found = np.take_along_axis(flat, made["Mask"][0].reshape(2, 2, -1).astype("int64"), axis=2)
    np.testing.assert_array_equal(found, made["Out"][0].reshape(2, 2, -1))


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"pooling_type": "min"}, "pooling_type must be 'max' or 'avg', got 'min'"),
        ({"ksize": [6, 2]}, "smaller than the window"),
        ({"ksize": [2]}, "ksize must have 2 elements"),
        ({"ksize": [2, 2], "strides": [0, 1]}, "strides must be positive"),
    ],
)
def test_what_does_not_fit_is_refused(attrs, message):
    with pytest.raises(OperatorError, match="^operator pool2d .*" + message):
        infer("pool2d", {"X": RAMP}, attrs)


X = np.random.default_rng(0).permutation(2 * 2 * 7 * 6).reshape(2, 2, 7, 6).astype("float32")


def bins(x, count, reduce):
    out = np.empty((*x.shape[:2], count, count), "float32")
    sizes = [-(-n // count) for n in x.shape[2:]]
    pads = [(k * count - n + 1) // 2 for k, n in zip(sizes, x.shape[2:], strict=True)]
    for i in range(count):
        for j in range(count):
            (a, b), (c, d) = (
                (max(i_ * k - p, 0), i_ * k - p + k) for i_, k, p in zip((i, j), sizes, pads, strict=True)
            )
            out[:, :, i, j] = reduce(x[:, :, a:b, c:d], axis=(2, 3))
    return out.reshape(len(x), -1)


@pytest.mark.parametrize("kind, reduce", [("max", np.max), ("avg", np.mean)])
@pytest.mark.parametrize("height", [1, 2, 3])
def test_spp(kind, reduce, height):
    wanted = np.concatenate([bins(X, 1 << level, reduce) for level in range(height)], axis=1)
    attrs = {"pyramid_height": height, "pooling_type": kind}
    check("spp", {"X": X}, attrs, {"Out": wanted}, grads=["X"])


def test_as_paddle_counts():
    x = np.arange(1, 50, dtype="float32").reshape(1, 1, 7, 7)
    wanted = [25, 9, 12.5, 33.5, 37, 1, 2.5, 4.5, 6.5, 11.5, 13, 15, 17, 25.5, 27, 29, 31, 39.5, 41, 43, 45]
    attrs = {"pyramid_height": 3, "pooling_type": "avg"}
    check("spp", {"X": x}, attrs, {"Out": np.array([wanted], "float32")})


def test_images_that_are_too_small():
    with pytest.raises(OperatorError, match="too small for 4 x 4 bins"):
        infer("spp", {"X": X[:, :, :5]}, {"pyramid_height": 3})
    with pytest.raises(OperatorError, match="'max' or 'avg'"):
        infer("spp", {"X": X}, {"pooling_type": "sum"})
