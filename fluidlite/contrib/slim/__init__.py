"""`fluid.contrib.slim`: smaller models."""

from ...base import missing
from . import prune, quantization, searcher

__all__ = ["prune", "quantization", "searcher"]

__getattr__ = missing.reporter(__name__)
