"""Layout assignment: images between convolutions stay in a blocked layout (nChw16c), without reorders in each call.

    conv2d(x, w0) -> a               conv2d(x, w0) -> a            blocked from here on
    batch_norm(a) -> b               batch_norm(a) -> b
    conv2d(b, w1) -> c               conv2d(b, w1) -> c
    pool2d(c) -> d                   pool2d(c) -> d
    concat(d, e) -> f                transpose(d) -> d@PLAIN
                                     concat(d@PLAIN, e) -> f

Images that need the same layout for some call are a *region*: all of them are blocked, or none.
`ops/kernels/layouts.py` declares which calls take which layouts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..._ext import kernels
from ..._ext.operands import Aliases
from ...base.dtypes import VarType
from ...base.sizes import always_equal
from ...ops.kernels.kernel_def import KERNELS
from ...ops.kernels.layouts import Images, images_of, in_blocks, reordered
from ...ops.op_view import RESOLVE_SIZES
from ...ops.registry import Call
from ..control_flow.scan import SCAN_KERNEL
from ..ir.instructions import Instruction, Uses, has_jumps
from ..ir.type_env import TypeEnv

PLAIN = "@PLAIN"

_BLOCKS = {"avx512": 16, "avx2": 8}
"""Channels in a block, by instruction set."""

_LEAST_PIXELS = 16
"""Pixels of an image from which blocked primitives are not slower."""

_REORDER_COST = {16: 2.5, 8: 4.0}
"""The cost of a reorder instruction in units of a convolution's internal reorder, by channels in a block."""


