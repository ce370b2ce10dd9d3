"""ONNX models as programs."""

from . import (
    control,
    detection,
    drawn,
    layers,
    numbers,
    pictures,
    places,
    products,
    quantized,
    recurrent,
    sequences,
    shapes,
    windows,
)
from .reading import load

__all__ = [
    "control",
    "detection",
    "drawn",
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
    "windows",
]
