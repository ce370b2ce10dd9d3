"""What Fluid keeps beside its core (`fluid.contrib`)."""

from ..base import missing
from . import decoder, layers, memory_usage_calc, mixed_precision, reader
from .decoder import BeamSearchDecoder, InitState, StateCell, TrainingDecoder
from .layers import BasicGRUUnit, BasicLSTMUnit, basic_gru, basic_lstm, multiclass_nms2
from .memory_usage_calc import memory_usage
from .mixed_precision import AutoMixedPrecisionLists, decorate
from .reader import distributed_batch_reader

__all__ = [
    "AutoMixedPrecisionLists",
    "BasicGRUUnit",
    "BasicLSTMUnit",
    "BeamSearchDecoder",
    "InitState",
    "StateCell",
    "TrainingDecoder",
    "basic_gru",
    "basic_lstm",
    "decoder",
    "decorate",
    "distributed_batch_reader",
    "layers",
    "memory_usage",
    "memory_usage_calc",
    "mixed_precision",
    "multiclass_nms2",
    "reader",
]

__getattr__ = missing.reporter(__name__)
