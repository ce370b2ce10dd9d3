# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.fluid import (
    unique_name as unique_name,
)
from fluidlite.fluid.data_feeder import (
    check_type as check_type,
)
from fluidlite.fluid.optimizer.epoch_schedules import (
    LambdaDecay as LambdaDecay,
    MultiStepDecay as MultiStepDecay,
    ReduceLROnPlateau as ReduceLROnPlateau,
    StepDecay as StepDecay,
)
from fluidlite.fluid.optimizer.schedules import (
    CosineDecay as CosineDecay,
    ExponentialDecay as ExponentialDecay,
    InverseTimeDecay as InverseTimeDecay,
    LearningRateDecay as LearningRateDecay,
    LinearLrWarmup as LinearLrWarmup,
    NaturalExpDecay as NaturalExpDecay,
    NoamDecay as NoamDecay,
    PiecewiseDecay as PiecewiseDecay,
    PolynomialDecay as PolynomialDecay,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
