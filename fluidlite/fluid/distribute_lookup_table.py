"""`fluid.distribute_lookup_table`: the embedding of a program whose table is spread over servers."""

from __future__ import annotations

from ..base import missing
from ..framework import Program, Variable

__all__ = [
    "LOOKUP_TABLE_TYPE",
    "find_distributed_lookup_table",
    "find_distributed_lookup_table_inputs",
    "find_distributed_lookup_table_outputs",
]

LOOKUP_TABLE_TYPE = "lookup_table"


def find_distributed_lookup_table(program: Program) -> str | None:
    """The name of the table of `embedding(is_distributed=True)`; None if there is none.

    Raises RuntimeError for several. Follows `fluid.distribute_lookup_table.find_distributed_lookup_table`.
    """
    found = {
        op.input("W")[0]
        for op in program.global_block().ops
        if op.type == LOOKUP_TABLE_TYPE and op.attr("is_distributed")
    }
    if len(found) > 1:
        raise RuntimeError("all distributed lookup_table_ops should have only one table")
    return found.pop() if found else None


def find_distributed_lookup_table_inputs(program: Program, table_name: str | None) -> list[Variable]:
    """The ids that are looked up in a table, one for each lookup."""
    return _named(program, table_name, "Ids")


def find_distributed_lookup_table_outputs(program: Program, table_name: str | None) -> list[Variable]:
    """The results of the lookups in a table, one for each lookup."""
    return _named(program, table_name, "Out")


def _named(program: Program, table_name: str | None, slot: str) -> list[Variable]:
    block = program.global_block()
    ops = [op for op in block.ops if op.type == LOOKUP_TABLE_TYPE and op.input("W") == [table_name]]
    return [
        block.var(name)
        for op in ops
        for name in (op.input(slot) if slot in op.input_names else op.output(slot))
    ]


__getattr__ = missing.reporter(__name__)
