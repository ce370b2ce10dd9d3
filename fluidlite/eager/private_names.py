"""Private names of Fluid's `VarBase` that scripts use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._ext import eager as core
from ..framework import Block, default_main_program
from ..ops.registry import grad_name

if TYPE_CHECKING:
    from ..executor.tensors.lod_tensor import LoDTensor
    from .tensor import Tensor


class PrivateNames(core.Value):
    """Names of `fluid.core.VarBase` that begin with an underscore, and `block`."""

    @property
    def block(self) -> Block:
        """The global block of the default main program, as in Fluid; the tensor is not in it."""
        return default_main_program().global_block()

    def _grad_name(self) -> str:
        return grad_name(self.name)  # type: ignore[attr-defined]

    def _grad_ivar(self) -> Tensor | None:
        """The gradient as a tensor that shares its memory; None before `backward`."""
        gradient: Tensor | None = self.grad  # type: ignore[attr-defined]
        if gradient is not None:
            gradient.stop_gradient = False
        return gradient

    def _grad_value(self) -> LoDTensor | None:
        """The gradient as a LoDTensor that shares its memory; None before `backward`."""
        gradient = self._grad_ivar()
        return None if gradient is None else gradient.get_tensor()

    def _set_grad_type(self, type: Any) -> None:
        """Without effect: the operators determine if a gradient is sparse."""

    def _alive_vars(self) -> list[str]:
        """Always empty."""
        return []

    def _run_backward(self, backward_strategy: Any, tracer: Any, retain_graph: bool = False) -> None:
        self.backward(backward_strategy, retain_graph)  # type: ignore[attr-defined]
