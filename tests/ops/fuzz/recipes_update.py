"""Cases of the optimizers' updates."""

from __future__ import annotations

import numpy as np

from .cases import Case, Chooser, case, recipe

# The accumulators of each update, with those that must be positive marked, and the attributes to choose from.
UPDATES = {
    "sgd": ("", {}),
    "momentum": ("Velocity", {"mu": (0.9, 0.0), "use_nesterov": (False, True)}),
    "lars_momentum": ("Velocity",
        {"mu": (0.9,), "lars_coeff": (1e-3, 0.1), "lars_weight_decay": (5e-4, 0.0)}),
    "adagrad": ("Moment+", {"epsilon": (1e-6,)}),
    "decayed_adagrad": ("Moment+", {"decay": (0.95, 0.5), "epsilon": (1e-6,)}),
    "adadelta": ("AvgSquaredGrad+ AvgSquaredUpdate+", {"rho": (0.95, 0.5), "epsilon": (1e-6,)}),
    "adam": ("Moment1 Moment2+ Beta1Pow! Beta2Pow!",
        {"beta1": (0.9,), "beta2": (0.999,), "epsilon": (1e-8, 1e-3)}),
    "adamax": ("Moment InfNorm+ Beta1Pow!", {"beta1": (0.9,), "beta2": (0.999,), "epsilon": (1e-8,)}),
    "lamb": ("Moment1 Moment2+ Beta1Pow! Beta2Pow!",
        {"beta1": (0.9,), "beta2": (0.999,), "epsilon": (1e-6,), "weight_decay": (0.01, 0.0)}),
    "ftrl": ("SquaredAccumulator+ LinearAccumulator",
        {"l1": (0.0, 0.1), "l2": (0.0, 0.1), "lr_power": (-0.5, -0.3)}),
    "rmsprop": ("Moment MeanSquare+ MeanGrad",
        {"decay": (0.9,), "momentum": (0.0, 0.5), "epsilon": (1e-6,), "centered": (False, True)}),
}  # fmt: skip


@recipe(*UPDATES)
def update(c: Chooser, op: str) -> Case:
    accumulators, choices = UPDATES[op]
    shape, dtype = c.shape(), c.real()
    kind = "any" if c.one_in(5) else "plain"
    inputs = {"Param": c.floats(shape, dtype, kind), "Grad": c.floats(shape, dtype, kind)}
    if op != "adadelta":
        inputs["LearningRate"] = c.floats((1,), dtype, "unit")
    for slot in accumulators.split():
        name = slot.rstrip("+!")
        positive = name != slot
        inputs[name] = c.floats((1,) if slot.endswith("!") else shape, dtype, "unit" if positive else "plain")
    attrs = {name: c.pick(values) for name, values in choices.items()}
    if op == "rmsprop":
        if attrs["centered"]:
            inputs["MeanSquare"] = inputs["MeanSquare"] + inputs["MeanGrad"] ** 2
    return case(op, inputs, attrs)


@recipe("average_accumulates")
def average(c: Chooser, op: str) -> Case:
    shape, dtype = c.shape(), c.real()
    inputs = {"param": c.floats(shape, dtype, "plain")}
    inputs.update({f"in_sum_{k}": c.floats(shape, dtype, "plain") for k in (1, 2, 3)})
    for name in ("in_num_accumulates", "in_old_num_accumulates", "in_num_updates"):
        inputs[name] = np.array([c.int(0, 20)], "int64")
    attrs = {
        "average_window": c.pick([0.0, 0.5, 1.0]),
        "min_average_window": c.int(1, 5),
        "max_average_window": c.int(5, 20),
    }
    return case(op, inputs, attrs)
