"""`fluid.contrib.layers`: recurrent units and further layers."""

from . import nn, rnn_impl
from .nn import *  # noqa: F403
from .nn import ctr_metric_bundle
from .rnn_impl import BasicGRUUnit, BasicLSTMUnit, basic_gru, basic_lstm

__all__ = [
    "BasicGRUUnit",
    "BasicLSTMUnit",
    "basic_gru",
    "basic_lstm",
    "ctr_metric_bundle",
    "metric_op",  # noqa: F405 - a view (base/names/views.py)
    "nn",
    "rnn_impl",
]
__all__ += nn.__all__
