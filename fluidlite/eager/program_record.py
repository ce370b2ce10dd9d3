"""Recording of eager code as a program: the operators that ran, with their inputs and results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from .._ext import eager as core
from ..base import unique_name
from ..base.errors import NotSupportedError
from ..framework import Program, Variable, mode, program_guard, tracing
from . import placing
from .autograd import is_recording
from .tensor import Tensor, empty

Key = int
"""The number of a value (SSA): a tensor that is changed in place has a new key after each change."""


class _Ran(NamedTuple):
    """A recorded call of an operator."""

    type: str
    inputs: Mapping[str, Sequence[Key]]
    outputs: Mapping[str, Sequence[Key]]
    attrs: Mapping[str, Any]


class _Differentiated(NamedTuple):
    """A recorded call of `grad`: the keys of its arguments and of its results, and its `create_graph`."""

    given: Sequence[Sequence[Key | None]]
    found: Sequence[Key | None]
    create_graph: bool


class ProgramRecord:
    """Records the operators that run on eager tensors, for a program that computes the same from other inputs.

    Args:
        what: the name of the recorded layer, for messages.
        inputs: the tensors that become inputs of the program.

    Other tensors that are not results of recorded operators are captured: persistable variables of the program that
    share their memory. Tensors made of values that the code has read (`numpy()`) are constants.
    """

    def __init__(self, what: str, inputs: Sequence[Tensor]) -> None:
        self.what = what
        self._steps: list[_Ran | _Differentiated] = []
        self._tensors: list[Tensor] = []
        """By key, a tensor with the value."""
        self._known: dict[int, tuple[Any, Key]] = {}
        """By `id` of a tensor: the array that it had, and its key."""
        self._arrays: dict[int, tuple[Any, Key]] = {}
        """By `id` of an array: it and its key, for tensors that share it without an operator."""
        self._captured: set[Key] = set()
        self._also: dict[Key, Key] = {}
        """By key of a result that overwrites a captured tensor: the key of that tensor."""
        self._inputs = [self._note(tensor) for tensor in inputs]

    @contextmanager
    def on(self) -> Iterator[None]:
        """Context manager that records operators."""
        core.count_traces(1)
        try:
            with tracing.record.hold(self):
                yield
        finally:
            core.count_traces(-1)

    def ran(self, form: core.Form, tensors: list[Any]) -> list[Tensor]:
        """Run the call signature `form` on tensors and record it; returns the results."""
        keys_in = iter([self._key(tensor) if isinstance(tensor, Tensor) else -1 for tensor in tensors])
        with tracing.record.hold(None):
            results: list[Tensor] = form.invoke(tensors)
        keys_out = iter([self._note(result) for result in results])
        inputs = {slot: [next(keys_in) for _ in names] for slot, names in form.inputs.items()}
        outputs = {slot: [next(keys_out) for _ in names] for slot, names in form.outputs.items()}
        self._steps.append(_Ran(form.definition.type, inputs, outputs, form.attrs))
        return results

    def differentiated(
        self,
        arguments: Sequence[Sequence[Tensor | None]],
        results: Sequence[Tensor | None],
        create_graph: bool,
    ) -> None:
        """Record a call of `grad`; `arguments`: its outputs, inputs, grad_outputs and no_grad_vars."""
        keys_in = [[None if each is None else self._key(each) for each in tensors] for tensors in arguments]
        keys_out = [None if each is None else self._note(each) for each in results]
        self._steps.append(_Differentiated(keys_in, keys_out, create_graph))

    def copied(self, tensor: Tensor, twin: Tensor) -> None:
        """Record that `twin` has a copy of the elements of `tensor`."""
        self._steps.append(_Ran("assign", {"X": [self._key(tensor)]}, {"Out": [self._note(twin)]}, {}))

    def becomes(self, tensor: Tensor, result: Tensor) -> None:
        """Record that `tensor` is about to take the value of `result`; persistable ones keep their memory."""
        new_key = self._key(result)
        if tensor.persistable and tensor.array is not None:
            self._also[new_key] = self._key(tensor)
        else:
            self._leave(tensor, tensor.array)
            self._known[id(tensor)] = (result.array, new_key)
            self._tensors.append(tensor)  # as long as its `id` is known

    def changes(self, tensor: Tensor) -> None:
        """Record that the elements of `tensor` are about to be overwritten, not by an operator's result."""
        if not tensor.persistable:
            self._leave(tensor, placing.duplicate(tensor.array))

    def program(self, outputs: Sequence[Tensor]) -> tuple[tracing.Tracer, list[Variable], list[Variable]]:
        """The tracer with the program, its inputs `feed_N` and its outputs `fetch_N`.

        Other variables are called `t_N`, as in Fluid.
        """
        names: dict[Key, str] = {}
        for number, tensor in enumerate(outputs):
            key = self._key(tensor)
            if key in names or not self._is_result(key):
                copy = empty()
                self.copied(tensor, copy)
                key = self._key(copy)
            names[key] = f"fetch_{number}"
        tracer = tracing.Tracer(Program(), self.what, is_recording, Tensor)
        builder = _Builder(tracer, self._tensors, self._also)
        with (
            unique_name.guard(),
            program_guard(tracer.program, Program()),
            mode.guard(False),
            tracing.trace(tracer),
        ):
            inputs = [builder.fed(key, f"feed_{number}") for number, key in enumerate(self._inputs)]
            for step in self._steps:
                builder.append(step, names)
        return tracer, inputs, [builder.variables[key] for key in names]

    def _is_result(self, key: Key) -> bool:
        """True if the value is an operator's result that does not overwrite a captured tensor."""
        return key not in self._also and any(
            key in keys for step in self._steps if isinstance(step, _Ran) for keys in step.outputs.values()
        )

    def _note(self, tensor: Tensor) -> Key:
        """A new key for the current value of `tensor`."""
        key = len(self._tensors)
        self._tensors.append(tensor)
        self._known[id(tensor)] = (tensor.array, key)
        if tensor.array is not None:
            self._arrays[id(tensor.array)] = (tensor.array, key)
        return key

    def _key(self, tensor: Tensor) -> Key:
        """The key of the current value of `tensor`, which is captured if it is not recorded yet."""
        array, key = self._known.get(id(tensor), (None, -1))
        if key >= 0 and (array is tensor.array or tensor.persistable):
            return key
        shared = self._arrays.get(id(tensor.array))
        if shared is not None:
            return shared[1]
        key = self._note(tensor)
        self._captured.add(key)
        return key

    def _leave(self, tensor: Tensor, array: Any) -> None:
        """Detach `tensor` from its key, which keeps the old value, in `array`."""
        known, key = self._known.pop(id(tensor), (None, -1))
        self._arrays.pop(id(known), None)
        if key in self._captured or key in self._inputs:
            self._tensors[key] = Tensor(array, tensor.name, tensor.stop_gradient)


