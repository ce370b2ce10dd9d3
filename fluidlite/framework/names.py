"""Small things that `fluid.framework` has: names of special variables, questions about types."""

from __future__ import annotations

from typing import Any

from ..base.dtypes import FLOATS, to_vartype
from ..ops.registry import GRAD
from .program import Program, default_main_program
from .variable import Variable

EMPTY_VAR_NAME = "@EMPTY@"
TEMP_VAR_NAME = "@TEMP@"
GRAD_VAR_SUFFIX = GRAD
ZERO_VAR_SUFFIX = "@ZERO"
CONTROL_DEP_VAR_PREFIX = "__control_var"


def generate_control_dev_var_name() -> str:
    """A name for a variable that only orders operators."""
    import random  # slow to import, and rarely used

    return f"{CONTROL_DEP_VAR_PREFIX}@{random.random()}"


def dtype_is_floating(dtype: Any) -> bool:
    """Whether this element type, a VarType or anything that NumPy accepts, is a floating-point one."""
    return to_vartype(dtype) in FLOATS


def _get_var(name: str, program: Program | None = None) -> Variable:
    """The variable `name` of the global block of `program` (the main program if None); ValueError if there is none."""
    return (default_main_program() if program is None else program).global_block().var(name)


def _debug_string_(proto: Any, throw_on_error: bool = True) -> str:
    """The text of a protocol buffer."""
    return str(proto)
