"""The trainer's program: gradients are sent to servers and parameters received, instead of updates."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from ....base.dtypes import VarType
from ....framework import Block, Operator, OpRole, Program, Variable
from ....framework.pruning import LR_COUNTER
from ..details import delete_ops, find_op_by_output_arg

if TYPE_CHECKING:
    from ..distribute_transpiler import DistributeTranspiler


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


LOOKUPS = ("lookup_table", "lookup_table_v2")


def control_var(block: Block) -> Variable:
    """A variable without a value, a control dependency between operators."""
    return block.create_var(name=f"__control_var@{random.random()}", shape=[0], dtype=VarType.BOOL)


def sends_gradients(t: DistributeTranspiler) -> list[tuple[Variable, str]]:
    """Insert a `send` after each gradient; returns the variables sent and their endpoints, in order.

    `t.grad_name_to_send_dummy_out` gets the control variable of each `send`.
    """
    block = t.origin_program.global_block()
    items = list(t.grad_var_mapping.items())
    if not t.config.slice_var_up:
        _shuffled(items, t.origin_program.random_seed)
    at_runtime = t.config.runtime_split_send_recv
    own = f".trainer_{t.trainer_id}" if t.config.completely_not_async and t.trainer_num > 1 else ""
    sent: list[tuple[Variable, str]] = []
    for name, parts in items:
        endpoints = t.ps_dispatcher.dispatch(parts)
        whole = block.vars[name] if len(parts) > 1 else parts[0]
        index = find_op_by_output_arg(block, whole.name, reverse=True)
        sections: list[int] = []
        inputs = parts
        if at_runtime:
            sections, inputs = rows_of(parts), [whole]
        elif len(parts) > 1:
            _insert_split(block, whole, index + 1, parts)
            index += 1
        after = control_var(block)
        t.grad_name_to_send_dummy_out[name] = after
        block._insert_op(
            index=index + 1,
            type="send",
            inputs={"X": inputs},
            outputs={"Out": after},
            attrs={
                "epmap": endpoints,
                "sections": sections,
                "send_varnames": [part.name + own for part in parts] if at_runtime else [],
                "op_role": OpRole.RPC,
                "op_role_var": [t.grad_name_to_param_name[name], whole.name],
            },
        )
        sent += zip(parts, endpoints, strict=True)
    return sent


def _shuffled(items: list[Any], seed: int) -> None:
    """Shuffle whole variables, so that large ones are spread over the servers."""
    import numpy as np

    np.random.RandomState(seed).shuffle(items)  # noqa: NPY002 - Fluid's order, which all processes share


def _insert_split(block: Block, whole: Variable, index: int, parts: list[Variable]) -> None:
    if whole.type == VarType.SELECTED_ROWS:
        op_type, attrs = "split_selected_rows", {"height_sections": rows_of(parts)}
    else:
        op_type, attrs = "split_byref", {"sections": rows_of(parts)}
    block._insert_op(
        index=index,
        type=op_type,
        inputs={"X": whole},
        outputs={"Out": parts},
        attrs={**attrs, "op_role": OpRole.Dist},
    )


def counts_steps(t: DistributeTranspiler) -> None:
    """In asynchronous training, send each trainer's step count to the servers, for decaying learning rates."""
    if LR_COUNTER not in t.origin_program.global_block().vars:
        return
    for program in (t.origin_program, t.startup_program):
        for trainer in range(t.trainer_num):
            program.global_block().create_var(
                name=f"{LR_COUNTER}.trainer_{trainer}", dtype=VarType.INT64, shape=[1], persistable=True
            )
    startup = t.startup_program.global_block()
    for op in startup.ops:
        if op.output_arg_names == [LR_COUNTER]:
            op._set_attr("value", -float(t.trainer_num))
    for trainer in range(t.trainer_num):
        startup._prepend_op(
            type="fill_constant",
            outputs={"Out": f"{LR_COUNTER}.trainer_{trainer}"},
            attrs={"shape": [1], "dtype": int(VarType.INT64), "value": 1.0, "force_cpu": False},
        )
    name = f"{LR_COUNTER}.trainer_{t.trainer_id}"
    block = t.origin_program.global_block()
    after = t.grad_name_to_send_dummy_out[name] = control_var(block)
    block.append_op(
        type="send",
        inputs={"X": name},
        outputs={"Out": after},
        attrs={
            "epmap": t.pserver_endpoints,
            "sections": [],
            "send_varnames": [name] if t.config.runtime_split_send_recv else [],
            "merge_add": True,
            "use_send_handler": False,
            "op_role": OpRole.RPC,
            "op_role_var": [name, name],
        },
    )


