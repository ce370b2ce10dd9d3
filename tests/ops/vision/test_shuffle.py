"""Pixels and channels in another order; spatial transformers; local response normalisation."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

X = np.linspace(-2, 2, 2 * 8 * 4 * 2).reshape(2, 8, 4, 2).astype("float32")
MOVES = np.array([[[0.9, 0.2, 0.1], [-0.1, 0.7, -0.3]], [[0.5, 0.0, 0.6], [0.3, 1.4, 0.2]]], "float32")


def test_pixel_shuffle():
    out = np.zeros((2, 2, 8, 4), "float32")
    for row in range(2):
        for column in range(2):
            out[:, :, row::2, column::2] = X[:, 2 * row + column :: 4]
    check("pixel_shuffle", {"X": X}, {"upscale_factor": 2}, {"Out": out}, grads=["X"])
    with pytest.raises(
        OperatorError, match="the square of upscale_factor must divide dimension 1 of X, 8, got 9"
    ):
        infer("pixel_shuffle", {"X": X}, {"upscale_factor": 3})


def test_space_to_depth():
    # Recorded from Paddle 1.8.5.
    ramp = np.arange(64, dtype="float32").reshape(1, 4, 4, 4)
    out = run_kernel("space_to_depth", {"X": ramp}, {"blocksize": 2})["Out"][0]
    np.testing.assert_array_equal(out[0, 0], [[0, 16], [1, 17]])
    np.testing.assert_array_equal(out[0, 2], [[32, 48], [33, 49]])
    np.testing.assert_array_equal(out[0, 15], [[46, 62], [47, 63]])
    check("space_to_depth", {"X": X}, {"blocksize": 2}, grads=["X"])
    with pytest.raises(OperatorError, match="blocksize must divide dimension 3 of X, 2, got 4"):
        infer("space_to_depth", {"X": X}, {"blocksize": 4})


def test_shuffle_channel():
    expected = np.ascontiguousarray(X[:, [0, 4, 1, 5, 2, 6, 3, 7]])
    check("shuffle_channel", {"X": X}, {"group": 2}, {"Out": expected})
    square = np.ascontiguousarray(X[:, :4])
    check("shuffle_channel", {"X": square}, {"group": 2}, grads=["X"])
    # Recorded from Paddle 1.8.5, which shuffles again where it should go back.
    channels = np.arange(8, dtype="float32").reshape(1, 8, 1, 1)
    inputs = {"X": channels, "Out@GRAD": channels}
    back = run_kernel("shuffle_channel_grad", inputs, {"group": 2})["X@GRAD"][0]
    np.testing.assert_array_equal(back.ravel(), [0, 4, 1, 5, 2, 6, 3, 7])


def test_temporal_shift():
    videos = X.reshape(2, 2, 4, 4, 2)
    out = videos.copy()
    out[:, 0, :1], out[:, 1, :1] = 0, videos[:, 0, :1]
    out[:, 0, 1:2], out[:, 1, 1:2] = videos[:, 1, 1:2], 0
    inputs, attrs = {"X": X.reshape(4, 4, 4, 2)}, {"seg_num": 2, "shift_ratio": 0.25}
    check("temporal_shift", inputs, attrs, {"Out": out.reshape(4, 4, 4, 2)}, grads=["X"])
    with pytest.raises(OperatorError, match="shift_ratio must be greater than 0 and less than 0.5, got 0.5"):
        infer("temporal_shift", inputs, {"seg_num": 2, "shift_ratio": 0.5})


def test_unfold():
    attrs = {"kernel_sizes": [2, 3], "strides": [2, 1], "paddings": [1, 0, 1, 2], "dilations": [1, 1]}
    padded = np.pad(X, ((0, 0), (0, 0), (1, 1), (0, 2)))
    blocks = [
        padded[:, :, row : row + 2, column : column + 3].reshape(2, -1)
        for row in (0, 2, 4)
        for column in (0, 1)
    ]
    expected = np.stack(blocks, axis=2).astype("float32")
    check("unfold", {"X": X}, attrs, {"Y": expected}, grads=["X"])
    with pytest.raises(OperatorError, match="no block fits"):
        infer("unfold", {"X": X}, {"kernel_sizes": [5, 1]})


def test_unfold_has_one_block_that_is_less_than_a_stride_too_large():
    attrs = {"kernel_sizes": [5, 1], "strides": [2, 1], "paddings": [0] * 4, "dilations": [1, 1]}
    padded = np.pad(X[:, :, :4], ((0, 0), (0, 0), (0, 1), (0, 0)))
    blocks = [padded[:, :, :, column].reshape(2, -1) for column in range(X.shape[3])]
    expected = np.stack(blocks, axis=2).astype("float32")
    check("unfold", {"X": X[:, :, :4]}, attrs, {"Y": expected}, grads=["X"])


def test_affine_channel():
    scale, bias = np.linspace(-1, 1, 8).astype("float32"), np.linspace(2, 3, 8).astype("float32")
    inputs = {"X": X, "Scale": scale, "Bias": bias}
    expected = X * scale.reshape(1, 8, 1, 1) + bias.reshape(1, 8, 1, 1)
    check("affine_channel", inputs, {"data_layout": "NCHW"}, {"Out": expected}, grads=list(inputs))
    inputs["X"] = np.ascontiguousarray(X.transpose(0, 2, 3, 1))
    check("affine_channel", inputs, {"data_layout": "NHWC"}, grads=list(inputs))
    # As Fluid's operator has it: channels are at the end where no layout is given.
    check("affine_channel", inputs, {}, {"Out": inputs["X"] * scale + bias}, grads=list(inputs))
    with pytest.raises(OperatorError, match=r"Scale must be of shape \[2\], got \[8\]"):
        infer("affine_channel", {**inputs, "X": X}, {"data_layout": "NHWC"})


def test_affine_grid():
    y, x = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 5), indexing="ij")
    base = np.stack([x, y, np.ones_like(x)], axis=-1)
    expected = np.einsum("hwk,njk->nhwj", base, MOVES).astype("float32")
    attrs = {"output_shape": [2, 8, 3, 5]}
    check("affine_grid", {"Theta": MOVES}, attrs, {"Output": expected}, grads=["Theta"])
    size = np.array([2, 8, 3, 5], "int32")
    check("affine_grid", {"Theta": MOVES, "OutputShape": size}, {}, {"Output": expected}, grads=["Theta"])


def test_grid_sampler():
    image = X[:, :2]
    y, x = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 2), indexing="ij")
    same = np.broadcast_to(np.stack([x, y], axis=-1), (2, 4, 2, 2)).astype("float32")
    check("grid_sampler", {"X": image, "Grid": same}, {}, {"Output": image}, rtol=1e-5, atol=1e-5)
    places = np.random.default_rng(5).uniform(-1.4, 1.4, (2, 3, 3, 2)).astype("float32")
    check("grid_sampler", {"X": image, "Grid": places}, {}, grads=["X", "Grid"])
    far = run_kernel("grid_sampler", {"X": image, "Grid": same * 0 + 9})["Output"][0]
    assert not far.any(), "there is nothing outside of the image"


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_lrn(data_format):
    x = X[:1] if data_format == "NCHW" else np.ascontiguousarray(X[:1].transpose(0, 2, 3, 1))
    axis = 1 if data_format == "NCHW" else 3
    padded = np.pad(x * x, [(1, 1) if k == axis else (0, 0) for k in range(4)])
    windows = sum(np.take(padded, range(k, k + 8), axis) for k in range(3))
    middle = 1.5 + 0.1 * windows
    outputs = {"Out": (x / middle**0.75).astype("float32"), "MidOut": middle.astype("float32")}
    attrs = {"n": 3, "k": 1.5, "alpha": 0.1, "beta": 0.75, "data_format": data_format}
    check("lrn", {"X": x}, attrs, outputs, grads=["X"])
    with pytest.raises(OperatorError, match="n must be positive and odd, got 4"):
        infer("lrn", {"X": x}, {"n": 4})
