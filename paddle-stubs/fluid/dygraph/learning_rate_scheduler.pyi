# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite import (
    unique_name as unique_name,
)
from fluidlite.data_feeder import (
    check_type as check_type,
)
from fluidlite.dygraph.learning_rate_scheduler import (
    CosineDecay as CosineDecay,
    ExponentialDecay as ExponentialDecay,
    InverseTimeDecay as InverseTimeDecay,
    LambdaDecay as LambdaDecay,
    LearningRateDecay as LearningRateDecay,
    LinearLrWarmup as LinearLrWarmup,
    MultiStepDecay as MultiStepDecay,
    NaturalExpDecay as NaturalExpDecay,
    NoamDecay as NoamDecay,
    PiecewiseDecay as PiecewiseDecay,
    PolynomialDecay as PolynomialDecay,
    ReduceLROnPlateau as ReduceLROnPlateau,
    StepDecay as StepDecay,
)
from fluidlite.framework.variable import (
    Variable as Variable,
)
