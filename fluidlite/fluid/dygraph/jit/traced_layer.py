"""`TracedLayer`: a layer as a program, for use without the layer's code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....eager import Tensor, placing
from ....eager.program_record import ProgramRecord
from ....executor.executor import run_program
from ....framework import Program
from ..layers import Layer
from . import models
from .traced import Traced


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
        models.save_program(self._traced, dirname, feed, fetch)
