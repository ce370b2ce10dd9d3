"""`fluid.contrib.layers`: units of recurrent networks."""

from ...base import missing
from . import rnn_impl
from .rnn_impl import BasicGRUUnit, BasicLSTMUnit

__all__ = ["BasicGRUUnit", "BasicLSTMUnit", "rnn_impl"]

__getattr__ = missing.reporter(__name__)
