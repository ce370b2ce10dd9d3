"""`RecomputeOptimizer`: less memory for the backward pass, by recomputing parts of the forward pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn

from ...base.errors import ArgumentTypeError
from ...framework import Operator, Parameter, Variable, program_guard
from ...framework.gradients.backward import append_backward
from ..clip import error_clip_callback
from .base import Optimizer, ParamGrad
from .eager import programs_only


class RecomputeOptimizer(Optimizer):
    """`optimizer`, whose backward pass keeps only checkpoints of the forward pass.

    Follows `fluid.optimizer.RecomputeOptimizer`. Call `_set_checkpoints([variables])` before `minimize`. Values
    between two checkpoints are recomputed for their gradients; the numbers stay the same. Moving averages of
    batch_norm between checkpoints are updated twice in a step, as in Fluid 1.8. Raises TypeError if `optimizer` is no
    optimizer.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        programs_only(self)
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(f"RecomputeOptimizer takes an optimizer, got {optimizer!r:.60}")
        super().__init__(
            optimizer._learning_rate,
            optimizer._parameter_list,
            optimizer.regularization,
            optimizer._grad_clip,
            optimizer._name,
        )
        self.type = optimizer.type
        self._optimizer = optimizer
        self._checkpoints: list[Variable | str] | None = None

    def _set_checkpoints(self, checkpoints: Sequence[Variable | str]) -> None:
        """Set the variables (or names) that are kept; TypeError for anything but a list of these."""
        if isinstance(checkpoints, (str, Variable)) or not all(
            isinstance(item, (Variable, str)) for item in checkpoints
        ):
            raise ArgumentTypeError(
                f"checkpoints must be a list of Variables or names, got {checkpoints!r:.80}"
            )
        self._checkpoints = list(checkpoints)

    def load(self, stat_dict: dict[str, Any]) -> NoReturn:
        """Not supported, as in Fluid 1.8: load with fluid.load or fluid.io."""
        raise NotImplementedError("load function is not supported by Recompute Optimizer for now")

    def backward(
        self,
        loss: Variable,
        startup_program: Any = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> list[ParamGrad]:
        """Append the gradients of `loss` with recomputation; raises AssertionError before `_set_checkpoints`."""
        if self._checkpoints is None:
            raise AssertionError("You should call _set_checkpoints first")
        if not isinstance(loss, Variable):
            raise ArgumentTypeError(
                f"The loss should be a Variable, got {type(loss).__name__} ({loss!r:.60})"
            )
        self._optimizer._dtype = self._dtype = loss.dtype
        chosen = parameter_list if parameter_list else self._parameter_list
        with program_guard(loss.block.program, startup_program):
            return list(
                append_backward(
                    loss, chosen, no_grad_set, [error_clip_callback, *(callbacks or ())], self._checkpoints
                )
            )

    def apply_gradients(self, params_grads: Sequence[ParamGrad]) -> list[Operator]:
        """Apply the pairs of `backward` with the wrapped optimizer."""
        return self._optimizer.apply_gradients(params_grads)

    def apply_optimize(
        self, loss: Variable, startup_program: Any, params_grads: Sequence[ParamGrad]
    ) -> list[Operator]:
        """`apply_gradients` in the program of `loss`."""
        return self._optimizer.apply_optimize(loss, startup_program, params_grads)
