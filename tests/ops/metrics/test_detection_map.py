"""detection_map and what accumulates it."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

NEAR, SAME, FAR, AWAY = [0.12, 0.1, 0.5, 0.5], [0.1, 0.1, 0.5, 0.5], [0.6, 0.6, 0.9, 0.9], [0, 0.8, 0.1, 0.9]
FOUND = np.array(
    [[1, 0.3, *SAME], [1, 0.8, *NEAR], [1, 0.5, *AWAY], [1, 0.2, *FAR], [2, 0.4, *NEAR]], "float32"
)
WANTED = np.array([[1, *SAME], [1, *FAR], [3, *FAR]], "float32")
LODS = {"DetectRes": [[[0, 5]]], "Label": [[[0, 3]]]}
# Class 1 by score: right, wrong, wrong (met before), right: precisions 1, 1/2, 1/3, 2/4 at recalls 1/2, 1/2, 1/2, 1.
TRUE = np.array([[0.8, 1], [0.5, 0], [0.3, 0], [0.2, 1], [0.4, 0]], "float32")


@pytest.mark.parametrize(
    ("ap_type", "want"), [("integral", (0.5 * 1 + 0.5 * 0.5) / 2), ("11point", (6 * 1 + 5 * 0.5) / 11 / 2)]
)
def test_detection_map(ap_type, want):
    given = {"DetectRes": FOUND, "Label": WANTED}
    false = TRUE.copy()
    false[:, 1] = 1 - TRUE[:, 1]
    made = {
        "AccumPosCount": np.array([[0], [2], [0], [1]], "int32"),
        "AccumTruePos": TRUE,
        "AccumFalsePos": false,
        "MAP": np.array([want], "float32"),
    }
    check("detection_map", given, {"class_num": 4, "ap_type": ap_type}, made, lods=LODS)


def test_difficult_boxes_are_left_out():
    wanted = np.insert(WANTED, 1, [1, 0, 0], axis=1)
    given = {"DetectRes": FOUND, "Label": wanted}
    made = run_kernel("detection_map", given, {"class_num": 4, "evaluate_difficult": False}, LODS)
    np.testing.assert_array_equal(made["AccumPosCount"][0], [[0], [1], [0], [1]])
    np.testing.assert_allclose(made["AccumTruePos"][0][:2], [[0.5, 0], [0.2, 1]], rtol=1e-6)
    assert made["MAP"][0] == pytest.approx(0.25)


def test_what_does_not_fit():
    with pytest.raises(OperatorError, match="a sequence for each image, got \\[1, 2\\]"):
        run_kernel(
            "detection_map",
            {"DetectRes": FOUND, "Label": WANTED},
            {"class_num": 4},
            {**LODS, "Label": [[[0, 1, 3]]]},
        )
    for given, attrs, message in (
        ({"DetectRes": FOUND[:, :5], "Label": WANTED}, {"class_num": 4}, "DetectRes must be"),
        ({"DetectRes": FOUND, "Label": WANTED[:, :4]}, {"class_num": 4}, "Label must be"),
        ({"DetectRes": FOUND, "Label": WANTED}, {}, "class_num must be positive"),
        ({"DetectRes": FOUND, "Label": WANTED}, {"class_num": 4, "ap_type": "x"}, "ap_type must be"),
    ):
        with pytest.raises(OperatorError, match=message):
            infer("detection_map", given, attrs)


@pytest.mark.parametrize("mode", ["plan", "interpret"])
@pytest.mark.parametrize("kind", ["metrics", "evaluator"])
def test_batches_add_up_until_reset(kind, mode, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_ENGINE", mode)
    main, start, exe = fluid.Program(), fluid.Program(), fluid.Executor()
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, start), fluid.unique_name.guard():
        found, box, label = (
            fluid.data(name, [None, width], lod_level=1)
            for name, width in (("found", 6), ("box", 4), ("label", 1))
        )
        if kind == "metrics":
            measure = fluid.metrics.DetectionMAP(found, label, box, class_num=4)
        else:
            with pytest.warns(Warning, match="DetectionMAP is deprecated"):
                measure = fluid.evaluator.DetectionMAP(found, label, box, class_num=4)
        exe.run(start)
        one = [
            fluid.create_lod_tensor(rows, [[len(rows)]], fluid.CPUPlace())
            for rows in (FOUND[3:], WANTED[:, 1:], WANTED[:, :1])
        ]
        other = [
            fluid.create_lod_tensor(rows, [[len(rows)]], fluid.CPUPlace())
            for rows in (FOUND[1:2], WANTED[:1, 1:], WANTED[:1, :1])
        ]
        feeds = [dict(zip(("found", "box", "label"), given, strict=True)) for given in (one, other)]
        for _ in range(2):
            measure.reset(exe)
            made = [
                float(value[0])
                for feed in feeds
                for value in exe.run(main, feed, list(measure.get_map_var()))
            ]
            # The first batch finds one of two boxes of class 1 and none of class 3, the second one finds all it has.
            np.testing.assert_allclose(made, [0.25, 0.25, 1, (2 / 3 + 0) / 2], rtol=1e-5)
