"""Collective operations on arrays: the interface, and its implementation for a single process.

Headers are compared before each message, so that processes that call different operations get an error instead of wrong
numbers. Nothing is pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import EnforceNotMet, public

if TYPE_CHECKING:
    pass

REDUCTIONS = ("sum", "prod", "max", "min")
"""The reductions, in the order of Fluid's attribute `reduce_type`."""


@public
class DistributedError(EnforceNotMet, RuntimeError):
    """The processes of a run differ in their number, the operations they call, or the sizes of arrays."""


@public
class RankLost(DistributedError):
    """Another process of the run has ended while this one waits for it.

    The message names it, its machine, and the last step that it reported.
    """


class Communicator:
    """Collective operations of the processes of a run, which are numbered by rank, from 0.

    All processes must make the same calls in the same order; otherwise DistributedError names the calls. Arrays are
    NumPy arrays of any shape, of booleans, integers or floats. Results are new arrays.
    """

    rank: int
    size: int

    def all_reduce(self, array: np.ndarray, reduction: str = "sum") -> np.ndarray:
        """The elementwise sum, prod, max or min over all processes."""
        raise NotImplementedError

    def broadcast(self, array: np.ndarray, root: int = 0) -> np.ndarray:
        """The array of process `root`; the others pass arrays of its shape and type."""
        raise NotImplementedError

    def all_gather(self, array: np.ndarray) -> np.ndarray:
        """The rows of all processes, in the order of their ranks; the numbers of rows may differ."""
        raise NotImplementedError

    def reduce_scatter(self, array: np.ndarray) -> np.ndarray:
        """This process's share of the rows of the sum; the number of rows must be a multiple of `size`."""
        raise NotImplementedError

    def exchange(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """All-to-all: send `parts[rank]`, arrays of one dimension, to each process; returns those received, by rank."""
        raise NotImplementedError

    def barrier(self) -> None:
        """Wait for all processes."""
        raise NotImplementedError

    def begin_sums(self, arrays: Sequence[np.ndarray]) -> Callable[[], list[np.ndarray]]:
        """Start an all-reduce of arrays of one type as one message; returns a function that waits for the sums.

        The arrays may change as soon as this returns. All processes must start them in the same order; other calls may
        come in between.
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
        """Statistics of all processes, a collective call.

        "host": the machine of each rank; "messages": the number of messages of each; "waited": the seconds that each
        has waited; "slowest": the rank that has waited least, and that the others wait for.
        """
        raise NotImplementedError

    def begin_step(self) -> None:
        """Begin a step; errors count the steps, from 0, in which gradients were exchanged."""

    def check_root(self, root: int) -> None:
        """Raise DistributedError if there is no process of that rank."""
        if not 0 <= root < self.size:
            raise DistributedError(f"there is no process {root}: the run has {self.size}, counted from 0")


class Alone(Communicator):
    """The Communicator of a single process."""

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
    """Raise ValueError for an unknown reduction."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"a reduction is one of {', '.join(REDUCTIONS)}, got {reduction!r}")
