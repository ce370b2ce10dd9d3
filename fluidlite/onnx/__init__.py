"""Programs as ONNX models. Needs the extra `onnx`."""

from importlib.util import find_spec

from ..base.errors import NotSupportedError

if find_spec("onnx") is None:
    raise NotSupportedError("fluidlite.onnx needs the package onnx: pip install fluidlite[onnx]")

from . import nodes
from .exporting import export, missing_operators

__all__ = ["export", "missing_operators", "nodes"]
