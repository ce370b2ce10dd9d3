"""Which outputs of an operator have the sequences of its inputs, as far as a program says it before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ops.registry import GRAD

if TYPE_CHECKING:
    from .block import Block
    from .operator import Operator


def same_rows(block: Block, source: str, out: str) -> bool:
    """Whether two variables are declared with the same number of rows (or both with an unknown one).

    A result of one row keeps no sequences only because the batch has one row, too.
    """
    variables = block._find_var_recursive(source), block._find_var_recursive(out)
    shapes = [var._shape for var in variables if var is not None]
    return len(shapes) < 2 or all(shapes) and shapes[0][0] == shapes[1][0]  # type: ignore[index]


def gradient_sources(op: Operator) -> dict[str, str]:
    """Of the gradients that an operator makes those whose variables it reads, with these, whose sequences they have."""
    found: dict[str, str] = {}
    for slot, names in op.outputs.items():
        if slot.endswith(GRAD):
            found.update(zip(names, op.inputs.get(slot.removesuffix(GRAD), ()), strict=False))
    return found


def carry_over(op: Operator) -> None:
    """Give the outputs the lod_level of the first input that has one, where they have its rows.

    Operators that work on sequences (`OpDef.lod`) are left to their layers, and so are those that keep none.
    """
    if op.definition.lod or not op.definition.keeps_lod:
        return
    block = op.block
    for slot in op.definition.input_slots:
        for source in op.inputs.get(slot.name, ()):
            var = block._find_var_recursive(source)
            if var is None or not var.lod_level:
                continue
            for name in op.output_arg_names:
                out = block._find_var_recursive(name)
                if out is not None and not out.lod_level and same_rows(block, source, name):
                    out.lod_level = var.lod_level
            return
