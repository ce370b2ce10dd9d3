"""`fluid.core`: the class above layers, and gradients by position."""

from __future__ import annotations

from typing import Any

from ...base.place import Place
from ...eager import Tensor, autograd
from ...eager.tracer import BackwardStrategy

__all__ = ["Layer", "dygraph_partial_grad"]


class Layer:
    """The base of C++ layers (`fluid.core.Layer`): `forward` returns []."""

    def forward(self, inputs: list[Tensor]) -> list[Tensor]:
        """Results of `inputs`, for subclasses to define."""
        return []


def dygraph_partial_grad(
    inputs: list[Tensor],
    outputs: list[Tensor],
    grad_outputs: list[Any],
    no_grad_vars: list[Tensor],
    place: Place,
    backward_strategy: BackwardStrategy,
    create_graph: bool,
    retain_graph: bool,
    allow_unused: bool,
    only_inputs: bool,
) -> list[Tensor | None]:
    """`fluid.dygraph.grad`, with all of its arguments, inputs first (`fluid.core.dygraph_partial_grad`).

    An empty `grad_outputs` means ones. `place` and `backward_strategy` have no effect.
    """
    return autograd.grad(
        outputs,
        inputs,
        grad_outputs or None,
        retain_graph,
        create_graph,
        only_inputs,
        allow_unused,
        no_grad_vars,
    )
