"""Images lie in blocks of channels where convolutions take them so: they need not be brought into that order, and back,
in each call.

    conv2d(x, w0) -> a               conv2d(x, w0) -> a            in blocks from here on
    batch_norm(a) -> b               batch_norm(a) -> b
    conv2d(b, w1) -> c               conv2d(b, w1) -> c
    pool2d(c) -> d                   pool2d(c) -> d
    concat(d, e) -> f                transpose(d) -> d@PLAIN
                                     concat(d@PLAIN, e) -> f

Images that some call has lie alike are a *region*: all of them lie in blocks, or none. `ops/kernels/layouts.py` says
what calls can do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace

from ...base.dtypes import VarType
from ...base.sizes import always_equal
from ...ops.kernels.layouts import Images, images_of, in_blocks, reordered
from ...ops.op_view import RESOLVE_SIZES
from ...ops.registry import Call
from ..control_flow.scan import SCAN_KERNEL
from ..ir.instructions import Instruction, Uses
from ..ir.type_env import TypeEnv

PASS = "channel_blocks"
"""What this is called among the passes that can be left out."""

PLAIN = "@PLAIN"

_BLOCKS = {"avx512": 16, "avx2": 8}
"""How many channels a block of each instruction set has."""

_LEAST_PLACES = 16
"""How many places images have for which primitives in blocks are not slower."""

_REORDERED = {16: 2.5, 8: 4.0}
"""How many times as long as a convolution takes to bring images into its order, by the channels of a block, a call of
its own takes for that.
"""


class ChannelBlocks:
    """The pass, for one plan.

    Args:
        temporary: whether a variable has memory of the plan's.
    """

    def __init__(self, meta: TypeEnv, temporary: Callable[[str], bool]) -> None:
        from ..._ext import kernels  # brings SciPy, which importing the package alone should not

        self._meta, self._temporary = meta, temporary
        there = kernels.available("conv2d_blocks.f32")
        self.block = _BLOCKS.get(kernels.used(), 0) if there else 0
        self.blocked: frozenset[str] = frozenset()
        """The variables that lie in blocks."""
        self.reordered = 0
        """How many calls bring images into blocks, or back."""

    def __str__(self) -> str:
        orders = f", {self.reordered} put into another order" if self.reordered else ""
        return f"images in blocks of {self.block} channels: {len(self.blocked)}{orders}"

    def __call__(self, instructions: list[Instruction], uses: Uses) -> list[Instruction]:
        self.blocked, self.reordered = frozenset(), 0
        found = [images_of(each.action) if isinstance(each.action, Call) else None for each in instructions]
        if not self.block or not any(each and each.independent for each in found):
            return instructions
        if any(each.is_jump for each in instructions):
            return instructions
        self.blocked = self._chosen(instructions, found, uses)
        return self._rewritten(instructions, found, uses) if self.blocked else instructions

    def _chosen(
        self, instructions: list[Instruction], found: list[Images | None], uses: Uses
    ) -> frozenset[str]:
        """The variables of the regions for which blocks pay."""
        shapes = self._shapes(instructions, uses)
        regions = _Regions(shapes)
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
                    gains[name] -= _REORDERED[self.block]
                read_plain |= touched
                continue
            if images.independent:
                for name in places:
                    gains[name] += 1
            else:
                regions.join(places)
            regions.leave_out(touched.difference(places))
        totals: defaultdict[str, float] = defaultdict(float)
        for name, shape in shapes.items():
            totals[regions.of(name)] += gains[name] * shape[1] * shape[2] * shape[3]
        return frozenset(name for name in shapes if regions.fits(name) and totals[regions.of(name)] > 0)

    def _shapes(self, instructions: list[Instruction], uses: Uses) -> dict[str, tuple[int, ...]]:
        """The shapes of variables that can lie in blocks, by the names of their memory."""
        names: defaultdict[str, set[str]] = defaultdict(set)
        fixed: set[str] = set()  # what only knows its variables by their names
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
            and all(self._fits(name) and self._like(name, root) for name in aliases)
        }

    def _fits(self, name: str) -> bool:
        shape = self._meta.shapes.get(name, ())
        if len(shape) != 4 or self._meta.dtypes[name] != VarType.FP32:
            return False
        if name in self._meta.lods or not all(isinstance(n, int) for n in shape[1:]):
            return False
        return shape[1] % self.block == 0 and shape[2] * shape[3] >= _LEAST_PLACES and shape[1] > 0

    def _like(self, name: str, other: str) -> bool:
        """Whether images have the same shape as others."""
        ours, its = self._meta.shapes[name], self._meta.shapes[other]
        return len(its) == 4 and ours[1:] == its[1:] and always_equal(ours[0], its[0])

    def _rewritten(
        self, instructions: list[Instruction], found: list[Images | None], uses: Uses
    ) -> list[Instruction]:
        out: list[Instruction] = []
        plain: dict[str, str] = {}  # of what lies in blocks, the copy that does not
        for each, images in zip(instructions, found, strict=True):
            here = {uses.root(name) for name in each.accessed} & self.blocked
            if not here:
                out.append(each)
            elif images is not None:
                places = [k for k in images.places if uses.root(each.action.operands[k]) in here]
                call = in_blocks(each.action, self.block, places)
                out.append(each if call is each.action else replace(each, action=call, view=None))
            else:
                out += self._beside(each, {name: uses.root(name) for name in each.accessed}, plain)
        return out

    def _beside(self, each: Instruction, roots: dict[str, str], plain: dict[str, str]) -> list[Instruction]:
        """An instruction that takes images as they are, and what brings these into that order and back."""
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

    def _reordered(self, beside: Instruction, source: str, target: str, back: bool) -> Instruction:
        self.reordered += 1
        call = reordered(source, target, self._meta.shapes[source], self.block, back)
        return Instruction(beside.ops, (source,), (target,), call)


class _Regions:
    """Which variables lie alike. Those that cannot lie in blocks keep all of their region from it."""

    def __init__(self, able: Container[str]) -> None:
        self._able = able
        self._parent: dict[str, str] = {}
        self._unfit: set[str] = set()

    def of(self, name: str) -> str:
        while (parent := self._parent.get(name, name)) != name:
            self._parent[name] = self._parent.get(parent, parent)
            name = parent
        return name

    def join(self, names: list[str]) -> None:
        tops = [self.of(name) for name in names]
        unfit = any(name not in self._able for name in names) or not self._unfit.isdisjoint(tops)
        for top in tops:
            self._parent[top] = tops[0]
        if unfit:
            self._unfit.add(self.of(tops[0]))

    def leave_out(self, names: Iterable[str]) -> None:
        """Let nothing of the regions of these variables lie in blocks."""
        self._unfit.update(map(self.of, names))

    def fits(self, name: str) -> bool:
        return self.of(name) not in self._unfit


def _renamed(each: Instruction, names: Mapping[str, str]) -> Instruction:
    """An instruction that touches other variables."""
    call = each.action
    action = replace(
        call, operands=[name if name is None else names.get(name, name) for name in call.operands]
    )
    reads, writes = (
        tuple(names.get(name, name) for name in touched) for touched in (each.reads, each.writes)
    )
    return replace(each, reads=reads, writes=writes, action=action)
