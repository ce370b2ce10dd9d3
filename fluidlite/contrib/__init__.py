"""What Fluid keeps beside its core (`fluid.contrib`)."""

from ..base import missing
from . import decoder, layers
from .decoder import BeamSearchDecoder, InitState, StateCell, TrainingDecoder
from .layers import BasicGRUUnit, BasicLSTMUnit, basic_gru, basic_lstm, multiclass_nms2

__all__ = [
    "BasicGRUUnit",
    "BasicLSTMUnit",
    "BeamSearchDecoder",
    "InitState",
    "StateCell",
    "TrainingDecoder",
    "basic_gru",
    "basic_lstm",
    "decoder",
    "layers",
    "multiclass_nms2",
]

__getattr__ = missing.reporter(__name__)
