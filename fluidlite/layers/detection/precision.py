"""How good found boxes are: `detection_map`."""

from __future__ import annotations

from collections.abc import Sequence

from ...framework import Variable
from ...layer_helper import LayerHelper, check_variables

__all__ = ["detection_map"]


def detection_map(
    detect_res: Variable,
    label: Variable,
    class_num: int,
    background_label: int = 0,
    overlap_threshold: float = 0.3,
    evaluate_difficult: bool = True,
    has_state: Variable | None = None,
    input_states: Sequence[Variable] | None = None,
    out_states: Sequence[Variable] | None = None,
    ap_version: str = "integral",
) -> Variable:
    """The mean average precision of found boxes (`fluid.layers.detection.detection_map`; Everingham et al. 2010).

    Args:
        detect_res: float32 [boxes, 6] with a sequence for each image: class, score, xmin, ymin, xmax, ymax; parts of
            the size of the image.
        label: float32 [boxes, 6], class, difficult (1 or 0), corners, or [boxes, 5] without `difficult`; sequences too.
        class_num: how many classes there are.
        background_label: has no effect, as in Fluid.
        overlap_threshold: a box is right if it overlaps one of `label` of its class by more; the common area over that
            of both. Only the best box counts as such.
        evaluate_difficult: whether difficult boxes count.
        has_state: int32 [1], whether `input_states` are added to this batch.
        input_states, out_states: three Variables each: boxes of each class, int32 [class_num, 1], right boxes and wrong
            ones, [n, 2] of a score and 1 or 0 with a sequence for each class.
        ap_version: "integral": the area under the curve of precision over recall; "11point": the mean of the best
            precision at 11 recalls.

    Returns:
        float32 [1].

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    check_variables("detection_map", detect_res=detect_res, label=label)
    counts = (("PosCount", "AccumPosCount"), ("TruePos", "AccumTruePos"), ("FalsePos", "AccumFalsePos"))
    inputs = {"DetectRes": detect_res, "Label": label, "HasState": has_state}
    if input_states is not None:
        inputs.update(zip([slot for slot, _ in counts], input_states, strict=True))
    attrs = {
        "overlap_threshold": overlap_threshold,
        "evaluate_difficult": evaluate_difficult,
        "ap_type": ap_version,
        "class_num": class_num,
    }
    outputs = [slot for _, slot in counts]
    into = {} if out_states is None else dict(zip(outputs, out_states, strict=True))
    return LayerHelper("detection_map").run("detection_map", inputs, ("MAP", *outputs), attrs, into=into)[0]
