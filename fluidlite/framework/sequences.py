"""LoD of operators' outputs: that of the input that the declaration names, if a run has as many rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..base.lod import Lod, joined
from ..ops.registry import EMPTY, VERSION, Levels, OpView, Shape

if TYPE_CHECKING:
    from .block import Block
    from .operator import Operator
    from .program import Program

SHAPE = "XShape"
"""The slot of outputs that hold a shape, after a first dimension of 0."""


class Kept(NamedTuple):
    """`out` has the sequences of `source` if it has as many rows, counted in these dimensions.

    With `others` it has the sequences of all of them one after the other, if all have some.
    """

    out: str
    source: str
    axis: int = 0
    source_axis: int = 0
    others: tuple[str, ...] = ()

    def fits(self, out: Shape, source: Shape) -> bool:
        """Whether variables of these shapes have equally many rows."""
        if len(out) <= self.axis or len(source) <= self.source_axis:
            return False
        return bool(out[self.axis] == source[self.source_axis])

    def lod(self, levels: Sequence[Lod], shape: Shape, source: Shape) -> Lod:
        """The levels of detail of an output of this shape.

        Args:
            levels: those of `source` and the `others`.
            shape: that of the output.
            source: the shape of `source`.
        """
        if not self.others:
            return levels[0] if self.fits(shape, source) else ()
        lod = joined(levels)
        return lod if lod and shape[:1] == (lod[-1][-1],) else ()


def kept(op: OpView) -> list[Kept]:
    """The outputs that have the LoD of an input, whatever this is in a run."""
    found = []
    for out_slot, slot in op.definition.lod_sources(op).items():
        given = op.inputs.get(slot.removesuffix("*"))
        if not given:
            continue
        axes = int(out_slot == SHAPE), int(slot == SHAPE)
        others = tuple(given[1:]) if slot.endswith("*") else ()
        made = op.outputs.get(out_slot, ())
        each = len(made) == len(given)  # also of gradients
        for index, name in enumerate(made):
            found.append(Kept(name, given[index if each else 0], *axes, others))
    # An output in place keeps its LoD.
    named = {one.out for one in found}
    read = {_unversioned(name): name for names in op.inputs.values() for name in names}
    for name in [
        name for names in op.outputs.values() for name in names if not op.definition.sequences.takes_lod
    ]:
        if _unversioned(name) in read and name not in named:
            found.append(Kept(name, read[_unversioned(name)]))
    return [one for one in found if one.out and one.out != EMPTY]


def same_rows(block: Block, one: Kept) -> bool:
    """Whether output and source can have the same number of rows, by their declared shapes."""
    out, source = [block._find_var_recursive(_unversioned(name)) for name in (one.out, one.source)]
    if out is None or source is None or not out._shape or not source._shape:
        return True
    return bool(one.others) or one.fits(out._shape, source._shape)


def _unversioned(name: str) -> str:
    """The variable of a name in a plan."""
    return name.partition(VERSION)[0]


def remembered(op: Operator) -> list[Kept]:
    """`kept` of an operator of a program, computed once for each version of the program."""
    known = op.block.program._derived(_kept_by_operator)
    result = known.get(op)
    if result is None:
        result = known[op] = kept(op.view())
    return result


def _kept_by_operator(program: Program) -> dict[Operator, list[Kept]]:
    """The memory of `remembered`, filled as operators are asked for."""
    return {}


def carry_over(op: Operator) -> None:
    """Set the lod_level of outputs: that of the input whose LoD they have, or that of the declaration (`Levels`)."""
    block = op.block
    if op.definition.sequences.levels is not None:
        _declare(op, op.definition.sequences.levels)
    for name in op.reads():
        var = block.vars.get(name)
        if var is None:
            var = block._find_var_recursive(name)
        if var is not None and var.lod_level:
            break
    else:
        return
    for one in kept(op.view()):
        source, out = block._find_var_recursive(one.source), block._find_var_recursive(one.out)
        if source is None or out is None or not source.lod_level or out.lod_level:
            continue
        if same_rows(block, one):
            out.lod_level = source.lod_level


def _declare(op: Operator, rule: Levels) -> None:
    """Set the lod_level of outputs without one by `rule`."""
    given = op.input(rule.slot) if rule.slot else []
    source = op.block._find_var_recursive(given[0]) if given else None
    level = max(rule.least, source.lod_level + rule.more if source is not None else 0)
    for name in [name for slot in rule.outs or op.outputs for name in op.output(slot)]:
        out = op.block._find_var_recursive(name)
        if out is not None and level and not out.lod_level:
            out.lod_level = level
