"""Proposals and their targets, feature pyramids, RetinaNet. Recorded numbers are those of Paddle 1.8.5."""

import numpy as np
import pytest

from fluidlite.ops.detection.proposal_targets import _first
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel
from ..sequences.test_sequence import lods_of

ANCHORS = np.array([[0, 0, 9, 9], [10, 0, 29, 9], [0, 10, 9, 29], [12, 12, 27, 27]], "float32")
INFO = np.array([[30, 30, 1]], "float32")


def lods_like(inputs, **given):
    return {
        slot: given.get(slot, [[]] * (len(value) if isinstance(value, list) else 1))
        for slot, value in inputs.items()
    }


PROPOSALS = {
    "Scores": np.array([0.3, 0.9, 0.8, 0.7], "float32").reshape(1, 1, 2, 2),
    "BboxDeltas": np.zeros((1, 4, 2, 2), "float32"),
    "ImInfo": INFO,
    "Anchors": ANCHORS.reshape(2, 2, 1, 4),
    "Variances": np.ones((2, 2, 1, 4), "float32"),
}


def test_generate_proposals():
    inputs = dict(PROPOSALS)
    inputs["BboxDeltas"] = np.zeros((1, 4, 2, 2), "float32")
    inputs["BboxDeltas"][0, 2, 0, 1] = np.log(
        2
    )  # the second is twice as wide: from 0 to 39, of which 29 are seen
    lods = lods_like(inputs)
    wide = np.array([[0, 0, 29, 9], *ANCHORS[2:], ANCHORS[0]], "float32")
    outputs = {
        "RpnRois": wide[:3],
        "RpnRoiProbs": np.array([[0.9], [0.8], [0.7]], "float32"),
        "RpnRoisLod": np.array([3]),
    }
    attrs = {"nms_thresh": 0.3}
    check("generate_proposals", inputs, attrs, outputs, lods=lods)
    made = run_kernel("generate_proposals", inputs, attrs | {"post_nms_topN": 2, "pre_nms_topN": 3}, lods)
    np.testing.assert_allclose(made["RpnRois"][0], wide[:2])
    large = run_kernel("generate_proposals", inputs, {"min_size": 15.0}, lods)["RpnRois"][0]
    np.testing.assert_allclose(large, ANCHORS[3:])
    assert run_kernel("generate_proposals", inputs, {"min_size": 99.0}, lods)["RpnRois"][0].shape == (0, 4)


def test_feature_pyramids():
    sides = np.array([8, 70, 250, 30, 500], "float32")
    rois = np.stack([sides * 0, sides * 0, sides - 1, sides - 1], axis=1)
    lods = {"FpnRois": [[[0, 3, 5]]]}
    attrs = {"min_level": 2, "max_level": 4, "refer_level": 4, "refer_scale": 224}
    made = run_distribution(rois, attrs, lods)
    assert [part[:, 2].tolist() for part in made[0]] == [[7, 69, 29], [], [249, 499]]
    restore = made[1].ravel()
    np.testing.assert_array_equal(np.concatenate(made[0])[restore], rois)
    with pytest.raises(OperatorError, match="a result for each level from 2 to 4, got 1"):
        infer("distribute_fpn_proposals", {"FpnRois": rois}, attrs, {"MultiFpnRois": 1})


def run_distribution(rois, attrs, lods):
    made = run_kernel("distribute_fpn_proposals", {"FpnRois": rois}, attrs, lods)
    return made["MultiFpnRois"], made["RestoreIndex"][0]


def test_collect_fpn_proposals():
    rois = [np.arange(12, dtype="float32").reshape(3, 4), 100 + np.arange(8, dtype="float32").reshape(2, 4)]
    scores = [np.array([[0.1], [0.9], [0.5]], "float32"), np.array([[0.7], [0.6]], "float32")]
    inputs = {"MultiLevelRois": rois, "MultiLevelScores": scores}
    lods = {"MultiLevelRois": [[[0, 1, 3]], [[0, 1, 2]]], "MultiLevelScores": [[[0, 1, 3]], [[0, 1, 2]]]}
    want = np.stack([rois[1][0], rois[0][1], rois[1][1]])
    check("collect_fpn_proposals", inputs, {"post_nms_topN": 3}, {"FpnRois": want}, lods=lods)
    assert lods_of("collect_fpn_proposals", inputs, {"post_nms_topN": 3}, lods)[0] == [[0, 1, 3]]


