"""Elementwise fusion: neighbouring calls become one, which keeps intermediate values in cache or in registers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..._ext import kernels
from ...base.sizes import always_equal
from ...ops.kernels import fusion
from ...ops.kernels.kernel_def import KERNELS
from ...ops.registry import Call
from ..ir.instructions import Instruction, Need, Uses
from .rewriting import joined


@dataclass
class Part:
    """An instruction of a run and its steps, whose operands are owners of memory.

    `read`, `made`: owner -> the variable by which the instruction reads or writes its memory.
    """

    instruction: Instruction
    steps: list[fusion.Step]
    read: dict[str, str]
    made: dict[str, str]


class ElementwiseRun:
    """Neighbouring elementwise calls on equally many elements; a subclass for each target.

    `most_steps`: the limit of steps. `owns_results`: whether results have memory of their own, so that a
    variable may be read and overwritten, and results of which only the shape is read need not be computed
    (`with_shapes` of the call).
    """

    most_steps: int
    owns_results = False

    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self.elements: int = 0
        self._type = ""
        self._parts: list[Part] = []
        self._repeated: list[fusion.Repeated] = []
        self._read: set[str] = set()
        self._made: set[str] = set()

    def steps_of(self, each: Instruction) -> fusion.Steps | None:
        """The steps of an instruction; None if it is not elementwise."""
        raise NotImplementedError

    def call(self, parts: list[Part], results: list[str]) -> Any:
        """The call that does the steps of `parts` and stores `results`; None if it cannot, or is not worth it."""
        raise NotImplementedError

    def take(self, each: Instruction) -> bool:
        """Add an instruction; False if it is not elementwise or cannot be fused with the others."""
        found = self.steps_of(each)
        if found is None:
            return False
        kind, root = each.action.type, self._uses.root
        steps = sum([len(part.steps) for part in self._parts]) + len(found.steps)
        fits = kind == self._type and always_equal(found.elements, self.elements)
        if self._parts and (not fits or steps > self.most_steps):
            return False
        made = {root(name): name for name in each.writes}
        read = {root(name): name for name in each.reads}
        outside = read.keys() - self._made
        written = self._uses.written
        if any([written[name] != 1 for name in made]):
            return False
        if not self.owns_results and (self._read | outside) & made.keys():
            return False
        rooted = [self._rooted(step) for step in found.steps]
        operands = [one for step in rooted for one in step.operands]
        repeated = [one.name for one in operands if isinstance(one, fusion.Repeated)]
        if repeated and not (self._made | made.keys()).isdisjoint(repeated):
            return False  # a chain computes no broadcast operands
        self.elements, self._type = found.elements, kind
        self._parts.append(Part(each, rooted, read, made))
        self._read |= outside
        self._made |= made.keys()
        return True

    def _rooted(self, step: fusion.Step) -> fusion.Step:
        operands, made = map(self._operand, step.operands), map(self._uses.root, step.made)
        return replace(step, operands=tuple(operands), made=tuple(made))

    def _operand(self, one: fusion.Operand) -> fusion.Operand:
        if one is None:
            return None
        if isinstance(one, str):
            return self._uses.root(one)
        name = self._uses.root(one.name)
        for other in self._repeated:
            same = always_equal(other.count, one.count) and always_equal(other.stretch, one.stretch)
            if other.name == name and same:
                return other
        self._repeated.append(fusion.Repeated(name, one.count, one.stretch))
        return self._repeated[-1]

    @classmethod
    def fuse(cls, instructions: list[Instruction], uses: Uses) -> list[Instruction]:
        """The pass that fuses maximal runs."""
        out: list[Instruction] = []
        run = cls(uses)
        for each in instructions:
            if run.take(each):
                continue
            if run._parts:
                out += run._joined(run._parts)
                run = cls(uses)
                if run.take(each):
                    continue
            out.append(each)
        return [*out, *run._joined(run._parts)]

    def _joined(self, parts: list[Part]) -> list[Instruction]:
        """One instruction for all parts, or a few if a chain cannot hold all."""
        instructions = [part.instruction for part in parts]
        if len(parts) < 2:
            return instructions
        made = {root: name for part in parts for root, name in part.made.items()}
        read = {root: name for part in parts for root, name in part.read.items() if root not in made}
        needs = {root: self._uses.need(root, instructions) for root in made}
        shapes = [root for root, need in needs.items() if need is Need.SHAPE and self.owns_results]
        results = [root for root, need in needs.items() if need is not Need.NOTHING and root not in shapes]
        call = self.call(parts, results)
        if call is None:
            half = len(parts) // 2
            return [*self._joined(parts[:half]), *self._joined(parts[half:])]
        if shapes:
            call = call.with_shapes(shapes)
        return [joined(instructions, call, read.values(), map(made.__getitem__, (*results, *shapes)))]


class _Run(ElementwiseRun):
    """Calls of kernels of the CPU."""

    most_steps = fusion.MOST_STEPS

    def steps_of(self, each: Instruction) -> fusion.Steps | None:
        if not isinstance(each.action, Call) or isinstance(each.action, fusion.Chain):
            return None
        kernel = KERNELS[each.action.kernel]
        return None if kernel is None or kernel.elementwise is None else fusion.steps_of(each.action)

    def call(self, parts: list[Part], results: list[str]) -> fusion.Chain | None:
        # Many results to write cost more than the cache saves.
        if not 0 < 2 * len(results) <= sum([len(part.made) for part in parts]):
            return None
        steps = [step for part in parts for step in part.steps]
        return fusion.chain(self.elements, steps, results, kernels.number)


join_chains = _Run.fuse
"""The pass for the CPU."""
