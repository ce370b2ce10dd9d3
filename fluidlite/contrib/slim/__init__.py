"""`fluid.contrib.slim`: smaller models."""

from ...base import missing
from . import quantization

__all__ = ["quantization"]

__getattr__ = missing.reporter(__name__)