TARGETS = {
    "Anchor": ANCHORS,
    "GtBoxes": np.array([[0, 0, 9, 9], [12, 10, 27, 29], [11, 1, 30, 8]], "float32"),
    "IsCrowd": np.array([[0], [0], [1]], "int32"),
    "ImInfo": INFO,
}
RPN = {
    "rpn_fg_fraction": 0.5,
    "use_random": False,
    "rpn_positive_overlap": 0.7,
    "rpn_negative_overlap": 0.3,
    "rpn_batch_size_per_im": 8,
}


def test_rpn_target_assign():
    lods = lods_like(TARGETS, GtBoxes=[[[0, 3]]], IsCrowd=[[[0, 3]]])
    # The first anchor is the first box; the last one is the best for the second box, which it overlaps by 16 / 20.
    target = np.array([[0, 0, 0, 0], [0, 0, 0, np.log(20 / 16)]], "float32")
    outputs = {
        "LocationIndex": np.array([0, 3], "int32"),
        "ScoreIndex": np.array([0, 3, 1, 2], "int32"),
        "TargetBBox": target,
        "TargetLabel": np.array([[1], [1], [0], [0]], "int32"),
        "BBoxInsideWeight": np.ones((2, 4), "float32"),
    }
    check("rpn_target_assign", TARGETS, RPN, outputs, lods=lods)
    few = run_kernel("rpn_target_assign", TARGETS, RPN | {"rpn_batch_size_per_im": 2}, lods)
    assert [few[slot][0].ravel().tolist() for slot in ("LocationIndex", "ScoreIndex")] == [[0], [0, 1]]
    inside = TARGETS | {"ImInfo": np.array([[28, 28, 1]], "float32")}
    assert run_kernel("rpn_target_assign", inside, RPN, lods)["ScoreIndex"][0].tolist() == [0, 3]
    any_ = run_kernel(
        "rpn_target_assign", TARGETS, RPN | {"use_random": True, "rpn_batch_size_per_im": 3}, lods
    )
    assert len(any_["ScoreIndex"][0]) == 3 and any_["TargetLabel"][0].sum() == 1
    with pytest.raises(OperatorError, match="GtBoxes has 2 sequences for 1 images"):
        run_kernel("rpn_target_assign", TARGETS, RPN, lods | {"GtBoxes": [[[0, 1, 3]]]})


def test_anchors_of_both_kinds():
    lods = lods_like(TARGETS, GtBoxes=[[[0, 3]]], IsCrowd=[[[0, 3]]])
    got = run_kernel(
        "rpn_target_assign", TARGETS, RPN | {"rpn_negative_overlap": 0.9, "rpn_positive_overlap": 0.95}, lods
    )
    # Recorded: the last anchor is the best of its box and yet has none; a place of weight 0 comes first instead.
    assert got["LocationIndex"][0].tolist() == [0, 0]
    assert got["BBoxInsideWeight"][0][:, 0].tolist() == [0, 1]
    assert got["ScoreIndex"][0].tolist() == [0, 1, 2, 3]


def test_retinanet_target_assign():
    inputs = TARGETS | {"GtLabels": np.array([[4], [2], [1]], "int32")}
    lods = lods_like(inputs, **{slot: [[[0, 3]]] for slot in ("GtBoxes", "GtLabels", "IsCrowd")})
    outputs = {
        "LocationIndex": np.array([0, 3], "int32"),
        "ScoreIndex": np.array([0, 3, 1, 2], "int32"),
        "TargetLabel": np.array([[4], [2], [0], [0]], "int32"),
        "ForegroundNumber": np.array([[3]], "int32"),
    }
    check("retinanet_target_assign", inputs, {}, outputs, lods=lods)


