# Written by scripts/paddle_stubs.py.
# ruff: noqa
# fmt: off
from fluidlite.paddle.optimizer.lr import (
    CosineAnnealingDecay as CosineAnnealingDecay,
    ExponentialDecay as ExponentialDecay,
    InverseTimeDecay as InverseTimeDecay,
    LRScheduler as LRScheduler,
    LambdaDecay as LambdaDecay,
    LinearWarmup as LinearWarmup,
    MultiStepDecay as MultiStepDecay,
    MultiplicativeDecay as MultiplicativeDecay,
    NaturalExpDecay as NaturalExpDecay,
    NoamDecay as NoamDecay,
    PiecewiseDecay as PiecewiseDecay,
    PolynomialDecay as PolynomialDecay,
    ReduceOnPlateau as ReduceOnPlateau,
    StepDecay as StepDecay,
)
