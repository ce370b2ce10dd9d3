"""Learning-rate schedules of dygraph mode (`fluid.dygraph.learning_rate_scheduler`)."""

from ..base import missing
from ..optimizer.epoch_schedules import LambdaDecay, MultiStepDecay, ReduceLROnPlateau, StepDecay
from ..optimizer.schedules import (
    CosineDecay,
    ExponentialDecay,
    InverseTimeDecay,
    LearningRateDecay,
    LinearLrWarmup,
    NaturalExpDecay,
    NoamDecay,
    PiecewiseDecay,
    PolynomialDecay,
)

__all__ = [
    "CosineDecay",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LambdaDecay",
    "LearningRateDecay",
    "LinearLrWarmup",
    "MultiStepDecay",
    "NaturalExpDecay",
    "NoamDecay",
    "PiecewiseDecay",
    "PolynomialDecay",
    "ReduceLROnPlateau",
    "StepDecay",
]

__getattr__ = missing.reporter(__name__)
