"""`extract_vars`, `create_program_from_desc` of `fluid.dygraph.jit`."""

from __future__ import annotations

from typing import Any

from ...eager import Tensor
from ...framework import Program, Variable
from ...framework.serialization.descs import ProgramDesc


def extract_vars(inputs: Any) -> list[Any]:
    """The tensors and Variables in nested lists and tuples, in order (`fluid.dygraph.jit.extract_vars`)."""
    if isinstance(inputs, (Tensor, Variable)):
        return [inputs]
    if isinstance(inputs, (list, tuple)):
        return [var for item in inputs for var in extract_vars(item)]
    return []


def create_program_from_desc(program_desc: ProgramDesc) -> Program:
    """A copy of the program that `program_desc` describes (`fluid.dygraph.jit.create_program_from_desc`)."""
    return program_desc._shown.clone()
