"""Layers beside the core that no unit of a recurrent network is (`fluid.contrib.layers.nn`)."""

from ...base import missing
from ...layers.detection.suppression import multiclass_nms2

__all__ = ["multiclass_nms2"]

__getattr__ = missing.reporter(__name__)
