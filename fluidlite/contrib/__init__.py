"""What Fluid keeps beside its core (`fluid.contrib`)."""

from ..base import missing
from . import layers
from .layers import BasicGRUUnit, BasicLSTMUnit, multiclass_nms2

__all__ = ["BasicGRUUnit", "BasicLSTMUnit", "layers", "multiclass_nms2"]

__getattr__ = missing.reporter(__name__)
