"""Programs as readable text, and search for operators by variables (`fluid.transpiler.details.program_utils`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

from ...base import missing
from ...base.dtypes import VarType
from ...framework import Block, Operator, Parameter, Program, Variable


def delete_ops(block: Block, ops: Iterable[Operator]) -> None:
    """Remove `ops` from `block`; prints operators that are not in it."""
    for op in list(ops):
        try:
            block._remove_op(next(at for at, known in enumerate(block.ops) if known is op))
        except StopIteration:
            print(f"{op.type} is not in block {block.idx}")


def find_op_by_input_arg(block: Block, arg_name: str) -> int:
    """The index of the first operator that reads a variable; -1 if there is none."""
    return next((at for at, op in enumerate(block.ops) if arg_name in op.input_arg_names), -1)


def find_op_by_output_arg(block: Block, arg_name: str, reverse: bool = False) -> int:
    """The index of the first operator that writes a variable, of the last with `reverse`; -1 if there is none."""
    ops = list(enumerate(block.ops))
    return next((at for at, op in (ops[::-1] if reverse else ops) if arg_name in op.output_arg_names), -1)


def get_indent_space(indent: int, space_num: int = 4) -> str:
    """The blanks of `indent` levels of `space_num` each."""
    return " " * (indent * space_num)


def variable_to_code(var: Variable) -> str:
    """A variable on one line: persistability, name, type and shape."""
    if var.type in (VarType.SELECTED_ROWS, VarType.LOD_TENSOR):
        text = f"{var.name} : fluid.{var.type}.shape{var.shape}.astype({var.dtype})"
    else:
        text = f"{var.name} : fluid.{var.type})"
    if isinstance(var, Parameter):
        text = ("trainable parameter " if var.trainable else "parameter ") + text
    else:
        text = "var " + text
    return "persist " + text if var.persistable else text


def op_to_code(op: Operator, skip_op_callstack: bool = True) -> str:
    """An operator on one line: `{outputs} = type(inputs={...}, attributes)`."""
    outputs = ", ".join(f"{slot}={op.output(slot)}" for slot in op.output_names)
    inputs = ", ".join(f"{slot}={op.input(slot)}" for slot in op.input_names)
    attrs = [_attr(op, name) for name in op.attr_names if not (skip_op_callstack and name == "op_callstack")]
    return f"{{{outputs}}} = {op.type}({', '.join([f'inputs={{{inputs}}}', *attrs])})"


def _attr(op: Operator, name: str) -> str:
    value: Any = op.attr(name)
    if isinstance(value, Block):
        return f"{name} = block[{value.idx}]"
    if isinstance(value, list) and value and isinstance(value[0], Block):
        return f"{name} = blocks[{[block.idx for block in value]}]"
    return f"{name} = {value}"


def block_to_code(
    block: Block, block_idx: int, fout: IO[str] | None = None, skip_op_callstack: bool = False
) -> None:
    """Print variables and operators of a block, to standard output by default."""
    out = fout or sys.stdout
    print(f"{{ // block {block_idx}", file=out)
    for name in sorted(block.vars):
        print(f"    {variable_to_code(block.vars[name])}", file=out)
    if block.vars:
        print("", file=out)
    for op in block.ops:
        print(f"    {op_to_code(op, skip_op_callstack)}", file=out)
    print("}", file=out)


def program_to_code(prog: Program, fout: IO[str] | None = None, skip_op_callstack: bool = True) -> None:
    """Print the blocks of a program, to standard output by default (`fluid.transpiler.details.program_to_code`)."""
    for at, block in enumerate(prog.blocks):
        block_to_code(block, at, fout, skip_op_callstack)


__getattr__ = missing.reporter(__name__)
