"""What Fluid keeps beside its core (`fluid.contrib`)."""

from ..base import missing
from . import layers
from .layers import BasicGRUUnit, BasicLSTMUnit

__all__ = ["BasicGRUUnit", "BasicLSTMUnit", "layers"]

__getattr__ = missing.reporter(__name__)