def receives_parameters(t: DistributeTranspiler, endpoint_of: dict[str, str]) -> None:
    """Append barriers if needed, and receive the parameters, except for remote tables."""
    block = t.origin_program.global_block()
    after = list(t.grad_name_to_send_dummy_out.values())
    barrier = None
    common = {"endpoints": t.pserver_endpoints, "trainer_id": t.trainer_id, "op_role": OpRole.RPC}
    if t.sync_mode or t.config.half_async:
        barrier = control_var(block)
        block.append_op(
            type="send_barrier",
            inputs={"X": after},
            outputs={"Out": barrier},
            attrs={**common, "half_async": not t.sync_mode},
        )
    received = []
    for name, parts in t.param_var_mapping.items():
        if name in t.sparse_tables:
            continue
        gradient = t.param_name_to_grad_name[name]
        sent = t.grad_var_mapping[gradient]
        first = barrier if t.sync_mode else t.grad_name_to_send_dummy_out[gradient]
        at_runtime = t.config.runtime_split_send_recv
        block.append_op(
            type="recv",
            inputs={"X": [first]},
            outputs={"Out": [block.vars[name]] if at_runtime else parts},
            attrs={
                "epmap": [endpoint_of[part.name] for part in parts],
                "recv_varnames": [part.name for part in parts] if at_runtime else [],
                "trainer_id": t.trainer_id,
                "op_role": OpRole.RPC,
                "op_role_var": [name, sent[0].name if len(sent) == 1 else gradient],
            },
        )
        received += parts
    if t.sync_mode:
        block.append_op(
            type="fetch_barrier", inputs={"X": [barrier]}, outputs={"Out": received}, attrs=common
        )
    if not t.config.runtime_split_send_recv:
        joins_parts(t, block, OpRole.Dist)


def joins_parts(t: DistributeTranspiler, block: Block, role: int) -> None:
    """Concatenate parameters that are received in parts."""
    for name, parts in t.param_var_mapping.items():
        if len(parts) > 1 and name not in t.sparse_tables:
            block.append_op(
                type="concat",
                inputs={"X": [part.name for part in parts]},
                outputs={"Out": [name]},
                attrs={"axis": 0, "op_role": role},
            )


def starts_from_servers(t: DistributeTranspiler, endpoint_of: dict[str, str]) -> None:
    """Make the startup program receive the parameters from the servers."""
    block = t.startup_program.global_block()
    for name, parts in t.param_var_mapping.items():
        if name in t.sparse_tables:
            continue
        here = [
            block.vars[part.name]
            if part.name in block.vars
            else block.create_var(
                name=part.name, persistable=False, dtype=part.dtype, type=part.type, shape=part.shape
            )
            for part in parts
        ]
        block.append_op(
            type="recv",
            inputs={"X": []},
            outputs={"Out": here},
            attrs={
                "epmap": [endpoint_of[part.name] for part in parts],
                "trainer_id": t.trainer_id,
                "op_role": OpRole.RPC,
            },
        )
    block.append_op(
        type="fetch_barrier",
        inputs={"X": []},
        outputs={"Out": control_var(block)},
        attrs={"endpoints": t.pserver_endpoints, "trainer_id": t.trainer_id, "op_role": OpRole.RPC},
    )
    joins_parts(t, block, OpRole.Forward)


def looks_up_on_servers(t: DistributeTranspiler, endpoint_of: dict[str, str]) -> None:
    """Replace lookups of tables with sparse gradients by requests to the servers that hold them."""
    block = t.origin_program.global_block()
    for table, lookups in t.sparse_tables.items():
        by_type: dict[tuple[Any, ...], list[Operator]] = {}
        for op in lookups:
            by_type.setdefault((op.type, op.attr("padding_idx")), []).append(op)
        parts = t.param_var_mapping[table]
        for (op_type, padding), ops in by_type.items():
            _one_lookup(t, block, table, parts, endpoint_of, ops, op_type, padding)


def _one_lookup(
    t: DistributeTranspiler,
    block: Block,
    table: str,
    parts: list[Variable],
    endpoint_of: dict[str, str],
    ops: list[Operator],
    op_type: str,
    padding: int,
) -> None:
    """Replace the lookups of a table by a single remote lookup."""
    ids = [op.input("Ids")[0] for op in ops]
    results = [op.output("Out")[0] for op in ops]
    delete_ops(block, ops)
    block._insert_op(
        index=_last_writer(block, ids) + 1,
        type="distributed_lookup_table",
        inputs={"Ids": ids, "W": table},
        outputs={"Outputs": results},
        attrs={
            "table_names": [part.name for part in parts],
            "height_sections": rows_of(parts),
            "endpoints": [endpoint_of[part.name] for part in parts],
            "padding_idx": padding,
            "trainer_id": t.trainer_id,
            "lookup_table_version": op_type,
            "dtype": int(block.vars[table].dtype),
        },
    )


def _last_writer(block: Block, names: list[str]) -> int:
    """The index of the last operator that writes one of `names`; -1 if none does."""
    return max((find_op_by_output_arg(block, name, reverse=True) for name in names), default=-1)


def sparse_lookups(program: Program, parameters: set[str]) -> dict[str, list[Operator]]:
    """Remote tables, with the operators that look up their rows.

    These are tables that are only read by lookups, with sparse gradients.
    """
    tables: dict[str, list[Operator]] = {}
    whole: set[str] = set()
    for block in program.blocks:
        for op in block.ops:
            if op.attr("op_role") & (OpRole.Backward | OpRole.Optimize):
                continue
            table = _table(op) if block.idx == 0 else None
            if table in parameters:
                tables.setdefault(table, []).append(op)
            whole.update(name for name in op.reads() if name != table)
    return {table: ops for table, ops in tables.items() if table not in whole}


def _table(op: Operator) -> str | None:
    """The table of a lookup with sparse gradients, or None."""
    remote = op.type in LOOKUPS and (op.attr("remote_prefetch") or op.attr("is_distributed"))
    return op.input("W")[0] if remote and op.attr("is_sparse") else None
