"""`Scans`: the loops of a plan that are scans; it lowers `recurrent` operators, with equally many rows in each step.

    recurrent(x) -> y               flat(x) -> x@VW1                  the rows of all steps, step by step
      mul(x, w) -> a                mul(x@VW1, w) -> a@VW1            loop fission: once, for all rows
      mul(h, u) -> b                scan(a@VW1, init h) -> new@VW1    the rest of the body, once per step
      sum(a, b) -> new
                                    steps(new@VW1) -> y

The gradient reads the residuals under their names after lowering. If the operator is in a loop, that stashes them
(`Scans.kept`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...framework import Operator
from ...ops.registry import EMPTY, grad_name
from ..failures import Unsupported
from ..ir.inference import is_noop
from .blocks import is_recurrent
from .rank_ops import FLAT, STEPS
from .scan_lowering import ALIAS, Ragged, ScanLowering

_END = 1 << 30
"""A slice end past all steps."""


class Scans:
    """Scans by the step scopes of their operators, in which gradients find them."""

    def __init__(self) -> None:
        self._loops: dict[str, ScanLowering] = {}

    @property
    def any(self) -> bool:
        return bool(self._loops)

    def add(self, loop: ScanLowering, scopes: Iterable[str]) -> None:
        self._loops.update(dict.fromkeys(scopes, loop))

    def forward_of(self, op: Operator, scope: str) -> ScanLowering:
        """The scan that `op` is the gradient of."""
        if scope not in self._loops:
            raise Unsupported("its forward operator is not a scan of this plan", op)
        return self._loops[scope]

    def kept(self, ops: Iterable[Operator]) -> list[str]:
        """The residuals of the scans among `ops`, and of those in branches among them."""
        found: list[str] = []
        for op in ops:
            if op.type == "conditional_block":
                found += self.kept(op.attrs["sub_block"].ops)
            for scope in (*op.outputs.get("StepScopes", ()), *op.outputs.get("step_scopes", ())):
                if scope in self._loops or is_recurrent(op):
                    found += [value.whole for value in self.forward_of(op, scope).saved.values()]
        return [*dict.fromkeys(found)]

    def of(self, op: Operator, given: Callable[[str], bool]) -> list[Operator]:
        """Lower a `recurrent` operator or its gradient. `given`: whether a variable is defined before it."""
        ops = [each for each in op.attrs["sub_block"].ops if not is_noop(each)]
        if op.type == "recurrent":
            loop = ScanLowering(op, ops, self, bool(op.attr("reverse")), steps=op.inputs["inputs"][0])
            _forward(loop, op)
            self.add(loop, op.outputs.get("step_scopes", ()))
        else:
            loop = self.forward_of(op, op.inputs["step_scopes"][0]).backward(op, ops)
            _gradient(loop, op, given)
        return loop.made


def _forward(loop: ScanLowering, op: Operator) -> None:
    for name in dict.fromkeys(op.inputs["inputs"]):
        _take(loop, name, name)
    states = zip(op.attr("ex_states"), op.attr("states"), op.inputs.get("initial_states", ()), strict=True)
    for name, after, source in states:
        loop.carry(name, after, loop.add(ALIAS, {"X": [source]}, loop.label(f"{name}.first")), "n")
    outputs = list(dict.fromkeys(op.outputs.get("outputs", ())))
    loop.run(outputs)
    for name in outputs:
        _give(loop, name, name)


def _gradient(loop: ScanLowering, op: Operator, given: Callable[[str], bool]) -> None:
    written = {name for inner in loop.ops for name in inner.writes()}
    read = {name for inner in loop.ops for name in inner.reads()}
    for name, arriving in zip(op.inputs.get("outputs", ()), op.inputs.get("outputs@GRAD", ()), strict=True):
        if not given(arriving):
            arriving = loop.add("fill_zeros_like", {"X": [name]}, loop.label(f"{arriving}.zeros"))
        _take(loop, grad_name(name), arriving)
    before = op.attr("ex_states")
    for state, after in zip(before, op.attr("states"), strict=True):
        gradient = grad_name(after)
        loop.values.pop(gradient, None)
        if gradient not in read:
            continue
        like = after if after in loop.values else state
        if like not in loop.values:
            raise Unsupported(f"variable {after!r} is not among the residuals", op)
        if grad_name(state) in written:
            loop.carry_gradient(gradient, grad_name(state), like)
        else:
            loop.read_zeros(gradient, like)

    def computed(names: Iterable[str]) -> list[str]:
        return [grad for grad in map(grad_name, dict.fromkeys(names)) if grad in written]

    parts, finals = computed(op.inputs["inputs"]), computed(before)
    loop.run(parts, finals, computed(op.inputs.get("parameters", ())))
    # The gradients of inputs, states and parameters; zeros where none arrives.
    names = {
        "initial_states": before,
        "inputs": op.inputs["inputs"],
        "parameters": op.inputs.get("parameters", ()),
    }
    for slot, inside in names.items():
        outside = zip(inside, op.inputs.get(slot, ()), op.outputs.get(grad_name(slot), ()), strict=False)
        for name, source, out in outside:
            gradient = grad_name(name)
            total = loop.total(gradient) if slot == "parameters" else None
            if out == EMPTY:
                continue
            if slot == "initial_states" and gradient in finals:
                _give_final(loop, gradient, out)
            elif slot == "inputs" and gradient in parts:
                parts.remove(
                    gradient
                )  # a variable that is an input several times is one variable in the block
                _give(loop, gradient, out)
            elif total is not None:
                loop.add(ALIAS, {"X": [total]}, out)
            else:
                loop.add("fill_zeros_like", {"X": [source]}, out)


def _take(loop: ScanLowering, inside: str, source: str) -> None:
    """Have each iteration read its step of an outer variable."""
    rows = loop.add(FLAT, {"X": [source], "Like": [loop.steps]}, loop.label(inside))
    loop.values[inside] = Ragged(rows)


def _give(loop: ScanLowering, name: str, out: str) -> str:
    """Set an outer variable to the steps of a result."""
    return loop.add(STEPS, {"X": [loop.all_rows(name)], "Like": [loop.steps]}, out)


def _give_final(loop: ScanLowering, name: str, out: str) -> None:
    """Set an outer variable to the final value of a carried one."""
    final = loop.final(name)
    if final:
        loop.add(ALIAS, {"X": [final]}, out)
        return
    steps = _give(loop, name, loop.label(f"{name}.steps"))
    start, end = (0, 1) if loop.back else (-1, _END)
    attrs = {"axes": [0], "starts": [start], "ends": [end], "decrease_axis": [0]}
    loop.add("slice", {"Input": [steps]}, out, attrs)
