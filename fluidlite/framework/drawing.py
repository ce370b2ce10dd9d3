"""Programs as pages to look at: `Program._repr_html_`, `fluidlite draw`."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.dtypes import VarType, to_numpy
from ..base.reports.profile_report import filled
from .common_attrs import OpRole

if TYPE_CHECKING:
    from .block import Block
    from .operator import Operator
    from .program import Program
    from .variable import Variable

LONGEST_VALUE = 300
"""Characters of an attribute's value."""

_UNTOLD = {"op_role", "op_role_var", "op_namescope", "op_callstack", "op_device", "sub_block"}
_PAGE = Path(__file__).with_name("drawing.html")


def page(program: Program, title: str) -> str:
    """One self-contained HTML page with the graph of `program`: its operators, shapes, parameters and attributes."""
    return filled(_PAGE, {"title": title, "blocks": [_block(block) for block in program.blocks]})


def in_notebook(program: Program) -> str:
    """The page in a frame, for a cell of a notebook."""
    whole = html.escape(page(program, "Program"), quote=True)
    return f'<iframe srcdoc="{whole}" style="width: 100%; height: 32rem; border: 0"></iframe>'


def _block(block: Block) -> dict[str, Any]:
    return {
        "parent": block.parent_idx,
        "ops": [_operator(op) for op in block.ops],
        "vars": {name: _variable(var) for name, var in block.vars.items()},
    }


def _operator(op: Operator) -> dict[str, Any]:
    role = int(op.attrs.get("op_role", 0))
    part = (
        "update"
        if role & (OpRole.Optimize | OpRole.LRSched)
        else "backward"
        if role & OpRole.Backward
        else "forward"
    )
    where = op._call_stack()
    return {
        "type": op.type,
        "part": part,
        "inputs": {slot: op.input(slot) for slot in op.input_names if op.input(slot)},
        "outputs": {slot: op.output(slot) for slot in op.output_names if op.output(slot)},
        "attrs": {
            name: _short(value) for name, value in sorted(op.all_attrs().items()) if name not in _UNTOLD
        },
        "blocks": [block.idx for block in op.sub_blocks()],
        "where": where[-1].strip() if where else "",
    }


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "..."


def _variable(var: Variable) -> dict[str, Any]:
    try:
        shape = [int(size) for size in var.shape]
        dtype = to_numpy(var.dtype)
        name, width = dtype.name, dtype.itemsize
    except (AttributeError, KeyError, TypeError, ValueError):
        # A reader, an array, a scope: they have neither.
        return {"kind": VarType(var.type).name.lower(), "kept": bool(var.persistable)}
    return {
        "shape": shape,
        "dtype": name,
        "width": width,
        "lod": int(var.lod_level),
        "kept": bool(var.persistable),
    }
