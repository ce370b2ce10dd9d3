"""Images of another size; expected numbers are those of Fluid 1.8.5 and of SciPy-free definitions."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.data import data
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

IMAGE = ((np.arange(72) % 7) / 7.0).reshape(2, 3, 4, 3).astype("float32")

# Sizes, then the first image of the first sample, recorded.
RECORDED = [
    (
        "bilinear_interp",
        {"out_h": 2, "out_w": 5},
        [
            [0.0, 0.0714286, 0.1428571, 0.2142857, 0.2857143],
            [0.2857143, 0.3571429, 0.4285714, 0.5, 0.5714286],
        ],
    ),
    ("nearest_interp", {"scale": 0.5}, [[0.0], [0.2857143]]),
    (
        "bilinear_interp",
        {"out_h": 3, "out_w": 3},
        [[0, 0.1428571, 0.2857143], [0.6428571, 0.2857143, 0.4285714], [0.2857143, 0.4285714, 0.5714286]],
    ),
]


@pytest.mark.parametrize(("op_type", "attrs", "first"), RECORDED)
def test_recorded_images(op_type, attrs, first):
    out = run_kernel(op_type, {"X": IMAGE}, attrs)["Out"][0]
    np.testing.assert_allclose(out[0, 0], first, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("align_mode", [0, 1])
@pytest.mark.parametrize("op_type", ["bilinear_interp", "nearest_interp", "bicubic_interp"])
def test_images(op_type, align_corners, align_mode):
    for sizes in (
        {"out_h": 7, "out_w": 5},
        {"out_h": 2, "out_w": 2},
        {"out_h": 1, "out_w": 4},
        {"scale": 1.5},
    ):
        attrs = {**sizes, "align_corners": align_corners, "align_mode": align_mode}
        check(op_type, {"X": IMAGE[:1, :2]}, attrs, grads=["X"])


@pytest.mark.parametrize("op_type", ["bilinear_interp", "nearest_interp", "bicubic_interp"])
def test_channels_last(op_type):
    last = np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1))
    expected = run_kernel(op_type, {"X": IMAGE}, {"out_h": 5, "out_w": 4})["Out"][0].transpose(0, 2, 3, 1)
    attrs = {"out_h": 5, "out_w": 4, "data_layout": "NHWC"}
    check(op_type, {"X": last}, attrs, {"Out": np.ascontiguousarray(expected)})


def test_linear_in_one_and_three_dimensions():
    rows = IMAGE[0]
    expected = np.stack([[np.interp(np.linspace(0, 2, 5), range(3), row) for row in image] for image in rows])
    check("linear_interp", {"X": rows}, {"out_w": 5}, {"Out": expected.astype("float32")}, grads=["X"])
    volume = (np.arange(12) % 7 / 7.0).reshape(1, 1, 2, 2, 3).astype("float32")
    attrs = {"out_d": 2, "out_h": 3, "out_w": 4, "align_corners": False, "align_mode": 0}
    first = [0.0, 0.0892857, 0.1964286, 0.2857143, 0.2142857, 0.3035714]
    out = run_kernel("trilinear_interp", {"X": volume}, attrs)["Out"][0]
    np.testing.assert_allclose(out.ravel()[:6], first, rtol=1e-5, atol=1e-6)
    check("trilinear_interp", {"X": volume}, attrs, grads=["X"])


def test_cubic_keeps_what_is_linear_and_equal_sizes():
    ramp = np.add.outer(np.arange(6.0), 2 * np.arange(7.0)).reshape(1, 1, 6, 7)
    out = run_kernel("bicubic_interp", {"X": ramp}, {"out_h": 11, "out_w": 13})["Out"][0]
    inside = np.add.outer(np.linspace(0, 5, 11), 2 * np.linspace(0, 6, 13))
    np.testing.assert_allclose(out[0, 0, 2:-2, 2:-2], inside[2:-2, 2:-2], rtol=1e-5)
    same = run_kernel("bicubic_interp", {"X": ramp}, {"out_h": 6, "out_w": 7})["Out"][0]
    np.testing.assert_allclose(same, ramp, atol=1e-5)


def test_sizes_from_tensors():
    by_attributes = run_kernel("bilinear_interp", {"X": IMAGE}, {"out_h": 6, "out_w": 4})["Out"][0]
    size, scale = np.array([6, 4], "int32"), np.array([1.5], "float32")
    parts = [np.array([6], "int32"), np.array([4], "int32")]
    for inputs in ({"OutSize": size}, {"SizeTensor": parts}, {"Scale": scale}):
        check("bilinear_interp", {"X": IMAGE, **inputs}, {}, {"Out": by_attributes}, grads=["X"])


def test_what_is_fed_decides_not_what_was_declared(programs):
    image, size = data("x", [1, 1, 4, 3], "float32"), data("size", [2], "int32")
    outs = [
        layers.resize_bilinear(image, [2, 2], actual_shape=size),
        layers.resize_nearest(image, [2, 2], actual_shape=size, align_corners=False),
    ]
    exe = fluid.Executor()
    for sizes in ([3, 5], [2, 2], [6, 6]):
        feed = {"x": IMAGE[:1, :1], "size": np.array(sizes, "int32")}
        for op_type, out, corners in zip(
            ("bilinear_interp", "nearest_interp"), outs, (True, False), strict=True
        ):
            attrs = {"out_h": sizes[0], "out_w": sizes[1], "align_corners": corners}
            want = run_kernel(op_type, {"X": IMAGE[:1, :1]}, attrs)["Out"][0]
            np.testing.assert_allclose(exe.run(feed=feed, fetch_list=[out])[0], want, rtol=1e-6)


BYTES = np.array([[144, 255, 80], [160, 144, 242], [18, 75, 183]], "uint8").reshape(1, 1, 3, 3)


@pytest.mark.parametrize(
    ("align_corners", "align_mode", "middle"),
    [
        (True, 1, [154, 181, 188, 112, 121, 222]),
        (False, 0, [154, 185, 181, 106, 118, 219]),
        (False, 1, [156, 171, 201, 89, 109, 212]),
    ],
)
def test_pictures_of_bytes(align_corners, align_mode, middle):
    """Recorded on Paddle 1.8.5."""
    attrs = {"out_h": 4, "out_w": 3, "align_corners": align_corners, "align_mode": align_mode}
    want = np.array([144, 255, 80, *middle, 18, 75, 183], "uint8").reshape(1, 1, 4, 3)
    check("bilinear_interp", {"X": BYTES}, attrs, {"Out": want})


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_whole_numbers_are_resized(programs, dtype):
    """Fluid's layers take any dtype: labels of pictures are resized so. uint8 is as recorded on Paddle 1.8.5."""
    x = data("x", [1, 1, 2, 4], dtype)
    outs = [
        layers.resize_nearest(x, [2, 8]),
        layers.resize_bilinear(x, [2, 8]),
        layers.image_resize_short(x, 4),
    ]
    made = fluid.Executor(fluid.CPUPlace()).run(
        feed={"x": np.arange(8).reshape(1, 1, 2, 4).astype(dtype)}, fetch_list=outs
    )
    assert [out.dtype for out in made] == [np.dtype(dtype)] * 3
    assert made[0].ravel()[:8].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert made[1].ravel()[:8].tolist() == [0, 0, 0, 1, 1, 2, 2, 3]


def test_what_does_not_fit():
    with pytest.raises(OperatorError, match="there must be 2 new sizes, all positive, got \\[0, 3\\]"):
        infer("bilinear_interp", {"X": IMAGE}, {"out_h": 0, "out_w": 3})
    with pytest.raises(OperatorError, match="X must have 5 dimensions"):
        infer("trilinear_interp", {"X": IMAGE}, {"out_d": 1, "out_h": 2, "out_w": 3})


def test_truth_values_are_not_mixed():
    with pytest.raises(OperatorError, match="X must be floats or integers, got bool: cast it"):
        infer("bilinear_interp", {"X": np.ones((1, 1, 2, 2), bool)}, {"out_h": 3, "out_w": 3})
    check("nearest_interp", {"X": np.eye(2, dtype=bool)[None, None]}, {"out_h": 2, "out_w": 2}, {
        "Out": np.eye(2, dtype=bool)[None, None]
    })  # fmt: skip
