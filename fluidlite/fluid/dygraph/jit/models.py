"""Models in files: layers saved as programs, loaded as layers; `InputSpec`, `StaticModelRunner`, `TracedLayer`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....base.dtypes import VarType, to_numpy, to_vartype
from ....eager import Parameter, Tensor, apply, placing
from ....eager.placing import host, to_default_device
from ....eager.program_record import ProgramRecord
from ....executor import Scope, scope_guard
from ....executor.executor import run_program
from ....framework import Operator, Program, Variable
from ....framework.serialization.descs import ProgramDesc
from ....framework.variable import as_shape
from ....ops.program.host import ENDS
from ...io import load_inference_model, save_inference_model
from ...layers.utils import replaced
from ..base import to_variable
from ..layers import Layer
from .static_function import StaticFunction, declarative
from .traced import Spec, Traced, of_program


def save_program(
    traced: Traced,
    dirname: str,
    feed: Sequence[int] | None = None,
    fetch: Sequence[int] | None = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
) -> None:
    """Write the program with the current values of its parameters, for `fluid.io.load_inference_model`.

    `feed`, `fetch`: indices of the inputs and outputs to keep, all by default. Raises IndexError for an index out of
    range, TypeError for anything but an integer.
    """
    feeds = [var.name for var in _selected(traced.inputs, feed, "feed")]
    traced.refresh()
    with scope_guard(traced.scope):
        save_inference_model(
            dirname,
            feeds,
            _selected(traced.outputs, fetch, "fetch"),
            None,
            traced.program,
            model_filename,
            params_filename,
        )


def _selected(items: list[Any], numbers: Sequence[int] | None, what: str) -> list[Any]:
    if numbers is None:
        return list(items)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"{what} holds the numbers of inputs or outputs, got {number!r}")
        if not 0 <= number < len(items):
            raise IndexError(f"{what} asks for number {number}, but the model has {len(items)}")
    return [items[number] for number in numbers]


class InputSpec:
    """Shape, type and name of an input of a model to be saved (`paddle.static.InputSpec`).

    Args:
        shape: its sizes; None or -1 where any will do.
        dtype: its element type.
        name: its name in the saved model, by default generated.

    Raises:
        TypeError: a shape of something else than integers and None, an unknown type.
    """

    def __init__(self, shape: Sequence[int | None], dtype: Any = "float32", name: str | None = None) -> None:
        if isinstance(shape, int):
            raise TypeError(f"the shape of an InputSpec is a list of integers and None, got {shape}")
        self.shape = as_shape(shape, "an InputSpec")
        self.dtype: VarType = to_vartype(dtype)
        self.name = name
        self.stop_gradient = False

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> InputSpec:
        """The spec of tensors like `tensor`."""
        return cls(tensor.shape, tensor.dtype, name or tensor.name)

    @classmethod
    def from_numpy(cls, ndarray: np.ndarray, name: str | None = None) -> InputSpec:
        """The spec of arrays like `ndarray`."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def batch(self, batch_size: int) -> InputSpec:
        """Insert a first dimension of `batch_size`; returns the spec."""
        self.shape = (int(batch_size), *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Remove the first dimension; returns the spec. Raises ValueError if there is none."""
        if not self.shape:
            raise ValueError("an InputSpec without dimensions has no batch to take away")
        self.shape = self.shape[1:]
        return self

    def example(self) -> np.ndarray:
        """Zeros of this shape, with 1 for unknown sizes."""
        return np.zeros([1 if n < 0 else n for n in self.shape], to_numpy(self.dtype))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InputSpec):
            return NotImplemented
        return (self.shape, self.dtype, self.name) == (other.shape, other.dtype, other.name)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.name))

    def __repr__(self) -> str:
        return f"InputSpec(shape={self.shape}, dtype={self.dtype}, name={self.name})"


def of(given: Any) -> InputSpec:
    """The InputSpec of a spec, tensor or array. Raises TypeError for anything else."""
    if isinstance(given, InputSpec):
        return given
    if isinstance(given, Tensor):
        return InputSpec(given.shape, given.dtype)
    if isinstance(given, np.ndarray):
        return InputSpec.from_numpy(given)
    raise TypeError(f"input_spec holds InputSpecs, tensors or arrays, got {type(given).__name__}")


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
    save_program(traced, folder or ".", None, None, stem + MODEL, stem + PARAMETERS)


def _traced(function: StaticFunction, input_spec: Sequence[Any]) -> Traced:
    listed: list[InputSpec] = []

    def example(value: Any) -> np.ndarray:
        listed.append(of(value))
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


def extract_vars(inputs: Any) -> list[Any]:
    """The tensors and Variables in nested lists and tuples, in order (`fluid.dygraph.jit.extract_vars`)."""
    if isinstance(inputs, (Tensor, Variable)):
        return [inputs]
    if isinstance(inputs, (list, tuple)):
        return [var for item in inputs for var in extract_vars(item)]
    return []


def create_program_from_desc(program_desc: ProgramDesc) -> Program:
    """A copy of the program that `program_desc` describes (`fluid.dygraph.jit.create_program_from_desc`)."""
    return program_desc._shown.clone()


__all__ = ["StaticModelRunner"]


class StaticModelRunner(TranslatedLayer):
    """A model that `fluid.io.save_inference_model` wrote, as a layer to train further
    (`fluid.dygraph.StaticModelRunner`).

    Its parameters are called `NAME@LOADED`. While it trains, dropout drops and normalisation uses and moves the
    statistics of batches; after `eval()` it runs the saved program.

    Args:
        model_dir: the folder of the model.
        model_filename: the file of the program, `__model__` if None.
        params_filename: the file with all parameters; None if each has a file of its own.

    Raises ValueError for a missing folder.
    """

    _suffix = "@LOADED"

    def __init__(
        self, model_dir: str, model_filename: str | None = None, params_filename: str | None = None
    ) -> None:
        if not os.path.isdir(model_dir):
            raise ValueError(f"There is no directory named {model_dir!r}")
        scope = Scope()
        with scope_guard(scope):
            program, feeds, fetches = load_inference_model(model_dir, None, model_filename, params_filename)
        super().__init__(program, feeds, [var.name for var in fetches], scope)

    def forward(self, *args: Any) -> Any:
        """Run the model on a tensor or array for each of its inputs; returns a list if it has several outputs.

        Raises TypeError for other inputs, ValueError for a wrong number of them.
        """
        for arg in args:
            if not isinstance(arg, (Tensor, np.ndarray)):
                raise TypeError(
                    "The type of inputs.value in StaticModelRunner.forward must be numpy array or Variable(VarBase), "
                    f"but received {type(arg)}."
                )
        if not self.training or self._program.num_blocks > 1 or len(args) != len(self._feeds):
            return super().forward(*args)
        held = self._held()
        values = {**held, **dict(zip(self._feeds, map(to_variable, args), strict=True))}
        for op in self._program.global_block().ops:
            if op.type not in ENDS:
                apply_operator(op, values, {"is_test": False} if "is_test" in op.definition.attrs else {})
        for name, before in held.items():
            if values[name] is not before:  # a moving statistic
                before.set_value(values[name].detach())
        return self._results(values)


class TracedLayer:
    """The program of a layer, with the layer's own parameters; made by `TracedLayer.trace`.

    Calling it with a list of tensors (or arrays) runs the program and returns a list of arrays. Training mode, branches
    taken and iterations of loops are those of the traced call. Follows `fluid.dygraph.TracedLayer`.
    """

    def __init__(self, traced: Traced) -> None:
        self._traced = traced
        self._ran = False

    @staticmethod
    def trace(layer: Layer, inputs: Sequence[Any]) -> tuple[Any, TracedLayer]:
        """Call `layer` with `inputs` and record the operators that run as a program.

        `inputs`: a list of the tensors to call the layer with. Returns the layer's results, and the TracedLayer.
        Raises AssertionError, as Fluid does, if `layer` is no Layer; TypeError for inputs or results that are not
        tensors in a list or tuple.
        """
        if not isinstance(layer, Layer):
            raise AssertionError(f"TracedLayer.trace takes a fluid.dygraph.Layer, got {type(layer).__name__}")
        tensors: list[Any] = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        for item in tensors:
            if not isinstance(item, Tensor):
                raise TypeError(f"the inputs of TracedLayer.trace are tensors, got {type(item).__name__}")
        record = ProgramRecord(type(layer).__name__, tensors)
        with record.on():
            outputs = layer(*tensors)
        flat = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        if not all(isinstance(item, Tensor) for item in flat):
            raise TypeError(
                "TracedLayer.trace needs a layer that returns a tensor or a list of tensors, got "
                f"{[type(item).__name__ for item in flat]}"
            )
        tracer, feeds, fetches = record.program(flat)
        return outputs, TracedLayer(Traced(tracer, Program(), feeds, fetches, [layer]))

    @property
    def program(self) -> Program:
        """The program; its inputs are called `feed_N`, its outputs `fetch_N`."""
        return self._traced.program

    def set_strategy(self, build_strategy: Any = None, exec_strategy: Any = None) -> None:
        """Accepted for Fluid's sake: plans are made without advice. Raises AssertionError after the first run."""
        if self._ran:
            raise AssertionError("Cannot set strategy after run")

    def __call__(self, inputs: Sequence[Any]) -> list[np.ndarray]:
        """The outputs for a list of tensors or arrays, as arrays.

        Raises AssertionError, as Fluid does, for anything else and for another number of inputs.
        """
        if not isinstance(inputs, (list, tuple)):
            raise AssertionError(
                f"Inputs should be a list or tuple of variables, got {type(inputs).__name__}"
            )
        names = [var.name for var in self._traced.inputs]
        if len(inputs) != len(names):
            raise AssertionError(f"the layer was traced with {len(names)} inputs, got {len(inputs)}")
        self._ran = True
        arrays = [item.array if isinstance(item, Tensor) else item for item in inputs]
        self._traced.refresh()
        fetches = tuple([var.name for var in self._traced.outputs])
        feed = dict(zip(names, arrays, strict=True))
        return run_program(self.program, feed, fetches, self._traced.scope, True, self._device(arrays))

    def _device(self, arrays: list[Any]) -> Any:
        """The GPU where an input or a parameter is; None for the host."""
        held = [tensor.array for tensor in self._traced.captured.values()]
        devices = [placing.device_of(array) for array in (*arrays, *held)]
        return next((device for device in devices if device is not None), None)

    def save_inference_model(
        self, dirname: str, feed: Sequence[int] | None = None, fetch: Sequence[int] | None = None
    ) -> None:
        """Save the program and its parameters to the folder `dirname`, for `fluid.io.load_inference_model`.

        `feed`, `fetch`: the indices of the inputs and outputs to keep, all by default. Raises IndexError for an index
        out of range, TypeError for anything but an integer.
        """
        save_program(self._traced, dirname, feed, fetch)
