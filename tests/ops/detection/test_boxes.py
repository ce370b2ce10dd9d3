"""Boxes: overlaps, offsets, edges; prior boxes and anchors. Recorded numbers are those of Paddle 1.8.5."""

import numpy as np
import pytest

from fluidlite.ops.detection.boxes import overlaps, polygon_overlap
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

A = np.array([[0, 0, 1, 1], [1.5, 0, 2.5, 1], [0, 0.5, 1, 3], [5, 5, 4, 4], [0, 0, 0, 0]], "float32")
PRIORS = np.array([[0, 0, 0.5, 1], [0.25, 0.25, 1, 0.75]], "float32")
SPREAD = np.array([[0.1, 0.1, 0.2, 0.2], [0.5, 0.25, 1, 2]], "float32")


def one_overlap(a, b, more):
    sides = [max(min(a[k + 2], b[k + 2]) - max(a[k], b[k]) + more, 0) for k in range(2)]
    own = [
        (c[2] - c[0] + more) * (c[3] - c[1] + more) if c[2] >= c[0] and c[3] >= c[1] else 0 for c in (a, b)
    ]
    union = sum(own) - sides[0] * sides[1]
    return sides[0] * sides[1] / union if union > 0 else 0


@pytest.mark.parametrize("normalized", [True, False])
def test_iou_similarity(normalized):
    want = np.array([[one_overlap(a, b, 1 - normalized) for b in A[:3]] for a in A], "float32")
    check("iou_similarity", {"X": A, "Y": A[:3]}, {"box_normalized": normalized}, {"Out": want})
    assert want[0, 2] == pytest.approx(0.5 / 3 if normalized else 3 / 8)


def test_corners_beyond_the_others():
    """As in Paddle 1.8.5, iou_similarity does not clip negative extents of a box."""
    x = np.array([[0.5508, 0.7081, 0.2909, 0.5108], [0.8929, 0.8963, 0.1256, 0.2072]], "float32")
    y = np.array([[0.0515, 0.4408, 0.0299, 0.4568]], "float32")
    want = [one_unchecked(box.tolist(), y[0].tolist()) for box in x]
    out = run_kernel("iou_similarity", {"X": x, "Y": y}, {"box_normalized": False})["Out"][0]
    np.testing.assert_allclose(out[:, 0], want, rtol=1e-4)
    np.testing.assert_allclose(want, [0.291733, 0.041586], rtol=1e-3)


def one_unchecked(a, b):
    own = [(c[2] - c[0] + 1) * (c[3] - c[1] + 1) for c in (a, b)]
    sides = [max(min(a[k + 2], b[k + 2]) - max(a[k], b[k]) + 1, 0) for k in range(2)]
    return sides[0] * sides[1] / (sum(own) - sides[0] * sides[1])


def test_overlaps_of_polygons():
    square = np.array([[0, 0], [2, 0], [2, 2], [0, 2]], float)
    assert polygon_overlap(square, square[::-1]) == pytest.approx(1)
    assert polygon_overlap(square, square + 1) == pytest.approx(1 / 7)
    assert polygon_overlap(square, square + [3, 0]) == 0
    diamond = np.array([[1, -1], [3, 1], [1, 3], [-1, 1]], float)
    assert polygon_overlap(square, diamond) == pytest.approx(4 / 8)


