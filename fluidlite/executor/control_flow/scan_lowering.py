"""`ScanLowering`: one loop as a scan, with the operators that loop fission moves before and after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...framework import Block, Operator
from ...ops.registry import EMPTY, VERSION, OpDef
from ..failures import Unsupported
from ..ir.inference import in_place_of, renamed
from ..ir.ranks import ranked
from .array_ops import STASH_POP, STASH_PUSH, TENSOR_ARRAY
from .blocks import TRIP_COUNT, everywhere, is_recurrent
from .loop_fission import NotSeparable, Stages, stages
from .rank_ops import ROWS
from .scan import INPUT_SLOTS, SCAN, Carry, ScanSpec

if TYPE_CHECKING:
    from .recurrent import RecurrentLowering

BATCHED = VERSION + "W"
"""Suffix, before the number of the block, of variables that hold the values of all iterations."""

ALIAS = "rnn_memory_helper"


class Value(NamedTuple):
    """The variable outside of a scan that a body variable comes from; subclasses are named like the slots of `SCAN`."""

    whole: str


class Ragged(Value):
    """The rows of all iterations, step by step."""


class Stacked(Value):
    """Values of one shape, stacked along a new first axis."""


class ShapeOnly(Value):
    """Shape-only input: the shape of `whole`, with the row count of the step before."""


class Prefix(Value):
    """Each iteration reads the first rows."""


class ScanLowering:
    """The lowering of one loop operator to the operators in `made`.

    `ops`: the operators of its block that compute something; `table`: the rank table that it iterates over, or else
    `steps`: a variable with the steps along its first axis and equally many rows in each; `back`: whether it goes from
    the last step to the first; `inner`: lowers the `recurrent` operators of the body, whose residuals are in `kept`.
    """

    def __init__(
        self,
        op: Operator,
        block: Block,
        ops: Sequence[Operator],
        table: str,
        back: bool,
        inner: RecurrentLowering,
        steps: str = "",
    ) -> None:
        self.op = op
        self._ops = ops
        self.block = block
        self.table = table
        self.steps = steps
        self.back = back
        self.inner = inner
        self.kept: list[str] = []
        self.made: list[Operator] = []
        self.values: dict[str, Value] = {}
        self.firsts: dict[str, str] = {}  # carried -> its initial value, outside
        self.rows: dict[str, str] = {}  # carried -> "n", "m" or "", as in `Carry`
        self.after: dict[str, str] = {}
        self.shortened: dict[str, str] = {}  # prefix of a carried variable -> that variable
        self.totals: dict[str, str] = {}
        self.last: dict[str, str] = {}  # carried -> its final value, outside
        self._stages: Stages | None = None

    def label(self, name: str) -> str:
        return f"{name}{BATCHED}{self.block.idx}"

    def add(
        self, kind: str | OpDef, inputs: dict[str, list[str]], out: str, attrs: Mapping[str, Any] = {}
    ) -> str:
        self.made.append(in_place_of(self.op, kind, inputs, {"Out": [out]}, dict(attrs)))
        return out

    def carry(self, name: str, after: str, first: str, rows: str) -> None:
        self.after[name], self.firsts[name], self.rows[name] = after, first, rows

    def ssa_name(self, name: str) -> str:
        """The SSA name of a variable of the block."""
        return name if self._stages is None else self._stages.name(name)

    def all_rows(self, name: str) -> str:
        """The variable with the rows of all iterations."""
        value = self.values.get(self.ssa_name(name))
        if not isinstance(value, Ragged):
            raise Unsupported(
                f"variable {name!r} has another row count than the steps, or is loop-invariant", self.op
            )
        return value.whole

    def total(self, name: str) -> str | None:
        return self.totals.get(self.ssa_name(name))

    def run(self, wanted: Iterable[str], left: Iterable[str], sums: Iterable[str], keeps: bool) -> None:
        """Add the operators of the loop.

        Args:
            wanted: results that are needed of all iterations.
            left: results that are needed of the last iteration.
            sums: results that are summed over the iterations.
            keeps: whether residuals are kept for a gradient.
        """
        wanted, left, sums = list(dict.fromkeys(wanted)), list(left), list(sums)
        before = dict(self.values), list(self.made)
        try:
            self._run(wanted, left, sums, keeps, True)
        except NotSeparable:
            self.values, self.made, self.totals = before[0], before[1], {}
            self.last = dict.fromkeys(self.last, "")
            self._run(wanted, left, sums, keeps, False)

    def _run(self, wanted: list[str], left: list[str], sums: list[str], keeps: bool, separable: bool) -> None:
        carried = dict(self.after)
        ragged = self._with_sequences() | {
            name for name, value in self.values.items() if isinstance(value, (ShapeOnly, Stacked))
        }
        carried |= {name: self.after[source] for name, source in self.shortened.items()}
        ends = [*wanted, *left]
        self._stages = found = stages(
            self.block,
            self._ops,
            {*self.values},
            carried,
            ends,
            sums,
            separable,
            ragged,
            self.inner,
            keeps,
        )
        self.kept = found.kept
        wanted = [*wanted, *found.kept]
        for op in found.before:
            self._once(op)
        self._add_scan(found, {found.name(name) for name in wanted})
        for op in found.after:
            self._once(op)
        for name in found.totals:
            self.totals[name] = self.values.pop(name).whole

    def _with_sequences(self) -> set[str]:
        """Prefix inputs that are declared with sequences and, in forward loops, what is computed from them with the
        same rows."""

        def some(name: str) -> bool:
            var = self.block._find_var_recursive(name)
            return var is not None and var.lod_level > 0

        found = {name for name, value in self.values.items() if isinstance(value, Prefix) and some(name)}
        for op in self._ops if found and not self.back else ():
            if not found.isdisjoint(op.reads()):
                found.update(
                    name for name in op.writes() if not op.definition.sequences.takes_lod or some(name)
                )
        return found

    def _once(self, op: Operator) -> None:
        """Add an operator that works on the rows of all iterations at once."""
        names: dict[str, str] = {}
        for name in op.reads():
            value = self.values.get(name)
            if value is None and (name in self.after or name in self.shortened):
                raise NotSeparable
            if isinstance(value, (ShapeOnly, Stacked)):
                raise NotSeparable
            if isinstance(value, Prefix):
                index = [ranked(self.table, "ranks")]
                whole = self.add(ROWS, {"X": [value.whole], "Index": index}, self.label(name))
                value = self.values[name] = Ragged(whole)
            if value is not None:
                names[name] = value.whole
        for name in op.writes():
            if name != EMPTY:
                names[name] = self.label(name)
                self.values[name] = Ragged(names[name])
        self.made.append(renamed(op, names))

    def _add_scan(self, found: Stages, wanted: set[str]) -> None:
        own = {name for op in found.body for name in op.writes()} - {EMPTY}
        read = dict.fromkeys(name for op in found.body for name in op.reads() if name not in own)
        kept = wanted | {name for op in found.after for name in op.reads()}
        # A carried variable that is needed of all iterations is copied in each.
        moving = self.shortened if self.table else self.after
        copies = {name: f"{name}{VERSION}C" for name in sorted(kept) if name in moving}
        carrying = {self.shortened.get(name, name) for name in (*read, *copies)} & self.after.keys()
        after = {name: found.name(self.after[name]) for name in carrying}
        # Results that only the next iteration reads, or that are needed of the last one only.
        last = sorted(({*after.values()} | {found.name(n) for n in self.last}) & {*found.made} - kept)
        whole = ({*found.made} & kept) - {*last}
        # Results of a `recurrent` in the body have a first axis of their own.
        in_steps = bool(self.steps) and any(map(is_recurrent, everywhere(self._ops)))
        each = sorted(name for name in whole if in_steps or self._is_fixed(name))
        made = [*sorted(whole - {*each}), *copies.values()]
        ops = found.body + [
            in_place_of(self.op, ALIAS, {"X": [name]}, {"Out": [out]}, {}) for name, out in copies.items()
        ]
        if not (made or each or last or found.sums):
            return
        read.update(dict.fromkeys(copies))
        for name in after.values():
            if name not in (*made, *each, *last) and not isinstance(self.values.get(name), Ragged):
                raise Unsupported(f"carried variable {name!r} is loop-invariant", self.op)
        through = [name for name in after.values() if name not in (*made, *each, *last)]
        inputs: dict[str, list[str]] = {"Steps": [self.steps]}
        if self.table:
            of_table = ("Bounds", "bounds"), ("Running", "first"), ("Order", "order"), ("Items", "items")
            inputs = {slot: [ranked(self.table, what)] for slot, what in of_table}
        order = sorted(carrying)
        names: dict[str, list[str]] = {slot: [] for slot in INPUT_SLOTS}
        for name in dict.fromkeys([*read, *through]):
            if name in self.values:
                names[type(self.values[name]).__name__].append(name)
            elif name not in self.after and name not in self.shortened:
                names["Invariant"].append(name)
        inputs |= {slot: [self.values[name].whole for name in names[slot]] for slot in INPUT_SLOTS[:4]}
        names["Invariant"] += dict.fromkeys(
            op.attrs["array"] + TENSOR_ARRAY for op in ops if op.definition in (STASH_PUSH, STASH_POP)
        )
        inputs |= {"Init": [self.firsts[name] for name in order], "Invariant": names["Invariant"]}
        results = {"RaggedOut": made, "StackedOut": each, "Final": last, "Sums": found.sums}
        outputs = {slot: [*map(self.label, names)] for slot, names in results.items()}
        spec = ScanSpec(
            self.block,
            ops,
            self.back,
            names | {"Init": order} | results,
            [Carry(name, self.rows[name], after[name]) for name in order],
            {name: self.shortened[name] for name in read if name in self.shortened},
        )
        self.made.append(in_place_of(self.op, SCAN, inputs, outputs, {"spec": spec}))
        self.values.update((name, Ragged(self.label(name))) for name in made)
        self.values.update((name, Stacked(self.label(name))) for name in each)
        self.values.update((name, Ragged(self.label(copy))) for name, copy in copies.items())
        self.totals.update((name, self.label(name)) for name in found.sums)
        for name in self.last:
            inner = found.name(name)
            if inner in last:
                self.last[name] = self.label(inner)

    def _is_fixed(self, name: str) -> bool:
        """True if a result is declared with the same shape in all iterations."""
        var = self.block._find_var_recursive(name.partition(VERSION)[0])
        for inner in self.block.walk() if var is None else ():
            var = var or inner.vars.get(name.partition(VERSION)[0])
        shape = (var._shape if var is not None else None) or (-1,)
        steps = self.op.block._find_var_recursive(self.steps) if self.steps else None
        rows = steps._shape[1] if steps is not None and len(steps._shape or ()) > 1 else -1
        return TRIP_COUNT in name or BATCHED in name or (shape[0] >= 0 and shape[0] != rows)
