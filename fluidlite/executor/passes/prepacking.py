"""Weight prepacking: a matrix of several products is reordered once as the kernel reads it.

    mul(x0, w) -> y0                 mul(w) -> w@PACKED
    mul(x1, w) -> y1                 mul(x0, w@PACKED) -> y0
    ...                              mul(x1, w@PACKED) -> y1 ...

In loops, loop-invariant weights are packed before the first iteration.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

from ...base.sizes import current
from ...framework import OpRole
from ...ops.math.matmul import PRODUCTS, Matrix, by_packed, packing, shared_matrix
from ...ops.registry import Call
from ..ir.instructions import Instruction, has_jumps, outermost_loops
from ..ir.type_env import TypeEnv

PACKED = "@PACKED"
_LEAST_PRODUCTS, _LEAST_ROWS, _LEAST_ELEMENTS = 3, 8, 1 << 13
"""Thresholds from which packing pays outside of loops: products, rows of each, elements of the matrix."""
_LEAST_IN_LOOPS = 1 << 10
"""The threshold of elements for products in loops."""


class Packing:
    """Rewrites products to read packed matrices.

    Args:
        root: maps a name to the variable that owns its memory.
        stays: whether a variable (an owner) is constant while the products run.
    """

    def __init__(self, meta: TypeEnv, root: Callable[[str], str], stays: Callable[[str], bool]) -> None:
        self._meta, self._root, self._stays = meta, root, stays
        self.made: dict[str, Matrix] = {}
        """Packed variable -> its matrix."""

    def matrix(self, instruction: Instruction) -> Matrix | None:
        """The matrix of a product that can be packed; None if there is none."""
        if not isinstance(instruction.action, Call):
            return None
        found = shared_matrix(instruction.action)
        if found is None:
            return None
        found = found._replace(name=self._root(found.name))
        return found if self._stays(found.name) else None

    def of(self, instruction: Instruction) -> Instruction:
        """The product on its packed matrix; other instructions unchanged."""
        matrix = self.matrix(instruction)
        if matrix is None:
            return instruction
        packed = self.name(matrix)
        if packed not in self.made:
            self.made[packed] = matrix
            self._meta.set(packed, (matrix.packed_elements,), self._meta.dtypes[matrix.name])
        action = by_packed(instruction.action, packed)
        return replace(instruction, reads=(*instruction.reads, packed), action=action)

    @staticmethod
    def name(matrix: Matrix) -> str:
        """The name of the packed matrix."""
        return f"{matrix.name}{PACKED}{matrix.columns}{'T' if matrix.transposed else ''}"

    def pack(self, packed: str, instruction: Instruction) -> Instruction:
        """The instruction that packs a matrix, attributed to the operators of `instruction`."""
        matrix = self.made[packed]
        return Instruction(instruction.ops, (matrix.name,), (packed,), packing(matrix, packed))


def prepack(instructions: list[Instruction], meta: TypeEnv, root: Callable[[str], str]) -> list[Instruction]:
    """The pass: packs matrices of several products of straight-line code, or of products in loops.

    Backward operators have packed matrices of their own: they may run later, after a weight has changed.
    """
    if has_jumps(instructions):
        return _packed_before_loops(instructions, meta, root)
    found = Packing(meta, root, lambda name: True)
    products: defaultdict[tuple[Matrix, int], list[int]] = defaultdict(list)
    written: defaultdict[str, list[int]] = defaultdict(list)
    for at, each in enumerate(instructions):
        if isinstance(each.action, Call) and each.action.kernel in PRODUCTS:
            matrix = found.matrix(each)
            if matrix is not None and _pays(each, matrix):
                products[matrix, each.role & OpRole.Backward].append(at)
        for name in map(root, each.writes):
            written[name].append(at)
    out = [[each] for each in instructions]
    for (matrix, _), places in products.items():
        changes = any(places[0] <= at <= places[-1] for at in written[matrix.name])
        if changes or len(places) < _LEAST_PRODUCTS:
            continue
        for at in places:
            out[at] = [found.of(instructions[at])]
        out[places[0]].insert(0, found.pack(found.name(matrix), instructions[places[0]]))
    return [each for some in out for each in some]


def _packed_before_loops(
    instructions: list[Instruction], meta: TypeEnv, root: Callable[[str], str]
) -> list[Instruction]:
    """The instructions, with weights packed before the outermost loop that reads and does not write them."""
    out = [[each] for each in instructions]
    for begin, end in outermost_loops(instructions):
        found = Packing(meta, root, _not_written(instructions[begin : end + 1], root))
        for at in range(begin, end + 1):
            matrix = found.matrix(instructions[at])
            if matrix is not None and _pays(instructions[at], matrix, _LEAST_IN_LOOPS):
                out[at] = [found.of(instructions[at])]
        out[begin][:0] = [found.pack(packed, instructions[begin + 1]) for packed in found.made]
    return [each for some in out for each in some]


def _not_written(instructions: list[Instruction], root: Callable[[str], str]) -> Callable[[str], bool]:
    changed = {root(name) for each in instructions for name in each.writes}
    return lambda name: name not in changed


def _pays(instruction: Instruction, matrix: Matrix, elements: int = _LEAST_ELEMENTS) -> bool:
    rows = current(instruction.action.ints[0])
    return rows >= _LEAST_ROWS and matrix.depth * matrix.columns >= elements
