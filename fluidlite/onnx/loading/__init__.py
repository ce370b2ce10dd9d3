"""ONNX models as programs."""

from . import (
    control,
    detection,
    layers,
    numbers,
    pictures,
    places,
    products,
    quantized,
    recurrent,
    sequences,
    shapes,
)
from .reading import load

__all__ = [
    "control",
    "detection",
    "layers",
    "load",
    "numbers",
    "pictures",
    "places",
    "products",
    "quantized",
    "recurrent",
    "sequences",
    "shapes",
]
