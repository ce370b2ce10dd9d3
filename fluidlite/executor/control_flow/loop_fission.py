"""Loop fission: which operators of a loop's body run once for all iterations, before the loop or after it.

    before      operators on inputs alone, such as products with weights
    body        operators that depend on loop-carried variables
    after       operators that no iteration depends on: gradients of weights and of inputs, results

Operators that can work on the rows of many iterations at once are marked by `Planning.batchable`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
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
    from .recurrent import RecurrentLowering


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
    if rule is None or not rule(
        OpView(op.definition, op.inputs, op.outputs, op.attrs, Declared(block)), moves
    ):
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

    `renamed`: variable of the program -> SSA name; `made`: results of the body that are needed after it; `sums`:
    results of the body that are summed over the iterations; `totals`: such sums that operators after the loop compute;
    `kept`: residuals of the `recurrent` operators in the body.
    """

    before: list[Operator]
    body: list[Operator]
    after: list[Operator]
    renamed: dict[str, str]
    made: list[str]
    sums: list[str]
    totals: list[str]
    kept: list[str] = []

    def name(self, variable: str) -> str:
        return self.renamed.get(variable, variable)


def stages(
    block: Block,
    ops: Sequence[Operator],
    given: Collection[str],
    carried: Mapping[str, str],
    wanted: Collection[str],
    sums: Collection[str],
    separable: bool,
    ragged: Collection[str],
    steps: RecurrentLowering,
    keeps: bool,
) -> Stages:
    """Sort the operators of a block.

    Args:
        given: the inputs of each iteration.
        carried: loop-carried variable -> the variable with its value for the next iteration.
        wanted: results that are needed of all iterations.
        sums: results that are needed as sums over the iterations.
        separable: whether operators may move out of the loop; those that read a `ragged` variable, which has another
            row count than the steps, may not.
        steps: lowers the `recurrent` operators of the body; `keeps`: whether their residuals are needed.

    Raises Unsupported if one of them runs blocks that cannot be inlined, NotSeparable if all have to be in the loop.
    """
    ends = [*carried.values(), *wanted, *sums]
    if any(is_unplannable(op) and not is_inlinable(op, True) for op in ops):
        raise Unsupported("its body runs blocks that cannot be inlined")
    mattering = live(list(ops), ends)
    kept: list[str] = []
    if any(is_inlinable(op, True) for op in mattering):
        inliner, whole = Inliner({*given, *carried}, arrays=True, steps=steps), mattering
        mattering, separable = [*inliner.of(whole)], False
        kept = steps.kept(whole) if keeps else []
        if not block.vars.keys() >= {*inliner.touched}:
            raise Unsupported("its body uses an array from outside")
        mattering = inliner.with_prologue(mattering, inliner.touched)
        if not inliner.unset.keys().isdisjoint(ends):
            raise Unsupported("a result of its body is undefined where a branch is not taken")
    versions = SsaNames(lambda name: name == EMPTY or _is_persistable(block, name), {*given, *carried}, "T")
    single = [*map(versions.renamed, mattering)]
    names = versions.latest
    single = _without_copies(block, single, names, {*given}, carried)
    fission = _Fission(block, single, given, carried, ragged)
    last = {names.get(name, name) for name in carried.values()}
    total = {names.get(name, name) for name in sums}
    of_all = {names.get(name, name) for name in (*wanted, *kept)}
    return fission.sort(last, of_all, total, names, separable)._replace(kept=kept)


def _without_copies(
    block: Block, ops: list[Operator], names: dict[str, str], known: set[str], carried: Collection[str]
) -> list[Operator]:
    """Copy propagation: the operators without copies, whose sources replace them in `names`.

    `known`: the inputs of each iteration. Copies of loop-invariant variables stay: they have rows in each iteration.
    """
    same: dict[str, str] = {}
    found = []
    # Variables that have other values after a branch.
    repeated = {op.outputs["Out"][0] for op in ops if op.definition is COPY_OUT}
    for op in ops:
        op = renamed(op, same, outputs=False)
        known.update(op.writes())
        copies = _copies(block, op)
        if copies is not None:
            slot, source = copies
            out = op.outputs[slot][0]
            if (
                source in known
                and source not in carried
                and repeated.isdisjoint((source, out))
                and not _is_persistable(block, out)
                and not _is_persistable(block, source)
            ):
                same[out] = source
                rest = {other: names for other, names in op.outputs.items() if other != slot and names}
                if rest:
                    found.append(_with_outputs(op, rest))
                continue
        found.append(op)
    for name, to in list(names.items()):
        names[name] = same.get(to, to)
    for name, to in same.items():
        names.setdefault(name, to)
    return found


