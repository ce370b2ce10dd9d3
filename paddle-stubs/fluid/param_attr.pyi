# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.data_feeder import (
    check_type as check_type,
)
from fluidlite.initializer import (
    ConstantInitializer as Constant,
    Initializer as Initializer,
    XavierInitializer as Xavier,
)
from fluidlite.param_attr import (
    ParamAttr as ParamAttr,
    WeightNormParamAttr as WeightNormParamAttr,
)
from fluidlite.regularizer import (
    WeightDecayRegularizer as WeightDecayRegularizer,
)
