"""Metrics computed by the program (`fluid.layers.metric_op`)."""

from __future__ import annotations

from ...base.dtypes import VarType
from ...framework import Variable
from ..initializer import ConstantInitializer
from ..layer_helper import LayerHelper, check_variable
from .checks import check_dtype
from .nn.activations import topk

__all__ = ["accuracy", "auc"]


def accuracy(
    input: Variable,
    label: Variable,
    k: int = 1,
    correct: Variable | None = None,
    total: Variable | None = None,
) -> Variable:
    """The share of rows whose label is among the `k` highest scores (`fluid.layers.accuracy`).

    Args:
        input: float scores [N, classes].
        label: int64 class numbers [N, 1].
        k: how many of the highest scores count.
        correct, total: int32 variables that receive both counts; made if left out.

    Returns:
        A float32 variable of shape [1].

    Raises:
        TypeError: `input` or `label` is no Variable, or `input` not of floats.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> with fluid.dygraph.guard():
        ...     scores = fluid.dygraph.to_variable(np.array([[0.1, 0.9], [0.8, 0.2]], "float32"))
        ...     label = fluid.dygraph.to_variable(np.array([[1], [1]]))
        ...     print(fluid.layers.accuracy(scores, label).numpy())
        [0.5]
    """
    check_dtype(input, "input", "accuracy")
    check_variable(label, "label", "accuracy")
    helper = LayerHelper("accuracy")
    values, places = topk(input, k=k)
    inputs, into = {"Out": values, "Indices": places, "Label": label}, {"Correct": correct, "Total": total}
    return helper.run("accuracy", inputs, ("Accuracy", *into), into=into)[0]


def auc(
    input: Variable,
    label: Variable,
    curve: str = "ROC",
    num_thresholds: int = 2**12 - 1,
    topk: int = 1,
    slide_steps: int = 1,
) -> tuple[Variable, Variable, list[Variable]]:
    """The area under the ROC curve, of all batches so far and of the last ones (`fluid.layers.auc`).

    Args:
        input: float probabilities [N, 2] (the second is that of a positive) or [N, 1].
        label: int64 zeros and ones [N, 1].
        curve: 'ROC', 'PR' or any other word; as in Fluid all give the ROC curve.
        num_thresholds: the number of bins of probabilities.
        topk: accepted and without effect.
        slide_steps: how many batches the second result looks back.

    Returns:
        The area of all batches (float64 [1]), that of the last `slide_steps` ones, and the list of the four
        counters.
    """
    check_dtype(input, "input", "auc")
    check_dtype(label, "label", "auc", (VarType.INT32, VarType.INT64))
    helper = LayerHelper("auc")
    area = helper.create_variable_for_type_inference(VarType.FP64, like=input)
    batch_area = helper.create_variable_for_type_inference(VarType.FP64, like=input)
    total = [1, num_thresholds + 1]
    window = [(1 + slide_steps) * (num_thresholds + 1) + 1]
    counters = []
    for shape in (window, window, total, total):
        counter = helper.create_global_variable(
            persistable=True, dtype=VarType.INT64, shape=shape, name=helper._new_name("_generated_var")
        )
        helper.set_variable_initializer(counter, ConstantInitializer(0.0))
        counters.append(counter)
    for out, (positive, negative), steps in (
        (batch_area, counters[:2], slide_steps),
        (area, counters[2:], 0),
    ):
        helper.append_op(
            type="auc",
            inputs={"Predict": [input], "Label": [label], "StatPos": [positive], "StatNeg": [negative]},
            outputs={"AUC": [out], "StatPosOut": [positive], "StatNegOut": [negative]},
            attrs={"curve": curve, "num_thresholds": num_thresholds, "slide_steps": steps},
        )
    return area, batch_area, counters
