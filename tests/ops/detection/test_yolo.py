"""YOLO v3; recorded numbers are those of Paddle 1.8.5, more are in tests/conformance."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

RNG = np.random.default_rng(5)
LOSS = {
    "class_num": 2,
    "anchors": [10, 13, 30, 40],
    "anchor_mask": [1],
    "downsample_ratio": 32,
    "ignore_thresh": 0.5,
}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cross_entropy(x, label):
    return -label * np.log(sigmoid(x)) - (1 - label) * np.log(1 - sigmoid(x))


def one_box(score=1.0, **attrs):
    x = RNG.uniform(-1, 1, (1, 7, 2, 2)).astype("float32")
    box = np.array([[[0.7, 0.2, 0.5, 0.7], [0.5, 0.5, 0, 0.3]]], "float32")
    inputs = {"X": x, "GTBox": box, "GTLabel": np.array([[1, 0]], "int32")}
    cell = x[0, :, 0, 1].astype("float64")
    cost = cross_entropy(cell[0], 0.4) + cross_entropy(cell[1], 0.4)
    cost += abs(cell[2] - np.log(0.5 * 64 / 30)) + abs(cell[3] - np.log(0.7 * 64 / 40))
    smooth = 1 / 40 if attrs.get("use_label_smooth", True) else 0
    cost = (2 - 0.5 * 0.7) * cost + cross_entropy(cell[5], smooth) + cross_entropy(cell[6], 1 - smooth)
    cost = score * (cost + cross_entropy(cell[4], 1))
    rest = [cross_entropy(x[0, 4, i, j], 0) for i, j in ((0, 0), (1, 0), (1, 1))]
    return inputs, np.array([cost + sum(rest)], "float32")


@pytest.mark.parametrize("attrs", [{}, {"use_label_smooth": False}])
def test_what_one_box_costs(attrs):
    inputs, want = one_box(**attrs)
    attrs = LOSS | {"ignore_thresh": 0.99} | attrs
    mask, match = np.array([[[[0, 1], [0, 0]]]], "float32"), np.array([[0, -1]], "int32")
    outputs = {"Loss": want, "ObjectnessMask": mask, "GTMatchMask": match}
    check("yolov3_loss", inputs, attrs, outputs, grads=["X"], rtol=1e-4)


def test_boxes_that_count_less():
    inputs, want = one_box(0.25)
    inputs["GTScore"] = np.array([[0.25, 1]], "float32")
    check("yolov3_loss", inputs, LOSS | {"ignore_thresh": 0.99}, {"Loss": want}, grads=["X"], rtol=1e-4)


@pytest.mark.parametrize("middle", [-0.6, 1.0])
def test_boxes_outside_of_the_image(middle):
    inputs, _ = one_box()
    inputs["GTBox"][0, 0, 1] = middle
    with pytest.raises(OperatorError, match=r"middles in \[0, 1\); got \[0.69"):
        run_kernel("yolov3_loss", inputs, LOSS)


def test_good_guesses_are_ignored():
    inputs, _ = one_box()
    inputs["X"][0, :4, 0, 0] = [9, -0.4, 0.0645, 0.1133]  # its middle is nearly at the edge to the box
    mask = run_kernel("yolov3_loss", inputs, LOSS | {"ignore_thresh": 0.4})["ObjectnessMask"][0]
    assert mask[0, 0, 0].tolist() == [-1, 1]


def test_two_boxes_in_one_place():
    x = RNG.uniform(-1, 1, (1, 7, 1, 1)).astype("float32")
    box = np.array([[[0.3, 0.4, 0.9, 0.9], [0.6, 0.7, 0.8, 1]]], "float32")
    inputs = {"X": x, "GTBox": box, "GTLabel": np.array([[1, 0]], "int32")}
    made = run_kernel("yolov3_loss", inputs, LOSS)
    back = {**inputs, "Loss@GRAD": np.ones(1, "float32")}
    back |= {slot: made[slot][0] for slot in ("ObjectnessMask", "GTMatchMask")}
    got = run_kernel("yolov3_loss_grad", back, LOSS)["X@GRAD"][0].ravel()
    # Both cost, but as in Paddle 1.8.5 the gradient is that of the second one.
    np.testing.assert_allclose(got[0], (sigmoid(x[0, 0, 0, 0]) - 0.6) * (2 - 0.8), rtol=1e-5)


def test_yolo_box():
    x = RNG.uniform(-2, 2, (1, 14, 2, 3)).astype("float32")
    x[0, 4, 1, 2] = -9
    attrs = {
        "class_num": 2,
        "anchors": [10, 13, 30, 40],
        "conf_thresh": 0.05,
        "clip_bbox": False,
        "scale_x_y": 1.1,
    }
    size = np.array([[90, 120]], "int32")
    cell = x[0, 7:, 1, 0].astype("float64")
    middle = (np.array([0, 1]) + sigmoid(cell[:2]) * 1.1 - 0.05) / 2 * [120, 90]
    extent = np.exp(cell[2:4]) * [30, 40] / 64 * [120, 90]
    made = run_kernel("yolo_box", {"X": x, "ImgSize": size}, attrs)
    boxes, scores = made["Boxes"][0], made["Scores"][0]
    np.testing.assert_allclose(
        boxes[0, 9], [*(middle - extent / 2), *(middle + extent / 2)], rtol=1e-4, atol=1e-3
    )
    np.testing.assert_allclose(scores[0, 9], sigmoid(cell[4]) * sigmoid(cell[5:]), rtol=1e-5)
    assert not boxes[0, 5].any() and not scores[0, 5].any()
    clipped = np.concatenate([boxes[..., :2].clip(0), np.minimum(boxes[..., 2:], [119, 89])], axis=-1)
    check(
        "yolo_box",
        {"X": x, "ImgSize": size},
        attrs | {"clip_bbox": True},
        {"Boxes": clipped.astype("float32")},
    )


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"anchor_mask": [2]}, r"anchor_mask must name anchors below 2, got \[2\]"),
        ({"anchors": [10, 13, 30]}, "anchor_mask must name anchors below 1|anchors must be pairs"),
        ({"class_num": 3}, r"X must be \[batch, 8, height, width\]"),
        ({"class_num": 0}, "class_num must be positive"),
    ],
)
def test_maps_that_do_not_fit(attrs, message):
    with pytest.raises(OperatorError, match=message):
        infer("yolov3_loss", one_box()[0], LOSS | attrs)
