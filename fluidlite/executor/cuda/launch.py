"""Instructions for a GPU: calls of functions that queue the kernels of operators, one or several, on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...base.dtypes import FLOATS, to_numpy
from ...framework import Operator
from ...ops.host_fallback import call_on_host
from ...ops.registry import EMPTY, Call, LodArray, OpView
from ..ir.instructions import Instruction

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

Get = Callable[[str], Any]
"""Returns the array of a variable by name."""

Run = Callable[["CudaDevice", Get], Mapping[str, Any]]
"""Queues kernels on the device's compute stream, which must be current, and returns the arrays of results by name; for
updates those are the arrays that `get` returned."""

Argument = tuple[str | None, Sequence[int] | None]
"""A variable (None: an absent one) and the shape in which a launcher takes or gives it (None: its own)."""


@dataclass(frozen=True)
class Launch(Call):
    """The call of a launcher; the kernel is its name and the type of its floating point operands (`_type`).

    `shaped`: results of which only the shape is read, so that `run` does not compute them.
    """

    run: Run = field(kw_only=True)
    shaped: tuple[str, ...] = ()

    def with_shapes(self, names: Sequence[str]) -> Launch:
        """The launch that also binds arrays with undefined elements to these names."""
        return replace(self, operands=(*self.operands, *names), shaped=(*self.shaped, *names))


def of_operator(op: Operator, view: OpView) -> Instruction:
    """The instruction of one operator: its launcher, or its reference kernel on arrays of the device."""

    def run(device: CudaDevice, get: Get) -> Mapping[str, Any]:
        inputs = {slot: [get(name) for name in names] for slot, names in op.inputs.items() if names}
        outputs = op._named(call(op, inputs, device))
        return {name: value.array if isinstance(value, LodArray) else value for name, value in outputs}

    reads, writes = tuple(dict.fromkeys(op.input_arg_names)), tuple(dict.fromkeys(op.output_arg_names))
    kernel = f"{view.definition.planning.pattern or op.type}.{_type(view, (*reads, *writes))}"
    return Instruction((op,), reads, writes, Launch(kernel, (*reads, *writes), run=run), view)


def _type(view: OpView, names: Iterable[str]) -> str:
    """The type that all floating point variables of an operator have; "mixed" if there are several, or sparse ones."""
    meta = view.meta
    found = {meta.dtypes[name] for name in names if name != EMPTY and name in meta.dtypes}
    if len(found & FLOATS) > 1 or not meta.sparse.keys().isdisjoint(names):
        return "mixed"
    return "".join(f"f{8 * to_numpy(each).itemsize}" for each in found & FLOATS)


def fused(
    parts: Sequence[Instruction],
    launcher: Callable[..., Any],
    inputs: Mapping[str, Argument],
    outputs: Sequence[Argument],
    /,
    **options: Any,
) -> Launch:
    """One launch in the place of several, which run one by one if the launcher returns NotImplemented.

    The launcher takes the device, `inputs` by name of the argument, and `options`; it returns `outputs` in order.
    """
    made = [name for name, _ in outputs if name is not None]
    read = [name for name, _ in inputs.values() if name is not None]

    def run(device: CudaDevice, get: Get) -> Mapping[str, Any]:
        arrays = {slot: _array(device, get, *argument) for slot, argument in inputs.items()}
        results = launcher(device, **arrays, **options)
        if results is NotImplemented:
            results = one_by_one(parts, device, get)
            return {name: results[name] for name in made}
        return {
            name: array if shape is None else array.reshape(shape)
            for (name, shape), array in zip(
                outputs, results if isinstance(results, tuple) else (results,), strict=True
            )
            if name is not None
        }

    return Launch(f"{launcher.__name__}.{parts[0].action.type}", (*read, *made), run=run)


def _array(device: CudaDevice, get: Get, name: str | None, shape: Sequence[int] | None) -> Any:
    from ...backend.cupy_.launch import dense

    if name is None or shape is None:
        return None if name is None else get(name)
    return dense(device, get(name)).reshape(shape)


def one_by_one(launches: Iterable[Instruction], device: CudaDevice, get: Get) -> Mapping[str, Any]:
    """Run launches in order; returns the arrays that they write."""
    outputs: dict[str, Any] = {}
    for launch in launches:
        outputs.update(
            launch.action.run(device, lambda name: outputs[name] if name in outputs else get(name))
        )
    return outputs


def call(
    op: Operator,
    inputs: dict[str, list[Any]],
    device: CudaDevice,
    lods: dict[str, list[Any]] | None = None,
) -> list[Any]:
    """`OpDef.call` on arrays of `device`, which must be active; initial values are drawn on the host."""
    if draws_on_host(op):
        return call_on_host(op.definition, inputs, op.attrs, lods, device)
    wanted = [slot for slot, names in op.outputs.items() if names]
    if op.definition.dispatch.cuda is not None:
        inputs = _with_copies(op, inputs)
    return op.definition.call(device.xp, inputs, op.attrs, lods, device, wanted)


def _with_copies(op: Operator, inputs: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The inputs, with copies of those that a launcher overwrites where the program has another output variable.

    Launchers of updates write `ParamOut` into the array of `Param`, `MeanOut` into that of `Mean`.
    """
    for out, names in op.outputs.items():
        slot = out.removesuffix("Out")
        if slot != out and inputs.get(slot) and names and names != op.inputs[slot]:
            inputs = {**inputs, slot: [array.copy() for array in inputs[slot]]}
    return inputs


def draws_on_host(op: Operator) -> bool:
    """True if `op` draws initial values (all its outputs persist), so that a seed gives the same ones as on the CPU."""
    if not op.definition.effects.random:
        return False
    outputs = [op.block._find_var_recursive(name) for name in op.output_arg_names]
    return all(var is not None and var.persistable for var in outputs)


def needs_host(op: Operator) -> str | None:
    """The reason why a step with `op` cannot become a CUDA graph; None if no reason is visible in the program."""
    if draws_on_host(op):
        return f"operator {op.type} draws numbers on the host"
    if op.definition.effects.host or op.definition.hosted:
        return f"operator {op.type} works on the host"
    return None
