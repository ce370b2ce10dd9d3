"""`ScanLowering`: one loop as a scan, with the operators that loop fission moves before and after it.

A front describes the iterations of its operator: what they read (`values`, `shortened`), carry (`carry`) and make
(`run`). `recurrent.py` is the one for `recurrent`, `ragged_scan.py` for loops over ranked sequences.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...framework import Block, Operator
from ...framework.gradients.blocks import kept_names
from ...ops.registry import EMPTY, VERSION, OpDef
from ..failures import Unsupported
from ..ir.inference import in_place_of, renamed
from ..ir.ranks import ranked
from .array_ops import STASH_POP, STASH_PUSH, TENSOR_ARRAY
from .blocks import TRIP_COUNT, everywhere, is_recurrent, residuals_of_block, residuals_of_branches
from .loop_fission import NotSeparable, Stages, stages
from .rank_ops import FLAT, ROWS, ZEROS
from .scan import INPUT_SLOTS, SCAN, Carry, ScanSpec

if TYPE_CHECKING:
    from .recurrent import Scans

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

    Args:
        ops: the operators of its block that compute something.
        table: the rank table that it iterates over, or else `steps`: a variable with the steps along its first axis and
            equally many rows in each.
        back: whether it goes from the last step to the first.
        scans: the other scans of the plan, among them those in its block.

    `values`: what iterations read; `carried`: loop-carried variables; `shortened`: prefix of one of these -> that
    variable; `saved`: the residuals for a gradient.
    """

    def __init__(
        self,
        op: Operator,
        ops: Sequence[Operator],
        scans: Scans,
        back: bool = False,
        table: str = "",
        steps: str = "",
    ) -> None:
        self.op, self.ops = op, ops
        self.block: Block = op.attrs["sub_block"]
        self.scans, self.back = scans, back
        self.table, self.steps = table, steps
        self.made: list[Operator] = []
        self.values: dict[str, Value] = {}
        self.carried: dict[str, Carry] = {}
        self.firsts: dict[str, str] = {}  # carried -> its initial value, outside
        self.shortened: dict[str, str] = {}
        self.saved: dict[str, Value] = {}
        self._totals: dict[str, str] = {}
        self._last: dict[str, str] = {}  # result -> its final value, outside
        self._stages: Stages | None = None

    def backward(self, op: Operator, ops: Sequence[Operator]) -> ScanLowering:
        """The loop of the gradient `op`, which reads the residuals of this one."""
        loop = ScanLowering(
            op, ops, self.scans, not self.back, self.table, op.inputs["inputs"][0] if self.steps else ""
        )
        loop.values = dict(self.saved)
        return loop

    # Before `run`: the description of the iterations.

    def label(self, name: str) -> str:
        return f"{name}{BATCHED}{self.block.idx}"

    def add(
        self, kind: str | OpDef, inputs: dict[str, list[str]], out: str, attrs: Mapping[str, Any] = {}
    ) -> str:
        self.made.append(in_place_of(self.op, kind, inputs, {"Out": [out]}, dict(attrs)))
        return out

    def carry(self, name: str, after: str, first: str, rows: str) -> None:
        """Add a loop-carried variable; see `Carry`. `first`: its initial value."""
        self.carried[name], self.firsts[name] = Carry(name, rows, after), first

    def carry_gradient(self, name: str, after: str, like: str) -> None:
        """Add the loop-carried gradient of `like`, zeros at first."""
        index, axis = (self.steps, 1) if self.steps else (ranked(self.table, "first"), 0)
        inputs = {"X": [self.all_rows(like)], "Index": [index]}
        self.carry(name, after, self.add(ZEROS, inputs, self.label(f"{name}.zeros"), {"axis": axis}), "n")

    def read_zeros(self, name: str, like: str) -> None:
        """Add an input, the gradient of `like` that nothing contributes to."""
        zeros = self.add("fill_zeros_like", {"X": [self.all_rows(like)]}, self.label(name))
        self.values[name] = Ragged(zeros)

    def shorten(self, name: str, source: str) -> None:
        """Add a variable with the first rows of another one, as many as the step has."""
        if source in self.carried:
            self.shortened[name] = source
            self.carried[source] = self.carried[source]._replace(rows="m")
        else:
            self.values[name] = self.values.get(source) or Prefix(source)

    # After `run`: the results.

    def ssa_name(self, name: str) -> str:
        """The SSA name of a variable of the block."""
        return name if self._stages is None else self._stages.name(name)

    def all_rows(self, name: str) -> str:
        """The variable with the rows of all iterations."""
        value = self.values.get(self.ssa_name(name))
        if isinstance(value, Stacked) and self.steps:
            inputs = {"X": [value.whole], "Like": [self.steps]}
            return self.add(FLAT, inputs, self.label(f"{name}.rows"))
        if not isinstance(value, Ragged):
            raise Unsupported(
                f"variable {name!r} has another row count than the steps, or is loop-invariant", self.op
            )
        return value.whole

    def final(self, name: str) -> str:
        """The variable with a result of the last iteration; "" if that is only among those of all steps."""
        if not (self._last[name] or self.steps):
            raise Unsupported(
                f"the final value of {name!r} is loop-invariant, or also needed of all iterations", self.op
            )
        return self._last[name]

    def total(self, name: str) -> str | None:
        """The variable with a sum over the iterations; None if no iteration computes it."""
        return self._totals.get(self.ssa_name(name))

    def run(
        self,
        wanted: Iterable[str],
        finals: Iterable[str] = (),
        sums: Iterable[str] = (),
        shapes: Collection[str] = (),
    ) -> None:
        """Add the operators of the loop.

        Args:
            wanted: results that are needed of all iterations.
            finals: results for the next iteration that are needed after the last one.
            sums: results that are summed over the iterations.
            shapes: variables of which its gradient reads only the shape.
        """
        kept = kept_names(self.op) or frozenset()
        given, residuals = self._residuals(kept, shapes)
        wanted, finals, sums = list(dict.fromkeys([*wanted, *residuals])), list(finals), list(sums)
        values, made = dict(self.values), list(self.made)
        for separable in (True, False):
            self.values, self.made, self._totals = dict(values), list(made), {}
            self._last = dict.fromkeys(finals, "")
            try:
                inner = self._run(wanted, sums, bool(kept), separable)
                break
            except NotSeparable:
                assert separable
        self.saved = given | {name: self.values[self.ssa_name(name)] for name in (*residuals, *inner)}

    def _residuals(
        self, kept: Collection[str], shapes: Collection[str]
    ) -> tuple[dict[str, Value], list[str]]:
        """The residuals: values from outside, and the names of those that iterations compute."""
        if not kept:
            return {}, []
        given = {name: value for name, value in self.values.items() if name in kept}
        found = [name for name in self.shortened if name in kept]
        for name in sorted(kept & self.carried.keys()):
            if self.steps:
                found.append(name)
            elif name in shapes and self.carried[name].rows == "m":
                given[name] = ShapeOnly(self.firsts[name])
            elif name in self.block.vars:
                raise Unsupported(f"the gradient reads the loop-carried variable {name!r}", self.op)
        found += residuals_of_block(self.block, self.ops, kept)
        return given, [*found, *residuals_of_branches(self.ops, arrays=True)]

    def _run(self, wanted: list[str], sums: list[str], keeps: bool, separable: bool) -> list[str]:
        found = self._stages = stages(self, [*wanted, *self._last], sums, separable, keeps)
        for op in found.before:
            self._once(op)
        self._add_scan(found, {found.name(name) for name in (*wanted, *found.kept)})
        for op in found.after:
            self._once(op)
        for name in found.totals:
            self._totals[name] = self.values.pop(name).whole
        return found.kept

    def next_value(self, name: str) -> str:
        """The value for the next iteration of a carried variable, or of the one that it is a prefix of."""
        return self.carried[self.shortened.get(name, name)].after

    def with_other_rows(self) -> set[str]:
        """The inputs that have another row count than the steps.

        Also prefix inputs that are declared with sequences and, in forward loops, what is computed from them with the
        same rows.
        """

        def has_sequences(name: str) -> bool:
            var = self.block._find_var_recursive(name)
            return var is not None and var.lod_level > 0

        prefixes = (name for name, value in self.values.items() if isinstance(value, Prefix))
        found = {*filter(has_sequences, prefixes)}
        for op in self.ops if found and not self.back else ():
            if not found.isdisjoint(op.reads()):
                takes_lod = op.definition.sequences.takes_lod
                found.update(name for name in op.writes() if not takes_lod or has_sequences(name))
        return found | {n for n, value in self.values.items() if isinstance(value, (ShapeOnly, Stacked))}

    def _once(self, op: Operator) -> None:
        """Add an operator that works on the rows of all iterations at once."""
        names: dict[str, str] = {}
        for name in op.reads():
            value = self.values.get(name)
            if value is None and (name in self.carried or name in self.shortened):
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
        moving: Collection[str] = self.shortened if self.table else self.carried
        copies = {name: f"{name}{VERSION}C" for name in sorted(kept) if name in moving}
        used = {self.shortened.get(name, name) for name in (*read, *copies)}
        carried = [
            self.carried[n]._replace(after=found.name(self.carried[n].after))
            for n in sorted(used & self.carried.keys())
        ]
        # Results that only the next iteration reads, or that are needed of the last one only.
        after = [each.after for each in carried]
        last = sorted({*after, *map(found.name, self._last)} & {*found.made} - kept)
        whole = ({*found.made} & kept) - {*last}
        # Results of a `recurrent` in the body have a first axis of their own.
        in_steps = bool(self.steps) and any(map(is_recurrent, everywhere(self.ops)))
        each = sorted(name for name in whole if in_steps or self._is_fixed(name))
        made = [*sorted(whole - {*each}), *copies.values()]
        ops = found.body + [
            in_place_of(self.op, ALIAS, {"X": [name]}, {"Out": [out]}, {}) for name, out in copies.items()
        ]
        if not (made or each or last or found.sums):
            return
        through = [name for name in after if name not in (*made, *each, *last)]
        for name in through:
            if not isinstance(self.values.get(name), Ragged):
                raise Unsupported(f"carried variable {name!r} is loop-invariant", self.op)
        inputs: dict[str, list[str]] = {"Steps": [self.steps]}
        if self.table:
            of_table = ("Bounds", "bounds"), ("Running", "first"), ("Order", "order"), ("Items", "items")
            inputs = {slot: [ranked(self.table, what)] for slot, what in of_table}
        names: dict[str, list[str]] = {slot: [] for slot in INPUT_SLOTS}
        for name in dict.fromkeys([*read, *copies, *through]):
            if name in self.values:
                names[type(self.values[name]).__name__].append(name)
            elif name not in self.carried and name not in self.shortened:
                names["Invariant"].append(name)
        inputs |= {slot: [self.values[name].whole for name in names[slot]] for slot in INPUT_SLOTS[:4]}
        names["Init"] = [each.name for each in carried]
        names["Invariant"] += dict.fromkeys(
            op.attrs["array"] + TENSOR_ARRAY for op in ops if op.definition in (STASH_PUSH, STASH_POP)
        )
        inputs |= {"Init": [self.firsts[name] for name in names["Init"]], "Invariant": names["Invariant"]}
        results = {"RaggedOut": made, "StackedOut": each, "Final": last, "Sums": found.sums}
        outputs = {slot: [*map(self.label, names)] for slot, names in results.items()}
        shortened = {name: self.shortened[name] for name in (*read, *copies) if name in self.shortened}
        spec = ScanSpec(self.block, ops, self.back, names | results, carried, shortened)
        self.made.append(in_place_of(self.op, SCAN, inputs, outputs, {"spec": spec}))
        self.values.update((name, Ragged(self.label(name))) for name in made)
        self.values.update((name, Stacked(self.label(name))) for name in each)
        self.values.update((name, Ragged(self.label(copy))) for name, copy in copies.items())
        self._totals.update((name, self.label(name)) for name in found.sums)
        for name in self._last:
            if found.name(name) in last:
                self._last[name] = self.label(found.name(name))

    def _is_fixed(self, name: str) -> bool:
        """True if a result is declared with the same shape in all iterations."""
        if TRIP_COUNT in name or BATCHED in name:
            return True
        name = name.partition(VERSION)[0]
        var = self.block._find_var_recursive(name)
        for inner in self.block.walk() if var is None else ():
            var = var or inner.vars.get(name)
        shape = (var._shape if var is not None else None) or (-1,)
        steps = self.op.block._find_var_recursive(self.steps) if self.steps else None
        rows = steps._shape[1] if steps is not None and len(steps._shape or ()) > 1 else -1
        return shape[0] >= 0 and shape[0] != rows
