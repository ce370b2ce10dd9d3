"""Runs a case in every way there is here: interpreter, plan with each instruction set, eager tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fluidlite import eager
from fluidlite._ext import kernels
from fluidlite.base import unique_name
from fluidlite.base.dtypes import FLOATS, to_vartype
from fluidlite.base.place import CPUPlace
from fluidlite.executor import Executor, LoDTensor, Scope, scope_guard
from fluidlite.framework import program_guard
from fluidlite.framework.gradients.backward import gradients
from fluidlite.ops import registry
from fluidlite.ops.registry import grad_name

from ...engines import run_by
from ..in_program import OneOperator
from .cases import Case

Result = dict[str, Any]

INTERMEDIATE = frozenset(
    "XShape Mask MidOut WarpCTCGrad SavedMean SavedVariance XNorm YNorm Diff Residual Activated".split()
)
"""Outputs that are there for the gradient alone."""


def failure(error: Exception) -> Result:
    """The result of an operator that raised."""
    return {
        "error": type(error).__name__,
        "classes": [c.__name__ for c in type(error).__mro__],
        "text": str(error),
    }


def attempt(function: Callable[[], Result]) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function()
        except Exception as error:
            return failure(error)


def complete(case: Case, gradients_too: bool = True) -> Result:
    """The interpreter's results; fills in the outputs, and for a gradient its slots and weights."""
    definition = registry.find(case.op)
    for slot in definition.output_slots:
        if not slot.optional:
            case.outputs.setdefault(slot.name, 1)
    made = attempt(lambda: _program(case, "interpret"))
    if "error" in made or not gradients_too or definition.grad is None:
        return made
    rng = np.random.default_rng(1)
    for slot, count in case.outputs.items():
        if slot in definition.no_grad or slot in INTERMEDIATE:
            continue
        found = [made.get(f"{slot}_out_{k}") for k in range(count)]
        if all(a is not None and a.dtype.kind == "f" for a in found):
            case.weights[slot] = [rng.uniform(-1, 1, a.shape).astype(a.dtype) for a in found]
            case.lods[slot + "@GRAD"] = [made.get(f"{slot}_out_{k}@LOD") for k in range(count)]
    case.grads = [
        slot.name
        for slot in definition.input_slots
        if slot.name not in definition.no_grad
        and case.inputs.get(slot.name)
        and all(to_vartype(a.dtype) in FLOATS for a in case.inputs[slot.name])
    ]
    if not case.weights or not case.grads:
        case.weights, case.grads = {}, []
        return made
    return {**made, **_nested(attempt(lambda: _gradients(case, "interpret")))}


def all_ways(case: Case, seed: int = 0) -> Iterator[tuple[str, Result]]:
    """The results of every engine but the interpreter; plans also run other values, and unusual layouts, in between."""
    for target in kernels.targets():
        before = kernels.use(target)
        try:
            yield f"plan, {target}", both(case, f"plan {seed if target == kernels.targets()[0] else ''}")
        finally:
            kernels.use(before)
    if not any(slot in case.inputs for slot in case.lods):
        yield "eager", attempt(lambda: _eager(case))


def both(case: Case, engine: str) -> Result:
    """The results of the operator and, if it has `grads`, its gradient; `engine`: a name, optionally with a seed."""
    made = attempt(lambda: _program(case, engine))
    if case.grads and "error" not in made:
        made.update(_nested(attempt(lambda: _gradients(case, engine))))
    return made


def _nested(result: Result) -> Result:
    """A gradient that raises leaves the results of the operator itself."""
    return {"@GRAD": result} if "error" in result else result


def _one_operator(case: Case) -> OneOperator:
    outputs = {slot: [None] * count for slot, count in case.outputs.items()}
    return OneOperator(registry.find(case.op), case.inputs, case.attrs, outputs, case.lods)


def _program(case: Case, engine: str) -> Result:
    with unique_name.guard():
        program = _one_operator(case)
    return _run(program, engine, [var.name for slot in program.outputs for var in program.outputs[slot]])


