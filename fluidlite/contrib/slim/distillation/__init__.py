"""`fluid.contrib.slim.distillation`: a model learns from the features of another one."""

from ....base import missing
from . import distillation_strategy, distiller
from .distillation_strategy import DistillationStrategy
from .distiller import FSPDistiller, L2Distiller, SoftLabelDistiller

__all__ = [
    "DistillationStrategy",
    "FSPDistiller",
    "L2Distiller",
    "SoftLabelDistiller",
    "distillation_strategy",
    "distiller",
]

__getattr__ = missing.reporter(__name__)
