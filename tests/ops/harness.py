"""Checks one operator in every way it can run: see `check`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidlite.base.dtypes import FLOATS, VarType, to_vartype
from fluidlite.ops import registry
from fluidlite.ops.registry import GRAD, LodArray, OpDef, OpView, grad_name

from . import on_device

Slots = dict[str, list[Any]]


class ArrayMeta:
    """Answers an operator's questions from arrays; outputs that are only inferred are kept apart."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.inferred: dict[str, tuple[tuple[int, ...], VarType]] = {}

    def shape(self, name: str) -> tuple[int, ...]:
        if name in self.inferred:
            return self.inferred[name][0]
        return tuple(self.arrays[name].shape)

    def dtype(self, name: str) -> VarType:
        if name in self.inferred:
            return self.inferred[name][1]
        return to_vartype(self.arrays[name].dtype)

    def set(self, name: str, shape: tuple[int, ...], dtype: VarType) -> None:
        self.inferred[name] = tuple(shape), to_vartype(dtype)

    def value(self, name: str) -> np.ndarray | None:
        return self.arrays.get(name)


def _lists(slots: dict[str, Any]) -> Slots:
    """Each slot's arrays as a list; numbers become arrays."""
    return {
        slot: [np.asarray(item) for item in (given if isinstance(given, list) else [given])]
        for slot, given in slots.items()
    }


def _plain(result: Any) -> list[Any]:
    """The arrays of one output slot; an empty list for an output that was not made."""
    if result is None:
        return []
    items = result if isinstance(result, list) else [result]
    return [np.asarray(item.array if isinstance(item, LodArray) else item) for item in items]


def run_kernel(
    op_type: str,
    inputs: dict[str, Any],
    attrs: dict[str, Any] | None = None,
    lods: dict[str, Any] | None = None,
) -> Slots:
    """Run the reference kernel: a list of arrays for each output slot.

    Checks that elements of slots of which only the shape is read have no effect.
    """
    definition = registry.find(op_type)
    given = _lists(inputs)
    made = _made(definition, given, attrs or {}, lods)
    if definition.shape_only and not definition.effects.random:
        other = {
            slot: [_odd(a) for a in items] for slot, items in given.items() if slot in definition.shape_only
        }
        np.testing.assert_equal(_made(definition, given | other, attrs or {}, lods), made)
    return made


def _made(definition: OpDef, inputs: Slots, attrs: dict[str, Any], lods: dict[str, Any] | None) -> Slots:
    results = definition.call(np, inputs, attrs, lods)
    made = {slot.name: _plain(result) for slot, result in zip(definition.output_slots, results, strict=True)}
    if any(a.dtype == np.float16 for items in inputs.values() for a in items):
        made = {
            slot: [a.astype(np.float16) if a.dtype == np.float32 else a for a in items]
            for slot, items in made.items()
        }
    return made


def _odd(array: np.ndarray) -> np.ndarray:
    """Other elements than those of `array`."""
    return np.full_like(array, np.nan if array.dtype.kind == "f" else 77)


def _named(prefix: str, slots: Slots) -> tuple[dict[str, list[str]], dict[str, np.ndarray]]:
    names: dict[str, list[str]] = {}
    arrays: dict[str, np.ndarray] = {}
    for slot, items in slots.items():
        names[slot] = [f"{prefix}_{registry.keyword(slot)}_{index}" for index in range(len(items))]
        arrays.update(zip(names[slot], items, strict=True))
    return names, arrays


def infer(
    op_type: str,
    inputs: dict[str, Any],
    attrs: dict[str, Any] | None = None,
    outputs: dict[str, int] | None = None,
    made: Slots | None = None,
    exact: bool = False,
) -> dict[str, list[tuple[tuple[int, ...], VarType]]]:
    """Shapes and dtypes of the outputs as the operator infers them, of a run with `exact`.

    `outputs` says how many a list slot has; `made` holds what gradient operators without the input look at.
    """
    definition = registry.find(op_type)
    names, arrays = _named("in", _lists(inputs))
    arrays.update(_named("out", made or {})[1])
    slots = [slot.name for slot in definition.output_slots]
    given = {s: [f"out_{registry.keyword(s)}_{k}" for k in range((outputs or {}).get(s, 1))] for s in slots}
    meta = ArrayMeta(arrays)
    meta.exact = exact
    assert definition.infer is not None, f"{op_type} has no shape rule"
    definition.infer(OpView(definition, names, given, attrs or {}, meta))
    return {
        slot: [meta.inferred[name] for name in named if name in meta.inferred]
        for slot, named in given.items()
    }


