"""Training by several processes, one place each (`BuildStrategy.num_trainers`)."""

from __future__ import annotations

from weakref import ref

import numpy as np

from ...base.errors import NotSupportedError
from ...distributed import DistributedError, world
from ...framework import Program
from ...framework.gradients.exchange import exchange_gradients, scale_loss_gradients
from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope
from .strategies import BuildStrategy, GradientScaleStrategy


class TrainerProgram:
    """A copy of a program that sums its gradients over all processes.

    Making one broadcasts the persistable variables of process 0, as in Fluid.

    Raises DistributedError if the run has another number of processes, NotSupportedError for several places in each.
    """

    def __init__(self, program: Program, strategy: BuildStrategy, places: int, scope: Scope) -> None:
        count: int = strategy.num_trainers
        if world().size != count:
            raise DistributedError(
                f"the program was compiled for {count} trainers, but this run has {world().size}: start it with "
                f"`fluidlite launch -n {count}`"
            )
        if places > 1:
            raise NotSupportedError(
                f"{count} processes train together, each on {places} places: give each process one place (CPU_NUM=1, "
                "or one GPU) and start more of them"
            )
        self._source, self._version, self._scope = ref(program), program._version, ref(scope)
        self.program = program.clone()
        if strategy.gradient_scale_strategy == GradientScaleStrategy.CoeffNumDevice:
            scale_loss_gradients(self.program, 1.0 / count)
        exchange_gradients(self.program)
        _broadcast(program, scope)

    def fits(self, program: Program, scope: Scope) -> bool:
        """True if it was made of this program in its present version, in this scope."""
        return self._source() is program and self._version == program._version and self._scope() is scope


def _broadcast(program: Program, scope: Scope) -> None:
    """Set the persistable variables of all processes to the values of process 0."""
    for var in program.list_vars():
        found = scope.find_var(var.name) if var.persistable else None
        value = found.get() if found is not None else None
        if isinstance(value, LoDTensor) and value.array is not None:
            value.set(world().broadcast(np.array(value)))
