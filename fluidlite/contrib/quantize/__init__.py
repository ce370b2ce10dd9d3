"""`fluid.contrib.quantize`: quantization-aware training of programs."""

from ...base import missing
from . import quantize_transpiler
from .quantize_transpiler import QuantizeTranspiler

__all__ = ["QuantizeTranspiler", "quantize_transpiler"]

__getattr__ = missing.reporter(__name__)
