"""Runs a case on eager tensors at several sizes, by the same variants and by exact ones for each size."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np

from fluidlite import eager
from fluidlite.eager import dispatch, dynamic_shapes
from fluidlite.ops import registry

from .cases import Case
from .sizes import by_rows
from .ways import INTERMEDIATE, Result, attempt, same_bytes

NEVER = 1 << 30


@contextmanager
def _opening_after(sizes: int) -> Any:
    before = dynamic_shapes.EXACT_FIRST
    dynamic_shapes.EXACT_FIRST = sizes
    dispatch._forms.clear()
    try:
        yield
    finally:
        dynamic_shapes.EXACT_FIRST = before
        dispatch._forms.clear()


def check(case: Case, changed: Callable[[Case], list[Case] | None] = by_rows) -> tuple[list[str], int]:
    """Differences between open and exact variants, and the number of sizes that an open one served."""
    definition = registry.find(case.op)
    cases = changed(case)
    if cases is None or definition.sequences.takes_lod and any(case.lods.values()):
        return [], 0
    for slot in definition.output_slots:
        for each in cases:
            if not slot.optional:
                each.outputs.setdefault(slot.name, 1)
    unpredictable = definition.effects.random and not (case.attrs.get("seed") or case.attrs.get("fix_seed"))
    messages, served = [], 0
    with _opening_after(NEVER):
        wants = []
        for each in cases:
            dispatch._forms.clear()
            wants.append(attempt(lambda: _results(each)))  # noqa: B023
    with _opening_after(1):
        for each, want in zip(cases, wants, strict=True):
            got = attempt(lambda: _results(each))  # noqa: B023
            shapes = {slot: [a.shape for a in items] for slot, items in each.inputs.items()}
            messages += [f"{shapes}: {text}" for text in _differences(want, got, unpredictable)]
            served += any(form.opened for form in dispatch._forms.values())
    return messages, served


def _differences(want: Result, got: Result, unpredictable: bool) -> list[str]:
    if "error" in want or "error" in got:
        same = want.get("error") == got.get("error") and want.get("text") == got.get("text")
        return [] if same else [f"{want.get('text', 'no error')} / {got.get('text', 'no error')}"]
    if want.keys() != got.keys():
        return [f"{list(want)} / {list(got)}"]
    if unpredictable:
        return [name for name, value in want.items() if value.shape != got[name].shape]
    return [
        f"{name}: {want[name]!r:.300} / {got[name]!r:.300}"
        for name in want
        if not same_bytes(want[name], got[name])
    ]


def _results(case: Case) -> Result:
    """All results, then the gradients that go with random ones of those that may have some."""
    definition = registry.find(case.op)
    wanted = [(slot, count) for slot, count in case.outputs.items() if count]
    tensors = {
        slot: [eager.Tensor(np.array(a, order="C"), stop_gradient=a.dtype.kind != "f") for a in items]
        for slot, items in case.inputs.items()
    }
    flat = eager.apply(case.op, tensors, wanted, case.attrs)
    names = [(slot, f"{slot}_{k}") for slot, count in wanted for k in range(count)]
    found = dict(zip(names, flat if isinstance(flat, tuple) else [flat], strict=True))
    results = {name: np.array(t.array) for (_, name), t in found.items() if isinstance(t.array, np.ndarray)}
    rng = np.random.default_rng(1)
    starts = [
        (t, eager.Tensor(rng.uniform(-1, 1, t.array.shape).astype(t.array.dtype)))
        for (slot, _), t in found.items()
        if not t.stop_gradient and slot not in definition.no_grad and slot not in INTERMEDIATE
    ]
    if starts:
        try:
            eager.backward([t for t, _ in starts], [start for _, start in starts], False)
        except Exception as error:
            return {**results, "error in gradients": np.array(str(error))}
        for slot, items in tensors.items():
            for k, tensor in enumerate(items):
                if isinstance(tensor.grad_array, np.ndarray):
                    results[f"{slot}_{k}@GRAD"] = np.array(tensor.grad_array)
    return results
