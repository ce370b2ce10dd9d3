"""pad, pad2d, pad_constant_like, crop, crop_tensor."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer

X = np.random.default_rng(13).uniform(-1, 1, (2, 4, 5)).astype("float32")
IMAGE = np.random.default_rng(14).uniform(-1, 1, (2, 1, 3, 4)).astype("float32")


def test_pad():
    expected = np.pad(X, [(0, 0), (1, 2), (0, 1)], constant_values=0.5)
    check("pad", {"X": X}, {"paddings": [0, 0, 1, 2, 0, 1], "pad_value": 0.5}, {"Out": expected}, grads=["X"])
    with pytest.raises(OperatorError, match="two numbers >= 0 for each of the 3 dimensions"):
        infer("pad", {"X": X}, {"paddings": [1, 1]})


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_pad2d(mode, data_format):
    nchw = [(0, 0), (0, 0), (1, 2), (0, 3)]
    image = IMAGE if data_format == "NCHW" else np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1))
    pairs = nchw if data_format == "NCHW" else [nchw[0], nchw[2], nchw[3], nchw[1]]
    expected = np.pad(image, pairs, mode, **({"constant_values": 0.25} if mode == "constant" else {}))
    attrs = {"paddings": [1, 2, 0, 3], "mode": mode, "pad_value": 0.25, "data_format": data_format}
    check("pad2d", {"X": image}, attrs, {"Out": expected}, grads=["X"])
    inputs = {"X": image, "Paddings": np.array([1, 2, 0, 3], "int32")}
    check("pad2d", inputs, {**attrs, "paddings": []}, {"Out": expected}, grads=["X"])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pad2d_of_no_images(mode):
    attrs = {"paddings": [1, 0, -1, 2], "mode": mode}
    check("pad2d", {"X": IMAGE[:0]}, attrs, {"Out": np.zeros((0, 1, 4, 5), "float32")}, grads=["X"])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("paddings", [[-1, 2, 1, -2], [-2, -1, 0, 3], [2, -2, -3, 1], [-3, 1, 0, 0]])
def test_pad2d_cuts_off_what_is_negative(mode, paddings):
    image = np.random.default_rng(15).uniform(-1, 1, (2, 1, 4, 5)).astype("float32")
    wide = [max(n, 0) for n in paddings]
    border = np.pad(image, [(0, 0), (0, 0), wide[:2], wide[2:]], mode)  # constant: zeros
    top, bottom, left, right = (max(-n, 0) for n in paddings)
    expected = border[:, :, top : border.shape[2] - bottom, left : border.shape[3] - right]
    check("pad2d", {"X": image}, {"paddings": paddings, "mode": mode}, {"Out": expected}, grads=["X"])


@pytest.mark.parametrize(
    ("attrs", "words"),
    [
        ({"mode": "wrap"}, "mode must be"),
        ({"paddings": [-2, -1, 0, 0]}, "leave nothing of images"),
        ({"mode": "reflect", "paddings": [3, 0, 0, 0]}, "less than the image"),
    ],
)
def test_pad2d_by_what_does_not_fit(attrs, words):
    with pytest.raises(OperatorError, match=words):
        infer("pad2d", {"X": IMAGE}, attrs)


def test_pad_constant_like():
    y = X[:1, :3]
    expected = np.pad(y, [(0, 1), (0, 1), (0, 0)], constant_values=2)
    check("pad_constant_like", {"X": X, "Y": y}, {"pad_value": 2.0}, {"Out": expected}, grads=["Y"])
    with pytest.raises(OperatorError, match="must not be larger"):
        infer("pad_constant_like", {"X": y, "Y": X})


def test_crop():
    attrs = {"shape": [2, 2, 3], "offsets": [0, 1, 2]}
    expected = {"Out": X[:2, 1:3, 2:5]}
    check("crop", {"X": X}, attrs, expected, grads=["X"])
    check(
        "crop", {"X": X, "Y": np.zeros((2, 2, 3), "float32")}, {"offsets": [0, 1, 2]}, expected, grads=["X"]
    )
    check(
        "crop", {"X": X, "Offsets": np.array([0, 1, 2], "int32")}, {"shape": [2, 2, 3]}, expected, grads=["X"]
    )


def test_crop_tensor():
    attrs = {"shape": [1, -1, 2], "offsets": [1, 1, 0]}
    expected = {"Out": X[1:2, 1:, :2]}
    check("crop_tensor", {"X": X}, attrs, expected, grads=["X"])
    inputs = {"X": X, "Shape": np.array([1, 3, 2], "int32"), "Offsets": np.array([1, 1, 0], "int32")}
    check("crop_tensor", inputs, {}, expected, grads=["X"])
    parts = [np.array([n], "int32") for n in (1, 3, 2)]
    check("crop_tensor", {"X": X, "ShapeTensor": parts}, {"offsets": [1, 1, 0]}, expected, grads=["X"])


def test_crop_beyond_the_end():
    for op_type in ("crop", "crop_tensor"):
        with pytest.raises(OperatorError, match="does not fit into a dimension of 4"):
            infer(op_type, {"X": X}, {"shape": [2, 4, 5], "offsets": [0, 1, 0]})
