"""Runs `infer` and `native` of one operator together, as a plan does, and compares with its reference kernel.

For operators on sequences: their offsets are operands here. Every instruction set of the machine is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidlite._ext import kernels
from fluidlite.base.dtypes import FLOATS, VarType, to_numpy, to_vartype
from fluidlite.framework import sequences
from fluidlite.ops import registry
from fluidlite.ops.registry import Call, LodArray, OpDef, OpView, grad_name

Lod = list[list[int]]
TOLERANCE = {"float32": 2e-5, "float64": 1e-11}


class RunMeta:
    """Answers an operator's questions as a run does: exact shapes, arrays of offsets, no values."""

    exact = True

    def __init__(self, arrays: dict[str, np.ndarray], lods: dict[str, Lod]) -> None:
        self.arrays = dict(arrays)
        self.shapes = {name: array.shape for name, array in arrays.items()}
        self.dtypes = {name: to_vartype(array.dtype) for name, array in arrays.items()}
        self.lods: dict[str, tuple[str, ...]] = {}
        self.said: dict[str, tuple[str, ...]] = {}
        for name, lod in lods.items():
            self.lods[name] = tuple(f"{name}@LOD{level}" for level in range(len(lod or ())))
            for level, offsets in zip(self.lods[name], lod or (), strict=True):
                self.arrays[level] = np.array(offsets, np.int64)
                self.set(level, self.arrays[level].shape, VarType.INT64)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.shapes[name]

    def dtype(self, name: str) -> VarType:
        return self.dtypes[name]

    def set(self, name: str, shape: tuple[int, ...], dtype: VarType) -> None:
        self.shapes[name], self.dtypes[name] = tuple(shape), to_vartype(dtype)

    def value(self, name: str) -> np.ndarray | None:
        return None

    def lod(self, name: str) -> tuple[str, ...]:
        return self.lods.get(name, ())

    def carry(self, name: str, levels: tuple[str, ...]) -> None:
        self.said[name] = levels

    def spread(self, view: OpView) -> None:
        """After `infer`: which offsets each output has; without a word of the operator those its declaration says."""
        found = {
            one.out: self.lods[one.source]
            for one in sequences.kept(view)
            if self.lods.get(one.source) and one.fits(self.shapes[one.out], self.shapes[one.source])
        }
        for out in (name for made in view.outputs.values() for name in made if name in self.shapes):
            self.lods[out] = self.said.get(out, found.get(out, ()))


