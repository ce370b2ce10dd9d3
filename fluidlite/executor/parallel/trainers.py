"""A program that several processes train together: `BuildStrategy.num_trainers` of them, each with its own places."""

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


class Shared:
    """A copy of a program whose gradients all processes add up, and parameters as the first process has them.

    As Fluid does, persistable variables get the values of process 0 when this is made.

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
        self._of, self._version, self._scope = ref(program), program._version, ref(scope)
        self.program = program.clone()
        if strategy.gradient_scale_strategy == GradientScaleStrategy.CoeffNumDevice:
            scale_loss_gradients(self.program, 1.0 / count)
        exchange_gradients(self.program)
        _spread(program, scope)

    def fits(self, program: Program, scope: Scope) -> bool:
        """Whether it was made of this program, as it is now, in this scope."""
        return self._of() is program and self._version == program._version and self._scope() is scope


def _spread(program: Program, scope: Scope) -> None:
    """Give the persistable variables of all processes the values of the first."""
    for var in program.list_vars():
        found = scope.find_var(var.name) if var.persistable else None
        value = found.get() if found is not None else None
        if isinstance(value, LoDTensor) and value.array is not None:
            value.set(world().broadcast(np.array(value)))
