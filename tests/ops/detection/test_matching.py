"""Matching, targets and negatives; non-maximum suppression. Recorded numbers are those of Paddle 1.8.5."""

import numpy as np
import pytest

from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel
from ..sequences.test_sequence import lods_of

SIMILAR = np.array([[0.9, 0.8, 0.3, 0], [0.7, 0.95, 0.6, 0], [0.2, 0.5, 0.4, 0.55]], "float32")


def test_bipartite_match():
    lods = {"DistMat": [[[0, 2, 3]]]}
    indices = np.array([[0, 1, -1, -1], [-1, -1, -1, 0]], "int32")
    found = np.array([[0.9, 0.95, 0, 0], [0, 0, 0, 0.55]], "float32")
    want = {"ColToRowMatchIndices": indices, "ColToRowMatchDist": found}
    check("bipartite_match", {"DistMat": SIMILAR}, {}, want, lods=lods)
    indices[0, 2], indices[1, 1] = 1, 0
    found[0, 2], found[1, 1] = 0.6, 0.5
    attrs = {"match_type": "per_prediction", "dist_threshold": 0.5}
    check("bipartite_match", {"DistMat": SIMILAR}, attrs, want, lods=lods)


def test_equal_similarities_go_to_the_first_column():
    tied = np.array([[0.5, 0.5], [0.5, 0.5], [0, 1]], "float32")
    got = run_kernel("bipartite_match", {"DistMat": tied[:2]}, {}, {"DistMat": [[]]})
    assert got["ColToRowMatchIndices"][0].tolist() == [[0, 1]]
    got = run_kernel("bipartite_match", {"DistMat": tied}, {}, {"DistMat": [[]]})
    assert got["ColToRowMatchIndices"][0].tolist() == [[0, 2]]
    with pytest.raises(OperatorError, match="match_type must be bipartite or per_prediction"):
        infer("bipartite_match", {"DistMat": tied}, {"match_type": "x"})


MATCH = np.array([[0, -1, 1], [-1, 0, 0]], "int32")


def test_target_assign():
    x = np.arange(9, dtype="int32").reshape(3, 3, 1)
    lods = {"X": [[[0, 2, 3]]], "MatchIndices": [[]]}
    out = np.array([[0, 7, 5], [7, 7, 8]], "int32")[..., None]
    weight = (MATCH >= 0).astype("float32")[..., None]
    inputs = {"X": x, "MatchIndices": MATCH}
    check("target_assign", inputs, {"mismatch_value": 7}, {"Out": out, "OutWeight": weight}, lods=lods)
    inputs["NegIndices"] = np.array([[1], [0], [2]], "int32")
    out[1, 2], weight[0, 1], weight[1, 0] = 7, 1, 1
    lods["NegIndices"] = [[[0, 1, 3]]]
    check("target_assign", inputs, {"mismatch_value": 7}, {"Out": out, "OutWeight": weight}, lods=lods)


def test_boxes_that_are_not_there():
    x = np.zeros((3, 1, 4), "float32")
    with pytest.raises(OperatorError, match="X has 1 sequences for the 2 rows of MatchIndices"):
        run_kernel("target_assign", {"X": x, "MatchIndices": MATCH}, {}, {"X": [[[0, 3]]]})
    with pytest.raises(OperatorError, match="a match is row 3 of 3"):
        run_kernel("target_assign", {"X": x, "MatchIndices": MATCH + 1}, {}, {"X": [[[0, 2, 3]]]})


def test_mine_hard_examples():
    loss = np.array([[0.5, 0.9, 0.1, 0.7], [0.3, 0.2, 0.8, 0.6]], "float32")
    match = np.array([[0, -1, -1, -1], [-1, -1, 1, -1]], "int32")
    similar = np.array([[0.9, 0.2, 0.1, 0.6], [0.1, 0.3, 0.8, 0.2]], "float32")
    inputs = {"ClsLoss": loss, "MatchIndices": match, "MatchDist": similar}
    attrs = {"neg_pos_ratio": 2.0}
    lods = {slot: [[]] for slot in inputs}
    want = {"NegIndices": np.array([[1], [2], [0], [3]], "int32"), "UpdatedMatchIndices": match}
    check("mine_hard_examples", inputs, attrs, want, lods=lods)
    assert lods_of("mine_hard_examples", inputs, attrs, lods)[0] == [[0, 2, 4]]
    attrs = {"mining_type": "hard_example", "sample_size": 2}
    match = np.array([[-1, -1, -1, -1], [-1, -1, 1, -1]], "int32")
    want = {"NegIndices": np.array([[1], [3], [3]], "int32"), "UpdatedMatchIndices": match}
    check("mine_hard_examples", inputs, attrs, want, lods=lods)


BOXES = np.array([[0, 0, 2, 2], [0, 0, 2, 1.5], [3, 3, 4, 4], [0, 0, 2, 1.9]], "float32")
SCORES = np.array([[0.9, 0.8, 0.7, 0.6], [0.3, 0.6, 0.2, 0.5]], "float32")
NMS = {"nms_top_k": -1, "keep_top_k": -1, "score_threshold": 0.25, "nms_threshold": 0.7}


def found(scores=SCORES, op_type="multiclass_nms", **attrs):
    inputs = {"BBoxes": BOXES[None], "Scores": scores[None]}
    return run_kernel(
        op_type, inputs, NMS | {"background_label": -1} | attrs, {"BBoxes": [[]], "Scores": [[]]}
    )


