"""Operators with sub-blocks: one Python function each, which runs their blocks.

A function gets the run, the operator and the operator's frame. It executes blocks only by `run.run_block`, so that it
works for each implementation of `Run`.
"""

from __future__ import annotations

from collections.abc import Callable

from ...framework import Operator
from . import branches, loops, recurrent
from .frame import Frame, Run

Control = Callable[[Run, Operator, Frame], None]

_FUNCTIONS: dict[str, Control] = {
    **branches.FUNCTIONS,
    **loops.FUNCTIONS,
    **recurrent.FUNCTIONS,
}


def control_function(op_type: str) -> Control:
    """The function for an operator type that is declared with `control=True`."""
    if op_type not in _FUNCTIONS:
        from ..parameter_server import operators as remote  # few programs have servers

        _FUNCTIONS.update(remote.FUNCTIONS)
    return _FUNCTIONS[op_type]
