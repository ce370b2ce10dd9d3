"""Layers and functions of tensors as programs (`fluid.dygraph.jit`).

Tracing runs the code once with Variables in place of its tensors: operators follow their arguments and build a program,
and the eager tensors that they meet (parameters, buffers) become persistable variables whose memory is the tensors'.
"""

import logging

from .models import TracedLayer, create_program_from_desc, extract_vars
from .static_function import StaticFunction, declarative, dygraph_to_static_func
from .translator import ProgramTranslator

logger = logging.getLogger("fluid")

__all__ = [
    "ProgramTranslator",
    "StaticFunction",
    "TracedLayer",
    "create_program_from_desc",
    "declarative",
    "dygraph_to_static_func",
    "extract_vars",
    "logger",
]
