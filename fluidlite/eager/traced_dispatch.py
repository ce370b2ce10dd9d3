"""Dispatch of operators on eager tensors while a program is traced or recorded.

In a trace they are appended to the program; while a record is on, they run and are recorded.
"""

from __future__ import annotations

from typing import Any

from .._ext import eager as core
from ..framework import tracing


def divert(form: core.Form, values: list[Any]) -> list[Any] | None:
    """Append the call of `form` with `values` to the program being traced; returns its results, Variables.

    Returns tensors if a record is on, None if this thread neither traces nor records.
    """
    tracer = tracing.current()
    if tracer is None:
        record = tracing.record.get()
        return None if record is None else record.ran(form, values)  # type: ignore[no-any-return]
    block = tracer.program.current_block()
    op_type = form.definition.type
    operands = iter(values)
    inputs = {slot: [next(operands) for _ in names] for slot, names in form.inputs.items()}
    outputs = {
        slot: [
            block.create_var(
                name=block._new_name(f"{op_type}.tmp"),
                stop_gradient=slot in form.definition.no_grad,
            )
            for _ in names
        ]
        for slot, names in form.outputs.items()
    }
    block.append_op(type=op_type, inputs=inputs, outputs=outputs, attrs=form.attrs)
    return [var for made in outputs.values() for var in made]