def _check_infer(definition: OpDef, inputs: Slots, attrs: dict[str, Any], outputs: Slots) -> None:
    counts = {slot: len(items) for slot, items in outputs.items()}
    inferred = infer(definition.type, inputs, attrs, counts, outputs)
    for slot, items in outputs.items():
        for (shape, dtype), array in zip(inferred[slot], items, strict=False):
            where = f"{definition.type}.{slot}"
            fits = len(array.shape) == len(shape) and all(
                n in (-1, m) for n, m in zip(shape, array.shape, strict=True)
            )
            assert fits, f"{where}: inferred shape {shape}, the kernel made {array.shape}"
            assert to_vartype(array.dtype) == dtype, (
                f"{where}: inferred {dtype}, the kernel made {array.dtype}"
            )


def _weights(definition: OpDef, outputs: Slots, seed: int) -> Slots:
    """A random cotangent for each differentiable float output."""
    rng = np.random.default_rng(seed)
    made: Slots = {}
    for slot, items in outputs.items():
        if (
            slot not in definition.no_grad
            and items
            and all(to_vartype(item.dtype) in FLOATS for item in items)
        ):
            made[slot] = [rng.uniform(-1, 1, item.shape).astype(item.dtype) for item in items]
    return made


def _to(dtype: str, slots: Slots) -> Slots:
    return {
        s: [a.astype(dtype) if to_vartype(a.dtype) in FLOATS else a for a in items]
        for s, items in slots.items()
    }


def gradients(
    op_type: str,
    inputs: dict[str, Any],
    attrs: dict[str, Any],
    weights: Slots,
    lods: dict[str, Any] | None = None,
) -> dict[str, list[np.ndarray | None]]:
    """Gradients by the gradient rule and the reference kernels, for each input of each slot."""
    definition = registry.find(op_type)
    given = _lists(inputs)
    outputs = run_kernel(op_type, given, attrs, lods)
    in_names, env = _named("in", given)
    out_names, made = _named("out", outputs)
    env.update(made)
    known = {
        name: lods[slot][k]
        for slot, ns in in_names.items()
        for k, name in enumerate(ns)
        if lods and slot in lods
    }
    if lods:
        results = definition.call(np, given, attrs, lods)
        named = zip(definition.output_slots, results, strict=True)
        known.update({out_names[slot.name][0]: r.lod for slot, r in named if isinstance(r, LodArray)})
    for slot, items in weights.items():
        env.update({grad_name(name): item for name, item in zip(out_names[slot], items, strict=True)})
    arrived = {grad_name(name) for slot in weights for name in out_names[slot]}
    for name in made:
        env.setdefault(grad_name(name), np.zeros_like(env[name]))
    assert definition.grad is not None, f"{op_type} has no gradient"
    for spec in definition.grad(OpView(definition, in_names, out_names, attrs, ArrayMeta(env))):
        of = registry.find(spec.type)
        read = [n for names in spec.inputs.values() for n in names if n in {grad_name(m) for m in made}]
        if read and not arrived.intersection(read):
            continue
        takes = {slot: [env[name] for name in names] for slot, names in spec.inputs.items()}
        lod = {slot: [known.get(name) for name in names] for slot, names in spec.inputs.items()}
        results = run_kernel(spec.type, takes, spec.attrs, lod if of.sequences.takes_lod else None)
        _check_infer_named(of, spec, env, results)
        for slot, names in spec.outputs.items():
            for name, array in zip(names, results[slot], strict=slot.endswith(GRAD)):
                env[name] = array
    return {slot: [env.get(grad_name(name)) for name in names] for slot, names in in_names.items()}


