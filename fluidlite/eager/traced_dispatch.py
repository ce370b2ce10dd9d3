"""What operators on eager tensors do while a program is traced: they become operators of that program.

While a record is on, they run, and are noted for the program.
"""

from __future__ import annotations

from typing import Any

from .._ext import eager as core
from ..framework import tracing


def divert(form: core.Form, values: list[Any]) -> list[Any] | None:
    """The call of `form` with `values` as an operator of the program being traced; its results are Variables.

    Tensors if a record is on; None if neither is so in this thread.
    """
    tracer = tracing.current()
    if tracer is None:
        record = tracing.record.get()
        return None if record is None else record.ran(form, values)  # type: ignore[no-any-return]
    block = tracer.program.current_block()
    op_type = form.definition.type
    given = iter(values)
    inputs = {slot: [next(given) for _ in names] for slot, names in form.inputs.items()}
    outputs = {
        slot: [
            block.create_var(
                name=block._new_name(f"{op_type}.tmp"),
                stop_gradient=slot in form.definition.stop_gradient,
            )
            for _ in names
        ]
        for slot, names in form.outputs.items()
    }
    block.append_op(type=op_type, inputs=inputs, outputs=outputs, attrs=form.attrs)
    return [var for made in outputs.values() for var in made]
