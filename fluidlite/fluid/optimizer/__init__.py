"""Optimizers: `fluid.optimizer.Adam(0.001).minimize(loss)` makes running the program a step of training.

Follows `fluid.optimizer`.
"""

from typing import TYPE_CHECKING

from ...base import missing

if TYPE_CHECKING:
    from .adaptive import (
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
        Ftrl,
        FtrlOptimizer,
        Lamb,
        LambOptimizer,
        RMSProp,
        RMSPropOptimizer,
    )
    from .averaging import ExponentialMovingAverage, ModelAverage
    from .base import Optimizer
    from .descent import (
        SGD,
        Dpsgd,
        DpsgdOptimizer,
        LarsMomentum,
        LarsMomentumOptimizer,
        Momentum,
        MomentumOptimizer,
        SGDOptimizer,
    )
    from .lookahead import LookaheadOptimizer
    from .pipeline import DGCMomentumOptimizer, PipelineOptimizer
    from .recompute import RecomputeOptimizer

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