def _check_infer_named(of: OpDef, spec: registry.OpSpec, env: dict[str, np.ndarray], results: Slots) -> None:
    if of.infer is None:
        return
    meta = ArrayMeta(env)
    of.infer(OpView(of, spec.inputs, spec.outputs, spec.attrs, meta))
    for slot, names in spec.outputs.items():
        for name, array in zip(names, results[slot], strict=slot.endswith(GRAD)):
            if name in meta.inferred:
                shape, dtype = meta.inferred[name]
                fits = len(array.shape) == len(shape) and all(
                    n in (-1, m) for n, m in zip(shape, array.shape, strict=True)
                )
                assert fits, f"{of.type}.{slot}: inferred {shape}, the kernel made {array.shape}"
                assert to_vartype(array.dtype) == dtype, (
                    f"{of.type}.{slot}: inferred {dtype}, made {array.dtype}"
                )


def numeric_gradient(
    op_type: str,
    inputs: dict[str, Any],
    attrs: dict[str, Any],
    weights: Slots,
    slot: str,
    index: int = 0,
    lods: dict[str, Any] | None = None,
    step: float = 1e-6,
) -> np.ndarray:
    """Central differences of the weighted sum of the outputs with respect to one input."""
    definition, given = registry.find(op_type), _lists(inputs)

    def objective() -> float:
        with on_device.paused():
            outputs = _made(definition, given, attrs, lods)
        return sum(
            float((w * o).sum()) for s, ws in weights.items() for w, o in zip(ws, outputs[s], strict=True)
        )

    base = given[slot][index].copy()
    result = np.zeros_like(base)
    for at in np.ndindex(base.shape):
        sides = []
        for delta in (step, -step):
            moved = base.copy()
            moved[at] += delta
            given[slot][index] = moved
            sides.append(objective())
        result[at] = (sides[0] - sides[1]) / (2 * step)
    given[slot][index] = base
    return result


def check(
    op_type: str,
    inputs: dict[str, Any],
    attrs: dict[str, Any] | None = None,
    outputs: dict[str, Any] | None = None,
    grads: Sequence[str] = (),
    *,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    grad_rtol: float = 1e-4,
    grad_atol: float = 1e-6,
    lods: dict[str, Any] | None = None,
    programs: bool = True,
    seed: int = 3,
) -> None:
    """Check operator `op_type` on `inputs` (slot -> array or list of arrays).

    * The reference kernel gives `outputs` (slot -> array or list; slots left out are not compared), and the
      shapes and dtypes that `infer` promises; the same for float64 inputs.
    * The gradients of the slots in `grads` are the central differences of the reference kernel in float64.
    * With `programs`: a program of this operator and its gradients gives the same through the interpreter
      and through a plan with native kernels, and so do eager tensors where there are no `lods`. `lods`
      (slot -> one LoD for each input) goes with the inputs.
    * When operators are compared with those of a GPU (`on_device.compared`), all of this happens there; differences and
      what programs do on the host are left to the other run of the test.
    """
    attrs = attrs or {}
    definition = registry.find(op_type)
    given = _lists(inputs)
    made = run_kernel(op_type, given, attrs, lods)
    if definition.infer is not None:
        _check_infer(definition, given, attrs, made)
    for slot, expected in _lists(outputs or {}).items():
        assert len(made[slot]) == len(expected), (
            f"{op_type}.{slot}: {len(made[slot])} outputs, not {len(expected)}"
        )
        for got, want in zip(made[slot], expected, strict=True):
            assert got.shape == want.shape, f"{op_type}.{slot}: shape {got.shape}, expected {want.shape}"
            assert got.dtype == want.dtype, f"{op_type}.{slot}: {got.dtype}, expected {want.dtype}"
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=f"{op_type}.{slot}")
    exact = _to("float64", given)
    exact_made = run_kernel(op_type, exact, attrs, lods)
    weights = _weights(definition, exact_made, seed)
    found: dict[str, list[np.ndarray | None]] = {}
    if grads:
        found = gradients(op_type, exact, attrs, weights, lods)
        for slot in () if on_device.active() else grads:
            for index in range(len(given[slot])):
                got = found[slot][index]
                assert got is not None, f"{op_type} gave no gradient for {slot}[{index}]"
                want = numeric_gradient(op_type, exact, attrs, weights, slot, index, lods)
                message = f"gradient of {op_type} for {slot}[{index}]"
                np.testing.assert_allclose(got, want, rtol=grad_rtol, atol=grad_atol, err_msg=message)
    if programs:
        from . import in_eager, in_program

        wanted = {slot: found[slot] for slot in grads}
        in_program.check(definition, given, attrs, made, wanted, weights, lods)
        if not lods:
            in_eager.check(definition, given, attrs, made, wanted, weights)
