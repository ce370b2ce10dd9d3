"""Steps in plans: the operators of all steps of a short `recurrent` stand in line with the others.

    recurrent(x) -> y               flat(x) -> x@VU1                   the rows of all steps, one behind the other
      mul(x, w) -> a                mul(x@VU1, w) -> a@VU1             what needs no other step: once, for all rows
      mul(h, u) -> b                cut(a@VU1) -> a@VU1.0 a@VU1.1 ...
      sum(a, b) -> new              mul(h, u) -> b@VU1.0, sum(a@VU1.0, b@VU1.0) -> new@VU1.0
                                    mul(new@VU1.0, u) -> b@VU1.1, ...
                                    joined(new@VU1.0, new@VU1.1, ...) -> new@VU1, steps(new@VU1) -> y

The gradient reads the values of each step under the names that they have in line. Longer ones are taken by `turns`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...framework import Operator
from ...framework.gradients.blocks import kept_names
from ...ops.native import copy as copied
from ...ops.native import itemsize, numel
from ...ops.registry import EMPTY, VERSION, Call, OpDef, OpView, grad_name
from .kept_branches import kept_within
from .shapes import CannotPlan, in_place_of, takes_no_part, works_alone
from .stages import Stages, stages

UNROLLED = VERSION + "U"
MOST_STEPS, MOST_OPERATORS = 64, 512
"""Of more steps, or of more operators in all of them together, no copies are made: planning takes its time for each."""


def _infer_flat(op: OpView) -> None:
    steps, rows, *tail = op.shape("X")
    if steps != op.attr("count"):
        raise CannotPlan(f"variable {op.name('X')!r} has {steps} steps, the program says {op.attr('count')}")
    op.set("Out", (steps * rows, *tail), op.dtype("X"))


def _infer_steps(op: OpView) -> None:
    rows, *tail = op.shape("X")
    op.set("Out", (op.attr("count"), rows // op.attr("count"), *tail), op.dtype("X"))


def _infer_cut(op: OpView) -> None:
    rows, *tail = op.shape("X")
    for k in range(op.count("Out")):
        op.set("Out", (rows // op.count("Out"), *tail), op.dtype("X"), k)


def _infer_joined(op: OpView) -> None:
    rows, *tail = op.shape("X")
    for k in range(1, op.count("X")):
        if op.shape("X", k) != op.shape("X") or op.dtype("X", k) != op.dtype("X"):
            raise CannotPlan(
                f"variable {op.name('X', k)!r} has another shape or type than in the step before"
            )
    op.set("Out", (op.count("X") * rows, *tail), op.dtype("X"))


def _bytes(op: OpView, slot: str) -> list[int]:
    """Integers for kernels that join or cut: how often, and how many bytes of each part."""
    return [1, *(numel(op, slot, k) * itemsize(op, slot) for k in range(op.count(slot)))]


FLAT = OpDef(
    "flat",
    inputs=("X",),
    attrs={"count": 1},
    infer=_infer_flat,
    kernel=lambda xp, X: X.reshape(-1, *X.shape[2:]),
    native=copied("X", "Out"),
    view=("Out", "X"),
    doc="The rows of all steps, one behind the other.",
)
STEPS = OpDef(
    "steps",
    inputs=("X",),
    attrs={"count": 1},
    infer=_infer_steps,
    kernel=lambda xp, X, count: X.reshape(count, -1, *X.shape[1:]),
    native=copied("X", "Out"),
    view=("Out", "X"),
    doc="The rows of all steps with an axis for these in front.",
)
CUT = OpDef(
    "cut",
    inputs=("X",),
    outputs=("Out*",),
    infer=_infer_cut,
    native=lambda op: Call("split", [op.name("X"), *op.names("Out")], _bytes(op, "Out")),
    doc="The rows of each step.",
)
JOINED = OpDef(
    "joined",
    inputs=("X*",),
    infer=_infer_joined,
    native=lambda op: Call("concat", [*op.names("X"), op.name("Out")], _bytes(op, "X")),
    doc="The rows of all steps, one behind the other, of those of each.",
)
ALIAS = "rnn_memory_helper"


def unrolls(op: Operator) -> bool:
    """Whether the steps of an operator may stand in line, as far as can be said without its gradient."""
    if op.type not in ("recurrent", "recurrent_grad"):
        return False
    ops = op.attrs["sub_block"].ops
    count = _count(op)
    if not 2 <= count <= MOST_STEPS or count * len(ops) > MOST_OPERATORS:
        return False
    return all(_may_be_copied(inner) for inner in ops)


def _count(op: Operator) -> int:
    """How many steps the program says that there are; 0 if it does not."""
    counts = set()
    for name in op.inputs["inputs"]:
        var = op.block._find_var_recursive(name)
        shape = var._shape if var is not None and var._shape is not None else ()
        counts.add(shape[0] if len(shape) > 1 else 0)
    return max(counts.pop(), 0) if len(counts) == 1 else 0


def _may_be_copied(op: Operator) -> bool:
    definition = op.definition
    if works_alone(op) or takes_no_part(op) or definition.random or definition.host or definition.lod:
        return False
    return not op.attrs.get("is_sparse") and not any(map(op.block._is_persistable, op.writes()))


class _Values:
    """A variable in all steps: under one name, under a name for each place, or both."""

    def __init__(self, label: str, whole: str = "", parts: Sequence[str] = ()) -> None:
        self.label = label
        self.whole = whole
        self.parts = list(parts)


class _Loop:
    """The steps of one operator, of which `ops` are made."""

    def __init__(self, op: Operator, count: int, back: bool) -> None:
        self.op = op
        self.block = op.attrs["sub_block"]
        self.count = count
        self.places = range(count)[::-1] if back else range(count)
        self.back = back
        self.ops: list[Operator] = []
        self.values: dict[str, _Values] = {}
        self.totals: dict[str, str] = {}
        self._stages: Stages | None = None

    def label(self, name: str) -> str:
        return f"{name}{UNROLLED}{self.block.idx}"

    def add(
        self, kind: str | OpDef, sources: Sequence[str], outs: Sequence[str], attrs: Mapping[str, Any] = {}
    ) -> None:
        self.ops.append(in_place_of(self.op, kind, {"X": [*sources]}, {"Out": [*outs]}, dict(attrs)))

    def take(self, inside: str, source: str) -> None:
        """Give each step a part of something from outside."""
        label = self.label(inside)
        self.add(FLAT, [source], [label], {"count": self.count})
        self.values[inside] = _Values(label, label)

    def give(self, name: str, out: str) -> None:
        """Make what is outside of all steps."""
        self.add(STEPS, [self.whole(name)], [out], {"count": self.count})

    def whole(self, name: str) -> str:
        values = self.values[name]
        if not values.whole:
            values.whole = values.label
            self.add(JOINED, values.parts, [values.whole])
        return values.whole

    def parts(self, name: str) -> list[str]:
        values = self.values[name]
        if not values.parts:
            values.parts = [f"{values.label}.{place}" for place in range(self.count)]
            self.add(CUT, [values.whole], values.parts)
        return values.parts

    def found(self, name: str) -> str:
        """What the name of a variable in the block is here that is wanted."""
        assert self._stages is not None
        inner = self._stages.name(name)
        if inner not in self.values:
            raise CannotPlan(f"variable {name!r} is the same in all steps", self.op)
        return inner

    def run(
        self,
        carried: Mapping[str, str],
        firsts: Mapping[str, str],
        wanted: Iterable[str],
        sums: Iterable[str],
    ) -> None:
        """Take all steps. `carried`: what a step finds of the one before, and what that is called there; `firsts`: what
        the first one finds.
        """
        self._stages = found = stages(self.block, self.block.ops, {*self.values}, carried, [*wanted], [*sums])
        for op in found.before:
            self._once(op)
        own = {name for op in found.turn for name in op.writes()} - {EMPTY}
        outer = {name for op in found.turn for name in op.reads() if name in self.values}
        moving = {name: self.parts(name) for name in sorted(outer)}
        made: dict[str, list[str]] = {name: [""] * self.count for name in (*own, *carried)}
        before = dict(firsts)
        for place in self.places:
            names = {name: parts[place] for name, parts in moving.items()} | before
            names |= {name: f"{self.label(name)}.{place}" for name in own}
            for name in (*own, *carried):
                made[name][place] = names[name]
            self.ops += [_renamed(op, names) for op in found.turn]
            before = {name: self._left(found.name(after), names, place) for name, after in carried.items()}
        for name in (*found.made, *carried):
            self.values[name] = _Values(self.label(name), parts=made[name])
        for name in found.sums:
            self.totals[name] = self.label(name)
            self.add("sum", made[name], [self.totals[name]])
        for op in found.after:
            self._once(op)
        for name in found.late:
            if name in found.totals:
                self.totals[name] = self.values.pop(name).whole

    def _left(self, name: str, names: Mapping[str, str], place: int) -> str:
        """What a step leaves to the next one."""
        if name in self.values:
            return self.parts(name)[place]
        if name not in names:
            raise CannotPlan(f"variable {name!r} comes from no step", self.op)
        return names[name]

    def _once(self, op: Operator) -> None:
        """Add an operator that works on the rows of all steps."""
        names = {name: self.whole(name) for name in op.reads() if name in self.values}
        for name in op.writes():
            if name != EMPTY:
                names[name] = self.label(name)
                self.values[name] = _Values(names[name], names[name])
        self.ops.append(_renamed(op, names))

    def total(self, name: str) -> str | None:
        assert self._stages is not None
        return self.totals.get(self._stages.name(name))


class Unrolling:
    """Operators with the steps of short `recurrent` operators in their places. `given`: whether a variable has a value
    before.
    """

    def __init__(self, given: Callable[[str], bool]) -> None:
        self._given = given
        self._made: set[str] = set()
        self._loops: dict[str, _Loop] = {}

    @property
    def any(self) -> bool:
        return bool(self._loops)

    def of(self, ops: Iterable[Operator]) -> Iterator[Operator]:
        for op in ops:
            if not unrolls(op):
                yield op
            elif op.type == "recurrent":
                yield from self._forward(op)
            else:
                yield from self._gradient(op)
            self._made.update(op.writes())

    def _forward(self, op: Operator) -> list[Operator]:
        loop = _Loop(op, _count(op), bool(op.attr("reverse")))
        for name in dict.fromkeys(op.inputs["inputs"]):
            loop.take(name, name)
        initial, before = op.inputs.get("initial_states", ()), op.attr("ex_states")
        firsts = {name: f"{loop.label(name)}.first" for name in before}
        for name, source in zip(before, initial, strict=True):
            loop.add(ALIAS, [source], [firsts[name]])
        carried = dict(zip(before, op.attr("states"), strict=True))
        kept = kept_names(op) or frozenset()
        outputs = list(dict.fromkeys(op.outputs.get("outputs", ())))
        within = [*kept_within(loop.block, loop.block.ops, kept), *sorted(kept.intersection(carried))]
        given = [*loop.values]
        loop.run(carried, firsts, dict.fromkeys([*outputs, *within]), ())
        for name in outputs:
            loop.give(loop.found(name), name)
        for scope in op.outputs.get("step_scopes", ()):
            self._loops[scope] = loop
        saved = {name: loop.values[name] for name in given if name in kept}
        saved |= {name: loop.values[loop.found(name)] for name in within}
        loop.values = saved
        return loop.ops

    def _gradient(self, op: Operator) -> list[Operator]:
        forward = self._loops.get(op.inputs["step_scopes"][0])
        if forward is None:
            raise CannotPlan("its steps have run elsewhere", op)
        loop = _Loop(op, forward.count, not forward.back)
        loop.values = dict(forward.values)
        written = {name for inner in loop.block.ops for name in inner.writes()}
        read = {name for inner in loop.block.ops for name in inner.reads()}
        for name, arriving in zip(
            op.inputs.get("outputs", ()), op.inputs.get("outputs@GRAD", ()), strict=True
        ):
            if arriving not in self._made and not self._given(arriving):
                arriving = f"{loop.label(arriving)}.zeros"
                loop.add("fill_zeros_like", [name], [arriving])
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
            zeros = f"{loop.label(gradient)}.zeros"
            loop.add("fill_zeros_like", [loop.parts(like)[0]], [zeros])
            if grad_name(before) in written:
                carried[gradient], firsts[gradient] = grad_name(before), zeros
            else:
                loop.values[gradient] = _Values(loop.label(gradient), parts=[zeros] * loop.count)
        parts = [n for n in dict.fromkeys(op.inputs["inputs"]) if grad_name(n) in written]
        states = [grad_name(n) for n in op.attr("ex_states")]
        sums = [
            grad_name(n) for n in dict.fromkeys(op.inputs.get("parameters", ())) if grad_name(n) in written
        ]
        wanted = [*map(grad_name, parts), *(name for name in states if name in written)]
        loop.run(carried, firsts, wanted, sums)
        self._give(loop, op, parts, [name if name in written else "" for name in states])
        return loop.ops

    def _give(self, loop: _Loop, op: Operator, parts: list[str], states: list[str]) -> None:
        """Make the gradients of inputs, states and parameters; zeros where nothing has come."""

        def outs(slot: str) -> list[tuple[str, str]]:
            pairs = zip(op.inputs.get(slot, ()), op.outputs.get(grad_name(slot), ()), strict=False)
            return list(pairs)

        def zeros(name: str, out: str) -> None:
            loop.add("fill_zeros_like", [name], [out])

        for (name, out), state in zip(outs("initial_states"), states, strict=False):
            if out == EMPTY:
                continue
            if state:
                loop.add(ALIAS, [loop.parts(loop.found(state))[loop.places[-1]]], [out])
            else:
                zeros(name, out)
        for name, out in outs("inputs"):
            if out == EMPTY:
                continue
            if name in parts:
                parts.remove(name)  # a variable that is an input several times is one variable in the block
                loop.give(loop.found(grad_name(name)), out)
            else:
                zeros(name, out)
        for name, out in outs("parameters"):
            if out == EMPTY:
                continue
            total = loop.total(grad_name(name))
            if total is not None:
                loop.add(ALIAS, [total], [out])
            else:
                zeros(name, out)


def _renamed(op: Operator, names: Mapping[str, str]) -> Operator:
    made = copy.copy(op)
    made.inputs = {slot: [names.get(n, n) for n in each] for slot, each in op.inputs.items()}
    made.outputs = {
        slot: [n if n == EMPTY else names.get(n, n) for n in each] for slot, each in op.outputs.items()
    }
    return made
