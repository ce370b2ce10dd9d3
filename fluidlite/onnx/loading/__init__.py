"""ONNX models as programs."""

from . import (
    control,
    elementwise,
    fused,
    images,
    indexing,
    layers,
    products,
    recurrent,
    shapes,
    values,
    windows,
)
from .reading import load

__all__ = [
    "control",
    "elementwise",
    "fused",
    "images",
    "indexing",
    "layers",
    "load",
    "products",
    "recurrent",
    "sequences",
    "shapes",
    "values",
    "windows",
]
