"""The communicator of all processes of a run, which is made at its first use."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from ..base import context
from ..base.errors import NotSupportedError
from . import environment
from .communicator import Alone, Communicator, DistributedError

if TYPE_CHECKING:
    from .by_mpi import ByMPI

_ALONE = Alone()
_found: ByMPI | None = None
_lock = threading.Lock()


def world() -> Communicator:
    """The Communicator of all processes of the run, PADDLE_TRAINERS_NUM.

    Raises NotSupportedError without mpi4py, DistributedError if MPI has another number of processes or, for processes
    that were not started by mpiexec, if they do not find each other.
    """
    global _found
    here = environment.trainer()
    if here.count <= 1:
        return _ALONE
    with _lock:
        if _found is None:
            _found = _connected(here)
            context.before_step.append(_found.begin_step)
    if _found.owner != os.getpid():
        raise DistributedError(
            "a process forked from one of the run cannot communicate with the others: only its parent can"
        )
    if _found.size != here.count:
        raise _other_number(here.count, _found.size)
    return _found


def _connected(here: environment.Trainer) -> ByMPI:
    try:
        import mpi4py  # noqa: F401 - which does not start MPI yet

        if not environment.is_started_by_mpi():
            from .joining import join

            join(here)
        from .by_mpi import ByMPI
    except DistributedError:
        raise
    except (ImportError, RuntimeError) as error:
        raise NotSupportedError(
            f"PADDLE_TRAINERS_NUM says that {here.count} processes train together, which needs MPI: "
            f"pip install 'fluidlite[mpi]' ({error})"
        ) from error
    communicator = ByMPI()
    if communicator.size != here.count:
        raise _other_number(here.count, communicator.size)
    if communicator.rank != here.rank:
        raise DistributedError(
            f"PADDLE_TRAINER_ID is {here.rank}, but this process is rank {communicator.rank} in MPI: leave it to the "
            "launcher"
        )
    return communicator


def _other_number(expected: int, started: int) -> DistributedError:
    return DistributedError(
        f"PADDLE_TRAINERS_NUM says that {expected} processes train together, but MPI has started {started}: start them "
        f"with `fluidlite launch -n {expected} SCRIPT`"
    )
