"""ONNX models as programs."""

from . import layers, numbers, shapes
from .reading import load

__all__ = ["layers", "load", "numbers", "shapes"]
