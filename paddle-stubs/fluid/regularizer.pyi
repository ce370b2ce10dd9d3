# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    framework as framework,
)
from fluidlite.fluid import (
    core as core,
)
from fluidlite.fluid.regularizer import (
    L1Decay as L1Decay,
    L1DecayRegularizer as L1DecayRegularizer,
    L2Decay as L2Decay,
    L2DecayRegularizer as L2DecayRegularizer,
    WeightDecayRegularizer as WeightDecayRegularizer,
    append_regularization_ops as append_regularization_ops,
)
from fluidlite.framework.mode import (
    in_dygraph_mode as in_dygraph_mode,
)