@dataclass
class Made:
    """An operator's results: arrays and levels of detail by name."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    lods: dict[str, Lod] = field(default_factory=dict)


def view_of(
    definition: OpDef,
    inputs: dict[str, list[str]],
    outputs: dict[str, list[str]],
    attrs: dict[str, Any],
    arrays: dict[str, np.ndarray],
    lods: dict[str, Lod],
) -> OpView:
    """The operator as a plan sees it after `infer`; its `meta` is a RunMeta."""
    meta = RunMeta(arrays, lods)
    view = OpView(definition, inputs, outputs, attrs, meta)
    assert definition.infer is not None
    definition.infer(view)
    meta.spread(view)
    return view


def run(view: OpView, target: str, shared: dict[str, str] | None = None) -> Made:
    """Run the native kernels of an operator; `shared`: outputs that are the memory of an input."""
    meta, definition = view.meta, view.definition
    assert isinstance(meta, RunMeta) and definition.native is not None, f"{view.type} has no native kernel"
    found = definition.native(view)
    assert found is not None, f"{view.type} has no native kernel for this"
    arrays = {name: array.copy() for name, array in meta.arrays.items()}
    for name, shape in meta.shapes.items():
        assert min(shape, default=0) >= 0, f"{view.type}: the shape of {name} is not known: {shape}"
        if name not in arrays:
            arrays[name] = np.full(shape, 77, to_numpy(meta.dtypes[name]))
    for out, source in (shared or {}).items():
        arrays[out] = arrays[source]
    for call in [found] if isinstance(found, Call) else found:
        operands = [None if name is None else arrays[name] for name in call.operands]
        kernels.call(call.kernel, operands, list(call.ints), list(call.floats), target=target)
    for name, array in meta.arrays.items():
        if name not in (shared or {}).values():
            np.testing.assert_array_equal(arrays[name], array, f"{view.type} changed its input {name}")
    made = [name for names in view.outputs.values() for name in names if name in meta.shapes]
    lods = {name: [arrays[level].tolist() for level in meta.lods[name]] for name in made}
    return Made({name: arrays[name] for name in made}, lods)


def _reference(view: OpView, arrays: dict[str, np.ndarray], lods: dict[str, Lod]) -> Made:
    definition, made = view.definition, Made()
    inputs = {slot: [arrays[name] for name in names] for slot, names in view.inputs.items()}
    given = {slot: [lods.get(name) or [] for name in names] for slot, names in view.inputs.items()}
    results = definition.call(np, inputs, view.attrs, given if definition.sequences.takes_lod else None)
    for slot, result in zip(definition.output_slots, results, strict=True):
        names = view.outputs.get(slot.name, ())
        for name, value in zip(names, result if slot.many else [result], strict=False):
            if value is None or not name:
                continue
            array, lod = (value.array, value.lod) if isinstance(value, LodArray) else (value, None)
            made.arrays[name] = np.asarray(array)
            if lod is not None:
                made.lods[name] = [list(map(int, level)) for level in lod]
    return made


def _compare(op_type: str, got: Made, want: Made, kind: str, target: str) -> None:
    for name, array in got.arrays.items():
        where = f"{op_type}: {name} ({kind}, {target})"
        assert name in want.arrays, f"{where}: the reference kernel does not make it"
        expected = want.arrays[name]
        assert array.shape == expected.shape, f"{where}: {array.shape}, the reference kernel {expected.shape}"
        assert array.dtype == expected.dtype, f"{where}: {array.dtype}, the reference kernel {expected.dtype}"
        bound = TOLERANCE[kind] if array.dtype.kind == "f" else 0
        np.testing.assert_allclose(array, expected, rtol=bound, atol=bound, err_msg=where)
        if name in want.lods:
            assert got.lods[name] == want.lods[name], f"{where}: sequences {got.lods[name]}"


def _check_sizes(op_type: str, meta: RunMeta, want: Made) -> None:
    """Check `infer` of an operator with data-dependent sizes against the results of its reference kernel."""
    for name, array in want.arrays.items():
        shape = meta.shapes[name]
        fits = len(shape) == array.ndim and all(n in (-1, m) for n, m in zip(shape, array.shape, strict=True))
        assert fits, f"{op_type}: {name} is {array.shape}, inferred was {shape}"
        assert meta.dtypes[name] == to_vartype(array.dtype), f"{op_type}: {name} is {array.dtype}"


def _check_one(view: OpView, arrays: dict[str, np.ndarray], lods: dict[str, Lod], kind: str) -> Made:
    want = _reference(view, arrays, lods)
    meta = view.meta
    assert isinstance(meta, RunMeta)
    if any(min(meta.shapes[name], default=0) < 0 for name in want.arrays):
        _check_sizes(view.type, meta, want)
        return want
    ways: list[dict[str, str]] = [{}]
    for out, source in view.definition.planning.inplace:
        if view.has(out) and view.has(source) and view.name(source) in meta.arrays:
            pair = view.name(out), view.name(source)
            if meta.shapes[pair[0]] == meta.shapes[pair[1]] and meta.dtypes[pair[0]] == meta.dtypes[pair[1]]:
                ways.append(dict([pair]))
    for target in kernels.targets():
        for shared in ways:
            _compare(view.type, run(view, target, shared), want, kind, target)
    return want


def check(
    op_type: str,
    inputs: dict[str, Any],
    attrs: dict[str, Any] | None = None,
    lods: dict[str, list[Any]] | None = None,
    outputs: dict[str, int] | None = None,
    *,
    kinds: Sequence[str] = ("float32", "float64"),
    grads: bool = True,
    seed: int = 5,
) -> None:
    """Check what `infer` and `native` make of `inputs` (slot -> array or list of arrays) against the reference kernel.

    Args:
        lods: slot -> one LoD (or []) for each of its inputs.
        outputs: how many variables an output list slot has (1 otherwise); 0 for an optional output that is left out.
        kinds: real inputs are taken in each of these types.
        grads: do the same with the gradient operators, with all outputs and with each alone.
    """
    definition = registry.find(op_type)
    lists = {slot: given if isinstance(given, list) else [given] for slot, given in inputs.items()}
    names = {slot: [f"{slot}_{k}" for k in range(len(items))] for slot, items in lists.items()}
    counts = {slot.name: (outputs or {}).get(slot.name, 1) for slot in definition.output_slots}
    made = {slot: [f"{slot}_out_{k}" for k in range(count)] for slot, count in counts.items() if count}
    detail = {
        name: lod
        for slot, levels in (lods or {}).items()
        for name, lod in zip(names[slot], levels, strict=True)
    }
    for kind in kinds:
        arrays = {
            name: np.ascontiguousarray(array.astype(kind) if array.dtype.kind == "f" else array)
            for slot, items in lists.items()
            for name, array in zip(names[slot], items, strict=True)
        }
        view = view_of(definition, names, made, attrs or {}, arrays, detail)
        forward = _check_one(view, arrays, detail, kind)
        if not grads or definition.grad is None:
            continue
        rng = np.random.default_rng(seed)
        known, levels = {**arrays, **forward.arrays}, {**detail, **forward.lods}
        for name, array in forward.arrays.items():
            if to_vartype(array.dtype) in FLOATS:
                known[grad_name(name)] = rng.uniform(-1, 1, array.shape).astype(array.dtype)
                levels[grad_name(name)] = forward.lods.get(name, [])
        for spec in definition.grad(OpView(definition, names, made, attrs or {}, RunMeta(known, levels))):
            of = registry.find(spec.type)
            gives = [(slot, k) for slot, given in spec.outputs.items() for k in range(len(given))]
            for only in [None, *(gives if len(gives) > 1 else [])]:
                wanted = {
                    slot: [name if only in (None, (slot, k)) else "" for k, name in enumerate(given)]
                    for slot, given in spec.outputs.items()
                }
                wanted = {slot: given for slot, given in wanted.items() if any(given)}
                reads = {name for given in spec.inputs.values() for name in given}
                held = {name: known[name] for name in reads}
                sequences = {name: levels[name] for name in reads if name in levels}
                back = view_of(of, spec.inputs, wanted, spec.attrs, held, sequences)
                _check_one(back, held, sequences, kind)
