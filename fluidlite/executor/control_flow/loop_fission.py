"""Loop fission: which operators of a loop's body run once for all iterations, before the loop or after it.

    before      operators on inputs alone, such as products with weights
    body        operators that depend on loop-carried variables
    after       operators that no iteration depends on: gradients of weights and of inputs, results

Operators that can work on the rows of many iterations at once are marked by `Planning.batchable`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...framework import Block, Operator
from ...framework.operator import BlockMeta
from ...ops.registry import EMPTY, GRAD, VERSION, OpView, Shape
from ..failures import Unsupported
from ..ir.inference import SsaNames, is_unplannable, live, renamed
from ..ir.jumps import COPY_OUT
from .blocks import is_inlinable
from .inlining import Inliner

if TYPE_CHECKING:
    from .scan_lowering import ScanLowering


class Declared(BlockMeta):
    """The declared shapes of variables, also under the names of their later values."""

    def shape(self, name: str) -> Shape:
        var = self.block._find_var_recursive(name.partition(VERSION)[0])
        return var._shape if var is not None and var._shape is not None else ()


def rows_made(block: Block, op: Operator, moves: Callable[[str], bool]) -> set[str] | None:
    """The results of a batchable operator that have the rows of its inputs; the others are sums over the rows.

    `moves`: whether a variable is batched. None if the operator is not batchable.
    """
    rule = op.definition.planning.batchable
    if rule is None or not rule(_view(block, op), moves):
        return None
    found: set[str] = set()
    for slot, names in op.outputs.items():
        sources = op.inputs.get(slot.removesuffix(GRAD), ()) if slot.endswith(GRAD) else ()
        if not sources or moves(sources[0]):
            found.update(names)
    return found


class NotSeparable(Exception):
    """An operator outside of the loop reads a variable that does not exist for the rows of all iterations."""


class Stages(NamedTuple):
    """Operators whose variables have one value each.

    `names`: variable of the program -> SSA name; `made`: results of the body that are needed after it; `sums`: results
    of the body that are summed over the iterations; `totals`: such sums that operators after the loop compute; `kept`:
    residuals of the `recurrent` operators in the body.
    """

    before: list[Operator]
    body: list[Operator]
    after: list[Operator]
    names: dict[str, str]
    made: list[str]
    sums: list[str]
    totals: list[str]
    kept: list[str]

    def name(self, variable: str) -> str:
        return self.names.get(variable, variable)


def stages(
    loop: ScanLowering, wanted: Collection[str], sums: Collection[str], separable: bool, keeps: bool
) -> Stages:
    """Sort the operators of a loop.

    Args:
        wanted: results that are needed of all iterations, or of the last one.
        sums: results that are needed as sums over the iterations.
        separable: whether operators may move out of the loop.
        keeps: whether the residuals of `recurrent` operators in the body are needed.

    Raises Unsupported if one of them runs blocks that cannot be inlined, NotSeparable if all have to be in the loop.
    """
    block, kept = loop.block, []
    changing = {*loop.carried, *loop.shortened}
    after = {loop.next_value(name) for name in changing}
    ends = [*after, *wanted, *sums]
    if any(is_unplannable(op) and not is_inlinable(op, True) for op in loop.ops):
        raise Unsupported("its body runs blocks that cannot be inlined")
    ops = live([*loop.ops], ends)
    if any(is_inlinable(op, True) for op in ops):
        inliner, whole = Inliner({*loop.values, *changing}, arrays=True, scans=loop.scans), ops
        ops, separable = [*inliner.of(whole)], False
        kept = loop.scans.kept(whole) if keeps else []
        if not block.vars.keys() >= {*inliner.touched}:
            raise Unsupported("its body uses an array from outside")
        ops = inliner.with_prologue(ops, inliner.touched)
        if not inliner.unset.keys().isdisjoint(ends):
            raise Unsupported("a result of its body is undefined where a branch is not taken")
    ssa = SsaNames(lambda name: name == EMPTY or _is_persistable(block, name), {*loop.values, *changing}, "T")
    ops, names = _without_copies(loop, [*map(ssa.renamed, ops)], ssa.latest)

    def latest(each: Collection[str]) -> set[str]:
        return {names.get(name, name) for name in each}

    wanted, sums = latest([*wanted, *kept]), latest(sums)
    before, rest, totals = _before(loop, ops, sums, separable)
    body, late = _after(rest, latest(after) | (wanted & totals) | (sums - totals), separable)
    made = {name for op in body for name in op.writes()}
    read = {name for op in late for name in op.reads()}
    if separable and not made.isdisjoint(read & totals):
        raise NotSeparable  # the sum of one iteration would be taken for the total
    done = {name for op in late for name in op.writes()} & (wanted | sums) & totals
    needed = sorted(made & (latest(after) | wanted | read))
    return Stages(before, body, late, names, needed, sorted(made & sums), sorted(done), kept)


def _without_copies(
    loop: ScanLowering, ops: list[Operator], names: dict[str, str]
) -> tuple[list[Operator], dict[str, str]]:
    """Copy propagation: the operators without copies, and `names` with the sources in the place of these.

    Copies of loop-invariant variables stay: they have rows in each iteration.
    """
    block, known = loop.block, {*loop.values}
    same: dict[str, str] = {}
    found = []
    # Variables that have other values after a branch.
    repeated = {op.outputs["Out"][0] for op in ops if op.definition is COPY_OUT}
    for op in ops:
        op = renamed(op, same, outputs=False)
        known.update(op.writes())
        rule = op.definition.planning.identity
        slots = rule(_view(block, op)) if rule else None
        if slots is not None and op.outputs[slots[0]] != [EMPTY]:
            (out,), source = op.outputs[slots[0]], op.inputs[slots[1]][0]
            if (
                source in known
                and source not in loop.carried
                and source not in loop.shortened
                and repeated.isdisjoint((source, out))
                and not _is_persistable(block, out)
                and not _is_persistable(block, source)
            ):
                same[out] = source
                op = _only(op, [out], False)
                if not op.outputs:
                    continue
        found.append(op)
    latest = {name: same.get(to, to) for name, to in names.items()}
    return found, same | latest


def _before(
    loop: ScanLowering, ops: Sequence[Operator], sums: set[str], separable: bool
) -> tuple[list[Operator], list[tuple[Operator, bool]], set[str]]:
    """The operators before the loop; the others, each with whether it may work on the rows of all iterations; and the
    variables that are sums over the iterations where computed from the rows of all."""
    block, before, rest = loop.block, [], []
    totals: set[str] = set()
    changing = {*loop.values, *loop.carried, *loop.shortened, *(name for op in ops for name in op.writes())}
    others, known = loop.with_other_rows(), {*loop.values}

    def fits(op: Operator) -> bool:
        if any(_is_persistable(block, name) for name in op.writes()):
            return False
        if any(name in changing and _is_persistable(block, name) for name in op.reads()):
            return False  # its value differs between iterations, and is not stacked
        if op.type == "sum" and all(name in totals for name in op.reads()):
            totals.update(op.writes())
            return True
        if not totals.isdisjoint(op.reads()):
            return False
        made = rows_made(block, op, changing.__contains__)
        totals.update(() if made is None else {*op.writes()} - made)
        return made is not None

    batchable = [others.isdisjoint(op.reads()) and fits(op) for op in ops]
    for op, fit in zip(ops, batchable, strict=True):
        moves = separable and fit and known.issuperset(name for name in op.reads() if name in changing)
        if moves and (totals | sums).isdisjoint(op.writes()):  # the loop accumulates these
            before.append(op)
            known.update(op.writes())
        else:
            rest.append((op, fit))
    return before, rest, totals


def _after(
    ops: Sequence[tuple[Operator, bool]], needed: set[str], separable: bool
) -> tuple[list[Operator], list[Operator]]:
    """The operators of the body, which iterations need for what is `needed` of each, and those after the loop."""
    body: list[Operator] = []
    after: list[Operator] = []
    for op, fits in reversed(ops):
        written = {*op.writes()} - {EMPTY}
        now = needed & written
        if separable and fits and not now:
            after.append(op)
            continue
        if separable and fits and now != written and op.type.endswith("_grad"):
            after.append(_only(op, now, False))  # its results can be computed independently
            op = _only(op, now, True)
        body.append(op)
        needed = needed.union(op.reads())
    return body[::-1], after[::-1]


def _view(block: Block, op: Operator) -> OpView:
    return OpView(op.definition, op.inputs, op.outputs, op.attrs, Declared(block))


def _is_persistable(block: Block, name: str) -> bool:
    var = block._find_var_recursive(name.partition(VERSION)[0])
    return var is not None and var.persistable


def _only(op: Operator, names: Collection[str], these: bool) -> Operator:
    """An operator restricted to `names` of its results, or to the others."""
    made = copy.copy(op)
    made.outputs = {
        slot: [name if (name in names) == these else EMPTY for name in written]
        for slot, written in op.outputs.items()
        if any(name != EMPTY and (name in names) == these for name in written)
    }
    return made
