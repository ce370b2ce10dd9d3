"""Operators that communicate with parameter servers, and the one that is a server.

`executor/parameter_server/operators.py` implements them; they read and write variables by name.
"""

from __future__ import annotations

from typing import Any

from ...base.dtypes import VarType
from ..registry import Attr, Control, Effects, OpDef, OpView, Sequences, register

TRAINER: dict[str, Any] = {"trainer_id": 0}
_CONNECTS = "opens connections"


def _remote(
    op_type: str,
    doc: str,
    inputs: tuple[str, ...] = ("X*?",),
    outputs: tuple[str, ...] = ("Out*?",),
    **attrs: Any,
) -> None:
    types = {"sections": "LONGS", "shape": "LONGS", "optimize_blocks": "BLOCKS"}
    types = {**{name: "STRINGS" for name, value in attrs.items() if value == []}, **types}
    attrs = {name: Attr(value, types[name]) if name in types else value for name, value in attrs.items()}
    register(
        OpDef(
            op_type,
            inputs=inputs,
            outputs=outputs,
            attrs=attrs,
            sequences=Sequences(source=None),
            effects=Effects(control=Control(), host=True, external=_CONNECTS),
            doc=doc,
        )
    )


_remote(
    "send",
    "Sends X to the servers `epmap`; with `sections` and `send_varnames` X is cut into parts of so many rows.",
    **TRAINER,
    epmap=[],
    sections=[],
    send_varnames=[],
    num=0,
    merge_add=False,
    use_send_handler=True,
)
_remote(
    "recv",
    "Gets Out, or its parts `recv_varnames`, from the servers `epmap`.",
    **TRAINER,
    epmap=[],
    with_barrier=True,
    varnames=[],
    recv_varnames=[],
    do_not_run=0,
)
_remote(
    "send_barrier",
    "Tells the servers that this trainer's gradients are there, and waits for those of the others.",
    **TRAINER,
    endpoints=[],
    half_async=False,
)
_remote(
    "fetch_barrier",
    "Tells the servers that this trainer has the parameters, and waits for the others.",
    **TRAINER,
    endpoints=[],
)
_remote(
    "listen_and_serv",
    "Serves parameters: takes gradients of `Fanin` trainers and runs `optimize_blocks`, until the trainers are done.",
    outputs=(),
    endpoint="127.0.0.1:6164",
    pserver_id=-1,
    grad_to_block_id=[],
    distributed_mode=0,
    dc_asgd=False,
    optimize_blocks=[],
    prefetch_var_name_to_block_id=[],
    sparse_grad_to_param=[],
    Fanin=1,
    checkpint_block_id=-1,
    lr_decay_block_id=-1,
    rpc_get_thread_num=1,
    rpc_send_thread_num=1,
    rpc_prefetch_thread_num=1,
)
_remote(
    "checkpoint_notify",
    "Has the servers `epmap` save their parts of `lookup_table` to `dir`.",
    inputs=(),
    outputs=(),
    epmap=[],
    dir="",
    lookup_table="",
    **TRAINER,
)
_remote(
    "recv_save",
    "Gets the parts of a variable from the servers and saves the whole to `file_path`.",
    inputs=(),
    outputs=(),
    dtype=5,
    overwrite=True,
    file_path="",
    shape=[],
    slice_varnames=[],
    remote_varnames=[],
    slice_shapes=[],
    endpoints=[],
    **TRAINER,
)


def _rows_infer(op: OpView) -> None:
    first = op.shape("Ids")
    width = op.shape("W")[-1]
    for index in range(op.count("Ids")):
        ids = op.shape("Ids", index)
        drops = op.attr("lookup_table_version") == "lookup_table"
        if drops and ids and ids[-1] not in (1, -1):
            raise op.fail(f"the last dimension of Ids must be 1, got shape {list(ids)}")
        positions = tuple(ids[:-1] if drops else ids)
        if op.dtype("Ids", index) not in (VarType.INT64, VarType.INT32):
            raise op.fail(f"Ids must be int64 or int32, got {op.dtype('Ids', index)}")
        op.set("Outputs", (*positions, width), op.dtype("W"), index)
    assert first is not None


register(
    OpDef(
        "distributed_lookup_table",
        inputs=("Ids*", "W#"),
        outputs=("Outputs*",),
        attrs={
            "table_names": Attr([], "STRINGS"),
            "height_sections": Attr([], "LONGS"),
            "endpoints": Attr([], "STRINGS"),
            "trainer_id": 0,
            "lookup_table_version": "lookup_table",
            "padding_idx": Attr(-1, "LONG"),
            "dtype": 5,
        },
        infer=_rows_infer,
        sequences=Sequences(source=None),
        effects=Effects(control=Control(), host=True, external=_CONNECTS),
        doc="The rows of a table, whose parts `table_names` are on the servers `endpoints`, that Ids name.",
    )
)
