"""Models in files: layers saved as programs with their parameters, and loaded as layers (`paddle.jit`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...eager import Parameter, Tensor, apply
from ...eager.placing import host, to_default_device
from ...executor import Scope, scope_guard
from ...framework import Operator, Program
from ...io import load_inference_model
from ...ops.program.feed_fetch import ENDS
from ..layers import Layer
from ..nested import replaced
from . import input_spec as specs
from . import saving
from .static_function import StaticFunction, declarative
from .traced import Spec, Traced, of_program

MODEL, PARAMETERS = ".pdmodel", ".pdiparams"


def save(layer: Any, path: str, input_spec: Sequence[Any] | None = None) -> None:
    """Save a layer or function as a program for use: `PATH.pdmodel` and, with parameters, `PATH.pdiparams`.

    Args:
        layer: a layer, or a function of tensors.
        path: folder and beginning of the files' names; the folder is made if need be.
        input_spec: an InputSpec or example for each argument; by default that of `to_static`, or the shapes and types
            of the last call.

    Raises:
        ValueError: there is no `input_spec` and there was no call.
        NotSupportedError: the control flow of the function depends on the values of tensors.
    """
    function = layer.forward if isinstance(layer, Layer) else layer
    static: StaticFunction = declarative(function)
    if input_spec is None:
        input_spec = static.input_spec
    traced = _traced(static, input_spec) if input_spec is not None else static.last()
    if traced is None:
        raise ValueError(
            "jit.save needs the shapes and types of the inputs: pass input_spec=[paddle.static.InputSpec(...)], or "
            "call the layer first after to_static"
        )
    folder, stem = os.path.split(os.fspath(path))
    if not stem:
        raise ValueError(f"path must end in the beginning of the files' names, got the folder {path!r}")
    saving.save(traced, folder or ".", None, None, stem + MODEL, stem + PARAMETERS)


def _traced(function: StaticFunction, input_spec: Sequence[Any]) -> Traced:
    listed: list[specs.InputSpec] = []

    def example(value: Any) -> np.ndarray:
        listed.append(specs.of(value))
        return listed[-1].example()

    args = replaced(tuple(input_spec), lambda value: not isinstance(value, (list, tuple, dict)), example)
    wanted: Mapping[int, Spec] = {k: (spec.shape, spec.dtype, spec.name) for k, spec in enumerate(listed)}
    return function.traced(*args, specs=wanted)


def load(path: str) -> TranslatedLayer:
    """The layer that `save` wrote to `PATH.pdmodel` and `PATH.pdiparams`; files of Paddle will do as well.

    Raises FileNotFoundError for a missing file, FormatError for a damaged one.
    """
    folder, stem = os.path.split(os.fspath(path))
    scope = Scope()
    with scope_guard(scope):
        program, feeds, fetches = load_inference_model(folder or ".", None, stem + MODEL, stem + PARAMETERS)
    return TranslatedLayer(program, feeds, [var.name for var in fetches], scope)


class TranslatedLayer(Layer):
    """A layer that runs a saved program, in evaluation mode; its parameters can be trained further, with the moving
    statistics of normalisation as they are.

    Made by `load`. Called with the program's inputs in order; returns its output, or a list of them. Follows
    `paddle.jit.TranslatedLayer`.
    """

    _suffix = ""
    """The suffix of parameters' names."""

    def __init__(self, program: Program, feeds: list[str], fetches: list[str], scope: Scope) -> None:
        super().__init__()
        self._program, self._feeds, self._fetches = program, feeds, fetches
        self._persistables: list[str] = []
        moving = {name for op in program.global_block().ops for name in op.writes()}
        for var in program.list_vars():
            holder = scope.find_var(var.name) if var.persistable else None
            if holder is None or not holder.is_set():
                continue
            array = holder.get_tensor().array
            assert array is not None
            trained = array.dtype.kind == "f" and not var.stop_gradient and var.name not in moving
            name = var.name + self._suffix
            self._persistables.append(var.name)
            param = self.add_parameter(
                name, Parameter(to_default_device(host(array)), name, trainable=trained)
            )
            param.stop_gradient = not trained
        self._run = declarative(self._replay)
        self._traced: Traced | None = None

    def forward(self, *inputs: Any) -> Any:
        """Run the program on tensors or arrays. Raises ValueError for a wrong number of inputs."""
        if len(inputs) != len(self._feeds):
            raise ValueError(f"the model takes {len(self._feeds)} inputs ({self._feeds}), got {len(inputs)}")
        if self._program.num_blocks > 1:
            return self._controlled(inputs)
        return self._run(*inputs)

    def _controlled(self, inputs: tuple[Any, ...]) -> Any:
        """Run a program with control flow."""
        if self._traced is None:
            program = _trainable(self._program)
            self._traced = of_program(program, self._feeds, self._fetches, self._held())
        leaves = [
            item if isinstance(item, Tensor) else Tensor(to_default_device(np.asarray(item)))
            for item in inputs
        ]
        return self._traced(leaves)

    def program(self) -> Program:
        """The program that was loaded."""
        return self._program

    def _replay(self, *inputs: Any) -> Any:
        values = self._held()
        values.update(zip(self._feeds, inputs, strict=True))
        for op in self._program.global_block().ops:
            if op.type not in ENDS:
                apply_operator(op, values, _differentiable(op))
        return self._results(values)

    def _held(self) -> dict[str, Any]:
        """The parameters by their names in the program."""
        return {name: self._parameters[name + self._suffix] for name in self._persistables}

    def _results(self, values: Mapping[str, Any]) -> Any:
        results = [values[name] for name in self._fetches]
        return results[0] if len(results) == 1 else results


def _differentiable(op: Operator) -> dict[str, bool]:
    """Attributes that make an operator in evaluation mode differentiable, with the same results."""
    if not op.attrs.get("is_test"):
        return {}
    if "use_global_stats" in op.definition.attrs:
        return {"is_test": False, "use_global_stats": not op.attrs.get("trainable_statistics")}
    return {"is_test": False} if op.sub_blocks() else {}


def _trainable(program: Program) -> Program:
    """A copy of a program for evaluation that has gradients."""
    copy = program.clone()
    for block in copy.blocks:
        block.ops = [op for op in block.ops if op.type not in ENDS]
        for op in block.ops:
            for name, value in _differentiable(op).items():
                op._set_attr(name, value)
    return copy


def apply_operator(op: Operator, values: dict[str, Any], changed: Mapping[str, Any]) -> None:
    """Run one operator on the tensors in `values`, with the attributes `changed`; its results are added to `values`."""
    slots = {slot: names for slot, names in op.outputs.items() if names}
    inputs = {slot: [values[name] for name in names] for slot, names in op.inputs.items() if names}
    attrs = {**op.attrs, **changed}
    results = apply(op.type, inputs, [(slot, len(names)) for slot, names in slots.items()], attrs)
    flat = results if isinstance(results, tuple) else (results,)
    values.update(zip([name for names in slots.values() for name in names], flat, strict=True))
