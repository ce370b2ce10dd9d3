"""`PipelineOptimizer` and `DGCMomentumOptimizer`: optimizers for several devices, as far as one process has them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ...base.errors import NotSupportedError
from ...base.place import is_compiled_with_cuda
from ...framework import Parameter, Program, Variable
from .base import Optimizer
from .descent import MomentumOptimizer
from .eager import programs_only


class PipelineOptimizer:
    """`optimizer` for a program cut in sections (Huang et al. 2019; `fluid.optimizer.PipelineOptimizer`).

    In one process the sections run one after the other, which is what `Executor.run` and `train_from_dataset` do with
    the program: the numbers are those of `optimizer` alone.

    Args:
        cut_list: lists of Variables; the first ends the first section, and so on, the last one is [loss].
        place_list: a place for each section: those of the cuts forward, then back again.
        concurrency_list: how many threads run each section.
        queue_size, sync_steps, start_cpu_core_id: how sections hand over to each other; change nothing here.

    Raises TypeError for no `cut_list`, IndexError for too few places.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        cut_list: Sequence[Sequence[Variable]] | None = None,
        place_list: Sequence[Any] | None = None,
        concurrency_list: Sequence[int] | None = None,
        queue_size: int = 30,
        sync_steps: int = 1,
        start_cpu_core_id: int = 0,
    ) -> None:
        programs_only(self)
        self._optimizer = optimizer
        self._cut_list = cut_list
        self._place_list = place_list
        self._concurrency_list = concurrency_list
        self._queue_size = queue_size
        self._sync_steps = sync_steps
        self._start_cpu_core_id = start_cpu_core_id

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Collection[Variable | str] | None = None,
    ) -> None:
        """Append gradients and updates for `loss`."""
        if self._cut_list is None:
            raise TypeError("cut_list must be lists of Variables that end the sections, got None")
        sections = 2 * len(self._cut_list) - 1
        places = len(self._place_list or ())
        if places < sections:
            raise IndexError(
                f"{len(self._cut_list)} cuts make {sections} sections, but there are {places} places"
            )
        self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)


class DGCMomentumOptimizer(MomentumOptimizer):
    """Momentum that sends the largest gradients only (Lin et al. 2018; `fluid.optimizer.DGCMomentumOptimizer`).

    It spares networks between GPUs of several processes, and there is one process here. As in Fluid it is refused
    without a GPU, with AssertionError; with one the error is NotSupportedError.
    """

    def __init__(
        self,
        learning_rate: float | Variable,
        momentum: float,
        rampup_begin_step: int,
        rampup_step: int = 1,
        sparsity: Sequence[float] = (0.999,),
        parameter_list: Sequence[Parameter | str] | None = None,
        use_nesterov: bool = False,
        num_trainers: int | None = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        programs_only(self)
        if not is_compiled_with_cuda():
            raise AssertionError(
                "DGC is for GPUs only, and there is none here: fluid.optimizer.Momentum trains the same network"
            )
        raise NotSupportedError(
            "DGCMomentumOptimizer sends gradients between processes, and there is one here: use Momentum"
        )
