"""Optimizers: `fluid.optimizer.Adam(0.001).minimize(loss)` makes running the program a step of training.

Follows `fluid.optimizer`.
"""

from typing import TYPE_CHECKING

from ...base import missing

if TYPE_CHECKING:
    from .adaptive import (
        SGD,
        Adadelta,
        AdadeltaOptimizer,
        Adagrad,
        AdagradOptimizer,
        Adam,
        Adamax,
        AdamaxOptimizer,
        AdamOptimizer,
        DecayedAdagrad,
        DecayedAdagradOptimizer,
        Dpsgd,
        DpsgdOptimizer,
        Ftrl,
        FtrlOptimizer,
        Lamb,
        LambOptimizer,
        LarsMomentum,
        LarsMomentumOptimizer,
        Momentum,
        MomentumOptimizer,
        RMSProp,
        RMSPropOptimizer,
        SGDOptimizer,
    )
    from .averaging import ExponentialMovingAverage, ModelAverage
    from .base import Optimizer
    from .wrappers import DGCMomentumOptimizer, LookaheadOptimizer, PipelineOptimizer, RecomputeOptimizer

__all__ = [
    "SGD",
    "Adadelta",
    "AdadeltaOptimizer",
    "Adagrad",
    "AdagradOptimizer",
    "Adam",
    "AdamOptimizer",
    "Adamax",
    "AdamaxOptimizer",
    "DGCMomentumOptimizer",
    "DecayedAdagrad",
    "DecayedAdagradOptimizer",
    "Dpsgd",
    "DpsgdOptimizer",
    "ExponentialMovingAverage",
    "Ftrl",
    "FtrlOptimizer",
    "Lamb",
    "LambOptimizer",
    "LarsMomentum",
    "LarsMomentumOptimizer",
    "LookaheadOptimizer",
    "ModelAverage",
    "Momentum",
    "MomentumOptimizer",
    "Optimizer",
    "PipelineOptimizer",
    "RMSProp",
    "RMSPropOptimizer",
    "RecomputeOptimizer",
    "SGDOptimizer",
]

__getattr__, __dir__ = missing.lazy(__name__)
