"""Operators that take batches from loaders; executors do that before a step begins, so none has a kernel."""

from __future__ import annotations

from ...base.dtypes import to_vartype
from ..registry import Effects, OpDef, OpView, register

READING = frozenset({"create_py_reader", "create_double_buffer_reader", "read"})
"""The operators of this file."""

register(
    OpDef(
        "create_py_reader",
        inputs=("blocking_queue",),
        outputs=("Out*",),
        attrs={
            "shape_concat": [],
            "ranks": [],
            "lod_levels": [],
            "dtypes": [],
            "need_check_feed": [],
            "use_data_config": True,
            "device_index": 0,
            "device_count": 1,
        },
        effects=Effects(host=True),
        doc="A reader of the batches in a loader's queue; the attributes say what a batch holds.",
    )
)

register(
    OpDef(
        "create_double_buffer_reader",
        inputs=("UnderlyingReader",),
        attrs={"place": ""},
        effects=Effects(host=True),
        doc="A reader that prepares the next batch of another one ahead of time.",
    )
)


def _read_infer(op: OpView) -> None:
    """Infer nothing: the outputs keep their declared shapes, as batches come from a loader."""
    for index in range(op.count("Out")):
        op.set("Out", op.shape("Out", index), to_vartype(op.dtype("Out", index)), index)


register(
    OpDef(
        "read",
        inputs=("Reader",),
        outputs=("Out*",),
        attrs={"throw_eof_exp": True, "infer_out": True, "drop_last": True},
        infer=_read_infer,
        effects=Effects(host=True),
        doc="The next batch of a reader; raises EOFException when there is none.",
    )
)
