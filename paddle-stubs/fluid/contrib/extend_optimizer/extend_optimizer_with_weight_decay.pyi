# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    framework as framework,
    paddle as paddle,
)
from fluidlite.fluid.contrib.extend_optimizer import (
    DecoupledWeightDecay as DecoupledWeightDecay,
    extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay,
)