def test_overlaps_of_polygons_of_any_shape():
    """As Fluid: what both go around, by what each goes around on balance."""
    square = np.array([[0, 0], [4, 0], [4, 4], [0, 4]], float)
    arrow = np.array([[0, 0], [4, 0], [1, 1], [0, 4]], float)
    corner = np.array([[2, 2], [4, 2], [4, 4], [2, 4]], float)
    bow = np.array([[0, 0], [4, 4], [4, 0], [0, 4]], float)
    uneven = np.array([[0, 0], [4, 4], [4, 0], [0, 2]], float)
    assert polygon_overlap(square, arrow) == pytest.approx(4 / 16)
    assert polygon_overlap(corner, arrow) == 0
    assert polygon_overlap(bow, square) == polygon_overlap(bow, bow) == 0
    right, left = 4 * (4 - 4 / 3) / 2, 2 * 4 / 3 / 2
    assert polygon_overlap(square, uneven) == pytest.approx(
        (right + left) / (16 + right - left - right - left)
    )
    star = square[[0, 2, 1, 3]] + [[0, 0.5], [0, 0], [0, 0], [0, 0]]
    assert polygon_overlap(star, uneven) == pytest.approx(polygon_overlap(uneven[::-1], star))


def test_overlaps_of_random_polygons():
    """Against counting fine points."""
    random = np.random.default_rng(0)
    sides = np.linspace(0, 2, 401)[:-1] + 0.0025
    x, y = np.meshgrid(sides, sides)

    def holds(corners):
        found = np.zeros(x.shape, bool)
        for (a, b), (c, d) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            if b != d:
                found ^= ((b <= y) != (d <= y)) & (a + (y - b) * (c - a) / (d - b) < x)
        return found

    for count in (3, 4, 5, 8):
        for _ in range(4):
            first, second = random.uniform(0, 2, (2, count, 2))
            shared = np.count_nonzero(holds(first) & holds(second)) * (2 / 400) ** 2
            areas = [
                abs((p[:, 0] * np.roll(p[:, 1], -1) - p[:, 1] * np.roll(p[:, 0], -1)).sum() / 2)
                for p in (first, second)
            ]
            union = sum(areas) - shared
            if abs(union) > 0.1:
                assert polygon_overlap(first, second) == pytest.approx(shared / union, abs=0.02 / abs(union))
    assert overlaps(np, A[:1], A[1:2])[0, 0] == 0


def test_offsets_and_back():
    boxes = np.array([[0.1, 0.2, 0.4, 0.5], [0, 0, 1, 1], [0.3, 0.1, 0.9, 0.8]], "float32")
    attrs = {"code_type": "encode_center_size"}
    made = run_kernel("box_coder", {"PriorBox": PRIORS, "PriorBoxVar": SPREAD, "TargetBox": boxes}, attrs)
    offsets = made["OutputBox"][0]
    assert offsets.shape == (3, 2, 4)
    np.testing.assert_allclose(
        offsets[0, 0], [0, -1.5, np.log(0.6) / 0.2, np.log(0.3) / 0.2], rtol=1e-5, atol=1e-6
    )
    inputs = {"PriorBox": PRIORS, "PriorBoxVar": SPREAD, "TargetBox": offsets}
    want = np.repeat(boxes[:, None], 2, axis=1)
    check("box_coder", inputs, {"code_type": "decode_center_size"}, {"OutputBox": want})
    inputs["TargetBox"] = offsets.swapaxes(0, 1).copy()
    check(
        "box_coder",
        inputs,
        {"code_type": "decode_center_size", "axis": 1},
        {"OutputBox": want.swapaxes(0, 1)},
    )


def test_offsets_of_pixels():
    prior, box = np.array([[2, 3, 5, 9]], "float32"), np.array([[1, 2, 8, 5]], "float32")
    # Recorded: the middle of the box counts no pixel more, its sides and the prior box do.
    want = np.array([[[0.5 / 4 / 0.1, -3 / 7 / 0.1, np.log(2) / 0.2, np.log(4 / 7) / 0.2]]], "float32")
    attrs = {"box_normalized": False, "variance": [0.1, 0.1, 0.2, 0.2]}
    want[0, 0, :2] = [(4.5 - 4) / 4 / 0.1, (3.5 - 6.5) / 7 / 0.1]
    check("box_coder", {"PriorBox": prior, "TargetBox": box}, attrs, {"OutputBox": want})


