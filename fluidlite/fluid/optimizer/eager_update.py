"""`EagerUpdate`: the update operators of one set of eager parameters, ready to run on their arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.arrays import owned, plain_copy
from ...base.reports import profiling
from ...base.selected_rows import SelectedRows
from ...eager import Parameter, Tensor, placing
from ...executor import LoDTensor, Scope
from ...executor.compile import compile_plan
from ...executor.executor import run_program
from ...executor.failures import Unsupported
from ...executor.ir.request import Request
from ...executor.ir.step_plan import StepPlan
from ...framework import Program
from ...ops.registry import grad_name

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

RELEASE_FROM = 1 << 16
"""Updates of this many elements or more release the GIL; for fewer, reacquiring it costs more."""


class EagerUpdate:
    """Runs `program`, which updates `params` from the gradients fed to it, on the memory of the tensors themselves.

    Args:
        program: update operators; gradients are its data variables, everything else lasts.
        scope: holds the accumulators and the learning rate.
        params: the parameters, in the order of the gradients that `run` takes.
        grads: gradients like those to come.
        held: tensors by the names of the variables that they stand for.
        accumulators: tensors that share the memory of variables of `scope`.
        device: the GPU where all of them are; None for the host.

    Raises EnforceNotMet if the gradients do not fit the parameters.
    """

    def __init__(
        self,
        program: Program,
        scope: Scope,
        params: Sequence[Parameter],
        grads: Sequence[Any],
        held: Mapping[str, Tensor],
        accumulators: Mapping[str, Tensor],
        device: CudaDevice | None = None,
    ) -> None:
        self._program = program
        self._scope = scope
        self._fed = [grad_name(param.name) for param in params]
        self._held = dict(held)
        self._tensors = list(held.values())
        self._numbers = len(held) > len(params)
        self._accumulators = accumulators
        self._device = device
        self._kinds = [type(grad) for grad in grads]
        self._plan = None if SelectedRows in self._kinds else self._planned(grads)

    def _planned(self, grads: Sequence[Any]) -> StepPlan | None:
        for (name, _), array in zip(self._held.items(), self._arrays(), strict=True):
            self._scope.var(name).set(LoDTensor.wrap(array))
        feed = dict(zip(self._fed, grads, strict=True))
        try:
            plan = compile_plan(
                Request(
                    self._program, self._scope, feed, (), device=self._device, fixed=True, held=[*self._held]
                )
            )
        except Unsupported:
            return None
        plan.release_gil(sum(grad.size for grad in grads) >= RELEASE_FROM)
        return plan

    def _arrays(self) -> list[Any]:
        """The arrays of the held tensors, all where the parameters are; the user's numbers may be elsewhere."""
        arrays = [tensor.array for tensor in self._tensors]
        for k in range(len(self._fed), len(arrays)):
            arrays[k] = placing.to_device(arrays[k], self._device)
        return arrays

    def takes(self, grads: Sequence[Any]) -> bool:
        """Bind gradients and parameters; False if one is of another kind, shape or dtype than planned, or cannot be
        updated where it is."""
        plan = self._plan
        if plan is None:
            return [type(grad) for grad in grads] == self._kinds
        held = self._arrays() if self._numbers else [tensor.array for tensor in self._tensors]
        if plan.accepts([*grads, *held]):
            return True
        if not all(isinstance(array, np.ndarray) for array in (*grads, *held)):
            return False
        for tensor in self._tensors:
            tensor.array = owned(tensor.array)
        return plan.accepts([*[plain_copy(grad) for grad in grads], *self._arrays()])

    def run(self, grads: Sequence[Any]) -> None:
        """Update the parameters, after `takes` has agreed to the gradients."""
        recorder = profiling.active
        with nullcontext() if recorder is None else recorder.span(profiling.UPDATE):
            if self._plan is not None:
                self._plan.run()
            else:
                self._run_as_program(grads)

    def _run_as_program(self, grads: Sequence[Any]) -> None:
        """Have the executor plan and run this; results in new memory are copied to the tensors' memory."""
        shared = [
            (self._scope.var(name), tensor)
            for name, tensor in (*self._accumulators.items(), *self._held.items())
        ]
        for var, tensor in shared:
            if var.get_tensor().array is not tensor.array:
                var.set(LoDTensor.wrap(tensor.array))
        feed = dict(zip(self._fed, grads, strict=True))
        run_program(self._program, feed, (), self._scope, True, self._device, check_finite=False)
        for var, tensor in shared:
            made = var.get_tensor().array
            if made is not None and made is not tensor.array:
                placing.overwrite(tensor.array, made)
