"""Several processes that train together (`paddle.distributed`): Fluid's modules, and the functions of Paddle 2.0."""

from typing import TYPE_CHECKING

from ...base import missing
from ...fluid.dygraph.parallel import ParallelEnv
from .collective import (
    ReduceOp,
    all_gather,
    all_reduce,
    barrier,
    broadcast,
    get_rank,
    get_world_size,
    init_parallel_env,
    reduce,
    scatter,
)
from .spawning import spawn

if TYPE_CHECKING:
    from . import cloud_utils, launch, launch_ps, utils  # noqa: F401

__all__ = [
    "ParallelEnv",
    "ReduceOp",
    "all_gather",
    "all_reduce",
    "barrier",
    "broadcast",
    "get_rank",
    "get_world_size",
    "init_parallel_env",
    "reduce",
    "scatter",
    "spawn",
]

__getattr__, __dir__ = missing.lazy(__name__)
