"""Programs: built first, run later (`paddle.static`). They need `paddle.enable_static()` or a `program_guard` around
functions that have no tensors among their arguments."""

from ...base.place import cpu_places, cuda_places
from ...executor import Executor, Scope, global_scope, scope_guard
from ...executor.parallel.compiler import CompiledProgram, ParallelExecutor
from ...executor.parallel.strategies import BuildStrategy, ExecutionStrategy
from ...fluid.io import load, load_program_state, save, set_program_state
from ...fluid.layers import Print, create_global_var, create_parameter
from ...framework import (
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    name_scope,
    program_guard,
)
from ...framework.gradients.backward import append_backward, gradients
from ..metric import accuracy
from ..param_attr import ParamAttr
from . import nn
from .inference import load_inference_model, save_inference_model
from .input import InputSpec, data

__all__ = [
    "BuildStrategy",
    "CompiledProgram",
    "ExecutionStrategy",
    "Executor",
    "InputSpec",
    "ParallelExecutor",
    "ParamAttr",
    "Print",
    "Program",
    "Scope",
    "Variable",
    "accuracy",
    "append_backward",
    "cpu_places",
    "create_global_var",
    "create_parameter",
    "cuda_places",
    "data",
    "default_main_program",
    "default_startup_program",
    "global_scope",
    "gradients",
    "load",
    "load_inference_model",
    "load_program_state",
    "name_scope",
    "nn",
    "program_guard",
    "save",
    "save_inference_model",
    "scope_guard",
    "set_program_state",
]
