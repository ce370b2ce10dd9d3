"""Sequences sorted by length, their steps as arrays and back; the base of `DynamicRNN`."""

from __future__ import annotations

from ...base.dtypes import VarType
from ...framework import Variable
from ...layer_helper import LayerHelper, check_variable
from ...op_functions import run_layer

__all__ = ["reorder_lod_tensor_by_rank"]


def lod_rank_table(x: Variable, level: int = 0) -> Variable:
    """The sequences of one level of `x` sorted by length (`fluid.layers.control_flow.lod_rank_table`).

    Args:
        x: anything with sequences.
        level: which level is ranked, 0 being the outermost one.

    Returns:
        A variable that holds a rank table: the longest sequence first, and of equal ones the first.

    Raises:
        TypeError: x is no Variable.
        EnforceNotMet: when it runs, if x does not have that level.
    """
    check_variable(x, "x", "lod_rank_table")
    helper = LayerHelper("lod_rank_table")
    name = helper._new_name("lod_rank_table")
    table: Variable = helper.create_variable(name=name, type=VarType.LOD_RANK_TABLE)
    helper.append_op(type="lod_rank_table", inputs={"X": x}, outputs={"Out": table}, attrs={"level": level})
    return table


def max_sequence_len(rank_table: Variable) -> Variable:
    """How long the longest sequence is: int64 [1] (`fluid.layers.control_flow.max_sequence_len`).

    `rank_table`: what `lod_rank_table` gives. Raises TypeError for anything else.
    """
    check_table(rank_table, "max_sequence_len")
    helper = LayerHelper("max_seqence_len")  # Fluid's spelling, which names are made from
    return helper.run("max_sequence_len", {"RankTable": rank_table})


def check_table(table: object, layer: str) -> None:
    """Raise TypeError unless `table` is a Variable that holds a rank table."""
    check_variable(table, "rank_table", layer)
    if table.type != VarType.LOD_RANK_TABLE:  # type: ignore[attr-defined]
        raise TypeError(
            f"The type of rank_table should be LOD_RANK_TABLE in {layer}, got {table.name!r}, "  # type: ignore[attr-defined]
            "make one with fluid.layers.control_flow.lod_rank_table"
        )


def reorder_lod_tensor_by_rank(x: Variable, rank_table: Variable) -> Variable:
    """The rows, or sequences, of `x` in the order of a rank table (`fluid.layers.reorder_lod_tensor_by_rank`).

    Args:
        x: as many rows, or sequences of the outermost level, as were ranked.
        rank_table: what `lod_rank_table` gives.

    Returns:
        A variable of the shape of x, with the levels of sequences of x.

    Raises:
        TypeError: an argument is no Variable, or holds no rank table.
        EnforceNotMet: when it runs, for another number of rows or sequences.
    """
    check_table(rank_table, "reorder_lod_tensor_by_rank")
    return run_layer("reorder_lod_tensor_by_rank", locals())


def lod_tensor_to_array(x: Variable, table: Variable) -> Variable:
    """The steps of the ranked sequences of `x` (`fluid.layers.control_flow.lod_tensor_to_array`).

    Args:
        x: sequences as long as those that were ranked, or longer.
        table: what `lod_rank_table` gives.

    Returns:
        An array: element t has step t of all sequences that are that long, the longest sequence first.
    """
    check_variable(x, "x", "lod_tensor_to_array")
    check_table(table, "lod_tensor_to_array")
    helper = LayerHelper("lod_tensor_to_array")
    array: Variable = helper.create_variable(
        name=helper._new_name("lod_tensor_to_array"), type=VarType.LOD_TENSOR_ARRAY, dtype=x.dtype
    )
    append_split(helper.main_program.current_block(), x, table, array)
    return array


def append_split(block: object, x: Variable, table: Variable, array: Variable) -> None:
    """Append to `block` the operator that writes the steps of `x` into `array`."""
    inputs = {"X": x, "RankTable": table}
    block.append_op(type="lod_tensor_to_array", inputs=inputs, outputs={"Out": array})  # type: ignore[attr-defined]


def array_to_lod_tensor(x: Variable, table: Variable) -> Variable:
    """The inverse of `lod_tensor_to_array` (`fluid.layers.control_flow.array_to_lod_tensor`).

    Args:
        x: an array with an element for each step.
        table: what `lod_rank_table` gives.

    Returns:
        The rows in the order in which the sequences were before they were ranked, with these sequences.
    """
    check_table(table, "array_to_lod_tensor")
    return run_layer("array_to_lod_tensor", locals(), RankTable="table")


def shrink_memory(x: Variable, i: Variable, table: Variable) -> Variable:
    """The rows, or sequences, of `x` that belong to sequences with more than `i` steps.

    Args:
        x: a row, or a sequence, for each ranked sequence (or for the first of them), in that order.
        i: the number of the step, int64 [1].
        table: what `lod_rank_table` gives.

    Follows `fluid.layers.control_flow.shrink_memory`.
    """
    check_table(table, "shrink_memory")
    helper = LayerHelper("shrink_memory")
    return run_layer("shrink_rnn_memory", locals(), without=("helper",), helper=helper, RankTable="table")
