"""`fluid.dygraph.dygraph_to_static.partial_program`: a program as a layer of dygraph mode."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ....eager import Tensor, to_variable
from ....framework import Program, Variable
from ..jit.traced import Traced
from ..jit.translator import ConcreteProgram
from ..layers import Layer

__all__ = ["PartialProgramLayer", "partial_program_from", "valid_vars"]


class PartialProgramLayer(Layer):
    """Runs a program on eager tensors, with gradients (`PartialProgramLayer` of Fluid's partial_program).

    Args:
        main_program: the program; eval mode runs its `clone(for_test=True)`.
        inputs: its Variables that are fed, in the order of `forward`'s tensors; other objects are ignored.
        outputs: its Variables that are returned; other objects are ignored.
        parameters: the eager parameters with the values of the program's parameters, matched by name.

    Raises:
        TypeError: `parameters` is no list or tuple of eager parameters.
        ValueError: a parameter of the program is missing in `parameters`.
    """

    def __init__(
        self,
        main_program: Program,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        parameters: Sequence[Tensor] | None = None,
    ) -> None:
        super().__init__()
        self._inputs = [var for var in inputs if isinstance(var, Variable)]
        self._outputs = [var for var in outputs if isinstance(var, Variable)]
        if not isinstance(parameters, (list, tuple, type(None))):
            raise TypeError(f"Type of parameters should be list or tuple, but received {type(parameters)}")
        for at, tensor in enumerate(parameters or ()):
            if not isinstance(tensor, Tensor):
                raise TypeError(
                    f"Type of parameters[{at}] should be framework.ParamBase, but received {type(tensor)}"
                )
        self._captured = {tensor.name: tensor for tensor in parameters or ()}
        absent = [var.name for var in main_program.all_parameters() if var.name not in self._captured]
        if absent:
            raise ValueError(
                f"the program has the parameters {', '.join(absent)}, which are not among those of the layer"
            )
        self._programs = {True: main_program}
        self._traced: dict[bool, Traced] = {}

    def _runs(self) -> Traced:
        training = self.training
        if training not in self._traced:
            program = self._programs[True] if training else self._programs[True].clone(for_test=True)
            variables = program.global_block().vars
            tracer: Any = SimpleNamespace(program=program, what="the program", captured=self._captured)
            fed = [variables[var.name] for var in self._inputs]
            wanted = [variables[var.name] for var in self._outputs]
            result = wanted[0] if len(wanted) == 1 else wanted
            self._traced[training] = Traced(tracer, Program(), fed, result, [])
        return self._traced[training]

    def forward(self, inputs: Sequence[Any]) -> Any:
        """Run the program on tensors or arrays; returns the output, or a list of several.

        Raises ValueError if their number differs from that of the inputs.
        """
        tensors = [item for item in inputs if isinstance(item, (Tensor, np.ndarray))]
        if len(tensors) != len(self._inputs):
            raise ValueError(f"the program takes {len(self._inputs)} tensors, got {len(tensors)}")
        return self._runs()([item if isinstance(item, Tensor) else to_variable(item) for item in tensors])


def partial_program_from(concrete_program: ConcreteProgram) -> PartialProgramLayer:
    """A layer that runs the program of a declarative function."""
    layer = PartialProgramLayer(
        concrete_program.main_program,
        concrete_program.inputs,
        concrete_program.outputs,
        concrete_program.parameters,
    )
    layer._captured.update(concrete_program.captured)
    return layer


def valid_vars(vars: Sequence[Tensor] | None) -> list[Tensor]:
    """The tensors as a list, with a placeholder if there are none."""
    return list(vars) if vars else [Tensor(np.zeros(1, "float32"), "Fake_var")]
