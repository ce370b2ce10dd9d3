"""Pooling of regions and bent convolutions; numbers of Paddle 1.8.5 are in tests/conformance."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel
from ..sequences.test_sequence import lods_of

RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, (2, 2, 5, 6)).astype("float32")
ROIS = np.array([[0.2, 0.7, 3.1, 4.4], [1.3, 0.4, 9.2, 3.6], [2.1, 1.2, 2.4, 1.7]], "float32")
LODS = {"X": [[]], "ROIs": [[[0, 2, 3]]]}
IMAGES = (0, 0, 1)
SIZE = {"pooled_height": 2, "pooled_width": 3}


def at(image, y, x):
    """Linear interpolation; nothing beyond the pixels around the image."""
    high, wide = image.shape[1:]
    if not (-1 <= y <= high and -1 <= x <= wide):
        return np.zeros(len(image))
    y, x = min(max(y, 0), high - 1), min(max(x, 0), wide - 1)
    top, left = int(y), int(x)
    low, right = min(top + 1, high - 1), min(left + 1, wide - 1)
    rows = image[:, top] * (1 - (y - top)) + image[:, low] * (y - top)
    return rows[:, left] * (1 - (x - left)) + rows[:, right] * (x - left)


def aligned(samples):
    out = np.zeros((3, 2, 2, 3), "float32")
    for r, (x0, y0, x1, y1) in enumerate(ROIS.astype("float64")):
        down, across = max(y1 - y0, 1) / 2, max(x1 - x0, 1) / 3
        n, m = (samples or int(np.ceil(down))), (samples or int(np.ceil(across)))
        for i, j in np.ndindex(2, 3):
            places = [
                (y0 + (i + (k + 0.5) / n) * down, x0 + (j + (q + 0.5) / m) * across)
                for k, q in np.ndindex(n, m)
            ]
            out[r, :, i, j] = np.mean([at(X[IMAGES[r]], *place) for place in places], axis=0)
    return out


@pytest.mark.parametrize("samples", [2, 0])
def test_roi_align(samples):
    attrs = SIZE | {"sampling_ratio": samples or -1}
    check("roi_align", {"X": X, "ROIs": ROIS}, attrs, {"Out": aligned(samples)}, grads=["X"], lods=LODS)


def test_offsets_instead_of_sequences():
    inputs = {"X": X, "ROIs": ROIS, "RoisLod": np.array([0, 2, 3])}
    check("roi_align", inputs, SIZE | {"sampling_ratio": 2}, {"Out": aligned(2)}, programs=False)
    with pytest.raises(OperatorError, match="ROIs has no LoD information"):
        run_kernel("roi_align", {"X": X, "ROIs": ROIS}, SIZE)
    with pytest.raises(OperatorError, match="1 sequences of 3 regions for 2 images and 3 regions"):
        run_kernel("roi_align", {"X": X, "ROIs": ROIS}, SIZE, {"ROIs": [[[0, 3]]]})


def test_roi_pool():
    out, where = np.zeros((3, 2, 2, 3), "float32"), np.full((3, 2, 2, 3), -1, "int64")
    for r, roi in enumerate(ROIS):
        x0, y0, x1, y1 = np.floor(roi + 0.5).astype(int)
        for i, j in np.ndindex(2, 3):
            edges = [
                (int(np.floor(k * n / m)) + s, int(np.ceil((k + 1) * n / m)) + s)
                for k, n, m, s in ((i, y1 - y0 + 1, 2, y0), (j, x1 - x0 + 1, 3, x0))
            ]
            rows, columns = (range(max(a, 0), min(b, n)) for (a, b), n in zip(edges, (5, 6), strict=True))
            for c in range(2):
                best = [(X[IMAGES[r], c, y, x], -(6 * y + x)) for y in rows for x in columns]
                if best:
                    out[r, c, i, j], place = max(best)
                    where[r, c, i, j] = -place
    check("roi_pool", {"X": X, "ROIs": ROIS}, SIZE, {"Out": out, "Argmax": where}, grads=["X"], lods=LODS)
    assert (where == -1).any()


def test_psroi_pool():
    x = RNG.uniform(-1, 1, (2, 4, 5, 6)).astype("float32")
    rois = np.array([[0, 1, 3, 4], [1, 0, 2, 2], [2, 1, 40, 2]], "float32")
    out = np.zeros((3, 1, 2, 2), "float32")
    for r, (x0, y0, x1, y1) in enumerate(rois):
        down, across = (y1 + 1 - y0) / 2, (x1 + 1 - x0) / 2
        for i, j in np.ndindex(2, 2):
            rows = slice(int(np.floor(y0 + i * down)), int(np.ceil(y0 + (i + 1) * down)))
            columns = slice(int(np.floor(x0 + j * across)), int(np.ceil(x0 + (j + 1) * across)))
            part = x[IMAGES[r], 2 * i + j, rows, columns]
            out[r, 0, i, j] = part.mean() if part.size else 0
    attrs = {"output_channels": 1, "pooled_height": 2, "pooled_width": 2}
    check("psroi_pool", {"X": x, "ROIs": rois}, attrs, {"Out": out}, grads=["X"], lods=LODS)
    with pytest.raises(OperatorError, match="X must have 2 x 2 x 2 channels, got 4"):
        infer("psroi_pool", {"X": x, "ROIs": rois}, attrs | {"output_channels": 2})


def test_prroi_pool():
    made = run_kernel("prroi_pool", {"X": X, "ROIs": ROIS}, SIZE, LODS)["Out"][0]
    padded = np.pad(X[0], ((0, 0), (0, 9), (0, 9)))
    x0, y0, x1, y1 = ROIS[1].astype("float64")
    ys, xs = (
        (np.arange(40) + 0.5) / 40 * (y1 - y0) / 2 + y0,
        (np.arange(40) + 0.5) / 40 * (x1 - x0) / 3 + x0,
    )
    mean = np.mean([[at(padded, y, x) for x in xs] for y in ys], axis=(0, 1))
    np.testing.assert_allclose(made[1, :, 0, 0], mean, atol=5e-3)
    empty = np.array([[1, 1, 0.5, 3]], "float32")
    assert not run_kernel("prroi_pool", {"X": X[:1], "ROIs": empty}, SIZE, {"ROIs": [[[0, 1]]]})["Out"][
        0
    ].any()
    attrs = {"pooled_height": 2, "pooled_width": 2, "spatial_scale": 0.9}
    check("prroi_pool", {"X": X[:, :1], "ROIs": ROIS}, attrs, grads=["X", "ROIs"], lods=LODS)


def test_roi_perspective_transform():
    quad = np.array([[1, 1, 4, 1, 4, 3, 1, 3]], "float32")
    attrs = {"transformed_height": 3, "transformed_width": 5}
    inputs, lods = {"X": X[:1], "ROIs": quad}, {"X": [[]], "ROIs": [[[0, 1]]]}
    made = run_kernel("roi_perspective_transform", inputs, attrs, lods)
    # A rectangle of 3 by 2 is 4 columns for 3 rows; what is left of the width stays empty.
    np.testing.assert_allclose(made["Out"][0][0, :, :, :4], X[0][:, 1:4, 1:5], rtol=1e-5, atol=1e-6)
    assert not made["Out"][0][0, :, :, 4].any()
    assert made["Mask"][0][0, 0].tolist() == [[1, 1, 1, 1, 0]] * 3
    np.testing.assert_allclose(made["TransformMatrix"][0][0].reshape(3, 3) @ [3, 2, 1], [4, 3, 1], rtol=1e-5)
    tilted = quad + np.array([[0, 0.3, 0.2, 0, 0.4, 0.3, -0.2, 0]], "float32")
    check("roi_perspective_transform", inputs | {"ROIs": tilted}, attrs, grads=["X"], lods=lods)
    assert lods_of("roi_perspective_transform", inputs, attrs, lods)[0] == [[0, 1]]
    more = run_kernel(
        "roi_perspective_transform", inputs | {"X": X}, attrs, lods
    )  # the other images have no regions
    assert (more["Out"][0] == made["Out"][0]).all()
    with pytest.raises(OperatorError, match="2 sequences of 1 regions for 1 images"):
        run_kernel("roi_perspective_transform", inputs, attrs, lods | {"ROIs": [[[0, 1, 1]]]})


BENT = {"strides": [2, 1], "paddings": [1, 0], "dilations": [1, 1], "groups": 1, "deformable_groups": 1}


def bent(image, offset, mask, filter_):
    out = np.zeros((len(filter_), 3, 5))
    for o, i, j in np.ndindex(out.shape):
        for k, q in np.ndindex(2, 2):
            y, x = 2 * i - 1 + k + offset[2 * (2 * k + q), i, j], j + q + offset[2 * (2 * k + q) + 1, i, j]
            padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
            inside = -1 < y < 5 and -1 < x < 6
            value = at(padded, y + 1, x + 1) if inside else np.zeros(len(image))
            out[o, i, j] += (value * filter_[o, :, k, q]).sum() * mask[2 * k + q, i, j]
    return out


@pytest.mark.parametrize("modulated", [True, False])
def test_deformable_conv(modulated):
    inputs = {
        "Input": X[:1],
        "Offset": RNG.uniform(-2, 2, (1, 8, 3, 5)).astype("float32"),
        "Mask": RNG.uniform(0, 1, (1, 4, 3, 5)).astype("float32"),
        "Filter": RNG.uniform(-1, 1, (2, 2, 2, 2)).astype("float32"),
    }
    mask = inputs["Mask"][0] if modulated else np.ones((4, 3, 5))
    want = bent(X[0].astype("float64"), inputs["Offset"][0], mask, inputs["Filter"])[None].astype("float32")
    grads = ["Input", "Offset", "Mask", "Filter"]
    if not modulated:
        del inputs["Mask"], grads[2]
    op_type = "deformable_conv" if modulated else "deformable_conv_v1"
    check(op_type, inputs, BENT, {"Output": want}, grads=grads, rtol=1e-4, atol=1e-5)


def test_one_bent_window_that_is_less_than_a_stride_too_large():
    image, filter_ = X[:1, :, :3, :3], RNG.uniform(-1, 1, (2, 2, 4, 4)).astype("float32")
    still = {"Offset": np.zeros((1, 32, 1, 1), "float32"), "Mask": np.ones((1, 16, 1, 1), "float32")}
    inputs = {"Input": image, "Filter": filter_, **still}
    want = np.einsum("nchw,ochw->no", image, filter_[:, :, :3, :3])[:, :, None, None]
    check(
        "deformable_conv", inputs, {"strides": [2, 2]}, {"Output": want}, grads=["Input", "Filter"], atol=1e-5
    )
    with pytest.raises(OperatorError, match=r"smaller than the filter: the output would be \[0, 0\]"):
        infer("deformable_conv", inputs, {})


def test_groups_of_bent_windows():
    filter_ = RNG.uniform(-1, 1, (4, 1, 1, 1)).astype("float32")
    offset = np.zeros((2, 4, 5, 6), "float32")
    offset[:, 3] = 1  # the second half of the channels is taken from one to the right
    attrs = {"groups": 2, "deformable_groups": 2}
    inputs = {"Input": X, "Offset": offset, "Mask": np.ones((2, 2, 5, 6), "float32"), "Filter": filter_}
    moved = np.pad(X[:, 1], ((0, 0), (0, 0), (0, 1)))[:, :, 1:]
    want = np.stack(
        [X[:, 0] * filter_[0], X[:, 0] * filter_[1], moved * filter_[2], moved * filter_[3]], axis=1
    )
    check("deformable_conv", inputs, attrs, {"Output": want.reshape(2, 4, 5, 6)})
    with pytest.raises(OperatorError, match=r"Offset must be \[batch, 2, 5, 6\]"):
        infer("deformable_conv", inputs, {"groups": 2})
    with pytest.raises(OperatorError, match="2 channels do not match Filter"):
        infer("deformable_conv", inputs, {"deformable_groups": 2})


def test_deformable_psroi_pooling():
    rois = np.array([[0, 0, 3, 3], [1, 1, 4, 3], [2, 1, 5, 4]], "float32")
    inputs = {"Input": X, "ROIs": rois, "Trans": np.zeros((3, 2, 2, 2), "float32")}
    attrs = {
        "output_dim": 2, "pooled_height": 2, "pooled_width": 2, "part_size": [2, 2], "sample_per_part": 2,
    }  # fmt: skip
    lods = {"Input": [[]], "ROIs": LODS["ROIs"], "Trans": [[]]}
    # Regions begin half a place before their first one, and four samples of a bin are a place apart.
    made = run_kernel("deformable_psroi_pooling", inputs, attrs, lods)["Output"][0]
    places = [(2 + y - 0.5, 0 + x - 0.5) for y in range(2) for x in range(2)]
    want = np.mean([at(X[0], max(y, 0), max(x, 0)) for y, x in places], axis=0)
    np.testing.assert_allclose(made[0, :, 1, 0], want, rtol=1e-5)
    inputs["Trans"] = RNG.uniform(-0.4, 0.4, (3, 2, 2, 2)).astype("float32")
    check("deformable_psroi_pooling", inputs, attrs, grads=["Input", "Trans"], lods=lods)
    check(
        "deformable_psroi_pooling",
        inputs,
        attrs | {"no_trans": True},
        {"Output": made},
        programs=False,
        lods=lods,
    )


@pytest.mark.parametrize(
    ("attrs", "message"),
    [({"pooled_height": 0}, "must be positive, got 0"), ({"spatial_scale": 0.0}, "must be positive")],
)
def test_sizes_must_be_positive(attrs, message):
    for op_type in ("roi_align", "roi_pool", "prroi_pool"):
        with pytest.raises(OperatorError, match=message):
            infer(op_type, {"X": X, "ROIs": ROIS}, attrs)
    with pytest.raises(OperatorError, match=r"ROIs \[regions, 4\]"):
        infer("roi_align", {"X": X, "ROIs": ROIS[:, :3]})
