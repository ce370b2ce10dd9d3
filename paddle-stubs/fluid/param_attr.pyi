# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.data_feeder import (
    check_type as check_type,
)
from fluidlite.initializer import (
    ConstantInitializer as Constant,
    XavierInitializer as Xavier,
)
from fluidlite.param_attr import (
    Initializer as Initializer,
    ParamAttr as ParamAttr,
    WeightNormParamAttr as WeightNormParamAttr,
)
from fluidlite.regularizer import (
    WeightDecayRegularizer as WeightDecayRegularizer,
)
