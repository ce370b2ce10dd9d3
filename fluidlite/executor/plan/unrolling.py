"""Steps in plans: the operators of all steps of a `recurrent` stand in line with the others, if there are few.

    recurrent(x) -> y               flat(x) -> x@VU1                   the rows of all steps, one behind the other
      mul(x, w) -> a                mul(x@VU1, w) -> a@VU1             what needs no other step: once, for all rows
      mul(h, u) -> b                cut(a@VU1) -> a@VU1.0 a@VU1.1 ...
      sum(a, b) -> new              mul(h, u) -> b@VU1.0, sum(a@VU1.0, b@VU1.0) -> new@VU1.0
                                    mul(new@VU1.0, u) -> b@VU1.1, ...
                                    joined(new@VU1.0, new@VU1.1, ...) -> new@VU1, steps(new@VU1) -> y

The gradient reads the values of each step under the names that they have in line. Where there are many steps, or the
program does not say how many, they are the turns of a loop (`loop_turns.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...framework import Operator
from ...framework.gradients.blocks import kept_names
from ...ops.native import copy as copied
from ...ops.native import itemsize, numel
from ...ops.registry import EMPTY, VERSION, Call, OpDef, OpView, grad_name
from .branching import in_line
from .kept_branches import kept_inside, kept_within
from .loop_turns import ALIAS, LoopTurns, Packed, Value
from .shapes import CannotPlan, in_place_of, renamed, takes_no_part, works_alone
from .stages import Stages, stages
from .turn_ops import ZEROS

UNROLLED = VERSION + "U"
MOST_STEPS, MOST_OPERATORS = 64, 512
"""Of more steps, or of more operators in all of them together, no copies are made: planning takes its time for each."""


def _infer_flat(op: OpView) -> None:
    if len(op.shape("X")) < 2 or op.lod("X") or op.shape("X")[0] == 0:
        raise CannotPlan(f"variable {op.name('X')!r} has sequences, or no steps", passing=True)
    if any(n != wanted for n, wanted in zip(op.shape("X"), op.shape("Like")[:2], strict=False)):
        raise CannotPlan(f"variable {op.name('X')!r} has other steps than {op.name('Like')!r}", passing=True)
    steps, rows, *tail = op.shape("X")
    if op.attr("count") and steps != op.attr("count"):
        raise CannotPlan(f"variable {op.name('X')!r} has {steps} steps, the program says {op.attr('count')}")
    op.set("Out", (steps * rows, *tail), op.dtype("X"))


def _infer_steps(op: OpView) -> None:
    op.set("Out", (*op.shape("Like")[:2], *op.shape("X")[1:]), op.dtype("X"))


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
    inputs=("X", "Like#"),
    attrs={"count": 0},
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


def _few(op: Operator) -> bool:
    """Whether a copy of each step may stand in line, as far as can be said without its gradient."""
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


def _are_turns(op: Operator) -> bool:
    """Whether the steps may be turns of a loop in a plan."""
    for inner in op.attrs["sub_block"].ops:
        if takes_no_part(inner):
            continue
        if (works_alone(inner) and not in_line(inner)) or inner.definition.host or inner.definition.lod:
            return False
        if inner.attrs.get("is_sparse") or any(map(op.block._is_persistable, inner.writes())):
            return False
    return True


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
        inputs = {"X": [source], "Like": self.op.inputs["inputs"][:1]}
        self.ops.append(in_place_of(self.op, FLAT, inputs, {"Out": [label]}, {"count": self.count}))
        self.values[inside] = _Values(label, label)

    def give(self, name: str, out: str) -> None:
        """Make what is outside of all steps."""
        inputs = {"X": [self.whole(self.found(name))], "Like": self.op.inputs["inputs"][:1]}
        self.ops.append(in_place_of(self.op, STEPS, inputs, {"Out": [out]}, {}))

    def copy(self, kind: str, source: str, out: str) -> None:
        """Make something of, or like, one variable outside."""
        self.add(kind, [source], [out])

    def zeros(self, name: str, like: str) -> str:
        """Zeros for what a step finds as `name`, like what another variable is in a step."""
        out = f"{self.label(name)}.zeros"
        self.add("fill_zeros_like", [self.parts(like)[0]], [out])
        return out

    def take_zeros(self, name: str, like: str) -> None:
        """Give each step zeros."""
        self.values[name] = _Values(self.label(name), parts=[self.zeros(name, like)] * self.count)

    def saved(self, given: Iterable[str], within: Iterable[str]) -> dict[str, _Values]:
        """What the gradient finds: of what steps are given, and of what they make."""
        found = {name: self.values[name] for name in given}
        return found | {name: self.values[self.found(name)] for name in within}

    def leave(self, name: str, out: str) -> None:
        """Make what is outside of what the last step has left."""
        self.add(ALIAS, [self.parts(self.found(name))[self.places[-1]]], [out])

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

    def run_steps(
        self,
        carried: Mapping[str, str],
        firsts: Mapping[str, str],
        wanted: Iterable[str],
        sums: Iterable[str],
        left: Iterable[str] = (),
    ) -> None:
        """Take all steps. `carried`: what a step finds of the one before, and what that is called there; `firsts`: what
        the first one finds; `left`: what is wanted of the last one.
        """
        ends = [*wanted, *left]
        self._stages = found = stages(self.block, self.block.ops, {*self.values}, carried, ends, [*sums])
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
            self.ops += [renamed(op, names) for op in found.turn]
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
        self.ops.append(renamed(op, names))

    def total(self, name: str) -> str | None:
        assert self._stages is not None
        return self.totals.get(self._stages.name(name))


class _Turns(LoopTurns):
    """The steps of one operator as turns of a loop, with the methods of `_Loop`."""

    def __init__(self, op: Operator, back: bool) -> None:
        block = op.attrs["sub_block"]
        ops = [inner for inner in block.ops if not takes_no_part(inner)]
        super().__init__(op, block, ops, "", back, op.inputs["inputs"][0])

    @property
    def ops(self) -> list[Operator]:
        return self.made

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
        if not self.last[name]:
            raise CannotPlan(f"what the last step leaves of {name!r} is wanted of all", self.op)
        self.add(ALIAS, {"X": [self.last[name]]}, out)

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


class Unrolling:
    """Operators with the steps of `recurrent` operators in their places. `given`: whether a variable has a value
    before.
    """

    def __init__(self, given: Callable[[str], bool]) -> None:
        self._given = given
        self._made: set[str] = set()
        self._loops: dict[str, tuple[_Loop | _Turns, dict[str, Any]]] = {}  # with what the gradient finds

    @property
    def any(self) -> bool:
        return bool(self._loops)

    def of(self, ops: Iterable[Operator]) -> Iterator[Operator]:
        for op in ops:
            if op.type == "recurrent" and (_few(op) or _are_turns(op)):
                yield from self._forward(op)
            elif op.type == "recurrent_grad":
                yield from self._gradient(op)
            else:
                yield op
            self._made.update(op.writes())

    def _forward(self, op: Operator) -> list[Operator]:
        back = bool(op.attr("reverse"))
        loop = _Loop(op, _count(op), back) if _few(op) else _Turns(op, back)
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
        within += kept_inside(loop.block.ops) if kept else []
        given = [name for name in loop.values if name in kept]
        loop.run_steps(carried, firsts, dict.fromkeys([*outputs, *within]), ())
        for name in outputs:
            loop.give(name, name)
        for scope in op.outputs.get("step_scopes", ()):
            self._loops[scope] = loop, loop.saved(given, within)
        return loop.ops

    def _gradient(self, op: Operator) -> list[Operator]:
        forward, saved = self._loops.get(op.inputs["step_scopes"][0], (None, {}))
        if forward is None:
            raise CannotPlan("its steps have run elsewhere", op)
        if isinstance(forward, _Turns) and not _are_turns(op):
            raise CannotPlan("a step of its gradient cannot be part of a plan", op)
        back = not forward.back
        loop = _Turns(op, back) if isinstance(forward, _Turns) else _Loop(op, forward.count, back)
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
        return loop.ops

    def _give(self, loop: _Loop | _Turns, op: Operator, parts: list[str], states: list[str]) -> None:
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
