"""Data parallelism over processes (`fluid.dygraph.parallel`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ..backend import to_host
from ..base import missing
from ..base.selected_rows import SelectedRows
from ..distributed import DistributedError, begin_step, world
from ..eager import placing
from .layers import Layer

__all__ = ["DataParallel", "ParallelEnv", "prepare_context"]


class ParallelStrategy:
    """How many processes train together, and which of them this one is."""

    def __init__(self) -> None:
        self.nranks = 1
        self.local_rank = 0
        self.trainer_endpoints: list[str] = []
        self.current_endpoint = ""


class ParallelEnv:
    """What the environment says about the processes of a distributed run (`fluid.dygraph.ParallelEnv`)."""

    def __init__(self) -> None:
        self._nranks = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
        self._local_rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
        self._dev_id = int(os.environ.get("FLAGS_selected_gpus", "0").split(",")[0])
        self._endpoints = os.environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",")
        self._endpoint = os.environ.get("PADDLE_CURRENT_ENDPOINT", "")

    @property
    def nranks(self) -> int:
        """The number of processes (PADDLE_TRAINERS_NUM)."""
        return self._nranks

    @property
    def local_rank(self) -> int:
        """The number of this process (PADDLE_TRAINER_ID)."""
        return self._local_rank

    @property
    def dev_id(self) -> int:
        """The GPU of this process (FLAGS_selected_gpus)."""
        return self._dev_id

    @property
    def current_endpoint(self) -> str:
        """The address of this process (PADDLE_CURRENT_ENDPOINT)."""
        return self._endpoint

    @property
    def trainer_endpoints(self) -> list[str]:
        """The addresses of all processes (PADDLE_TRAINER_ENDPOINTS)."""
        return self._endpoints

    world_size, rank, device_id = nranks, local_rank, dev_id


Env = ParallelEnv


def prepare_context(strategy: ParallelStrategy | None = None) -> ParallelStrategy:
    """The strategy for `DataParallel`, by default from the environment (`fluid.dygraph.prepare_context`).

    Processes meet here. Raises NotSupportedError for more than one without MPI, DistributedError if there are not as
    many as the strategy says.
    """
    if strategy is None:
        strategy, env = ParallelStrategy(), ParallelEnv()
        strategy.nranks, strategy.local_rank = env.nranks, env.local_rank
        strategy.trainer_endpoints, strategy.current_endpoint = env.trainer_endpoints, env.current_endpoint
    if strategy.nranks > 1 and world().size != strategy.nranks:
        raise DistributedError(
            f"the strategy is for {strategy.nranks} processes, but this run has {world().size}: start it with "
            f"`fluidlite launch -n {strategy.nranks}`"
        )
    return strategy


class DataParallel(Layer):
    """A model that several processes train, each on its own batch (`fluid.dygraph.DataParallel`).

    Parameters and buffers become those of process 0 when the model is first called. In Fluid's way, with a `strategy`,
    the script scales the loss (`scale_loss`) and has gradients added up (`apply_collective_grads`) between `backward`
    and `minimize`. In that of Paddle 2.0, without one, `backward` leaves the mean of the gradients of all processes.

    Args:
        layers: the model. In all processes the same, with the same parameters taking part in each pass.
        strategy: from `prepare_context()`.
        options: of Paddle's that say how gradients are put together for NCCL; accepted and without effect.

    Raises:
        NotSupportedError: for more than one process without MPI.
        DistributedError: from the first call and from `backward`, if the processes do not do the same.
    """

    def __init__(self, layers: Layer, strategy: ParallelStrategy | None = None, **options: Any) -> None:
        super().__init__(layers.full_name() + "_data_parallel")
        self._by_hooks = strategy is None
        self._strategy = prepare_context(strategy)
        self._layers = layers
        self._alike = self._strategy.nranks <= 1
        self._synchronising = True
        self._hooked: set[int] = set()
        self._behind: set[int] = set()  # what `no_sync` has left to its own process

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self._alike:
            self._make_alike()
        begin_step()
        made = self._layers(*inputs, **kwargs)
        if self._by_hooks and self._strategy.nranks > 1:
            self._hook()
        return made

    def _make_alike(self) -> None:
        """Give parameters and buffers the values that process 0 has."""
        for tensor in [*self._layers.parameters(), *self._layers.buffers()]:
            _keep(tensor, "array", world().broadcast(np.asarray(to_host(tensor.array))))
        self._alike = True

    def _hook(self) -> None:
        """Have `backward` put gradients of parameters together, of those that have come since as well."""
        for parameter in self._layers.parameters():
            if id(parameter) in self._hooked or parameter.stop_gradient:
                continue
            self._hooked.add(id(parameter))
            if parameter.hooks is None:
                parameter.hooks = []
            parameter.hooks.append(partial(self._mean, parameter))

    def _mean(self, parameter: Any, gradient: Any) -> Any:
        """What a pass adds to the gradient of a parameter, so that it is the mean of all processes'."""
        if not self._synchronising:
            self._behind.add(id(parameter))
            return gradient
        count = self._strategy.nranks
        if isinstance(gradient, SelectedRows):
            return _scaled(_sum_of_rows(gradient), 1.0 / count)
        own = np.asarray(to_host(gradient))
        before = parameter.grad_array if id(parameter) in self._behind else None
        self._behind.discard(id(parameter))
        if before is None or isinstance(before, SelectedRows):
            found = world().all_reduce(own) * own.dtype.type(1.0 / count)
        else:
            held = np.asarray(to_host(before))
            found = world().all_reduce(own + held) * own.dtype.type(1.0 / count) - held
        return placing.beside(found, parameter.array)

    def scale_loss(self, loss: Any) -> Any:
        """`loss` divided by the number of processes; itself in one, and where `backward` takes the mean."""
        if self._strategy.nranks <= 1 or self._by_hooks:
            return loss
        return loss / float(self._strategy.nranks)

    def apply_collective_grads(self) -> None:
        """Have the gradient of each parameter be the sum of those of all processes; nothing to do for one."""
        if self._strategy.nranks <= 1 or self._by_hooks:
            return
        dense: dict[np.dtype, list[Any]] = {}
        for parameter in self._layers.parameters():
            found = parameter.grad_array
            if not parameter.trainable or found is None:
                continue
            if isinstance(found, SelectedRows):
                parameter.grad_array = _sum_of_rows(found)
            else:
                dense.setdefault(np.dtype(found.dtype), []).append(parameter)
        for parameters in dense.values():
            arrays = [np.asarray(to_host(parameter.grad_array)) for parameter in parameters]
            total = world().all_reduce(np.concatenate([array.ravel() for array in arrays]))
            ends = np.cumsum([array.size for array in arrays])[:-1]
            for parameter, array, part in zip(parameters, arrays, np.split(total, ends), strict=True):
                _keep(parameter, "grad_array", part.reshape(array.shape).copy())

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients are not exchanged between processes (`paddle.DataParallel.no_sync`).

        The first pass after it exchanges what they have added up to.
        """
        before, self._synchronising = self._synchronising, False
        try:
            yield
        finally:
            self._synchronising = before

    def state_dict(
        self,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
    ) -> dict[str, Any]:
        """That of the model, under the names that it has on its own."""
        return self._layers.state_dict(destination, include_sublayers, structured_name_prefix)

    def set_dict(
        self, stat_dict: Mapping[str, Any], include_sublayers: bool = True, use_structured_name: bool = True
    ) -> None:
        """That of the model."""
        self._layers.set_dict(stat_dict, include_sublayers, use_structured_name)


def _keep(tensor: Any, name: str, array: np.ndarray) -> None:
    """Have a tensor, or its gradient, hold `array`, on the device that the tensor is on."""
    setattr(tensor, name, placing.beside(array, tensor.array))


def _sum_of_rows(gradient: SelectedRows) -> SelectedRows:
    """The sum of sparse gradients: the rows of all processes."""
    rows, values = np.asarray(to_host(gradient.rows)), np.asarray(to_host(gradient.values))
    mine = SelectedRows(rows, values, gradient.height).held()
    return SelectedRows(world().all_gather(mine.rows), world().all_gather(mine.values), mine.height)


def _scaled(gradient: SelectedRows, factor: float) -> SelectedRows:
    values = gradient.values
    return SelectedRows(gradient.rows, values * values.dtype.type(factor), gradient.height)


__getattr__ = missing.reporter(__name__)
