"""The steps of a `recurrent` in plans: turns of a loop (`loop_turns.py`), with as many rows in each.

    recurrent(x) -> y               flat(x) -> x@VW1                  the rows of all steps, one behind the other
      mul(x, w) -> a                mul(x@VW1, w) -> a@VW1            what needs no other step: once, for all rows
      mul(h, u) -> b                turns(a@VW1, first h) -> new@VW1  a plan of its own, one step after the other
      sum(a, b) -> new
                                    steps(new@VW1) -> y

The gradient reads what the steps have left under the names that it has in line. Where the operator stands in a loop,
that keeps it (`RecurrentLowering.kept`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ...framework import Operator
from ...framework.gradients.blocks import kept_names
from ...ops.native import copy as copied
from ...ops.registry import EMPTY, OpDef, OpView, Planning, grad_name
from ..ir.errors import Unsupported
from ..ir.inference import is_noop
from .rank_ops import ZEROS
from .residuals import residuals_of_block, residuals_of_branches
from .scan_lowering import ALIAS, Packed, Parts, ScanLowering, Value


def _infer_flat(op: OpView) -> None:
    if len(op.shape("X")) < 2 or op.lod("X") or op.shape("X")[0] == 0:
        raise Unsupported(f"variable {op.name('X')!r} has sequences, or no steps", retryable=True)
    if any(n != wanted for n, wanted in zip(op.shape("X"), op.shape("Like")[:2], strict=False)):
        raise Unsupported(
            f"variable {op.name('X')!r} has other steps than {op.name('Like')!r}", retryable=True
        )
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
    planning=Planning(view=("Out", "X")),
    doc="The rows of all steps, one behind the other.",
)
STEPS = OpDef(
    "steps",
    inputs=("X", "Like#"),
    infer=_infer_steps,
    kernel=lambda xp, X, Like: X.reshape(*Like.shape[:2], *X.shape[1:]),
    native=copied("X", "Out"),
    planning=Planning(view=("Out", "X")),
    doc="The rows of all steps with an axis for these in front, as Like has it.",
)


_END = 1 << 30
"""Behind all steps."""


class _Steps(ScanLowering):
    """The steps of one operator."""

    def __init__(self, op: Operator, back: bool, inner: RecurrentLowering) -> None:
        block = op.attrs["sub_block"]
        ops = [each for each in block.ops if not is_noop(each)]
        super().__init__(op, block, ops, "", back, inner, op.inputs["inputs"][0])

    def take(self, inside: str, source: str) -> None:
        self.values[inside] = Packed(
            self.add(FLAT, {"X": [source], "Like": [self.steps]}, self.label(inside))
        )

    def packed(self, name: str) -> str:
        value = self.values.get(self.found(name))
        if not isinstance(value, Parts):
            return super().packed(name)
        return self.add(FLAT, {"X": [value.whole], "Like": [self.steps]}, self.label(f"{name}.rows"))

    def give(self, name: str, out: str) -> None:
        self.add(STEPS, {"X": [self.packed(name)], "Like": [self.steps]}, out)

    def copy(self, kind: str, source: str, out: str) -> None:
        self.add(kind, {"X": [source]}, out)

    def without(self, name: str, out: str) -> None:
        """Make the gradient of what none has come to, if it is wanted."""
        if out != EMPTY:
            self.copy("fill_zeros_like", name, out)

    def zeros(self, name: str, like: str) -> str:
        inputs = {"X": [self.packed(like)], "Index": [self.steps]}
        return self.add(ZEROS, inputs, self.label(f"{name}.zeros"), {"axis": 1})

    def take_zeros(self, name: str, like: str) -> None:
        self.values[name] = Packed(self.add("fill_zeros_like", {"X": [self.packed(like)]}, self.label(name)))

    def saved(self, given: Iterable[str], is_local: Iterable[str]) -> dict[str, Value]:
        found = {name: self.values[name] for name in given}
        return found | {name: self.values[self.found(name)] for name in (*is_local, *self.kept)}

    def leave(self, name: str, out: str) -> None:
        """Make what is outside of what the last step has left."""
        if self.last[name]:
            self.add(ALIAS, {"X": [self.last[name]]}, out)
            return
        steps = self.label(f"{name}.steps")
        self.give(name, steps)
        start, end = (0, 1) if self.back else (-1, _END)
        attrs = {"axes": [0], "starts": [start], "ends": [end], "decrease_axis": [0]}
        self.add("slice", {"Input": [steps]}, out, attrs)

    def run_steps(
        self,
        carried: Mapping[str, str],
        firsts: Mapping[str, str],
        wanted: Iterable[str],
        sums: Iterable[str],
        left: Iterable[str] = (),
        keeps: bool = False,
    ) -> None:
        for name, after in carried.items():
            self.carry(name, after, firsts[name], "n")
        self.last = dict.fromkeys(left, "")
        self.run(wanted, self.last, sums, keeps)


class RecurrentLowering:
    """What stands for the steps of `recurrent` operators."""

    def __init__(self) -> None:
        self._loops: dict[str, tuple[_Steps, dict[str, Value]]] = {}  # with what the gradient finds

    @property
    def any(self) -> bool:
        return bool(self._loops)

    def of(self, op: Operator, given: Callable[[str], bool]) -> list[Operator]:
        """What stands for an operator. `given`: whether a variable has a value before."""
        return self._forward(op) if op.type == "recurrent" else self._gradient(op, given)

    def kept(self, ops: Iterable[Operator]) -> list[str]:
        """What the gradients of those among `ops` find, and of those in branches among them."""
        found: list[str] = []
        for op in ops:
            if op.type == "conditional_block":
                found += self.kept(op.attrs["sub_block"].ops)
            elif op.type == "recurrent":
                for scope in op.outputs.get("step_scopes", ()):
                    found += [value.whole for value in self._run(op, scope)[1].values()]
        return [*dict.fromkeys(found)]

    def _run(self, op: Operator, scope: str) -> tuple[_Steps, dict[str, Value]]:
        if scope not in self._loops:
            raise Unsupported("its steps have run elsewhere", op)
        return self._loops[scope]

    def _forward(self, op: Operator) -> list[Operator]:
        loop = _Steps(op, bool(op.attr("reverse")), self)
        for name in dict.fromkeys(op.inputs["inputs"]):
            loop.take(name, name)
        initial, before = op.inputs.get("initial_states", ()), op.attr("ex_states")
        firsts = {name: loop.label(f"{name}.first") for name in before}
        for name, source in zip(before, initial, strict=True):
            loop.copy(ALIAS, source, firsts[name])
        carried = dict(zip(before, op.attr("states"), strict=True))
        kept = kept_names(op) or frozenset()
        outputs = list(dict.fromkeys(op.outputs.get("outputs", ())))
        is_local = [
            *residuals_of_block(loop.block, loop.block.ops, kept),
            *sorted(kept.intersection(carried)),
        ]
        is_local += residuals_of_branches(loop.block.ops, arrays=True) if kept else []
        given = [name for name in loop.values if name in kept]
        loop.run_steps(carried, firsts, dict.fromkeys([*outputs, *is_local]), (), keeps=bool(kept))
        for name in outputs:
            loop.give(name, name)
        for scope in op.outputs.get("step_scopes", ()):
            self._loops[scope] = loop, loop.saved(given, is_local)
        return loop.made

    def _gradient(self, op: Operator, given: Callable[[str], bool]) -> list[Operator]:
        forward, saved = self._run(op, op.inputs["step_scopes"][0])
        loop = _Steps(op, not forward.back, self)
        loop.values = dict(saved)
        written = {name for inner in loop.block.ops for name in inner.writes()}
        read = {name for inner in loop.block.ops for name in inner.reads()}
        for name, arriving in zip(
            op.inputs.get("outputs", ()), op.inputs.get("outputs@GRAD", ()), strict=True
        ):
            if not given(arriving):
                arriving = loop.label(f"{arriving}.zeros")
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
                raise Unsupported(f"nothing is kept of variable {after!r}", op)
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
            if state and out != EMPTY:
                loop.leave(state, out)
            else:
                loop.without(name, out)
        for name, out in outs("inputs"):
            if name in parts and out != EMPTY:
                parts.remove(name)  # a variable that is an input several times is one variable in the block
                loop.give(grad_name(name), out)
            else:
                loop.without(name, out)
        for name, out in outs("parameters"):
            total = loop.total(grad_name(name))
            if total is not None and out != EMPTY:
                loop.copy(ALIAS, total, out)
            else:
                loop.without(name, out)