def _copies(block: Block, op: Operator) -> tuple[str, str] | None:
    """The output slot that is a copy of a variable, and that variable; None for other operators."""
    rule = op.definition.planning.identity
    found = rule(OpView(op.definition, op.inputs, op.outputs, op.attrs, Declared(block))) if rule else None
    return None if found is None or op.outputs[found[0]] == [EMPTY] else (found[0], op.inputs[found[1]][0])


class _Fission:
    """Assigns each operator to a stage; `names`: the variables that differ between iterations."""

    def __init__(
        self,
        block: Block,
        ops: list[Operator],
        given: Collection[str],
        carried: Collection[str],
        ragged: Collection[str],
    ) -> None:
        self.block = block
        self.ops = ops
        self.given = set(given)
        self.names = {*given, *carried, *(name for op in ops for name in op.writes())}
        self.totals: set[str] = set()  # sums over the iterations, if computed outside of the loop
        self.fit = [not {*ragged} & {*op.reads()} and self._fits(op) for op in ops]

    def _fits(self, op: Operator) -> bool:
        """True if an operator may work on the rows of all iterations; notes which results are sums then."""
        if any(_is_persistable(self.block, name) for name in op.writes()):
            return False
        if any(name in self.names and _is_persistable(self.block, name) for name in op.reads()):
            return False  # its value differs between iterations, and is not stacked
        if op.type == "sum" and all(name in self.totals for name in op.reads()):
            self.totals.update(op.writes())
            return True
        if not self.totals.isdisjoint(op.reads()):
            return False
        made = rows_made(self.block, op, self.names.__contains__)
        self.totals.update(() if made is None else {*op.writes()} - made)
        return made is not None

    def sort(
        self, last: set[str], wanted: set[str], sums: set[str], renamed: dict[str, str], separable: bool
    ) -> Stages:
        before: list[Operator] = []
        rest: list[tuple[Operator, bool]] = []
        known = set(self.given)
        for op, fits in zip(self.ops, self.fit, strict=True):
            if separable and fits and known.issuperset(n for n in op.reads() if n in self.names):
                if self.totals.union(sums).isdisjoint(op.writes()):  # the loop accumulates these
                    before.append(op)
                    known.update(op.writes())
                    continue
            rest.append((op, fits))
        needed = last | (wanted & self.totals) | (sums - self.totals)
        body: list[Operator] = []
        after: list[Operator] = []
        for op, fits in reversed(rest):
            written = {*op.writes()} - {EMPTY}
            now = needed & written
            if not separable or not fits or now == written:
                body.append(op)
                needed.update(op.reads())
            elif not now:
                after.append(op)
            elif op.type.endswith("_grad"):  # its results can be computed independently
                body.append(_only(op, now, True))
                after.append(_only(op, now, False))
                needed.update(op.reads())
            else:
                body.append(op)
                needed.update(op.reads())
        body, after = body[::-1], after[::-1]
        made_in_body = {name for op in body for name in op.writes()}
        read_after = {name for op in after for name in op.reads()}
        if separable and not made_in_body.isdisjoint(read_after & self.totals):
            raise NotSeparable  # the sum of one iteration would be taken for the total
        late = {name for op in after for name in op.writes()}
        return Stages(
            before,
            body,
            after,
            renamed,
            sorted(made_in_body & (last | wanted | read_after)),
            sorted(made_in_body & sums),
            sorted(late & (wanted | sums) & self.totals),
        )


def _is_persistable(block: Block, name: str) -> bool:
    var = block._find_var_recursive(name.partition(VERSION)[0])
    return var is not None and var.persistable


def _only(op: Operator, names: Collection[str], these: bool) -> Operator:
    """An operator restricted to `names` of its results, or to the others."""
    outputs = {
        slot: [name if (name in names) == these else EMPTY for name in written]
        for slot, written in op.outputs.items()
        if any(name != EMPTY and (name in names) == these for name in written)
    }
    return _with_outputs(op, outputs)


def _with_outputs(op: Operator, outputs: dict[str, list[str]]) -> Operator:
    made = copy.copy(op)
    made.outputs = outputs
    return made


__all__ = ["NotSeparable", "Stages", "stages"]
