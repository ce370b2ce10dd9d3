"""Eager tensors: operators that compute at once, and gradients through the tape that they record.

The operators are those of `ops/`; `dispatch` selects the kernels of a call, `autograd` computes gradients.
"""

import functools

from .._ext import eager as _core
from .._ext.eager import count_traces, mixture, record_call, serial, set_serial
from ..backend import record
from ..base.arrays import NUMBERS, plain
from ..base.reports import profiling
from ..framework import tracing
from ..framework.mode import set_tracer
from ..framework.variable import Variable
from . import placing
from .autograd import _recording as _slot
from .autograd import add_up, backward, grad, is_recording, no_grad, recording, set_recording
from .dispatch import explain, form
from .elements import as_number_list, as_numbers
from .program_record import divert
from .tensor import Parameter, Tensor, apply, apply_into, empty, put, to_variable
from .tracer import DeclaredTensor, Tracer

_core.setup(Tensor, Variable, _slot.frames, add_up, explain, plain, NUMBERS)
profiling.watch(
    lambda recorder: _core.set_observer(None if recorder is None else functools.partial(record, recorder))
)
_core.setup_tracing(divert, tracing.current)
set_tracer(Tracer())

__all__ = [
    "DeclaredTensor",
    "Parameter",
    "Tensor",
    "Tracer",
    "apply",
    "apply_into",
    "backward",
    "count_traces",
    "empty",
    "form",
    "grad",
    "is_recording",
    "mixture",
    "no_grad",
    "placing",
    "put",
    "as_numbers",
    "as_number_list",
    "record_call",
    "recording",
    "serial",
    "set_recording",
    "set_serial",
    "to_variable",
]
