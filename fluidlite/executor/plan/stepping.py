"""The steps of a `recurrent` in plans: turns of a loop (`loop_turns.py`), with as many rows in each.

    recurrent(x) -> y               flat(x) -> x@VW1                  the rows of all steps, one behind the other
      mul(x, w) -> a                mul(x@VW1, w) -> a@VW1            what needs no other step: once, for all rows
      mul(h, u) -> b                turns(a@VW1, first h) -> new@VW1  a plan of its own, one step after the other
      sum(a, b) -> new
                                    steps(new@VW1) -> y

The gradient reads what the steps have left under the names that it has in line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...framework import Operator
from ...framework.gradients.blocks import kept_names
from ...ops.native import copy as copied
from ...ops.registry import EMPTY, OpDef, OpView, grad_name
from .branching import in_line
from .kept_branches import kept_inside, kept_within
from .loop_turns import ALIAS, LoopTurns, Packed, Value
from .refusals import CannotPlan
from .shapes import takes_no_part, works_alone
from .turn_ops import ZEROS


def _infer_flat(op: OpView) -> None:
    if len(op.shape("X")) < 2 or op.lod("X") or op.shape("X")[0] == 0:
        raise CannotPlan(f"variable {op.name('X')!r} has sequences, or no steps", passing=True)
    if any(n != wanted for n, wanted in zip(op.shape("X"), op.shape("Like")[:2], strict=False)):
        raise CannotPlan(f"variable {op.name('X')!r} has other steps than {op.name('Like')!r}", passing=True)
    steps, rows, *tail = op.shape("X")
    op.set("Out", (steps * rows, *tail), op.dtype("X"))


def _infer_steps(op: OpView) -> None:
    op.set("Out", (*op.shape("Like")[:2], *op.shape("X")[1:]), op.dtype("X"))


FLAT = OpDef(
    "flat",
    inputs=("X", "Like#"),
    infer=_infer_flat,
    kernel=lambda xp, X, Like: X.reshape(-1, *X.shape[2:]),
    native=copied("X", "Out"),
    view=("Out", "X"),
    doc="The rows of all steps, one behind the other.",
)
STEPS = OpDef(
    "steps",
    inputs=("X", "Like#"),
    infer=_infer_steps,
    kernel=lambda xp, X, Like: X.reshape(*Like.shape[:2], *X.shape[1:]),
    native=copied("X", "Out"),
    view=("Out", "X"),
    doc="The rows of all steps with an axis for these in front, as Like has it.",
)


_END = 1 << 30
"""Behind all steps."""


def _are_turns(op: Operator) -> bool:
    """Whether the steps may be turns of a loop in a plan."""
    for inner in op.attrs["sub_block"].ops:
        if takes_no_part(inner):
            continue
        if (works_alone(inner) and not in_line(inner, True)) or inner.definition.host:
            return False
        if inner.attrs.get("is_sparse") or any(map(op.block._is_persistable, inner.writes())):
            return False
    return True


class _Steps(LoopTurns):
    """The steps of one operator."""

    def __init__(self, op: Operator, back: bool) -> None:
        block = op.attrs["sub_block"]
        ops = [inner for inner in block.ops if not takes_no_part(inner)]
        super().__init__(op, block, ops, "", back, op.inputs["inputs"][0])

    def take(self, inside: str, source: str) -> None:
        self.values[inside] = Packed(
            self.add(FLAT, {"X": [source], "Like": [self.steps]}, self.label(inside))
        )

    def give(self, name: str, out: str) -> None:
        self.add(STEPS, {"X": [self.packed(name)], "Like": [self.steps]}, out)

    def copy(self, kind: str, source: str, out: str) -> None:
        self.add(kind, {"X": [source]}, out)

    def zeros(self, name: str, like: str) -> str:
        inputs = {"X": [self.packed(like)], "Index": [self.steps]}
        return self.add(ZEROS, inputs, f"{self.label(name)}.zeros", {"axis": 1})

    def take_zeros(self, name: str, like: str) -> None:
        self.values[name] = Packed(self.add("fill_zeros_like", {"X": [self.packed(like)]}, self.label(name)))

    def saved(self, given: Iterable[str], within: Iterable[str]) -> dict[str, Value]:
        found = {name: self.values[name] for name in given}
        return found | {name: self.values[self.found(name)] for name in within}

    def leave(self, name: str, out: str) -> None:
        """Make what is outside of what the last step has left."""
        if self.last[name]:
            self.add(ALIAS, {"X": [self.last[name]]}, out)
            return
        self.give(name, f"{out}.steps")
        start, end = (0, 1) if self.back else (-1, _END)
        attrs = {"axes": [0], "starts": [start], "ends": [end], "decrease_axis": [0]}
        self.add("slice", {"Input": [f"{out}.steps"]}, out, attrs)

    def run_steps(
        self,
        carried: Mapping[str, str],
        firsts: Mapping[str, str],
        wanted: Iterable[str],
        sums: Iterable[str],
        left: Iterable[str] = (),
    ) -> None:
        for name, after in carried.items():
            self.carry(name, after, firsts[name], "n")
        self.last = dict.fromkeys(left, "")
        self.run(wanted, self.last, sums)


class Stepping:
    """Operators with the steps of `recurrent` operators in their places. `given`: whether a variable has a value
    before.
    """

    def __init__(self, given: Callable[[str], bool]) -> None:
        self._given = given
        self._made: set[str] = set()
        self._loops: dict[str, tuple[_Steps, dict[str, Any]]] = {}  # with what the gradient finds

    @property
    def any(self) -> bool:
        return bool(self._loops)

    def of(self, ops: Iterable[Operator]) -> Iterator[Operator]:
        for op in ops:
            if op.type == "recurrent" and _are_turns(op):
                yield from self._forward(op)
            elif op.type == "recurrent_grad":
                yield from self._gradient(op)
            else:
                yield op
            self._made.update(op.writes())

    def _forward(self, op: Operator) -> list[Operator]:
        loop = _Steps(op, bool(op.attr("reverse")))
        for name in dict.fromkeys(op.inputs["inputs"]):
            loop.take(name, name)
        initial, before = op.inputs.get("initial_states", ()), op.attr("ex_states")
        firsts = {name: f"{loop.label(name)}.first" for name in before}
        for name, source in zip(before, initial, strict=True):
            loop.copy(ALIAS, source, firsts[name])
        carried = dict(zip(before, op.attr("states"), strict=True))
        kept = kept_names(op) or frozenset()
        outputs = list(dict.fromkeys(op.outputs.get("outputs", ())))
        within = [*kept_within(loop.block, loop.block.ops, kept), *sorted(kept.intersection(carried))]
        within += kept_inside(loop.block.ops, arrays=True) if kept else []
        given = [name for name in loop.values if name in kept]
        loop.run_steps(carried, firsts, dict.fromkeys([*outputs, *within]), ())
        for name in outputs:
            loop.give(name, name)
        for scope in op.outputs.get("step_scopes", ()):
            self._loops[scope] = loop, loop.saved(given, within)
        return loop.made

    def _gradient(self, op: Operator) -> list[Operator]:
        forward, saved = self._loops.get(op.inputs["step_scopes"][0], (None, {}))
        if forward is None:
            raise CannotPlan("its steps have run elsewhere", op)
        if not _are_turns(op):
            raise CannotPlan("a step of its gradient cannot be part of a plan", op)
        loop = _Steps(op, not forward.back)
        loop.values = dict(saved)
        written = {name for inner in loop.block.ops for name in inner.writes()}
        read = {name for inner in loop.block.ops for name in inner.reads()}
        for name, arriving in zip(
            op.inputs.get("outputs", ()), op.inputs.get("outputs@GRAD", ()), strict=True
        ):
            if arriving not in self._made and not self._given(arriving):
                arriving = f"{loop.label(arriving)}.zeros"
                loop.copy("fill_zeros_like", name, arriving)
            loop.take(grad_name(name), arriving)
        carried, firsts = {}, {}
        for before, after in zip(op.attr("ex_states"), op.attr("states"), strict=True):
            gradient = grad_name(after)
            loop.values.pop(gradient, None)
            if gradient not in read:
                continue
            like = after if after in loop.values else before
            if like not in loop.values:
                raise CannotPlan(f"nothing is kept of variable {after!r}", op)
            if grad_name(before) in written:
                carried[gradient], firsts[gradient] = grad_name(before), loop.zeros(gradient, like)
            else:
                loop.take_zeros(gradient, like)
        parts = [n for n in dict.fromkeys(op.inputs["inputs"]) if grad_name(n) in written]
        states = [grad_name(n) for n in op.attr("ex_states")]
        sums = [
            grad_name(n) for n in dict.fromkeys(op.inputs.get("parameters", ())) if grad_name(n) in written
        ]
        left = [name for name in states if name in written]
        loop.run_steps(carried, firsts, map(grad_name, parts), sums, left)
        self._give(loop, op, parts, [name if name in written else "" for name in states])
        return loop.made

    def _give(self, loop: _Steps, op: Operator, parts: list[str], states: list[str]) -> None:
        """Make the gradients of inputs, states and parameters; zeros where nothing has come."""

        def outs(slot: str) -> list[tuple[str, str]]:
            pairs = zip(op.inputs.get(slot, ()), op.outputs.get(grad_name(slot), ()), strict=False)
            return list(pairs)

        for (name, out), state in zip(outs("initial_states"), states, strict=False):
            if out == EMPTY:
                continue
            if state:
                loop.leave(state, out)
            else:
                loop.copy("fill_zeros_like", name, out)
        for name, out in outs("inputs"):
            if out == EMPTY:
                continue
            if name in parts:
                parts.remove(name)  # a variable that is an input several times is one variable in the block
                loop.give(grad_name(name), out)
            else:
                loop.copy("fill_zeros_like", name, out)
        for name, out in outs("parameters"):
            if out == EMPTY:
                continue
            total = loop.total(grad_name(name))
            if total is not None:
                loop.copy(ALIAS, total, out)
            else:
                loop.copy("fill_zeros_like", name, out)
