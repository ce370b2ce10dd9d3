"""Elementwise fusion for the CPU: neighbouring calls become one, whose intermediate values stay in cache."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...base.sizes import always_equal
from ...ops.kernels import chains
from ...ops.kernels.kernel_def import KERNELS
from ...ops.registry import Call
from ..ir.instructions import Instruction, Uses
from .rewriting import fuse_runs, joined


@dataclass
class _Part:
    """An instruction of a run and its steps, whose operands are owners of memory.

    `read`, `made`: owner -> the variable by which the instruction reads or writes its memory.
    """

    instruction: Instruction
    steps: list[chains.Step]
    read: dict[str, str]
    made: dict[str, str]


class _Run:
    """Neighbouring elementwise calls on equally many elements."""

    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self._elements: int = 0
        self._type = ""
        self._parts: list[_Part] = []
        self._repeated: list[chains.Repeated] = []
        self._read: set[str] = set()
        self._made: set[str] = set()

    def take(self, each: Instruction) -> bool:
        """Add an instruction; False if it is not elementwise or cannot be fused with the others."""
        if not isinstance(each.action, Call) or isinstance(each.action, chains.Chain):
            return False
        kernel = KERNELS[each.action.kernel]
        found = None if kernel is None or kernel.elementwise is None else chains.steps_of(each.action)
        if found is None:
            return False
        kind, root = each.action.type, self._uses.root
        steps = sum([len(part.steps) for part in self._parts]) + len(found.steps)
        fits = kind == self._type and always_equal(found.elements, self._elements)
        if self._parts and (not fits or steps > chains.MOST_STEPS):
            return False
        made = {root(name): name for name in each.writes}
        read = {root(name): name for name in each.reads}
        outside = read.keys() - self._made
        written = self._uses.written
        if any([written[name] != 1 for name in made]) or (self._read | outside) & made.keys():
            return False
        rooted = [self._rooted(step) for step in found.steps]
        operands = [one for step in rooted for one in step.operands]
        repeated = [one.name for one in operands if isinstance(one, chains.Repeated)]
        if repeated and not (self._made | made.keys()).isdisjoint(repeated):
            return False  # a chain computes no broadcast operands
        self._elements, self._type = found.elements, kind
        self._parts.append(_Part(each, rooted, read, made))
        self._read |= outside
        self._made |= made.keys()
        return True

    def _rooted(self, step: chains.Step) -> chains.Step:
        operands, made = map(self._operand, step.operands), map(self._uses.root, step.made)
        return replace(step, operands=tuple(operands), made=tuple(made))

    def _operand(self, one: chains.Operand) -> chains.Operand:
        if one is None:
            return None
        if isinstance(one, str):
            return self._uses.root(one)
        name = self._uses.root(one.name)
        for other in self._repeated:
            same = always_equal(other.count, one.count) and always_equal(other.stretch, one.stretch)
            if other.name == name and same:
                return other
        self._repeated.append(chains.Repeated(name, one.count, one.stretch))
        return self._repeated[-1]

    def finished(self) -> list[Instruction]:
        """One instruction for all, or a few if a chain cannot hold all."""
        return self._joined(self._parts)

    def _joined(self, parts: list[_Part]) -> list[Instruction]:
        from ..._ext import kernels  # brings SciPy, which importing the package alone should not

        instructions = [part.instruction for part in parts]
        if len(parts) < 2:
            return instructions
        made = {root: name for part in parts for root, name in part.made.items()}
        read = {root: name for part in parts for root, name in part.read.items() if root not in made}
        results = [root for root in made if not self._uses.is_private(root, instructions)]
        steps = [step for part in parts for step in part.steps]
        call = None
        if 0 < 2 * len(results) <= len(made):  # many results to write cost more than the cache saves
            call = chains.chain(self._elements, steps, results, kernels.number)
        if call is None:
            half = len(parts) // 2
            return [*self._joined(parts[:half]), *self._joined(parts[half:])]
        return [joined(instructions, call, read.values(), map(made.__getitem__, results))]


join_chains = fuse_runs(_Run)
"""The pass."""
