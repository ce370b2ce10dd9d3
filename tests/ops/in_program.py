"""Runs one operator and its gradients as a program, through the interpreter and through a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidlite.base import unique_name
from fluidlite.base.dtypes import FLOATS, to_vartype
from fluidlite.base.place import CPUPlace
from fluidlite.executor import Executor, LoDTensor, Scope, scope_guard
from fluidlite.framework import Program, Variable, program_guard
from fluidlite.framework.gradients.backward import gradients
from fluidlite.ops.registry import OpDef, grad_name

from ..engines import run_by
from . import on_device

Slots = dict[str, list[Any]]


OF_OTHER_ROWS = {"im2sequence"}
"""Operators with results that have not as many rows as declared, as in Fluid."""


class OneOperator:
    """A program of one operator: variables by slot, what to feed, and the gradients asked for."""

    def __init__(
        self, definition: OpDef, inputs: Slots, attrs: dict[str, Any], outputs: Slots, lods: Any
    ) -> None:
        self.program = Program()
        self.feed: dict[str, Any] = {}
        block = self.program.global_block()
        self.inputs = {
            slot: [
                self._fed(f"{slot}_{k}", a, (lods or {}).get(slot, {k: None})[k]) for k, a in enumerate(items)
            ]
            for slot, items in inputs.items()
        }
        self.outputs: dict[str, list[Variable]] = {
            slot: [block.create_var(name=f"{slot}_out_{k}") for k in range(len(items))]
            for slot, items in outputs.items()
            if items
        }
        block.append_op(type=definition.type, inputs=self.inputs, outputs=self.outputs, attrs=attrs)
        for slot in definition.no_grad:
            for var in self.outputs.get(slot, []):
                var.stop_gradient = True

    def _fed(self, name: str, array: np.ndarray, lod: Any) -> Variable:
        self.feed[name] = array
        if lod:
            tensor = LoDTensor()
            tensor.set(array, CPUPlace())
            tensor.set_lod(lod)
            self.feed[name] = tensor
        dtype = to_vartype(array.dtype)
        return self.program.global_block().create_var(
            name=name,
            shape=self.declared(name, array),
            dtype=dtype,
            is_data=True,
            lod_level=len(lod or []),
            stop_gradient=dtype not in FLOATS,
        )

    def declared(self, name: str, array: np.ndarray) -> Sequence[int]:
        """The shape that the program gives to what is fed."""
        return array.shape

    def differentiate(self, slots: list[str], weights: Slots) -> list[str]:
        """Append the gradients of the weighted outputs for all inputs in `slots`; returns their names."""
        targets = [var for slot in weights for var in self.outputs[slot]]
        if self.program.global_block().ops[-1].type in OF_OTHER_ROWS:
            targets[0].desc.set_shape(weights["Out"][0].shape)
        cotangents = [
            self._fed(grad_name(var.name) + "_given", array.astype(self.feed_dtype()), None)
            for slot, items in weights.items()
            for var, array in zip(self.outputs[slot], items, strict=True)
        ]
        wanted = [var for slot in slots for var in self.inputs[slot]]
        found = gradients(targets, wanted, cotangents)
        return [var.name for var in found if var is not None]

    def feed_dtype(self) -> np.dtype:
        """The dtype of the first float that is fed."""
        arrays = [np.asarray(value) for value in self.feed.values()]
        return next(a.dtype for a in arrays if to_vartype(a.dtype) in FLOATS)

    def run(self, engine: str, fetch: list[str]) -> list[np.ndarray]:
        """The results of a run; of plans those of the second, which remembers what the first has found."""
        with run_by(engine), scope_guard(Scope()):
            executor = Executor(on_device.place())
            for _ in range(2 if engine == "plan" else 1):
                got = executor.run(self.program, feed=self.feed, fetch_list=fetch, return_numpy=False)
            return [np.asarray(tensor) for tensor in got]


def check(
    definition: OpDef,
    inputs: Slots,
    attrs: dict[str, Any],
    outputs: Slots,
    grads: dict[str, list[Any]],
    weights: Slots,
    lods: dict[str, Any] | None,
) -> None:
    """Assert that a program gives `outputs` and, rounded to the inputs' type, `grads`, whoever runs it."""
    with unique_name.guard():
        case = OneOperator(definition, inputs, attrs, outputs, lods)
        with program_guard(case.program):
            names = case.differentiate(list(grads), weights) if grads else []
    made = [var.name for slot in case.outputs for var in case.outputs[slot]]
    wanted = [array for slot in case.outputs for array in outputs[slot]]
    expected = [array for slot in grads for array in grads[slot]]
    assert len(names) == len(expected), f"{definition.type}: gradients {names}, expected {len(expected)}"
    # On a GPU, the interpreter would call the kernels that are compared one by one.
    for engine in ("plan",) if on_device.active() else ("interpret", "plan"):
        got = case.run(engine, made + names)
        for name, value, want in zip(made, got, wanted, strict=False):
            message = f"{definition.type}, {name}, engine {engine}"
            assert value.shape == want.shape and value.dtype == want.dtype, message
            if value.size:
                np.testing.assert_allclose(value, want, rtol=2e-5, atol=1e-6, err_msg=message)
        for name, value, want in zip(names, got[len(made) :], expected, strict=True):
            message = f"gradient of {definition.type}, {name}, engine {engine}"
            assert value.shape == want.shape, message
            np.testing.assert_allclose(value, want, rtol=1e-3, atol=2e-5, err_msg=message)
