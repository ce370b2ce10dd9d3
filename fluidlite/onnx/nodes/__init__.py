"""Exporters of Fluid's operators to ONNX nodes, by topic. Importing this fills the table."""

from . import branches, images, math, recurrent, sequences, tensors

__all__ = ["branches", "images", "math", "recurrent", "sequences", "tensors"]