@pytest.mark.parametrize(
    ("attrs", "shapes", "message"),
    [
        (
            {"code_type": "x"},
            [(2, 4), (3, 2, 4)],
            "code_type must be encode_center_size or decode_center_size",
        ),
        ({}, [(2, 4), (3, 2, 4)], r"TargetBox must be \[boxes, 4\] to be encoded"),
        ({"code_type": "decode_center_size"}, [(2, 4), (3, 3, 4)], "dimension 1 of TargetBox"),
        ({"axis": 2}, [(2, 4), (3, 4)], "axis must be 0 or 1, got 2"),
        ({"variance": [1.0]}, [(2, 4), (3, 4)], "variance must be 4 numbers"),
        ({}, [(2, 5), (3, 4)], "PriorBox must be boxes of 4 numbers"),
    ],
)
def test_offsets_that_do_not_fit(attrs, shapes, message):
    prior, target = (np.zeros(shape, "float32") for shape in shapes)
    with pytest.raises(OperatorError, match=message):
        infer("box_coder", {"PriorBox": prior, "TargetBox": target}, attrs, exact=True)


def test_box_decoder_and_assign():
    prior = np.array([[0, 0, 9, 19], [10, 10, 19, 14]], "float32")
    offsets = np.zeros((2, 12), "float32")
    offsets[0, 4:8] = [1, -2, 9, 0.5]
    scores = np.array([[0.1, 0.7, 0.2], [0.9, 0.2, 0.3]], "float32")
    inputs = {
        "PriorBox": prior,
        "PriorBoxVar": np.array([0.1, 0.2, 0.5, 1], "float32"),
        "TargetBox": offsets,
        "BoxScore": scores,
    }
    made = run_kernel("box_decoder_and_assign", inputs, {"box_clip": 1.0})
    moved = [6 - 5 * np.e, 2 - 10 * np.exp(0.5), 6 + 5 * np.e - 1, 2 + 10 * np.exp(0.5) - 1]
    want = np.array([moved, prior[1]], "float32")
    check("box_decoder_and_assign", inputs, {"box_clip": 1.0}, {"OutputAssignBox": want})
    np.testing.assert_allclose(made["DecodeBox"][0][1], np.tile(prior[1], 3), rtol=1e-6)


def test_box_clip():
    boxes = np.array([[-1, 2, 50, 3], [4, 60, 5, 6], [7, -8, 90, 80]], "float32")
    info = np.array([[30, 20, 2], [25, 44, 0.5]], "float32")
    want = np.array([[0, 2, 9, 3], [4, 14, 5, 6], [7, 0, 87, 49]], "float32")
    lods = {"Input": [[[0, 2, 3]]], "ImInfo": [[]]}
    check("box_clip", {"Input": boxes, "ImInfo": info}, {}, {"Output": want}, lods=lods)
    nothing = {"Input": boxes, "ImInfo": np.array([[0, 0, 1]] * 2, "float32")}
    check("box_clip", nothing, {}, {"Output": np.zeros_like(boxes)}, lods=lods)
    with pytest.raises(OperatorError, match="Input has no LoD information"):
        run_kernel("box_clip", {"Input": boxes, "ImInfo": info})
    with pytest.raises(OperatorError, match="a row for each of the 2 sequences of Input, got 1"):
        run_kernel("box_clip", {"Input": boxes, "ImInfo": info[:1]}, lods=lods)


def test_polygon_box_transform():
    x = np.arange(24, dtype="float32").reshape(1, 4, 2, 3)
    want = np.stack([4 * np.arange(3) - x[0, 0], np.array([[0], [4]]) - x[0, 1]])
    check("polygon_box_transform", {"Input": x[:, :2]}, {}, {"Output": want[None].astype("float32")})
    with pytest.raises(OperatorError, match="an even number"):
        infer("polygon_box_transform", {"Input": x[:, :3]})


IMAGES = {"Input": np.zeros((1, 2, 2, 3), "float32"), "Image": np.zeros((1, 3, 20, 60), "float32")}


