"""`trace` and `Traced`: a function of tensors as a program, with the tensors that it captures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from ....base import unique_name
from ....base.arrays import owned
from ....base.dtypes import FLOATS, VarType
from ....base.errors import NotSupportedError
from ....base.sizes import Registers, ShapeEnv, SymFloat, SymInt
from ....eager import Tensor, count_traces, empty, is_recording, placing, record_call, recording
from ....executor import LoDTensor, Scope
from ....executor.plan_cache import run_once
from ....framework import Program, Variable, default_main_program, mode, program_guard
from ....framework.tracing import Tracer
from ....framework.tracing import record as tracing_record
from ....framework.tracing import trace as tracing
from ...layers.utils import replaced
from .program_execution import Runner

Shapes = tuple[tuple[int, ...], ...]
Axes = Set[tuple[int, int]]
"""(number of an input, axis)."""


class DynamicShapes:
    """Shapes for a trace, with a `SymInt` for each of the dimensions `axes`.

    Where the traced code compares a size, or needs its number, a guard is added. `close`, called after the trace,
    replaces the symbolic sizes in the program. From then on `fit` evaluates the guards for other shapes.
    """

    def __init__(self, shapes: Shapes, axes: Axes) -> None:
        self._sizes = ShapeEnv(user_visible=True)
        self.shapes = [
            tuple(
                [
                    self._sizes.input_symbol(n, f"feed_{k}.{axis}") if (k, axis) in axes else n
                    for axis, n in enumerate(shape)
                ]
            )
            for k, shape in enumerate(shapes)
        ]
        self._lock = threading.RLock()
        self._asked = 0

    def close(self, program: Program, result: Any) -> Any:
        """Declare the dynamic dimensions of `program` as -1 and replace all other sizes in it by numbers.

        Returns `result` with its sizes replaced, too.
        """
        result = self._number(result)
        for block in program.blocks:
            for op in block.ops:
                for name, value in op.attrs.items():
                    if _sized(value):
                        op._set_attr(name, self._number(value))
        for block in program.blocks:
            for var in block.vars.values():
                if any(isinstance(n, SymInt) for n in var._shape or ()):
                    var._shape = tuple([self._declared(n) for n in var._shape])
        registers = Registers(self._sizes)
        self._roots = [
            (k, axis, registers.integer(n))
            for k, shape in enumerate(self.shapes)
            for axis, n in enumerate(shape)
            if isinstance(n, SymInt)
        ]
        self.varies = any(
            isinstance(n, SymInt) and not self._sizes.is_constant(n) for shape in self.shapes for n in shape
        )
        self._fixed = [[None if isinstance(n, SymInt) else n for n in shape] for shape in self.shapes]
        registers.add_guards()
        self._found = registers.values
        return result

    def fit(self, shapes: Shapes) -> bool:
        """True if the trace is valid for inputs of these shapes."""
        for own, shape in zip(self._fixed, shapes, strict=True):
            for known, n in zip(own, shape, strict=True):
                if known is not None and known != n:
                    return False
        with self._lock:
            while True:  # a finaliser in this thread may have evaluated other shapes meanwhile
                self._asked = asked = self._asked + 1
                for k, axis, register in self._roots:
                    self._found.set(register, shapes[k][axis])
                fits = self._found.evaluate() and self._found.holds()
                if self._asked == asked:
                    return fits

    def _declared(self, n: int) -> int:
        if not isinstance(n, SymInt):
            return n
        return n.value if self._sizes.is_constant(n) else -1

    def _number(self, value: Any) -> Any:
        """`value` with numbers in place of its sizes, which become guards."""
        if isinstance(value, SymInt):
            return int(value)
        if isinstance(value, SymFloat):
            return float(value)
        if not _sized(value):
            return value
        if isinstance(value, dict):
            return {name: self._number(item) for name, item in value.items()}
        items = [self._number(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def _sized(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_sized(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(_sized(item) for item in value)
    return isinstance(value, (SymInt, SymFloat))


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
