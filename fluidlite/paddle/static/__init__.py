"""Programs: built first, run later (`paddle.static`). They need `paddle.enable_static()` or a `program_guard` around
functions that have no tensors among their arguments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ...base.place import cpu_places, cuda_places
from ...executor import Executor, Scope, global_scope, scope_guard
from ...executor.parallel.compiler import CompiledProgram, ParallelExecutor
from ...executor.parallel.strategies import BuildStrategy, ExecutionStrategy
from ...fluid import io
from ...fluid.data import data as fluid_data
from ...fluid.dygraph.jit.models import InputSpec
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
from ..dtypes import get_default_dtype
from ..metric import accuracy
from ..small_modules import ParamAttr
from . import nn

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


def data(name: str, shape: Sequence[int | None], dtype: Any = None, lod_level: int = 0) -> Any:
    """A variable that `Executor.run` feeds (`paddle.static.data`).

    Args:
        name: the key in `feed`.
        shape: None or -1 where the size is not known yet.
        dtype: its element type, by default that of floats.
        lod_level: how many levels of sequences it holds.
    """
    return fluid_data(name, shape, get_default_dtype() if dtype is None else dtype, lod_level)


_PROGRAM, _PARAMETERS = ".pdmodel", ".pdiparams"


def save_inference_model(
    path_prefix: str, feed_vars: Any, fetch_vars: Any, executor: Any, program: Any = None, **kwargs: Any
) -> None:
    """Save what computes `fetch_vars` from `feed_vars` (`paddle.static.save_inference_model`).

    Args:
        path_prefix: the files are `path_prefix.pdmodel`, the program, and `path_prefix.pdiparams`, its parameters.
        feed_vars: the variable that is fed, or several.
        fetch_vars: the variable that is computed, or several.
        executor: accepted.
        program: what they are taken from, by default the main program.
        kwargs: accepted.

    Errors are those of `fluid.io.save_inference_model`.
    """
    folder, name = _parts(path_prefix)
    feeds = feed_vars if isinstance(feed_vars, (list, tuple)) else [feed_vars]
    fetches = list(fetch_vars) if isinstance(fetch_vars, (list, tuple)) else [fetch_vars]
    names = [var.name for var in feeds]
    io.save_inference_model(folder, names, fetches, executor, program, name + _PROGRAM, name + _PARAMETERS)


def load_inference_model(path_prefix: str, executor: Any, **kwargs: Any) -> list[Any]:
    """`[program, names to feed, variables to fetch]` of what `save_inference_model` saved
    (`paddle.static.load_inference_model`). Errors are those of `fluid.io.load_inference_model`."""
    folder, name = _parts(path_prefix)
    return io.load_inference_model(folder, executor, name + _PROGRAM, name + _PARAMETERS)


def _parts(path_prefix: str) -> tuple[str, str]:
    folder, name = os.path.split(path_prefix)
    if not name:
        raise ValueError(f"path_prefix must end with a name, got {path_prefix!r}")
    return folder or os.curdir, name
