"""Collective communication with the API of Paddle 2.0 (`paddle.distributed.all_reduce` and others).

Tensors are eager ones. Functions of more than one process change the tensor that they are given, as Paddle's do.
Gradients do not go through them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend import to_host
from ...base.errors import NotSupportedError
from ...distributed import DistributedError, environment, world
from ...eager import placing
from ...eager.tensor import Tensor
from ...fluid.dygraph.parallel import ParallelEnv


class ReduceOp:
    """How tensors are put together: SUM, MAX, MIN, PROD (`paddle.distributed.ReduceOp`)."""

    SUM, MAX, MIN, PROD = range(4)


_NAMES = {ReduceOp.SUM: "sum", ReduceOp.MAX: "max", ReduceOp.MIN: "min", ReduceOp.PROD: "prod"}


def init_parallel_env() -> ParallelEnv:
    """Meet the other processes; before everything else they do together. Returns the environment.

    Raises NotSupportedError without MPI, DistributedError if there are not as many processes as the environment says.
    """
    environment.adopt()
    world()
    return ParallelEnv()


def get_rank(group: Any = None) -> int:
    """The number of this process."""
    _check_group(group)
    return environment.trainer().rank


def get_world_size(group: Any = None) -> int:
    """How many processes there are."""
    _check_group(group)
    return environment.trainer().count


def _check_group(group: Any) -> None:
    if group not in (None, 0):
        raise NotSupportedError("all processes make one group here: leave `group` away")


def _array(tensor: Any) -> np.ndarray:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"expected a Tensor, got {type(tensor).__name__}")
    return np.asarray(to_host(tensor.array))


def _put(tensor: Tensor, array: np.ndarray) -> None:
    """Set the elements of a tensor to `array`, on its device."""
    tensor.array = placing.to_device_of(array, tensor.array)


def _reduction(op: int) -> str:
    if op not in _NAMES:
        raise ValueError(f"op must be ReduceOp.SUM, MAX, MIN or PROD, got {op!r}")
    return _NAMES[op]


def all_reduce(
    tensor: Tensor, op: int = ReduceOp.SUM, group: Any = None, use_calc_stream: bool = True
) -> None:
    """Put into `tensor` the SUM, MAX, MIN or PROD of what all processes have in it."""
    _check_group(group)
    _put(tensor, world().all_reduce(_array(tensor), _reduction(op)))


def reduce(
    tensor: Tensor, dst: int, op: int = ReduceOp.SUM, group: Any = None, use_calc_stream: bool = True
) -> None:
    """As `all_reduce`, in process `dst` only; the others keep theirs."""
    _check_group(group)
    run = world()
    run.check_root(dst)
    found = run.all_reduce(_array(tensor), _reduction(op))
    if run.rank == dst:
        _put(tensor, found)


def broadcast(tensor: Tensor, src: int, group: Any = None, use_calc_stream: bool = True) -> None:
    """Put into `tensor` what process `src` has in it."""
    _check_group(group)
    _put(tensor, world().broadcast(_array(tensor), src))


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, use_calc_stream: bool = True
) -> None:
    """Append to `tensor_list` what every process has in `tensor`, by rank; all of one shape."""
    _check_group(group)
    own = _array(tensor)
    tensor_list += [Tensor(part) for part in world().all_gather(own[np.newaxis])]


def scatter(
    tensor: Tensor,
    tensor_list: list[Tensor] | None = None,
    src: int = 0,
    group: Any = None,
    use_calc_stream: bool = True,
) -> None:
    """Put into `tensor` the one of process `src`'s `tensor_list` that has the number of this process."""
    _check_group(group)
    run = world()
    run.check_root(src)
    own = _array(tensor)
    if run.rank == src:
        listed = [_array(each) for each in tensor_list or ()]
        if len(listed) != run.size or any(each.shape != own.shape for each in listed):
            raise DistributedError(
                f"scatter takes {run.size} tensors of shape {list(own.shape)}, got {[list(e.shape) for e in listed]}"
            )
        parts = np.stack(listed).astype(own.dtype, copy=False)
    else:
        parts = np.empty((run.size, *own.shape), own.dtype)
    _put(tensor, run.broadcast(parts, src)[run.rank])


def barrier(group: Any = None) -> None:
    """Wait until all processes are here."""
    _check_group(group)
    world().barrier()
