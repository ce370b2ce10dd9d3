"""Metrics of click predictions (`fluid.contrib.layers.metric_op`)."""

from __future__ import annotations

from typing import Any

from ....framework import Variable
from ...initializer import ConstantInitializer
from ...layer_helper import LayerHelper, check_variables

__all__ = ["ctr_metric_bundle"]


def ctr_metric_bundle(input: Variable, label: Variable) -> tuple[Variable, ...]:
    """Sums over all batches for metrics of predicted click rates (`fluid.contrib.layers.ctr_metric_bundle`).

    Args:
        input: predictions, float32 [batch, 1].
        label: targets, float32 [batch, 1], 0 or 1.

    Returns:
        Float32 [1] persistable variables: squared errors, absolute errors, predictions, sigmoids of them, clicks,
        samples.

    Raises:
        TypeError: for arguments that are no Variables.
        AssertionError: if their shapes differ.
    """
    check_variables("ctr_metric_bundle", input=input, label=label)
    if tuple(input.shape) != tuple(label.shape):
        raise AssertionError(
            f"input and label of ctr_metric_bundle must have one shape, got {input.shape} and {label.shape}"
        )
    helper = LayerHelper("ctr_metric_bundle")

    def made(**kind: Any) -> Variable:
        # Fluid gives these names that do not mention the layer.
        return helper.create_global_variable(name=helper._new_name("_generated_var"), dtype="float32", **kind)

    sums = ("abserr", "sqrerr", "prob", "q", "pos", "ins")
    total = {name: made(persistable=True, shape=[1]) for name in sums}
    difference = made(persistable=False, shape=[-1])
    sigmoid = made(persistable=False, shape=[-1])
    ones = made(persistable=False, shape=[-1])
    batch = {
        name: made(persistable=False, shape=[1]) for name in ("prob", "abserr", "sqrerr", "q", "pos", "ins")
    }
    zero = ConstantInitializer(value=0.0, force_cpu=True)
    order = [v for name in ("abserr", "sqrerr", "prob", "q") for v in (total[name], batch[name])]
    for var in (*order, batch["pos"], batch["ins"], total["pos"], total["ins"]):
        helper.set_variable_initializer(var, zero)

    def add(name: str) -> None:
        helper.append_op(
            type="elementwise_add",
            inputs={"X": [batch[name]], "Y": [total[name]]},
            outputs={"Out": [total[name]]},
        )

    helper.append_op(
        type="elementwise_sub", inputs={"X": [input], "Y": [label]}, outputs={"Out": [difference]}
    )
    for name, op_type, source in (
        ("sqrerr", "squared_l2_norm", difference),
        ("abserr", "l1_norm", difference),
        ("prob", "reduce_sum", input),
    ):
        helper.append_op(type=op_type, inputs={"X": [source]}, outputs={"Out": [batch[name]]})
        add(name)
    helper.append_op(type="sigmoid", inputs={"X": [input]}, outputs={"Out": [sigmoid]})
    for name, source in (("q", sigmoid), ("pos", label), ("ins", ones)):
        if name == "ins":
            helper.append_op(
                type="fill_constant_batch_size_like",
                inputs={"Input": label},
                outputs={"Out": [ones]},
                attrs={"shape": [-1, 1], "dtype": int(ones.dtype), "value": 1.0},
            )
        helper.append_op(type="reduce_sum", inputs={"X": [source]}, outputs={"Out": [batch[name]]})
        add(name)
    return tuple(total[name] for name in ("sqrerr", "abserr", "prob", "q", "pos", "ins"))
