"""Layers and functions of tensors as programs (`fluid.dygraph.jit`).

Tracing runs the code once with Variables in place of its tensors: operators follow their arguments and build a program,
and the eager tensors that they meet (parameters, buffers) become persistable variables whose memory is the tensors'.
"""

from ...base import missing
from .static_function import StaticFunction, declarative, dygraph_to_static_func
from .traced_layer import TracedLayer
from .translator import ProgramTranslator

__all__ = [
    "ProgramTranslator",
    "StaticFunction",
    "TracedLayer",
    "declarative",
    "dygraph_to_static_func",
]

__getattr__ = missing.reporter(__name__)
