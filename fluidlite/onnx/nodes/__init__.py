"""Exporters of Fluid's operators to ONNX nodes, by topic. Importing this fills the table."""

from . import arrays, branches, images, math, norms, recurrent, search, sequences, tensors

__all__ = ["arrays", "branches", "images", "math", "norms", "recurrent", "search", "sequences", "tensors"]
