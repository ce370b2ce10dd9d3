"""spp: an image in 1, 2 x 2, 4 x 4 bins."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer

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