def _gradients(case: Case, engine: str) -> Result:
    with unique_name.guard():
        program = _one_operator(case)
        with program_guard(program.program):
            targets, starts = [], []
            for slot, arrays in case.weights.items():
                lods = case.lods[slot + "@GRAD"]
                for var, array, lod in zip(program.outputs[slot], arrays, lods, strict=True):
                    targets.append(var)
                    starts.append(program._fed(grad_name(var.name) + "_given", array, lod))
            wanted = [var for slot in case.grads for var in program.inputs[slot]]
            gradients(targets, wanted, starts)
    block = program.program.global_block()
    names = [grad_name(var.name) for var in wanted if block.has_var(grad_name(var.name))]
    return _run(program, engine, names) if names else {}


def _run(program: OneOperator, engine: str, names: list[str]) -> Result:
    kind, _, seed = engine.partition(" ")
    with run_by(kind):
        with scope_guard(Scope()):
            executor = Executor(CPUPlace())

            def step(feed: dict[str, Any]) -> Result:
                got = executor.run(program.program, feed=feed, fetch_list=names, return_numpy=False)
                made: Result = {name: np.array(tensor) for name, tensor in zip(names, got, strict=True)}
                lods = {
                    f"{n}@LOD": tensor.lod() for n, tensor in zip(names, got, strict=True) if tensor.lod()
                }
                return {**made, **lods}

            made = step(program.feed)
            if seed:
                attempt(lambda: step({n: _rolled(a) for n, a in program.feed.items()}))
                rng = np.random.default_rng(int(seed))
                repeated = step({n: _odd(a, rng) for n, a in program.feed.items()})
                for name, value in made.items():
                    if not name.endswith("@LOD") and not same_bytes(value, repeated[name]):
                        repeated[name + " (first run)"] = value
                return repeated
            return made


def same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def _rolled(value: Any) -> Any:
    """Other values of the same shape and range."""
    return value if isinstance(value, LoDTensor) else np.roll(value, 1)


def _odd(value: Any, rng: np.random.Generator) -> Any:
    """The same elements in an unusual place: strides, alignment, byte order."""
    if isinstance(value, LoDTensor):
        return value
    kind = rng.integers(0, 7)
    if kind == 0:
        return value.T.copy().T
    if kind == 1:
        wide = np.repeat(value, 2, axis=-1) if value.ndim else value
        return wide[..., ::2] if value.ndim else value
    if kind == 2 and value.ndim:
        return value[::-1].copy()[::-1]
    if kind == 3:
        room = np.zeros(value.nbytes + 1, "u1")
        room[1:] = np.frombuffer(value.tobytes(), "u1")
        return np.frombuffer(room.data, value.dtype, value.size, 1).reshape(value.shape)
    if kind == 4:
        return value.astype(value.dtype.newbyteorder())
    if kind == 5:
        fixed = value.copy()
        fixed.setflags(write=False)
        return fixed
    return value.copy()


def _eager(case: Case) -> Result:
    """Twice, the second time with what was remembered from the first."""
    wanted = [(slot, count) for slot, count in case.outputs.items() if count]
    result: Result = {}
    for _ in range(2):
        tensors = {
            slot: [eager.Tensor(np.array(a, order="C"), stop_gradient=a.dtype.kind != "f") for a in items]
            for slot, items in case.inputs.items()
        }
        made = eager.apply(case.op, tensors, wanted, case.attrs)
        flat = list(made) if isinstance(made, tuple) else [made]
        names = [f"{slot}_out_{k}" for slot, count in wanted for k in range(count)]
        found = dict(zip(names, flat, strict=True))
        result = {name: np.array(tensor.array) for name, tensor in found.items() if tensor is not None}
        if case.grads:
            result.update(_nested(attempt(lambda: _eager_gradients(case, tensors, found))))  # noqa: B023
    return result


def _eager_gradients(case: Case, tensors: Any, found: Any) -> Result:
    pairs = [
        (found[f"{slot}_out_{k}"], eager.Tensor(np.array(weight)))
        for slot, items in case.weights.items()
        for k, weight in enumerate(items)
    ]
    eager.backward([tensor for tensor, _ in pairs], [start for _, start in pairs], False)
    return {
        f"{slot}_{k}@GRAD": np.array(tensor.gradient())
        for slot in case.grads
        for k, tensor in enumerate(tensors[slot])
        if tensor.gradient() is not None
    }