def test_prior_box():
    attrs = {"min_sizes": [4.0], "max_sizes": [9.0], "aspect_ratios": [4.0], "flip": True, "clip": False}
    got = run_kernel("prior_box", IMAGES, attrs)
    wide, high = np.array([4, 8, 2, 6]), np.array([4, 2, 8, 6])
    x, y = np.array([10, 30, 50])[None, :, None], np.array([5, 15])[:, None, None]
    sides = [(x - wide / 2) / 60 + 0 * y, (y - high / 2) / 20 + 0 * x, (x + wide / 2) / 60 + 0 * y]
    want = np.stack([*sides, (y + high / 2) / 20 + 0 * x], axis=-1).astype("float32")
    np.testing.assert_allclose(got["Boxes"][0], want, rtol=1e-6)
    order = attrs | {"min_max_aspect_ratios_order": True}
    check("prior_box", IMAGES, order, {"Boxes": want[:, :, [0, 3, 1, 2]]})
    check("prior_box", IMAGES, attrs | {"clip": True}, {"Boxes": want.clip(0, 1)})


def test_density_prior_box():
    attrs = {"densities": [2], "fixed_sizes": [4.0], "fixed_ratios": [4.0], "flatten_to_2d": True}
    got = run_kernel("density_prior_box", IMAGES, attrs)["Boxes"][0]
    # Steps are 20 and 10, their mean 15, a grid of 2 shifts by 15 // 2 from 15 / 2 before the middle on.
    middles = [(10 - 7.5 + 3.5 + 7 * j, 5 - 7.5 + 3.5 + 7 * i) for i in range(2) for j in range(2)]
    want = [[(x - 4) / 60, (y - 1) / 20, (x + 4) / 60, (y + 1) / 20] for x, y in middles]
    np.testing.assert_allclose(got[:4], np.clip(want, 0, 1), rtol=1e-5)
    check("density_prior_box", IMAGES, attrs, {"Boxes": got})


def test_anchor_generator():
    attrs = {"anchor_sizes": [32.0], "aspect_ratios": [0.5, 1.0], "stride": [16.0, 16.0]}
    got = run_kernel("anchor_generator", {"Input": IMAGES["Input"]}, attrs)["Anchors"][0]
    # Recorded: sides are rounded at the size of the stride, 23 by 12, and middles are half a pixel back.
    np.testing.assert_allclose(got[0, 0], [[-15, -4, 30, 19], [-8, -8, 23, 23]])
    np.testing.assert_allclose(got[1, 2], got[0, 0] + [32, 16, 32, 16])
    spread = np.broadcast_to(np.array([0.1, 0.1, 0.2, 0.2], "float32"), got.shape)
    check("anchor_generator", {"Input": IMAGES["Input"]}, attrs, {"Anchors": got, "Variances": spread})


@pytest.mark.parametrize(
    ("op_type", "attrs", "message"),
    [
        ("prior_box", {"min_sizes": []}, "min_sizes must be positive"),
        (
            "prior_box",
            {"min_sizes": [4.0], "max_sizes": [3.0]},
            r"max_sizes must be greater than the min_sizes \[4.0\]",
        ),
        ("prior_box", {"min_sizes": [4.0], "variances": [1.0]}, "variances must be 4 positive numbers"),
        ("prior_box", {"min_sizes": [4.0], "aspect_ratios": [-1.0]}, "aspect_ratios must be positive"),
        ("density_prior_box", {"densities": [1], "fixed_sizes": []}, "a density for each of the fixed_sizes"),
        ("anchor_generator", {"anchor_sizes": [8.0], "stride": [1.0]}, "both strides must be positive"),
    ],
)
def test_sizes_that_do_not_fit(op_type, attrs, message):
    with pytest.raises(OperatorError, match=message):
        infer(op_type, IMAGES if op_type != "anchor_generator" else {"Input": IMAGES["Input"]}, attrs)
