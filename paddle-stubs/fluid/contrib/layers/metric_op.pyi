# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.contrib.layers.metric_op import (
    LayerHelper as LayerHelper,
    Variable as Variable,
    ctr_metric_bundle as ctr_metric_bundle,
)
from fluidlite.initializer import (
    ConstantInitializer as Constant,
    NormalInitializer as Normal,
)
from fluidlite.layers import (
    nn as nn,
)
from fluidlite.param_attr import (
    ParamAttr as ParamAttr,
)