def test_generate_proposal_labels():
    rois = np.array([[1, 0, 9, 9], [0, 0, 9, 8], [10, 0, 29, 9], [12, 10, 27, 24], [0, 0, 1, 1]], "float32")
    inputs = {
        "RpnRois": rois,
        "GtClasses": np.array([[2], [1], [1]], "int32"),
        "IsCrowd": TARGETS["IsCrowd"],
        "GtBoxes": TARGETS["GtBoxes"],
        "ImInfo": INFO,
    }
    lods = lods_like(
        inputs, RpnRois=[[[0, 5]]], **{s: [[[0, 3]]] for s in ("GtClasses", "IsCrowd", "GtBoxes")}
    )
    attrs = {
        "batch_size_per_im": 8, "fg_fraction": 0.5, "fg_thresh": 0.5, "class_nums": 3, "use_random": False,
    }  # fmt: skip
    attrs["bbox_reg_weights"] = [0.5, 1.0, 1.0, 1.0]
    made = run_kernel("generate_proposal_labels", inputs, attrs, lods)
    # Both boxes, two regions that overlap them, and what overlaps no box (the crowd's is one, too) by half.
    assert made["LabelsInt32"][0].ravel().tolist() == [2, 1, 2, 2, 0]
    np.testing.assert_allclose(made["Rois"][0], [*TARGETS["GtBoxes"][:2], rois[0], rois[1], rois[4]])
    targets = made["BboxTargets"][0].reshape(5, 3, 4)
    np.testing.assert_allclose(targets[2, 2], [-0.5 / 9 / 0.5, 0, np.log(10 / 9), 0], rtol=1e-5, atol=1e-6)
    weights = np.zeros((5, 3, 4), "float32")
    weights[[0, 1, 2, 3], [2, 1, 2, 2]] = 1
    outputs = {slot: weights.reshape(5, 12) for slot in ("BboxInsideWeights", "BboxOutsideWeights")}
    check("generate_proposal_labels", inputs, attrs, outputs, lods=lods)
    agnostic = run_kernel(
        "generate_proposal_labels", inputs, attrs | {"is_cls_agnostic": True, "class_nums": 2}, lods
    )
    assert agnostic["BboxInsideWeights"][0][:, 4].tolist() == [1, 1, 1, 1, 0]


def test_labels_of_a_later_stage():
    """Of a cascade all regions count, the first ones, as many as there are boxes, unscaled: numbers of Fluid 1.8.5."""
    rois = [[0, 0, 9, 9], [20, 20, 15, 25], [2, 0, 18, 18], [20, 22, 40, 38], [60, 60, 80, 80]]
    inputs = {
        "RpnRois": np.array(rois, "float32"),
        "GtClasses": np.array([[1], [2]], "int32"),
        "IsCrowd": np.zeros((2, 1), "int32"),
        "GtBoxes": np.array([[0, 0, 10, 10], [10, 10, 20, 20]], "float32"),
        "ImInfo": np.array([[80, 80, 2]], "float32"),
    }
    lods = lods_like(
        inputs, RpnRois=[[[0, 5]]], **{s: [[[0, 2]]] for s in ("GtClasses", "IsCrowd", "GtBoxes")}
    )
    attrs = {"batch_size_per_im": 4, "fg_thresh": 0.5, "class_nums": 3, "use_random": False}
    made = run_kernel("generate_proposal_labels", inputs, attrs | {"is_cascade_rcnn": True}, lods)
    assert made["Rois"][0].tolist() == [[0, 0, 18, 18], [2, 0, 18, 18], [20, 22, 40, 38], [60, 60, 80, 80]]
    assert made["LabelsInt32"][0].ravel().tolist() == [1, 1, 2, 0]
    targets = made["BboxTargets"][0].reshape(4, 3, 4)
    np.testing.assert_allclose(targets[0, 1], [0.5, 0.5, 0.4766, 0.4766], atol=1e-4)
    np.testing.assert_allclose(targets[1, 1], [0, 0.5, 1.0034, 0.4766], atol=1e-4)
    np.testing.assert_allclose(targets[2, 2], [0, 0, 0, 1.0034], atol=1e-4)
    assert not targets[3].any()


def test_places_are_drawn_as_fluid_draws_them():
    """As counted over 300 runs of 1.8.5: late places are chosen more often, and a background keeps its first ones."""
    np.random.seed(0)
    draws = np.array([_first(np.arange(12), 10, True) for _ in range(400)])
    often = (draws[:, :, None] == np.arange(12)).any(axis=1).mean(axis=0)
    np.testing.assert_allclose(often, [0.818] * 10 + [0.909] * 2, atol=0.08)
    draws = np.array([_first(np.arange(100), 20, True, 2) for _ in range(400)])
    assert (draws[:, 2:] == np.arange(2, 20)).all()
    often = (draws[:, :2, None] == np.arange(100)).any(axis=1).mean(axis=0)
    np.testing.assert_allclose(often[:2], 0.2, atol=0.08)
    np.testing.assert_allclose(often[20:], 0.02, atol=0.03)
    assert (_first(np.arange(5), 0, True, 3).size, _first(np.arange(5), 5, True).tolist()) == (
        0,
        [0, 1, 2, 3, 4],
    )


