"""Tracing: code for eager tensors builds a program instead; the tensors that it captures become variables.

A `Tracer` belongs to a program while that program is being traced. Eager tensors are recognised by their attribute
`stands_for`, as this module cannot import their class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import callsite, unique_name
from ..base.context import Slot
from ..base.errors import NotSupportedError

if TYPE_CHECKING:
    from .operator import Operator
    from .program import Program
    from .variable import Variable


class Tracer:
    """The state of one trace.

    Args:
        program: the program that is built.
        what: the name of the traced function, for messages.
        recording: returns whether operators built now shall have gradients.
        tensor: makes an eager tensor of an array.

    `captured` holds the eager tensors that became variables, by the names of those.
    """

    def __init__(
        self, program: Program, what: str, recording: Callable[[], bool], tensor: Callable[[np.ndarray], Any]
    ) -> None:
        self.program = program
        self.what = what
        self.captured: dict[str, Any] = {}
        self._recording = recording
        self._tensor = tensor
        self._names: dict[int, str] = {}

    def stand_in(self, tensor: Any) -> Variable:
        """The persistable variable that `tensor` is in the program; parameters and buffers keep names if they can."""
        block = self.program.global_block()
        name = self._names.get(id(tensor))
        if name is not None:
            return block.vars[name]
        # Names of tensors that do not last are numbers that mean something else among the temporaries of a program.
        name = tensor.name if tensor.persistable else unique_name.generate("constant")
        while block.has_var(name):
            name = unique_name.generate(tensor.name)
        self._names[id(tensor)] = name
        self.captured[name] = tensor
        if tensor.stands_for == "parameter" and tensor.shape:
            return block.create_parameter(
                name=name, shape=tensor.shape, dtype=tensor.dtype, trainable=tensor.trainable, origin=tensor,
                optimize_attr=tensor.optimize_attr, regularizer=tensor.regularizer, need_clip=tensor.need_clip,
                do_model_average=tensor.do_model_average,
            )  # fmt: skip
        return block.create_var(
            name=name,
            shape=tensor.shape,
            dtype=tensor.dtype,
            persistable=True,
            stop_gradient=tensor.stop_gradient,
        )

    def appended(self, op: Operator) -> None:
        """Note that `op` was appended: under `no_grad` its results have no gradients."""
        if self._recording():
            return
        for name in op.output_arg_names:
            var = op.block._find_var_recursive(name)
            if var is not None and not var.persistable:
                var.stop_gradient = True

    def constant(self, array: np.ndarray) -> Variable:
        """The elements of an array that the code computes with."""
        return self.stand_in(self._tensor(array))

    def gradients(
        self,
        outputs: Sequence[Any],
        inputs: Sequence[Any],
        starts: Sequence[Any],
        blocked: Sequence[Any],
        create_graph: bool,
    ) -> list[Any]:
        """The gradients of the sum of `outputs`, weighed by `starts`, for each of `inputs`; None without a path.

        `blocked`: variables that stop gradients; `create_graph`: whether the gradients are differentiable.
        """
        from .common_attrs import OpRole
        from .gradients.backward import gradients

        given = [
            [None if item is None else self._variable(item) for item in items]
            for items in (outputs, inputs, starts)
        ]
        sources, targets, weights = given
        found = gradients(sources, targets, weights, [self._variable(item) for item in blocked])  # type: ignore[arg-type]
        # They are part of the traced function, not of a backward pass of it.
        for op in self.program.global_block().ops:
            op._set_attr("op_role", OpRole.Forward)
        for var in found:
            if var is not None and not create_graph:
                var.stop_gradient = True
        return found or [None] * len(targets)

    def _variable(self, item: Any) -> Variable:
        return self.stand_in(item) if hasattr(type(item), "stands_for") else item  # type: ignore[no-any-return]

    def makes_parameter(self, name: str | None) -> NotSupportedError:
        """The error for code that makes parameters, which would be lost with the trace."""
        return NotSupportedError(
            f"{self.what} makes parameter {name!r}{_at(callsite.user_line())} while it is traced into a program: make "
            "layers and parameters once, outside of the traced function (in __init__), and use them in it"
        )

    def needs_value(self, var: Variable, use: str) -> NotSupportedError:
        """The error for control flow on the value of `var`, which is unknown while tracing."""
        return NotSupportedError(
            f"{use} needs the value of tensor {var.name!r}{_at(callsite.user_line())}, but {self.what} is being traced "
            "into a program, which does not know values yet and takes the same way for all of them. Choose with "
            "operators instead (multiply by fluid.layers.cast(condition, 'float32')), keep this part out of the traced "
            "function, or run it eagerly with fluid.dygraph.ProgramTranslator().enable(False)"
        )


def _at(line: tuple[str, int] | None) -> str:
    return f" at {line[0]}:{line[1]}" if line else ""


_current: Slot[Tracer | None] = Slot("tracer", None)

record: Slot[Any] = Slot("tracing.record", None)
"""Records operators that run on eager tensors into a program (`eager.program_record`)."""

rewriter: Slot[Callable[[Any], Any] | None] = Slot("tracing.rewriter", None)
"""Rewrites the `forward` of layers while a function with control flow on tensors builds a program."""


def current() -> Tracer | None:
    """The current trace; None outside of one."""
    return _current.get()


@contextmanager
def trace(tracer: Tracer) -> Iterator[Tracer]:
    """Trace inside the block: operators on eager tensors are appended to the tracer's program."""
    with _current.hold(tracer):
        tracer.program._tracer = tracer
        try:
            yield tracer
        finally:
            tracer.program._tracer = None


def stand_in(program: Program, tensor: Any, slot: str) -> Variable:
    """The variable of `program` for an eager tensor given to an operator's `slot`.

    Raises TypeError if the program is an ordinary one and not being traced.
    """
    if program._tracer is None:
        raise TypeError(
            f"slot {slot} of an operator of a static program got the eager tensor {tensor.name!r}: programs take "
            "Variables. Feed the elements (tensor.numpy()) through fluid.data, or trace the code with "
            "fluid.dygraph.jit"
        )
    return program._tracer.stand_in(tensor)
