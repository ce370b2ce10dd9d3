"""Rows that are drawn to the centre of their class: `center_loss`."""

from __future__ import annotations

from typing import Any

from ...framework import Variable
from ...layer_helper import LayerHelper, check_variable
from ..checks import check_dtype

__all__ = ["center_loss"]


def center_loss(
    input: Variable,
    label: Variable,
    num_classes: int,
    alpha: float | Variable,
    param_attr: Any,
    update_center: bool = True,
) -> Variable:
    """Half the squared distance of each row from the centre of its class (`fluid.layers.center_loss`).

    Follows Wen et al. (2016). The centres are moved towards the rows by each run, not by an optimizer.

    Args:
        input: floats [batch, width].
        label: integers [batch, 1].
        num_classes: how many classes there are.
        alpha: how fast the centres move, a number or a Variable [1].
        param_attr: a ParamAttr, a name or an initializer of the centres [classes, width].
        update_center: whether they move.

    Returns:
        [batch, 1].

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    check_dtype(input, "input", "center_loss")
    check_variable(label, "label", "center_loss")
    helper = LayerHelper("center_loss", param_attr=param_attr)
    shape = [num_classes, input.shape[1]]
    centers = helper.create_parameter(attr=helper.param_attr, shape=shape, dtype=input.dtype)
    centers.stop_gradient = True
    if isinstance(alpha, Variable):
        rate = alpha
    else:
        rate = helper.create_variable(
            name="centerloss_alpha", shape=[1], dtype="float32", persistable=True, stop_gradient=True
        )
        attrs = {"shape": [1], "dtype": int(rate.dtype), "value": float(alpha)}
        # At the beginning of the block, as Fluid: of several layers the first decides.
        block = helper.main_program.current_block()
        block._prepend_op(type="fill_constant", outputs={"Out": [rate]}, attrs=attrs)
    inputs = {"X": input, "Label": label, "Centers": centers, "CenterUpdateRate": rate}
    outputs, attrs = ("SampleCenterDiff", "Loss", "CentersOut"), {"cluster_num": num_classes}
    attrs["need_update"] = update_center
    return helper.run("center_loss", inputs, outputs, attrs, into={"CentersOut": centers})[1]
