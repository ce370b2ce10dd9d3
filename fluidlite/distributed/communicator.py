"""What the processes of a run say to each other: arrays, through MPI; in one process, nothing.

Every message is preceded by what it is, so that processes which do not do the same find that out instead of mixing up
their numbers. Nothing is pickled.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import EnforceNotMet, NotSupportedError
from . import environment

if TYPE_CHECKING:
    from .by_mpi import ByMPI

REDUCTIONS = ("sum", "prod", "max", "min")
"""How arrays can be put together, in the order of Fluid's attribute `reduce_type`."""


class DistributedError(EnforceNotMet, RuntimeError):
    """The processes of a run do not fit together: other numbers of them, other calls, other sizes."""


class RankLost(DistributedError):
    """Another process of the run has ended while this one waits for it.

    The message names it, its machine, and the last step that it has told of.
    """


class Communicator:
    """The processes of a run, as this one sees them; numbered by rank, from 0.

    All processes make the same calls in the same order, or DistributedError says who did what. Arrays are of NumPy
    and of any shape; booleans, integers and reals. Results are new arrays.
    """

    rank: int
    size: int

    def all_reduce(self, array: np.ndarray, reduction: str = "sum") -> np.ndarray:
        """The sum, prod, max or min of what all processes give, element by element."""
        raise NotImplementedError

    def broadcast(self, array: np.ndarray, root: int = 0) -> np.ndarray:
        """What process `root` gives; the others give arrays of that shape and type."""
        raise NotImplementedError

    def all_gather(self, array: np.ndarray) -> np.ndarray:
        """The rows of all processes, in the order of their ranks; the processes may have other numbers of rows."""
        raise NotImplementedError

    def reduce_scatter(self, array: np.ndarray) -> np.ndarray:
        """This process' share of the rows of the sum; the number of rows is a multiple of that of processes."""
        raise NotImplementedError

    def exchange(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What every process has for this one, by rank; `parts`: what this one has for each. Of one dimension."""
        raise NotImplementedError

    def barrier(self) -> None:
        """Wait until all processes are here."""
        raise NotImplementedError

    def begin_sums(self, arrays: Sequence[np.ndarray]) -> Callable[[], list[np.ndarray]]:
        """Begin to add arrays of one type up in one message; what is returned waits for the sums and gives them.

        The arrays may change as soon as this returns. Processes begin in the same order; other calls may come between.
        """
        joined = np.concatenate([array.reshape(-1) for array in arrays])
        waits = self._begin(joined)
        shapes = [array.shape for array in arrays]
        ends = np.cumsum([array.size for array in arrays])[:-1]

        def sums() -> list[np.ndarray]:
            parts = np.split(waits(), ends)
            return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

        return sums

    def _begin(self, array: np.ndarray) -> Callable[[], np.ndarray]:
        total = self.all_reduce(array)
        return lambda: total

    def stats(self) -> dict[str, Any]:
        """Where the time of an exchange goes, of all processes; all call it.

        "host": the machine of each rank; "messages": how many each has exchanged; "waited": for how many seconds each
        has waited for others, or for messages to arrive; "slowest": the rank that has waited least: others wait for it.
        """
        raise NotImplementedError

    def begin_step(self) -> None:
        """A step begins: errors count those, from 0, in which gradients were exchanged."""

    def check_root(self, root: int) -> None:
        """Raise DistributedError if there is no process of that rank."""
        if not 0 <= root < self.size:
            raise DistributedError(f"there is no process {root}: the run has {self.size}, counted from 0")


class Alone(Communicator):
    """The only process of a run."""

    rank, size = 0, 1

    def all_reduce(self, array: np.ndarray, reduction: str = "sum") -> np.ndarray:
        check_reduction(reduction)
        return np.array(array)

    def broadcast(self, array: np.ndarray, root: int = 0) -> np.ndarray:
        self.check_root(root)
        return np.array(array)

    def all_gather(self, array: np.ndarray) -> np.ndarray:
        return np.array(array)

    def reduce_scatter(self, array: np.ndarray) -> np.ndarray:
        return np.array(array)

    def exchange(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [np.array(part) for part in parts]

    def barrier(self) -> None:
        pass

    def stats(self) -> dict[str, Any]:
        import socket  # slow to import

        return {"host": [socket.gethostname()], "messages": [0], "waited": [0.0], "slowest": 0}


def check_reduction(reduction: str) -> None:
    """Raise ValueError for a way to put arrays together that there is not."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"arrays are put together by {', '.join(REDUCTIONS)}, not by {reduction!r}")


_ALONE = Alone()
_found: ByMPI | None = None
_lock = threading.Lock()


def begin_step() -> None:
    """A step of this process begins; see `Communicator.begin_step`."""
    if _found is not None:
        _found.begin_step()


def is_parallel() -> bool:
    """Whether the environment says that there is more than one process."""
    return environment.trainer().count > 1


def world() -> Communicator:
    """All processes of the run, as many as PADDLE_TRAINERS_NUM says.

    Raises NotSupportedError without mpi4py, DistributedError if MPI knows of another number of processes or, where no
    mpiexec has started them, if they do not find each other.
    """
    global _found
    here = environment.trainer()
    if here.count <= 1:
        return _ALONE
    with _lock:
        if _found is None:
            _found = _connected(here)
    if _found.owner != os.getpid():
        raise DistributedError(
            "a process that was forked from one of the run cannot talk to the others: only that one can"
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
    found = ByMPI()
    if found.size != here.count:
        raise _other_number(here.count, found.size)
    if found.rank != here.rank:
        raise DistributedError(
            f"PADDLE_TRAINER_ID is {here.rank}, but to MPI this process is rank {found.rank}: leave it to the launcher"
        )
    return found


def _other_number(said: int, found: int) -> DistributedError:
    return DistributedError(
        f"PADDLE_TRAINERS_NUM says that {said} processes train together, but MPI has started {found}: start them with "
        f"`fluidlite launch -n {said} SCRIPT`"
    )
