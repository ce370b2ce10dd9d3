"""Operators of trainers and parameter servers: communication, and shards of gradients and ids."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...base.selected_rows import SelectedRows
from ..host_fallback import hosted
from ..infer import product
from ..native import itemsize
from ..registry import (
    Attr,
    Call,
    Control,
    Dispatch,
    Effects,
    OperatorError,
    OpView,
    RowRule,
    Sequences,
    register,
)

# Operators that communicate with parameter servers, and the one that is a server.
#
# `executor/parameter_server.py` implements them; they read and write variables by name.

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
        op_type,
        inputs=inputs,
        outputs=outputs,
        attrs=attrs,
        sequences=Sequences(source=None),
        effects=Effects(control=Control(), host=True, external=_CONNECTS),
        doc=doc,
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


def _parted_shapes(op: OpView, sections: Sequence[int]) -> None:
    height, *rest = op.shape("X")
    if sections and sum(sections) != height and height >= 0:
        raise op.fail(f"the sections {list(sections)} must add up to the {height} rows of X")
    if len(sections) != op.count("Out"):
        raise op.fail(f"there must be as many sections as Out, got {len(sections)} and {op.count('Out')}")
    for index, rows in enumerate(sections):
        op.set("Out", (rows, *rest), op.dtype("X"), index)


def _sections(op: OpView) -> list[int]:
    given = list(op.attr("sections"))
    count, height = op.count("Out"), op.shape("X")[0]
    if given or not op.attr("num"):
        return given
    if height % count:
        raise op.fail(f"the {height} rows of X cannot be cut into {count} equal parts")
    return [height // count] * count


def _split_native(op: OpView) -> Call:
    width = product(op.shape("X")[1:]) * itemsize(op, "X")
    return Call("split", [op.name("X"), *op.names("Out")], [1, *(rows * width for rows in _sections(op))])


def _split(xp: Any, X: Any, sections: Sequence[int], num: int) -> list[Any]:
    parts = xp.split(X, list(accumulate(sections))[:-1] if sections else num)
    return [xp.array(part) for part in parts]


register(
    "split_byref",
    inputs=("X",),
    outputs=("Out*",),
    attrs={"sections": Attr([], "INTS"), "num": 0},
    infer=lambda op: _parted_shapes(op, _sections(op)),
    kernel=_split,
    no_grad=("Out",),
    native=_split_native,
    sequences=Sequences(source=None),
    doc="X cut into parts of `sections` rows each, or into `num` equal ones.",
)


@hosted
def _no_rows(xp: Any, X: Any) -> Any:
    raise OperatorError(f"operator split_selected_rows: X must be SelectedRows, got an array of {X.shape}")


def _split_rows(xp: Any, X: Any, height_sections: Sequence[int]) -> list[SelectedRows]:
    """The rows of each section, counted from its beginning, in the order in which X has them."""
    if not isinstance(X, SelectedRows):
        raise OperatorError(
            f"operator split_selected_rows: X must be SelectedRows, got an array of {X.shape}"
        )
    ends = np.cumsum(height_sections)
    if len(X.rows) and not 0 <= X.rows.min() <= X.rows.max() < ends[-1]:
        raise OperatorError(
            f"operator split_selected_rows: the rows of X must be from 0 to {ends[-1] - 1}, "
            f"got {X.rows.min()} to {X.rows.max()}"
        )
    section = np.searchsorted(ends, X.rows, side="right")
    parts = []
    for index, (end, height) in enumerate(zip(ends, height_sections, strict=True)):
        mine = section == index
        parts.append(SelectedRows(X.rows[mine] - (end - height), X.values[mine], height))
    return parts


def _split_rows_infer(op: OpView) -> None:
    _parted_shapes(op, op.attr("height_sections"))


register(
    "split_selected_rows",
    inputs=("X",),
    outputs=("Out*",),
    attrs={"height_sections": Attr([], "LONGS")},
    infer=_split_rows_infer,
    kernel=_no_rows,
    dispatch=Dispatch(rows=RowRule(_split_rows, slots=("X",))),
    effects=Effects(updates=("Out",)),  # which are SelectedRows, too: no plan has several
    no_grad=("Out",),
    sequences=Sequences(source=None),
    doc="SelectedRows parted by ranges of `height_sections` rows, each counted from the beginning of its range.",
)


register(
    "fake_init",
    outputs=("Out",),
    attrs={"shape": Attr([], "LONGS")},
    infer=lambda op: op.set("Out", tuple(op.attr("shape")), VarType.FP32),
    # Untouched zeros take no memory: the rows of this table are on servers.
    kernel=lambda xp, shape: xp.zeros(shape, np.float32),
    no_grad=("Out",),
    doc="A table of `shape` in name only: its rows are on parameter servers.",
)


@hosted
def _split_ids(xp: Any, Ids: list[Any], Out: list[Any]) -> list[Any]:
    parts = len(Out)
    found = np.unique(np.concatenate([ids.reshape(-1) for ids in Ids]))
    return [found[found % parts == index].reshape(-1, 1) for index in range(parts)]


def _split_rows_by_id(xp: Any, Ids: list[Any], Out: list[Any]) -> list[Any]:
    (given,) = Ids
    mine = [given.rows % len(Out) == index for index in range(len(Out))]
    return [SelectedRows(given.rows[own], given.values[own], given.height) for own in mine]


def _split_ids_infer(op: OpView) -> None:
    if op.rows("Ids") is not None:
        return  # declared shapes stay
    for index in range(op.count("Out")):
        op.set("Out", (-1, *op.shape("Ids")[1:]), op.dtype("Ids"), index)


@hosted
def _merge_ids(xp: Any, Ids: list[Any], Rows: list[Any], X: list[Any]) -> list[Any]:
    known = np.concatenate([rows.reshape(-1) for rows in Rows])
    values = np.concatenate(X)
    order = np.argsort(known, kind="stable")
    out = []
    for ids in Ids:
        wanted = ids.reshape(-1)
        at = np.searchsorted(known, wanted, sorter=order)
        place = order[np.minimum(at, len(order) - 1)] if len(order) else at
        if len(wanted) and (not len(order) or (known[place] != wanted).any()):
            raise OperatorError(f"operator merge_ids: Rows lack ids that Ids name, such as {wanted[0]}")
        out.append(values[place])
    return out


def _merge_ids_infer(op: OpView) -> None:
    for index in range(op.count("Out")):
        op.set("Out", (op.shape("Ids", index)[0], op.shape("X")[-1]), op.dtype("X"), index)


register(
    "split_ids",
    inputs=("Ids*",),
    outputs=("Out*",),
    infer=_split_ids_infer,
    kernel=_split_ids,
    dispatch=Dispatch(rows=RowRule(_split_rows_by_id, slots=("Ids",))),
    effects=Effects(updates=("Out",)),  # the kernel needs only their number
    no_grad=("Out",),
    sequences=Sequences(source=None),
    doc="The different Ids, in ascending order, by their remainders when divided by the number of Out; the rows of "
    "SelectedRows likewise, in their order.",
)
register(
    "merge_ids",
    inputs=("Ids*", "Rows*", "X*"),
    outputs=("Out*",),
    infer=_merge_ids_infer,
    kernel=_merge_ids,
    no_grad=("Out",),
    sequences=Sequences(source="Ids"),
    doc="For each of Ids the row of X that stands where Rows have that id.",
)


@hosted
def _ref_by_trainer_id(xp: Any, X: list[Any], TrainerId: Any) -> Any:
    place = int(TrainerId.reshape(-1)[0])
    if not 0 <= place < len(X):
        raise OperatorError(f"operator ref_by_trainer_id: TrainerId must be below {len(X)}, got {place}")
    return xp.array(X[place])


register(
    "ref_by_trainer_id",
    inputs=("X*", "TrainerId"),
    infer=lambda op: op.set("Out", op.shape("X"), op.dtype("X")),
    kernel=_ref_by_trainer_id,
    no_grad=("Out",),
    sequences=Sequences(source=None),
    doc="That of X whose number is TrainerId.",
)
