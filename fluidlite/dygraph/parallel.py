"""Data parallelism over processes, for the case of one process (`fluid.dygraph.parallel`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..base import missing
from ..base.errors import NotSupportedError
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

    Raises NotSupportedError for more than one process.
    """
    if strategy is None:
        strategy, env = ParallelStrategy(), ParallelEnv()
        strategy.nranks, strategy.local_rank = env.nranks, env.local_rank
        strategy.trainer_endpoints, strategy.current_endpoint = env.trainer_endpoints, env.current_endpoint
    if strategy.nranks > 1:
        raise NotSupportedError(
            f"{strategy.nranks} processes were asked for, but fluidlite trains a dygraph model in one process"
        )
    return strategy


class DataParallel(Layer):
    """A model that would be trained by several processes (`fluid.dygraph.DataParallel`); here by one.

    Args:
        layers: the model.
        strategy: from `prepare_context()`.

    Raises:
        NotSupportedError: for more than one process.
    """

    def __init__(self, layers: Layer, strategy: ParallelStrategy | None = None, **options: Any) -> None:
        super().__init__(layers.full_name() + "_data_parallel")
        self._strategy = prepare_context(strategy)
        self._layers = layers

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self._layers(*inputs, **kwargs)

    def scale_loss(self, loss: Any) -> Any:
        """`loss` divided by the number of processes: itself."""
        return loss

    def apply_collective_grads(self) -> None:
        """Add the gradients of all processes up: nothing to do for one."""

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients are not exchanged between processes (`paddle.DataParallel.no_sync`)."""
        yield

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


__getattr__ = missing.reporter(__name__)
