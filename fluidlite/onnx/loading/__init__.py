"""ONNX models as programs."""

from . import control, layers, numbers, recurrent, sequences, shapes
from .reading import load

__all__ = ["control", "layers", "load", "numbers", "recurrent", "sequences", "shapes"]
