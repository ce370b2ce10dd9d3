# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid.data_feeder import (
    check_type as check_type,
)
from fluidlite.fluid.initializer import (
    ConstantInitializer as Constant,
    XavierInitializer as Xavier,
)
from fluidlite.fluid.param_attr import (
    Initializer as Initializer,
    ParamAttr as ParamAttr,
    WeightNormParamAttr as WeightNormParamAttr,
)
from fluidlite.fluid.regularizer import (
    WeightDecayRegularizer as WeightDecayRegularizer,
)
