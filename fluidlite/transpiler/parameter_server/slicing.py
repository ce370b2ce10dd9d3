"""Splitting of variables into blocks of rows, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ...framework import Block, Variable


@dataclass
class VarBlock:
    """Part `offset` of a variable, of `size` elements (`fluid.transpiler.distribute_transpiler.VarBlock`)."""

    varname: str
    offset: int
    size: int

    def __str__(self) -> str:
        return f"{self.varname}:{self.offset}:{self.size}"


def slice_variable(var_list: Sequence[Any], slice_count: int, min_block_size: int) -> list[str]:
    """The blocks of each variable as `name:number:elements` (`fluid.transpiler.distribute_transpiler.slice_variable`).

    A variable is cut into at most `slice_count` blocks, of whole rows and of at least `min_block_size` elements each,
    all of one size but for the last.
    """
    blocks = []
    for var in var_list:
        total, row = prod(var.shape), prod(var.shape[1:])
        count = min(max(total // min_block_size, 1), slice_count)
        size = -(-total // count)
        size = -(-size // row) * row
        starts = range(0, total, size)
        blocks += [str(VarBlock(var.name, k, min(size, total - at))) for k, at in enumerate(starts)]
    return blocks


def same_or_split_var(p_name: str, var_name: str) -> bool:
    """True if `p_name` is `var_name` or one of its blocks."""
    return p_name == var_name or p_name.startswith(var_name + ".block")


def name_parts(name: str) -> tuple[str, str, str]:
    """`x@GRAD.block0.trainer_1` -> the name of the whole variable, 'block0' or '', 'trainer_1' or ''."""
    name, _, trainer = name.partition(".trainer_")
    whole, _, block = name.partition(".block")
    return whole, block and "block" + block, trainer and "trainer_" + trainer


def original_name(name: str) -> str:
    """The name of the whole variable, without the suffixes of blocks and trainers."""
    return name_parts(name)[0]


def cut(home: Block, listed: Sequence[str], trainer_id: int | None = None) -> dict[str, list[Variable]]:
    """Create the variables in `home` for blocks listed by `slice_variable`; by the names of the whole variables.

    A variable of one block is it itself. `trainer_id`: these are what that trainer sends, and are named so.
    """
    sizes: dict[str, list[int]] = {}
    for text in listed:
        name, _, size = text.rsplit(":", 2)
        sizes.setdefault(name, []).append(int(size))
    suffix = "" if trainer_id is None else f".trainer_{trainer_id}"
    found: dict[str, list[Variable]] = {}
    for name, parts in sizes.items():
        whole = home.var(name)
        if len(parts) == 1:
            if suffix:
                _rename(home, name, name + suffix)
            found[name] = [whole]
            continue
        row = prod(whole.shape[1:])
        found[name] = [
            home.create_var(
                name=f"{name}.block{k}{suffix}", persistable=False, dtype=whole.dtype, type=whole.type,
                shape=(size // row, *whole.shape[1:]),
            )
            for k, size in enumerate(parts)
        ]  # fmt: skip
    return found


def _rename(home: Block, name: str, new: str) -> None:
    """Rename a variable, also in the attributes of operators with parameters and gradients."""
    home._rename_var(name, new)
    for block in home.program.blocks:
        for op in block.ops:
            known = op.attrs.get("op_role_var")
            if known and name in known:
                op.attrs["op_role_var"] = [new if item == name else item for item in known]
            if block is not home:
                op._rename_input(name, new)
                op._rename_output(name, new)


def rows_of(variables: Sequence[Variable]) -> list[int]:
    """The number of rows of each variable."""
    return [var.shape[0] for var in variables]
