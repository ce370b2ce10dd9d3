"""`trace` and `Traced`: a function of tensors as a program, with the tensors that it captures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...base import unique_name
from ...base.arrays import owned
from ...base.dtypes import FLOATS, VarType
from ...base.errors import NotSupportedError
from ...eager import Tensor, count_traces, empty, is_recording, placing, record_call, recording
from ...executor import LoDTensor, Scope
from ...executor.running.startup import run_once
from ...framework import Program, Variable, default_main_program, mode, program_guard
from ...framework.tracing import Tracer
from ...framework.tracing import record as tracing_record
from ...framework.tracing import trace as tracing
from ..nested import replaced
from .dynamic_shapes import DynamicShapes
from .program_execution import Runner

_HOST = {np.ndarray}

Spec = tuple[Sequence[int], VarType, str | None]
"""Shape (-1 for dynamic dimensions), type and name of an input."""


def _is_output(value: Any) -> bool:
    return isinstance(value, Variable)


def _constant(array: np.ndarray) -> Tensor:
    return Tensor(placing.to_default_device(np.ascontiguousarray(array).reshape(array.shape)))


class Traced:
    """The program of a function, specialised on the kind of arguments that it was traced with.

    `inputs` and `outputs`: its Variables in the order of the arguments' and results' tensors. `captured`: the eager
    tensors that are part of it (parameters, buffers, constants), by name; the program works on their memory.
    `dynamic_shapes` holds the guards on shapes if it has dynamic dimensions, else None.
    """

    def __init__(
        self,
        tracer: Tracer,
        startup: Program,
        inputs: list[Variable],
        result: Any,
        held: list[Any],
        dynamic_shapes: DynamicShapes | None = None,
    ) -> None:
        self.program = tracer.program
        self.name = tracer.what
        self.dynamic_shapes = dynamic_shapes
        self.startup = startup
        self.inputs = inputs
        self.captured: dict[str, Tensor] = tracer.captured
        self.scope = Scope()
        self.held = held
        self._tensors = list(self.captured.values())
        self._result = result
        self.outputs: list[Variable] = []
        replaced(result, _is_output, self.outputs.append)
        for var in self.outputs:
            if not isinstance(var, Tensor) and var.name not in self.program.global_block().vars:
                raise NotSupportedError(
                    f"{self.name} returns {var.name!r}, which belongs to a branch or a loop that depends on tensors: "
                    "make it a variable of the function that has the condition"
                )
        self._single = isinstance(result, Variable)
        self._places = [self._place(var) for var in self.outputs]
        computed = {
            var.name: var for var, place in zip(self.outputs, self._places, strict=True) if place is None
        }
        self.computed = list(computed.values())
        self._slot = {name: k for k, name in enumerate(computed)}
        self.refresh()
        if startup.global_block().ops:
            run_once(startup, self.scope)
        self._runners: dict[Any, Runner] = {}
        self._written = {name for op in self.program.global_block().ops for name in op.output_arg_names}

    def _place(self, var: Any) -> Tensor | int | None:
        """The source of an output that no operator computes: a captured tensor, or the index of an input; else None."""
        if isinstance(var, Tensor):
            return var
        if var.name in self.captured:
            return self.captured[var.name]
        return next((k for k, var_in in enumerate(self.inputs) if var_in is var), None)

    def refresh(self) -> None:
        """Make the scope share the current memory of the captured tensors."""
        for name, tensor in self.captured.items():
            holder = self.scope.var(name)
            known = holder.get()
            if known is None or known.array is not tensor.array:
                holder.set(LoDTensor.wrap(tensor.array))

    def own(self) -> list[np.ndarray]:
        """The arrays of the captured tensors, on the host, made writable by native code."""
        for tensor in self._tensors:
            tensor.array = owned(tensor.array)
        return [tensor.array for tensor in self._tensors]

    def __call__(self, leaves: list[Tensor]) -> Any:
        """The function's result for `leaves`, the tensors of its arguments, recorded for gradients."""
        if tracing_record.get() is not None:
            raise NotSupportedError(
                f"{self.name} is a program with branches or loops, which TracedLayer.trace cannot make part of another "
                "one: trace the layers before and after it, and run it on their outputs"
            )
        tensors = leaves + self._tensors
        wanted = None
        if is_recording():
            wanted = tuple([not tensor.stop_gradient for tensor in tensors])
            if True not in wanted:
                wanted = None
        operands = [tensor.array for tensor in tensors]
        device = None
        if {type(array) for array in operands} != _HOST:
            device = placing.colocate(None, operands)
        runner = self._runners.get((wanted, device))
        if runner is None:
            runner = self._runners[wanted, device] = Runner(self, wanted, device)
        arrays, pending = runner.run(operands)
        results = []
        for array in arrays:
            tensor = empty()
            tensor.array = array
            results.append(tensor)
        if pending is not None:
            record_call(pending, tensors, results, runner.differentiable)
        if self._single and results:
            return results[0]
        order = iter(zip(self.outputs, self._places, strict=True))

        def value(_: Any) -> Tensor:
            var, place = next(order)
            if place is None:
                return results[self._slot[var.name]]
            return place if isinstance(place, Tensor) else leaves[place]

        return replaced(self._result, _is_output, value)

    def bring_back(self, arrays: Iterable[Any]) -> None:
        """Copy results that the program has written into captured tensors back to their devices.

        `arrays`: for each captured tensor, the array that the program worked on.
        """
        for (name, tensor), array in zip(self.captured.items(), arrays, strict=True):
            if tensor.array is not array and array is not None and name in self._written:
                placing.overwrite(tensor.array, array)


