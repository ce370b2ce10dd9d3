"""`fluid.contrib.layers`: recurrent units and further layers."""

from . import metric_op, nn, rnn_impl
from .metric_op import ctr_metric_bundle
from .nn import *  # noqa: F403
from .rnn_impl import BasicGRUUnit, BasicLSTMUnit, basic_gru, basic_lstm

__all__ = [
    "BasicGRUUnit",
    "BasicLSTMUnit",
    "basic_gru",
    "basic_lstm",
    "ctr_metric_bundle",
    "metric_op",
    "nn",
    "rnn_impl",
]
__all__ += nn.__all__
