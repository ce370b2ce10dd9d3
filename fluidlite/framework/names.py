"""Small things that `fluid.framework` has: names of special variables, scopes of names, questions about types."""

from __future__ import annotations

import random
from typing import Any

from ..base.dtypes import FLOATS, to_vartype
from ..ops.registry import GRAD
from .program import Program, current_name_scope, default_main_program
from .variable import Variable

EMPTY_VAR_NAME = "@EMPTY@"
TEMP_VAR_NAME = "@TEMP@"
GRAD_VAR_SUFFIX = GRAD
ZERO_VAR_SUFFIX = "@ZERO"
CONTROL_DEP_VAR_PREFIX = "__control_var"


class NameScope:
    """A scope of names; children of the same prefix are numbered (`fluid.framework.NameScope`)."""

    def __init__(self, name: str = "", parent: NameScope | None = None) -> None:
        self._children: dict[str, list[NameScope]] = {}
        self._name = name
        self._parent = parent

    def child(self, prefix: str) -> NameScope:
        """A new scope inside this one: `prefix`, `prefix_1`, ..."""
        known = self._children.setdefault(prefix, [])
        known.append(NameScope(f"{prefix}_{len(known)}" if known else prefix, self))
        return known[-1]

    def parent(self) -> NameScope | None:
        return self._parent

    def name(self) -> str:
        return self._name


def _full_name_scope() -> str:
    """The scopes of names that hold now, as operators note them: '/a/b/'."""
    return "".join(f"/{name}" for name in current_name_scope()) + "/"


def generate_control_dev_var_name() -> str:
    """A name for a variable that only orders operators."""
    return f"{CONTROL_DEP_VAR_PREFIX}@{random.random()}"


def dtype_is_floating(dtype: Any) -> bool:
    """Whether elements of this type, a VarType or anything that NumPy knows, are of floating point."""
    return to_vartype(dtype) in FLOATS


def _get_var(name: str, program: Program | None = None) -> Variable:
    """The variable `name` of the global block of `program` (the main program if None); ValueError if there is none."""
    return (default_main_program() if program is None else program).global_block().var(name)


def _debug_string_(proto: Any, throw_on_error: bool = True) -> str:
    """The text of a protocol buffer."""
    return str(proto)