class ChannelBlocks:
    """The pass, for one plan.

    Args:
        temporary: whether a variable lives in the arena of the plan.
    """

    def __init__(self, meta: TypeEnv, temporary: Callable[[str], bool]) -> None:
        self._meta, self._temporary = meta, temporary
        there = kernels.available("conv2d_blocks.f32")
        self.block = _BLOCKS.get(kernels.used(), 0) if there else 0
        self.blocked: frozenset[str] = frozenset()
        """The variables with the blocked layout."""
        self.reordered = 0
        """The number of reorder instructions."""

    def __str__(self) -> str:
        reorders = f", {self.reordered} reorders" if self.reordered else ""
        return f"images in blocks of {self.block} channels: {len(self.blocked)}{reorders}"

    def __call__(self, instructions: list[Instruction], uses: Uses) -> list[Instruction]:
        self.blocked, self.reordered = frozenset(), 0
        if not self.block or not _has_convolutions(instructions) or has_jumps(instructions):
            return instructions
        found = [images_of(each.action) if isinstance(each.action, Call) else None for each in instructions]
        if not any(each and each.independent for each in found):
            return instructions
        self.blocked = self._chosen(instructions, found, uses)
        return self._rewritten(instructions, found, uses) if self.blocked else instructions

    def _chosen(
        self, instructions: list[Instruction], found: list[Images | None], uses: Uses
    ) -> frozenset[str]:
        """The variables of the regions that gain from the blocked layout."""
        shapes = self._shapes(instructions, uses)
        regions, unfit = Aliases(), set[str]()
        gains: defaultdict[str, float] = defaultdict(float)
        read_plain: set[str] = set()
        for at, each in enumerate(instructions):
            images = found[at]
            touched = shapes.keys() & {uses.root(name) for name in each.accessed}
            places = [] if images is None else [uses.root(each.action.operands[k]) for k in images.places]
            able = [shapes.get(name) for name in places]
            if images is not None and ((images.whole and None in able) or not images.fit(able)):
                images = found[at] = None
            if images is None:
                written = touched.intersection(map(uses.root, each.writes))
                for name in written | (touched - read_plain):
                    gains[name] -= _REORDER_COST[self.block]
                read_plain |= touched
                continue
            if images.independent:
                for name in places:
                    gains[name] += 1
            else:
                for name in places[1:]:
                    if regions.root(name) != regions.root(places[0]):
                        regions.merge(name, places[0])
                unfit.update(name for name in places if name not in shapes)
            unfit.update(touched.difference(places))
        totals: defaultdict[str, float] = defaultdict(float)
        for name, shape in shapes.items():
            totals[regions.root(name)] += gains[name] * shape[1] * shape[2] * shape[3]
        plain = {*map(regions.root, unfit)}
        roots = {name: regions.root(name) for name in shapes}
        return frozenset(name for name, root in roots.items() if root not in plain and totals[root] > 0)

    def _shapes(self, instructions: list[Instruction], uses: Uses) -> dict[str, tuple[int, ...]]:
        """The shapes of variables that can be blocked, by owner of the memory."""
        names: defaultdict[str, set[str]] = defaultdict(set)
        fixed: set[str] = set()  # operands of instructions whose actions cannot be renamed
        for each in instructions:
            for name in each.accessed:
                names[uses.root(name)].add(name)
            if not isinstance(each.action, Call) or each.action.kernel in (RESOLVE_SIZES, SCAN_KERNEL):
                fixed.update(map(uses.root, each.accessed))
        return {
            root: self._meta.shapes[root]
            for root, aliases in names.items()
            if root not in fixed
            and self._temporary(root)
            and root not in uses.needed
            and uses.written[root] == 1
            and all(self._fits(name) and self._same_shape(name, root) for name in aliases)
        }

    def _fits(self, name: str) -> bool:
        shape = self._meta.shapes.get(name, ())
        if len(shape) != 4 or self._meta.dtypes[name] != VarType.FP32:
            return False
        if name in self._meta.lods or not all(isinstance(n, int) for n in shape[1:]):
            return False
        return shape[1] % self.block == 0 and shape[2] * shape[3] >= _LEAST_PIXELS and shape[1] > 0

    def _same_shape(self, name: str, other: str) -> bool:
        ours, its = self._meta.shapes[name], self._meta.shapes[other]
        return len(its) == 4 and ours[1:] == its[1:] and always_equal(ours[0], its[0])

    def _rewritten(
        self, instructions: list[Instruction], found: list[Images | None], uses: Uses
    ) -> list[Instruction]:
        out: list[Instruction] = []
        plain: dict[str, str] = {}  # blocked variable -> its copy in plain layout
        for each, images in zip(instructions, found, strict=True):
            here = {uses.root(name) for name in each.accessed} & self.blocked
            if not here:
                out.append(each)
            elif images is not None:
                places = [k for k in images.places if uses.root(each.action.operands[k]) in here]
                call = in_blocks(each.action, self.block, places)
                out.append(each if call is each.action else replace(each, action=call, view=None))
            else:
                out += self._on_plain(each, {name: uses.root(name) for name in each.accessed}, plain)
        return out

    def _on_plain(self, each: Instruction, roots: dict[str, str], plain: dict[str, str]) -> list[Instruction]:
        """An instruction that needs plain layout, between reorders of its blocked inputs and outputs."""
        before, after = [], []
        here = {name: root for name, root in roots.items() if root in self.blocked}
        for name, root in here.items():
            other = root + PLAIN
            self._meta.set(other, self._meta.shapes[root], VarType.FP32)
            if name in each.writes:
                after.append(self._reordered(each, other, root, back=False))
            elif root not in plain:
                before.append(self._reordered(each, root, other, back=True))
            plain[root] = other
        return [*before, _renamed(each, {name: plain[root] for name, root in here.items()}), *after]

    def _reordered(self, user: Instruction, source: str, target: str, back: bool) -> Instruction:
        self.reordered += 1
        call = reordered(source, target, self._meta.shapes[source], self.block, back)
        return Instruction(user.ops, (source,), (target,), call)


def _has_convolutions(instructions: list[Instruction]) -> bool:
    """True if images of a call may each have their own layout."""
    rules = [
        kernel.images
        for each in instructions
        if isinstance(each.action, Call) and (kernel := KERNELS[each.action.kernel]) is not None
    ]
    return any([rule is not None and rule.independent for rule in rules])


def _renamed(each: Instruction, names: Mapping[str, str]) -> Instruction:
    """An instruction on renamed variables."""
    call = each.action
    action = replace(
        call, operands=[name if name is None else names.get(name, name) for name in call.operands]
    )
    reads, writes = (
        tuple(names.get(name, name) for name in accessed) for accessed in (each.reads, each.writes)
    )
    return replace(each, reads=reads, writes=writes, action=action)