def of_program(
    program: Program, inputs: Sequence[str], outputs: Sequence[str], held: dict[str, Tensor]
) -> Traced:
    """A given program as a Traced; `held`: its persistable variables."""
    tracer = Tracer(program, "the program", is_recording, _constant)
    tracer.captured = held
    variables = program.global_block().vars
    results = [variables[name] for name in outputs]
    return Traced(
        tracer,
        Program(),
        [variables[name] for name in inputs],
        results[0] if len(results) == 1 else results,
        [],
    )


def trace(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    what: str,
    held: Sequence[Any] = (),
    specs: Mapping[int, Spec] | None = None,
    dynamic_shapes: DynamicShapes | None = None,
) -> Traced:
    """The program that `function(*args, **kwargs)` builds with Variables in place of the tensors and arrays.

    Args:
        function: the function to trace; called once, in static mode.
        args, kwargs: arguments of the kind that the program is for.
        what: the function's name in messages.
        held: objects to keep as long as the result.
        specs: shapes, types and names of inputs (by index) that override those of the arguments.
        dynamic_shapes: the inputs' shapes with dynamic dimensions.

    Raises:
        NotSupportedError: if the function asks for the value of a tensor (`if tensor:`, `float(tensor)`).
        Whatever the function raises.
    """
    program, startup = Program(), Program()
    program.random_seed = startup.random_seed = default_main_program().random_seed
    tracer = Tracer(program, what, is_recording, _constant)
    block = program.global_block()
    inputs: list[Variable] = []

    def variable(value: Any) -> Variable:
        tensor = value if isinstance(value, Tensor) else Tensor(np.asarray(value))
        shape: Sequence[Any]
        shape, dtype, name = (specs or {}).get(len(inputs), (tensor.shape, tensor.dtype, None))
        if dynamic_shapes is not None:
            shape = dynamic_shapes.shapes[len(inputs)]
        var = block.create_var(
            name=name or f"feed_{len(inputs)}", shape=shape, dtype=dtype, stop_gradient=dtype not in FLOATS
        )
        inputs.append(var)
        return var

    arguments = replaced(
        (args, dict(kwargs)), lambda value: isinstance(value, (Tensor, np.ndarray)), variable
    )
    count_traces(1)
    try:
        with (
            unique_name.guard(),
            program_guard(program, startup),
            mode.guard(False),
            recording(True),
            tracing(tracer),
        ):
            result = function(*arguments[0], **arguments[1])
    finally:
        count_traces(-1)
    if dynamic_shapes is not None:
        result = dynamic_shapes.close(program, result)
    return Traced(tracer, startup, inputs, result, list(held), dynamic_shapes)
