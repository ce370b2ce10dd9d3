# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.contrib.layers.nn import (
    LayerHelper as LayerHelper,
    Variable as Variable,
    ctr_metric_bundle as ctr_metric_bundle,
)
from fluidlite.fluid.initializer import (
    ConstantInitializer as Constant,
    NormalInitializer as Normal,
)
from fluidlite.fluid.layers import (
    nn as nn,
)
from fluidlite.fluid.param_attr import (
    ParamAttr as ParamAttr,
)
