# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from . import (
    extend_optimizer_with_weight_decay as extend_optimizer_with_weight_decay,
)
from fluidlite.fluid.contrib.extend_optimizer import (
    extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay,
)
