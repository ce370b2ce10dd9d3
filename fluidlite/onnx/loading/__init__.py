"""ONNX models as programs."""

from . import layers, numbers, recurrent, shapes
from .reading import load

__all__ = ["layers", "load", "numbers", "recurrent", "shapes"]