def test_multiclass_nms():
    rows = [[0, 0.9, *BOXES[0]], [0, 0.7, *BOXES[2]], [1, 0.6, *BOXES[1]]]
    inputs = {"BBoxes": BOXES[None], "Scores": SCORES[None]}
    lods = {slot: [[]] for slot in inputs}
    want = np.array(rows, "float32")
    check("multiclass_nms", inputs, NMS | {"background_label": -1}, {"Out": want}, lods=lods)
    check("multiclass_nms", inputs, NMS, {"Out": want[2:]}, lods=lods)
    check(
        "multiclass_nms", inputs, NMS | {"background_label": 1, "keep_top_k": 1}, {"Out": want[:1]}, lods=lods
    )
    assert lods_of("multiclass_nms", inputs, NMS, lods)[0] == [[0, 1]]


def test_nothing_found():
    assert found(score_threshold=2.0)["Out"][0].tolist() == [[-1]]
    got = found(op_type="multiclass_nms2", score_threshold=2.0)
    assert [got[slot][0].shape for slot in ("Out", "Index")] == [(0, 6), (0, 1)]


def test_which_boxes_were_found():
    inputs = {"BBoxes": np.stack([BOXES, BOXES]), "Scores": np.stack([SCORES, SCORES])}
    lods = {slot: [[]] for slot in inputs}
    index = np.array([[1], [5]], "int32")
    check("multiclass_nms2", inputs, NMS, {"Index": index}, lods=lods)
    assert lods_of("multiclass_nms2", inputs, NMS, lods) == [[[0, 1, 2]]] * 2


def test_boxes_of_their_own_for_each_class():
    own = np.stack([BOXES, BOXES + 1], axis=1)
    inputs = {"BBoxes": own, "Scores": np.ascontiguousarray(SCORES.T)}
    lods = {"BBoxes": [[[0, 3, 4]]], "Scores": [[]]}
    # The boxes of a class are in the order of their places, and numbered by place and class.
    want = np.array([[0, 0.9, *BOXES[0]], [0, 0.7, *BOXES[2]], [1, 0.6, *BOXES[1] + 1]], "float32")
    last = np.array([[0, 0.6, *BOXES[3]], [1, 0.5, *BOXES[3] + 1]], "float32")
    got = run_kernel("multiclass_nms2", inputs, NMS | {"background_label": -1}, lods)
    np.testing.assert_allclose(got["Out"][0], np.concatenate([want, last]))
    assert got["Index"][0].ravel().tolist() == [0, 4, 3, 6, 7]


def test_a_threshold_that_gets_lower():
    scores = SCORES[:1]
    assert len(found(scores, nms_threshold=0.8)["Out"][0]) == 3
    assert len(found(scores, nms_threshold=0.8, nms_eta=0.9)["Out"][0]) == 2
    assert found(scores, nms_threshold=0.8)["Out"][0][1, 1] == np.float32(0.8)


def test_adjacent_pixels_do_not_overlap():
    boxes = np.array([[[0, 0, 1, 1], [1.5, 0, 3, 1]]], "float32")
    inputs = {"BBoxes": boxes, "Scores": np.array([[[0.9, 0.8]]], "float32")}
    attrs = NMS | {"background_label": -1, "normalized": False, "nms_threshold": 0.05}
    got = run_kernel("multiclass_nms", inputs, attrs, {slot: [[]] for slot in inputs})
    assert len(got["Out"][0]) == 2


def test_matrix_nms():
    attrs = {"nms_top_k": -1, "keep_top_k": -1, "score_threshold": 0.25, "post_threshold": 0.1}
    inputs = {"BBoxes": BOXES[None], "Scores": SCORES[None, :1]}
    lods = {slot: [[]] for slot in inputs}
    # The second overlaps the first by 0.75; the last the first by 0.95 and the second by 1.5 / 1.9.
    last = 0.6 * min(1 - 0.95, (1 - 1.5 / 1.9) / (1 - 0.75))
    want = np.array([[0, 0.9, *BOXES[0]], [0, 0.7, *BOXES[2]], [0, 0.8 * 0.25, *BOXES[1]]], "float32")
    assert last < 0.1
    attrs["background_label"] = -1
    check("matrix_nms", inputs, attrs, {"Out": want, "Index": np.array([[0], [2], [1]], "int32")}, lods=lods)
    gauss = run_kernel("matrix_nms", inputs, attrs | {"use_gaussian": True, "gaussian_sigma": 1.0}, lods)[
        "Out"
    ][0]
    assert gauss[2, 1] == pytest.approx(0.8 * np.exp(-(0.75**2)), rel=1e-5)


def test_locality_aware_nms():
    inputs = {"BBoxes": BOXES[None, :3], "Scores": SCORES[None, :1, :3]}
    lods = {slot: [[]] for slot in inputs}
    high = (2 * 0.9 + 1.5 * 0.8) / 1.7
    want = np.array([[0, 1.7, 0, 0, 2, high], [0, 0.7, 3, 3, 4, 4]], "float32")
    check("locality_aware_nms", inputs, NMS | {"background_label": -1}, {"Out": want}, lods=lods)


def test_boxes_and_scores_that_do_not_fit():
    for boxes, scores, message in (
        ((1, 4, 4), (1, 2, 3), "BBoxes and Scores must have matching shapes"),
        ((1, 4, 5), (1, 2, 4), "BBoxes must have 4 numbers for boxes"),
        ((4, 4), (1, 2, 4), "BBoxes must have 3 dimensions"),
    ):
        with pytest.raises(OperatorError, match=message):
            infer("multiclass_nms", {"BBoxes": np.zeros(boxes, "f"), "Scores": np.zeros(scores, "f")}, NMS)
    with pytest.raises(OperatorError, match="BBoxes must have sequences"):
        run_kernel(
            "multiclass_nms", {"BBoxes": np.zeros((4, 2, 4), "f"), "Scores": np.zeros((4, 2), "f")}, NMS, {}
        )
