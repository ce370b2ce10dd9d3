# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    layers as ops,
)
from fluidlite.fluid.data_feeder import (
    check_dtype as check_dtype,
    check_type as check_type,
    check_variable_and_dtype as check_variable_and_dtype,
    convert_dtype as convert_dtype,
)
from fluidlite.fluid.layers import (
    control_flow as control_flow,
    nn as nn,
    tensor as tensor,
)
from fluidlite.fluid.layers.distributions import (
    Categorical as Categorical,
    Distribution as Distribution,
    MultivariateNormalDiag as MultivariateNormalDiag,
    Normal as Normal,
    Uniform as Uniform,
)
