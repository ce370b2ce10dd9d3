"""Data parallelism over processes (`fluid.dygraph.parallel`)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ...backend import to_host
from ...base import context
from ...base.selected_rows import SelectedRows
from ...distributed import DistributedError, world
from ...eager import placing
from .layers import Layer

__all__ = ["DataParallel", "ParallelEnv", "prepare_context"]


class ParallelStrategy:
    """The number of processes that train together, and the rank of this one."""

    def __init__(self) -> None:
        self.nranks = 1
        self.local_rank = 0
        self.trainer_endpoints: list[str] = []
        self.current_endpoint = ""


class ParallelEnv:
    """The processes of a distributed run, from environment variables (`fluid.dygraph.ParallelEnv`)."""

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
        """The rank of this process (PADDLE_TRAINER_ID)."""
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

    Joins the processes. Raises NotSupportedError for more than one without MPI, DistributedError if their number
    differs from the strategy's.
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

    The first call broadcasts the parameters and buffers of process 0. With a `strategy`, as in Fluid, the script scales
    the loss (`scale_loss`) and sums the gradients (`apply_collective_grads`) between `backward` and `minimize`. Without
    one, as in Paddle 2.0, `backward` averages the gradients over the processes.

    Args:
        layers: the model, the same in all processes, with the same parameters used in each pass.
        strategy: from `prepare_context()`.
        options: Paddle's options for grouping gradients for NCCL; accepted and without effect.

    Raises:
        NotSupportedError: for more than one process without MPI.
        DistributedError: from the first call and from `backward`, if the processes call different operations.
    """

    def __init__(self, layers: Layer, strategy: ParallelStrategy | None = None, **options: Any) -> None:
        super().__init__(layers.full_name() + "_data_parallel")
        self._by_hooks = strategy is None
        self._strategy = prepare_context(strategy)
        self._layers = layers
        self._broadcasted = self._strategy.nranks <= 1
        self._synchronising = True
        self._hooked: set[int] = set()
        self._unsynchronised: set[int] = set()  # ids of parameters with local gradients from `no_sync`

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self._broadcasted:
            self._broadcast_state()
        for begin in context.before_step:
            begin()
        outputs = self._layers(*inputs, **kwargs)
        if self._by_hooks and self._strategy.nranks > 1:
            self._hook()
        return outputs

    def _broadcast_state(self) -> None:
        """Broadcast parameters and buffers from process 0."""
        for tensor in [*self._layers.parameters(), *self._layers.buffers()]:
            _keep(tensor, "array", world().broadcast(np.asarray(to_host(tensor.array))))
        self._broadcasted = True

    def _hook(self) -> None:
        """Register hooks that average gradients in `backward`, for parameters that have none yet."""
        for parameter in self._layers.parameters():
            if id(parameter) in self._hooked or parameter.stop_gradient:
                continue
            self._hooked.add(id(parameter))
            if parameter.hooks is None:
                parameter.hooks = []
            parameter.hooks.append(partial(self._mean, parameter))

    def _mean(self, parameter: Any, gradient: Any) -> Any:
        """The contribution of a backward pass to a parameter's gradient that makes it the mean over the processes."""
        if not self._synchronising:
            self._unsynchronised.add(id(parameter))
            return gradient
        count = self._strategy.nranks
        if isinstance(gradient, SelectedRows):
            return _scaled(_sum_of_rows(gradient), 1.0 / count)
        own = np.asarray(to_host(gradient))
        before = parameter.grad_array if id(parameter) in self._unsynchronised else None
        self._unsynchronised.discard(id(parameter))
        if before is None or isinstance(before, SelectedRows):
            mean = world().all_reduce(own) * own.dtype.type(1.0 / count)
        else:
            held = np.asarray(to_host(before))
            mean = world().all_reduce(own + held) * own.dtype.type(1.0 / count) - held
        return placing.to_device_of(mean, parameter.array)

    def scale_loss(self, loss: Any) -> Any:
        """`loss` divided by the number of processes; unchanged for a single one, and where `backward` averages."""
        if self._strategy.nranks <= 1 or self._by_hooks:
            return loss
        return loss / float(self._strategy.nranks)

    def apply_collective_grads(self) -> None:
        """Replace the gradient of each parameter by its sum over all processes."""
        if self._strategy.nranks <= 1 or self._by_hooks:
            return
        dense: dict[np.dtype, list[Any]] = {}
        for parameter in self._layers.parameters():
            gradient = parameter.grad_array
            if not parameter.trainable or gradient is None:
                continue
            if isinstance(gradient, SelectedRows):
                parameter.grad_array = _sum_of_rows(gradient)
            else:
                dense.setdefault(np.dtype(gradient.dtype), []).append(parameter)
        for parameters in dense.values():
            arrays = [np.asarray(to_host(parameter.grad_array)) for parameter in parameters]
            total = world().all_reduce(np.concatenate([array.ravel() for array in arrays]))
            ends = np.cumsum([array.size for array in arrays])[:-1]
            for parameter, array, part in zip(parameters, arrays, np.split(total, ends), strict=True):
                _keep(parameter, "grad_array", part.reshape(array.shape).copy())

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Context manager: gradients are not exchanged between processes (`paddle.DataParallel.no_sync`).

        The first pass after it exchanges the accumulated gradients.
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
        """The state dict of the wrapped model, without a prefix."""
        return self._layers.state_dict(destination, include_sublayers, structured_name_prefix)

    def set_dict(
        self, stat_dict: Mapping[str, Any], include_sublayers: bool = True, use_structured_name: bool = True
    ) -> None:
        """Load a state dict into the wrapped model."""
        self._layers.set_dict(stat_dict, include_sublayers, use_structured_name)


def _keep(tensor: Any, name: str, array: np.ndarray) -> None:
    """Set a tensor's array or gradient to `array`, moved to the tensor's device."""
    setattr(tensor, name, placing.to_device_of(array, tensor.array))


def _sum_of_rows(gradient: SelectedRows) -> SelectedRows:
    """The sum of sparse gradients: the rows of all processes."""
    rows, values = np.asarray(to_host(gradient.rows)), np.asarray(to_host(gradient.values))
    mine = SelectedRows(rows, values, gradient.height).held()
    return SelectedRows(world().all_gather(mine.rows), world().all_gather(mine.values), mine.height)


def _scaled(gradient: SelectedRows, factor: float) -> SelectedRows:
    values = gradient.values
    return SelectedRows(gradient.rows, values * values.dtype.type(factor), gradient.height)


def _is_data_parallel_mode() -> bool:
    """Always False."""
    return False


def _set_parallel_ctx(nccl_parallel_context: Any) -> None:
    """Accepted and without effect."""


def _init_parallel_ctx() -> None:
    """Without effect."""


def _broadcast_parameters(parameters: Iterable[Any]) -> None:
    """Without effect."""
