"""Operators of Fluid and the nodes that stand for them in ONNX, by topic. Importing this fills the table."""

from . import arrays, branches, images, math, norms, recurrent, search, sequences, tensors

__all__ = ["arrays", "branches", "images", "math", "norms", "recurrent", "search", "sequences", "tensors"]