def test_backgrounds_stay_where_there_is_no_foreground():
    inputs = {
        "RpnRois": np.array([[10 * k, 50, 10 * k + 5, 60] for k in range(9)], "float32"),
        "GtClasses": np.array([[1]], "int32"),
        "IsCrowd": np.ones((1, 1), "int32"),
        "GtBoxes": np.array([[0, 0, 10, 10]], "float32"),
        "ImInfo": np.array([[100, 100, 1]], "float32"),
    }
    lods = lods_like(
        inputs, RpnRois=[[[0, 9]]], **{s: [[[0, 1]]] for s in ("GtClasses", "IsCrowd", "GtBoxes")}
    )
    attrs = {
        "batch_size_per_im": 4, "fg_thresh": 0.5, "bg_thresh_lo": 0.0, "class_nums": 3, "use_random": True,
    }  # fmt: skip
    for _ in range(5):
        made = run_kernel("generate_proposal_labels", inputs, attrs, lods)
        assert made["Rois"][0][:, 0].tolist() == [0, 10, 20, 30]


def test_sigmoid_focal_loss():
    x = np.array([[0.5, -2, 3], [1, 30, -30], [0.2, 0.1, 0]], "float32")
    label = np.array([[2], [0], [-1]], "int32")
    p = 1 / (1 + np.exp(-x.astype("float64")))
    yes, no = -0.25 * (1 - p) ** 2 * np.log(p), -0.75 * p**2 * np.log1p(-p)
    no[1, 1] = 0.75 * 30
    want = np.stack([[no[0, 0], yes[0, 1], no[0, 2]], no[1], [0, 0, 0]]) / 4
    inputs = {"X": x, "Label": label, "FgNum": np.array([4], "int32")}
    check("sigmoid_focal_loss", inputs, {}, {"Out": want.astype("float32")}, rtol=1e-4)
    inputs["X"] = x.clip(-3, 3)
    check(
        "sigmoid_focal_loss",
        inputs | {"FgNum": np.array([0], "int32")},
        {"gamma": 1.5, "alpha": 0.4},
        grads=["X"],
    )


def test_retinanet_detection_output():
    scores = np.array([[[0.9, 0.02], [0.3, 0.8], [0.85, 0.1], [0.01, 0.7]]], "float32")
    inputs = {
        "BBoxes": [np.zeros((1, 4, 4), "float32"), np.zeros((1, 1, 4), "float32")],
        "Scores": [scores, np.full((1, 1, 2), 0.01, "float32")],
        "Anchors": [ANCHORS, ANCHORS[:1] + np.float32(1)],
        "ImInfo": np.array([[50, 50, 0.5]], "float32"),
    }
    lods = lods_like(inputs)
    attrs = {"score_threshold": 0.5, "keep_top_k": 5, "nms_threshold": 0.5}
    scaled = ANCHORS * 2
    rows = [[1, 0.9, *scaled[0]], [1, 0.85, *scaled[2]], [2, 0.8, *scaled[1]], [2, 0.7, *scaled[3]]]
    last = [2, 0.01, 2, 2, 20, 20]  # whatever it scores, as it is of the last feature map
    want = np.array([*rows, last], "float32")
    check("retinanet_detection_output", inputs, attrs, {"Out": want}, lods=lods)
    none = dict(inputs, Scores=[scores, np.zeros((1, 1, 2), "float32")])
    got = run_kernel("retinanet_detection_output", none, attrs | {"score_threshold": 2.0}, lods)["Out"][0]
    assert got.tolist() == [[-1]]


def test_shapes_that_do_not_fit():
    with pytest.raises(OperatorError, match="BboxDeltas have 4 times as many channels"):
        infer("generate_proposals", PROPOSALS | {"BboxDeltas": np.zeros((1, 3, 2, 2), "float32")})
    with pytest.raises(OperatorError, match=r"ImInfo must be \[batch, 3\]"):
        infer("rpn_target_assign", TARGETS | {"ImInfo": INFO[:, :2]})
    with pytest.raises(OperatorError, match="as many BBoxes, Scores and Anchors"):
        infer(
            "retinanet_detection_output",
            {"BBoxes": [A := ANCHORS], "Scores": [A, A], "Anchors": [A], "ImInfo": INFO},
        )
