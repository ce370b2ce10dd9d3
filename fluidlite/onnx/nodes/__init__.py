"""Exporters of Fluid's operators to ONNX nodes, by topic. Importing this fills the table."""

from . import control, images, math, recurrent, tensors

__all__ = ["control", "images", "math", "recurrent", "tensors"]