class _Builder:
    """Appends recorded operators to the program of a tracer."""

    def __init__(self, tracer: tracing.Tracer, tensors: Sequence[Tensor], also: Mapping[Key, Key]) -> None:
        self.variables: dict[Key, Variable] = {}
        self._tracer, self._tensors, self._also = tracer, tensors, also
        self._block = tracer.program.global_block()

    def fed(self, key: Key, name: str) -> Variable:
        """The variable of an input."""
        tensor = self._tensors[key]
        var = self._block.create_var(
            name=name, shape=tensor.shape, dtype=tensor.dtype, stop_gradient=tensor.stop_gradient
        )
        self.variables[key] = var
        return var

    def append(self, step: _Ran | _Differentiated, names: Mapping[Key, str]) -> None:
        """Append a recorded call; `names`: names of some of its results."""
        if isinstance(step, _Differentiated):
            self._differentiate(step)
            return
        inputs = {slot: [self._variable(key) for key in keys] for slot, keys in step.inputs.items()}
        outputs = {
            slot: [self._made(key, names.get(key)) for key in keys] for slot, keys in step.outputs.items()
        }
        self._block.append_op(type=step.type, inputs=inputs, outputs=outputs, attrs=step.attrs)

    def _differentiate(self, step: _Differentiated) -> None:
        outputs, inputs, starts, blocked = [
            [None if key is None else self._variable(key) for key in keys] for keys in step.given
        ]
        grads = self._tracer.gradients(outputs, inputs, starts, blocked, step.create_graph)
        for key, var in zip(step.found, grads, strict=True):
            if key is not None and var is None:
                raise NotSupportedError(
                    f"{self._tracer.what} takes gradients of a function that computes them in Python (PyLayer), which "
                    "a program cannot: keep grad() out of what TracedLayer traces"
                )
            if key is not None:
                self.variables[key] = var

    def _variable(self, key: Key) -> Variable:
        key = self._also.get(key, key)
        var = self.variables.get(key)
        return self._tracer.stand_in(self._tensors[key]) if var is None else var

    def _made(self, key: Key, name: str | None) -> Variable:
        if key in self._also:
            return self._variable(key)
        while name is None or self._block.has_var(name):
            name = unique_name.generate("t")
        var = self._block.create_var(name=name, stop_gradient=self._tensors[key].stop_gradient)
        self.variables[key] = var
        return var


# Dispatch of operators on eager tensors while a program is traced or recorded.
#
# In a trace they are appended to the program; while a record is on, they run and are recorded.


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
