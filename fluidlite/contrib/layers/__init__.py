"""`fluid.contrib.layers`: units of recurrent networks, and what else is beside the core."""

from ...base import missing
from . import nn, rnn_impl
from .nn import multiclass_nms2
from .rnn_impl import BasicGRUUnit, BasicLSTMUnit, basic_gru, basic_lstm

__all__ = ["BasicGRUUnit", "BasicLSTMUnit", "basic_gru", "basic_lstm", "multiclass_nms2", "nn", "rnn_impl"]

__getattr__ = missing.reporter(__name__)
