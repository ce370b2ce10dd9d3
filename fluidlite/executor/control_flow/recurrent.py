"""`RecurrentLowering`: `recurrent` operators as scans (`scan_lowering.py`) with equally many rows in each step.

    recurrent(x) -> y               flat(x) -> x@VW1                  the rows of all steps, step by step
      mul(x, w) -> a                mul(x@VW1, w) -> a@VW1            loop fission: once, for all rows
      mul(h, u) -> b                scan(a@VW1, init h) -> new@VW1    the rest of the body, once per step
      sum(a, b) -> new
                                    steps(new@VW1) -> y

The gradient reads the residuals under their names after lowering. If the operator is in a loop, that stashes them
(`RecurrentLowering.kept`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ...framework import Operator
from ...framework.gradients.blocks import kept_names
from ...ops.native import copy as copied
from ...ops.registry import EMPTY, OpDef, OpView, Planning, grad_name
from ..failures import Unsupported
from ..ir.inference import is_noop
from .blocks import residuals_of_block, residuals_of_branches
from .rank_ops import ZEROS
from .scan_lowering import ALIAS, Ragged, ScanLowering, Stacked, Value


def _infer_flat(op: OpView) -> None:
    if len(op.shape("X")) < 2 or op.lod("X") or op.shape("X")[0] == 0:
        raise Unsupported(f"variable {op.name('X')!r} has sequences, or no steps", retryable=True)
    if any(n != wanted for n, wanted in zip(op.shape("X"), op.shape("Like")[:2], strict=False)):
        raise Unsupported(
            f"variable {op.name('X')!r} has not the steps and rows of {op.name('Like')!r}", retryable=True
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
    doc="The rows of all steps: the first two axes of X as one.",
)
STEPS = OpDef(
    "steps",
    inputs=("X", "Like#"),
    infer=_infer_steps,
    kernel=lambda xp, X, Like: X.reshape(*Like.shape[:2], *X.shape[1:]),
    native=copied("X", "Out"),
    planning=Planning(view=("Out", "X")),
    doc="The inverse of `flat`: the first axis of X as the first two of Like.",
)


_END = 1 << 30
"""A slice end past all steps."""


class _RecurrentScan(ScanLowering):
    """The scan of one operator."""

    def __init__(self, op: Operator, back: bool, inner: RecurrentLowering) -> None:
        block = op.attrs["sub_block"]
        ops = [each for each in block.ops if not is_noop(each)]
        super().__init__(op, block, ops, "", back, inner, op.inputs["inputs"][0])

    def take(self, inside: str, source: str) -> None:
        self.values[inside] = Ragged(
            self.add(FLAT, {"X": [source], "Like": [self.steps]}, self.label(inside))
        )

    def all_rows(self, name: str) -> str:
        value = self.values.get(self.ssa_name(name))
        if not isinstance(value, Stacked):
            return super().all_rows(name)
        return self.add(FLAT, {"X": [value.whole], "Like": [self.steps]}, self.label(f"{name}.rows"))

    def give(self, name: str, out: str) -> None:
        self.add(STEPS, {"X": [self.all_rows(name)], "Like": [self.steps]}, out)

    def copy(self, kind: str, source: str, out: str) -> None:
        self.add(kind, {"X": [source]}, out)

    def fill_zeros(self, name: str, out: str) -> None:
        """Set `out`, the gradient of a variable that none arrives at, to zeros if it is needed."""
        if out != EMPTY:
            self.copy("fill_zeros_like", name, out)

    def zeros(self, name: str, like: str) -> str:
        inputs = {"X": [self.all_rows(like)], "Index": [self.steps]}
        return self.add(ZEROS, inputs, self.label(f"{name}.zeros"), {"axis": 1})

    def take_zeros(self, name: str, like: str) -> None:
        self.values[name] = Ragged(
            self.add("fill_zeros_like", {"X": [self.all_rows(like)]}, self.label(name))
        )

    def saved(self, given: Iterable[str], is_local: Iterable[str]) -> dict[str, Value]:
        found = {name: self.values[name] for name in given}
        return found | {name: self.values[self.ssa_name(name)] for name in (*is_local, *self.kept)}

    def set_final(self, name: str, out: str) -> None:
        """Set `out` to the final value of a carried variable."""
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
    """Lowers `recurrent` operators and their gradients to scans."""

    def __init__(self) -> None:
        # step scopes -> the scan and its residuals
        self._loops: dict[str, tuple[_RecurrentScan, dict[str, Value]]] = {}

    @property
    def any(self) -> bool:
        return bool(self._loops)

    def of(self, op: Operator, given: Callable[[str], bool]) -> list[Operator]:
        """Lower an operator. `given`: whether a variable is defined before it."""
        return self._forward(op) if op.type == "recurrent" else self._gradient(op, given)

    def kept(self, ops: Iterable[Operator]) -> list[str]:
        """The residuals of `recurrent` operators among `ops`, and of those in branches among them."""
        found: list[str] = []
        for op in ops:
            if op.type == "conditional_block":
                found += self.kept(op.attrs["sub_block"].ops)
            elif op.type == "recurrent":
                for scope in op.outputs.get("step_scopes", ()):
                    found += [value.whole for value in self._run(op, scope)[1].values()]
        return [*dict.fromkeys(found)]

    def _run(self, op: Operator, scope: str) -> tuple[_RecurrentScan, dict[str, Value]]:
        if scope not in self._loops:
            raise Unsupported("its forward operator is not a scan of this plan", op)
        return self._loops[scope]

    def _forward(self, op: Operator) -> list[Operator]:
        loop = _RecurrentScan(op, bool(op.attr("reverse")), self)
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
        loop = _RecurrentScan(op, not forward.back, self)
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
                raise Unsupported(f"variable {after!r} is not among the residuals", op)
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
        self._set_gradients(loop, op, parts, [name if name in written else "" for name in states])
        return loop.made

    def _set_gradients(self, loop: _RecurrentScan, op: Operator, parts: list[str], states: list[str]) -> None:
        """Set the gradients of inputs, states and parameters; zeros where none arrives."""

        def outs(slot: str) -> list[tuple[str, str]]:
            pairs = zip(op.inputs.get(slot, ()), op.outputs.get(grad_name(slot), ()), strict=False)
            return list(pairs)

        for (name, out), state in zip(outs("initial_states"), states, strict=False):
            if state and out != EMPTY:
                loop.set_final(state, out)
            else:
                loop.fill_zeros(name, out)
        for name, out in outs("inputs"):
            if name in parts and out != EMPTY:
                parts.remove(name)  # a variable that is an input several times is one variable in the block
                loop.give(grad_name(name), out)
            else:
                loop.fill_zeros(name, out)
        for name, out in outs("parameters"):
            total = loop.total(grad_name(name))
            if total is not None and out != EMPTY:
                loop.copy(ALIAS, total, out)
            else:
                loop.fill_zeros(name, out)
