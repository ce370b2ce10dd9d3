"""What Fluid keeps beside its core (`fluid.contrib`)."""

from ..base import missing
from . import layers
from .layers import BasicGRUUnit, BasicLSTMUnit, basic_gru, basic_lstm, multiclass_nms2

__all__ = ["BasicGRUUnit", "BasicLSTMUnit", "basic_gru", "basic_lstm", "layers", "multiclass_nms2"]

__getattr__ = missing.reporter(__name__)
