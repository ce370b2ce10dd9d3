"""`TurnsPlan`: the operators of one turn of a loop, which the engine runs for one turn after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...base.dtypes import to_numpy
from ...base.sizes import Size, always_equal
from ...framework import Block, Operator, Program
from ...ops.math.gemm import Matrix, packing
from ..host.bodies import SUM, Body
from ..plan.shapes import CannotPlan
from ..tensors.scope import Scope
from .stacks import Stack

_ALIGNMENT = 64


class TurnsPlan(Body):
    """Runs operators once for each turn, on values that stand somewhere else in each.

    Args:
        moving: the feeds that are others in each turn.
        made: what is wanted of all turns; it is written where stacks have it.
        sums: what is added up over the turns.
    """

    def __init__(
        self,
        program: Program,
        scope: Scope,
        feed: Mapping[str, np.ndarray],
        moving: Sequence[str],
        made: Sequence[str],
        sums: Sequence[str],
        ops: Sequence[Operator],
        block: Block,
    ) -> None:
        from ..._ext import kernels

        self._alike: dict[str, str] = {}
        super().__init__(program, scope, feed, moving, made, sums, ops, block)
        if self.has_levels:
            raise CannotPlan("it makes sequences")
        expected: list[tuple[int, int]] = []
        roots: list[tuple[int, int]] = []
        for column, name in enumerate(self.moving):
            size = self.meta.shapes[name][0]
            (roots if isinstance(size, Size) else expected).append((self._registers.integer(size), column))
        column = len(self.moving)
        self._layouts: dict[str, tuple[int, ...]] = {}
        for name in [*(self._outside[name] for name in self._wanted), *(name + SUM for name in self._added)]:
            expected.append((self._registers.integer(self.meta.shapes[name][0]), column))
            expected.append((self._registers.integer(self.meta.bytes(name)), column + 1))
            self._layouts[name] = self._registers.shape(self.meta.shapes[name])
            column += 2
        self._target = kernels.used()
        slots = [self._slots[name] for name in self.moving]
        slots += [self._slots[self._outside[name]] for name in self._wanted]
        self.engine.set_turns(slots, roots, expected)

    def take_turns(
        self, arrays: Sequence[np.ndarray], addresses: np.ndarray, values: np.ndarray,
        totals: Mapping[str, np.ndarray],
    ) -> None:  # fmt: skip
        """Take turns that fit; `arrays`: the feeds, as they have been bound."""
        for name in self._added:
            self.engine.bind(self._slots[name + SUM], totals[name])
        for name, matrix in self.packed.items():
            fed = matrix.name in self._fed
            array = (
                arrays[self.feed_names.index(matrix.name)]
                if fed
                else self.meta.persistable[matrix.name].array
            )
            assert array is not None
            self.engine.bind(self._slots[name], self._in_order(array, matrix))
        try:
            self.engine.take_turns(addresses, values)
        except self._failure as failure:
            raise self._failed(failure) from None

    def _in_order(self, array: np.ndarray, matrix: Matrix) -> np.ndarray:
        """A matrix packed for the kernels of this plan, at an address that suits their registers."""
        from ..._ext import kernels  # brings SciPy, which importing the package alone should not

        size = matrix.packed_elements
        room = np.empty(size + _ALIGNMENT // array.itemsize, array.dtype)
        begin = -room.ctypes.data % _ALIGNMENT // array.itemsize
        found = room[begin : begin + size]
        call = packing(matrix, "")
        kernels.call(call.kernel, [array, found], call.ints, target=self._target)
        return found

    def memory_for(self, name: str) -> tuple[tuple[int, ...], np.dtype, str]:
        """Shape and type of something wanted or added, of the sizes at hand, and which of `moving` has as many rows."""
        name = self._outside.get(name, name + SUM)
        shape = self.meta.shapes[name]
        like = self._alike.get(name)
        if like is None:
            moving: list[str] = self.moving if isinstance(shape[0], Size) else []
            like = next((each for each in moving if always_equal(self.meta.shapes[each][0], shape[0])), "")
            self._alike[name] = like
        sizes = tuple([n if n >= 0 else self.engine.sizes.get(-1 - n) for n in self._layouts[name]])
        return sizes, to_numpy(self.meta.dtypes[name]), like


def tables(
    count: int, moving: Sequence[Stack], made: Sequence[Stack], totals: Sequence[np.ndarray], back: bool
) -> tuple[np.ndarray, np.ndarray]:
    """What the engine wants to know of each turn: addresses, and sizes.

    `count`: how many turns; `moving`: what moves, in the order of `TurnsPlan.moving`; `made`, `totals`: memory for what
    is wanted of all turns, and for sums; `back`: whether turns go from the last place to the first.
    """
    addresses = np.empty((count, len(moving) + len(made)), np.int64)
    values = np.empty((count, len(moving) + 2 * (len(made) + len(totals))), np.int64)
    way = slice(None, None, -1 if back else 1)
    for column, stack in enumerate((*moving, *made)):
        addresses[way, column] = stack.addresses()
    for column, stack in enumerate(moving):
        values[way, column] = stack.rows
    for column, stack in zip(range(len(moving), values.shape[1], 2), made, strict=False):
        values[way, column] = stack.rows
        np.multiply(stack.rows, stack.bytes_of_row(), out=values[way, column + 1])
    for column, total in zip(range(len(moving) + 2 * len(made), values.shape[1], 2), totals, strict=True):
        values[:, column], values[:, column + 1] = total.shape[0], total.nbytes
    return addresses, values


__all__ = ["TurnsPlan", "tables"]
