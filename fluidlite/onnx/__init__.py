"""Programs as ONNX models, and ONNX models as programs. Needs the extra `onnx`."""

from importlib.util import find_spec

from ..base.errors import NotSupportedError

if find_spec("onnx") is None:
    raise NotSupportedError("fluidlite.onnx needs the package onnx: pip install fluidlite[onnx]")

from . import nodes
from .exporting import export, missing_operators
from .loading import load

__all__ = ["export", "load", "missing_operators", "nodes"]
