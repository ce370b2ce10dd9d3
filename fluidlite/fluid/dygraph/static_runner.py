"""`StaticModelRunner`: a saved inference model as a layer (`fluid.dygraph.static_runner`)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ...eager import Tensor
from ...executor import Scope, scope_guard
from ...ops.program.host import ENDS
from ..io import load_inference_model
from .base import to_variable
from .jit.models import TranslatedLayer, apply_operator

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
