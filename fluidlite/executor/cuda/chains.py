"""GPU fusion of consecutive elementwise launches into one kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...backend.cupy_ import chains, launch
from ...base.dtypes import VarType
from ...base.sizes.shapes import middle, product
from ...framework import OpRole
from ...ops.registry import OpView, grad_name
from ..ir.instructions import Instruction, Need, Uses
from ..passes.rewriting import fuse_runs
from .launch import Get, one_by_one

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

_OUT_GRAD, _X_GRAD, _Y_GRAD = grad_name("Out"), grad_name("X"), grad_name("Y")

Layout = tuple[int, int] | None


@dataclass(frozen=True)
class _Input:
    """An input of the chain: a variable, and how it is broadcast (see `chains.run`)."""

    name: str
    layout: Layout = None


@dataclass(frozen=True)
class _StepResult:
    """The result of a step of the chain, by number."""

    step: int


_Value = _Input | _StepResult | None


class _Run:
    """Consecutive launches that become one kernel. `values`: the value of each variable that they write."""

    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self._kind: Any = None
        self._launches: list[Instruction] = []
        self._steps: list[tuple[str, tuple[_Value, ...], tuple[float, ...]]] = []
        self._computing = 0
        self.values: dict[str, _Value] = {}

    def take(self, each: Instruction) -> bool:
        """Add a launch; False if it is not elementwise, or has another shape, dtype or pass than the others."""
        view = each.view
        rule = _rule(view) if view is not None else None
        if view is None or rule is None or any(self._uses.written[name] != 1 for name in each.writes):
            return False
        meta, shape, dtype = view.meta, view.meta.shape(each.writes[0]), view.meta.dtype(each.writes[0])
        names = {*each.reads, *each.writes}
        if dtype not in (VarType.FP32, VarType.FP64) or any(meta.dtype(name) != dtype for name in names):
            return False
        if any(meta.shape(name) != shape for name in each.writes) or not product(shape):
            return False
        if any(view.rows(slot, k) is not None for slot in view.inputs for k in range(view.count(slot))):
            return False
        kind = shape, dtype, each.op.attrs.get("op_role", 0) & OpRole.Backward
        if self._launches and (kind != self._kind or self._full(each)):
            return False
        steps = len(self._steps)
        outputs = rule(self, view)
        if outputs is None:
            del self._steps[steps:]
            return False
        self._kind = kind
        self._launches.append(each)
        self._computing += len(self._steps) > steps
        self.values.update({name: value for name, value in outputs.items() if name in each.writes})
        return True

    def _full(self, each: Instruction) -> bool:
        arrays = len({name for launch in (*self._launches, each) for name in (*launch.reads, *launch.writes)})
        return arrays > chains.MOST_ARRAYS or len(self._steps) + len(each.reads) > chains.MOST_STEPS

    def value(self, view: OpView, slot: str, index: int = 0) -> _Value:
        """An input that has as many elements as the results."""
        name = view.name(slot, index)
        return self.values[name] if name in self.values else _Input(name)

    def repeated(self, view: OpView, layout: tuple[int, int, int]) -> _Value:
        """Y broadcast to the shape of X: it is the middle dimension of `layout`."""
        if layout[1] == product(view.shape("X")):
            return self.value(view, "Y")
        return _Input(view.name("Y"), layout[1:])

    def step(self, function: str, operands: Sequence[_Value], numbers: Sequence[float] = ()) -> _StepResult:
        """Apply a function of `chains`."""
        self._steps.append((function, tuple(operands), tuple(numbers)))
        return _StepResult(len(self._steps) - 1)

    def finished(self) -> list[Instruction]:
        """One launch for all, or the launches unchanged if fewer than two of them compute anything."""
        if self._computing < 2:
            return self._launches
        stored: dict[_Value, int] = {}
        results: dict[str, _Value] = {}
        shapes: list[str] = []
        for name, value in self.values.items():
            need = self._uses.need(name, self._launches)
            if need is Need.ELEMENTS:
                results[name] = value
                if isinstance(value, _StepResult):
                    stored.setdefault(value, len(stored))
            elif need is Need.SHAPE:
                shapes.append(name)
        if not stored:
            return self._launches
        any_stored = next(iter(stored))
        results.update(dict.fromkeys(shapes, any_stored))
        inputs = dict.fromkeys(v for _, operands, _ in self._steps for v in operands if isinstance(v, _Input))
        chain = self._chain(list(inputs), list(stored))
        numbers = [number for _, _, numbers in self._steps for number in numbers]
        joined = _FusedChain(chain, list(inputs), results, stored, numbers, self._kind[0], self._launches)
        ops = tuple(each.op for each in self._launches)
        reads = dict.fromkeys(
            name for each in self._launches for name in each.reads if name not in self.values
        )
        return [Instruction(ops, tuple(reads), tuple(results), joined)]

    def _chain(self, inputs: list[_Input], stored: list[_Value]) -> chains.Chain:
        def number(value: _Value) -> int | None:
            if value is None:
                return None
            return inputs.index(value) if isinstance(value, _Input) else len(inputs) + value.step

        steps = (
            chains.Step(function, tuple(map(number, operands)), len(numbers))
            for function, operands, numbers in self._steps
        )
        written = tuple(len(inputs) + value.step for value in stored if isinstance(value, _StepResult))
        return chains.Chain(tuple(value.layout is not None for value in inputs), tuple(steps), written)


class _FusedChain:
    """Runs a chain, or its operators one by one if the arrays do not fit it."""

    def __init__(
        self,
        chain: chains.Chain,
        inputs: Sequence[_Input],
        results: Mapping[str, _Value],
        stored: Mapping[_Value, int],
        numbers: Sequence[float],
        shape: tuple[int, ...],
        launches: Sequence[Instruction],
    ) -> None:
        self._chain, self._inputs, self._numbers, self._shape = chain, inputs, numbers, shape
        self._results, self._stored, self._launches = results, stored, launches

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        arrays = [launch.dense(device, get(value.name)) for value in self._inputs]
        if not launch.real(*arrays):
            outputs = one_by_one(self._launches, device, get)
            return {name: outputs[name] for name in self._results}
        layouts = [value.layout for value in self._inputs]
        outs = chains.run(device, self._chain, arrays, layouts, self._numbers, self._shape)
        return {
            name: get(value.name) if isinstance(value, _Input) else outs[self._stored[value]]
            for name, value in self._results.items()
        }


_Rule = Callable[[_Run, OpView], "dict[str, _Value] | None"]


def _rule(view: OpView) -> _Rule | None:
    """The rule of an operator: a function from its view to the values of its outputs; None if it has no rule."""
    place, _, name = (view.definition.dispatch.cuda or "").partition(":")
    if place in _FAMILIES:
        return lambda run, view: _FAMILIES[place](run, view, name)
    return _OTHERS.get(view.type)


def _attributes(view: OpView) -> list[float]:
    numbers = [float(view.attr(name)) for name in view.definition.attrs]
    return numbers + [0.0] * (3 - len(numbers))


def _unary(run: _Run, view: OpView, name: str) -> dict[str, _Value]:
    return {view.name("Out"): run.step(f"{name}_of", [run.value(view, "X")], _attributes(view))}


def _unary_grad(run: _Run, view: OpView, name: str) -> dict[str, _Value]:
    kept = next((run.value(view, slot) for slot in ("X", "Out") if view.has(slot)), None)
    operands = [kept, run.value(view, _OUT_GRAD)]
    return {view.name(_X_GRAD): run.step(f"{name}_slope", operands, _attributes(view))}


def _binary(run: _Run, view: OpView, name: str) -> dict[str, _Value] | None:
    layout = middle(view.shape("X"), view.shape("Y"), view.attr("axis"))
    if layout is None:
        return None
    operands = [run.value(view, "X"), run.repeated(view, layout)]
    return {view.name("Out"): run.step(f"{name}_of_both", operands)}


def _binary_grad(run: _Run, view: OpView, name: str) -> dict[str, _Value] | None:
    layout = middle(view.shape("X"), view.shape("Y"), view.attr("axis"))
    if layout is None or (view.has(_Y_GRAD) and layout[1] != product(view.shape("X"))):
        return None  # the gradient for Y is a sum
    gradient = run.value(view, _OUT_GRAD)
    linear = name in ("add", "sub")
    factors = [None, None] if linear else [run.value(view, "X"), run.repeated(view, layout)]
    out: dict[str, _Value] = {}
    for slot, letter in ((_X_GRAD, "x"), (_Y_GRAD, "y")):
        if view.has(slot):
            same = name == "add" or (name == "sub" and letter == "x")
            out[view.name(slot)] = (
                gradient if same else run.step(f"{name}_slope_{letter}", [*factors, gradient])
            )
    return out


def _scale(run: _Run, view: OpView) -> dict[str, _Value] | None:
    if view.has("ScaleTensor"):
        return None
    numbers = [float(view.attr(name)) for name in ("scale", "bias", "bias_after_scale")]
    return {view.name("Out"): run.step("scaled", [run.value(view, "X")], numbers)}


def _sum(run: _Run, view: OpView) -> dict[str, _Value] | None:
    if view.count("X") < 2 or view.count("X") > 8:
        return None
    total = run.value(view, "X")
    for k in range(1, view.count("X")):
        total = run.step("add_of_both", [total, run.value(view, "X", k)])
    return {view.name("Out"): total}


def _mean_grad(run: _Run, view: OpView) -> dict[str, _Value]:
    gradient = _Input(view.name(_OUT_GRAD), (1, product(view.shape("X"))))
    return {view.name(_X_GRAD): run.step("scaled", [gradient], [1 / product(view.shape("X")), 0.0, 1.0])}


_FAMILIES: Mapping[str, Callable[[_Run, OpView, str], dict[str, _Value] | None]] = {
    "elementwise.function": _unary,
    "elementwise.function_grad": _unary_grad,
    "elementwise.forward": _binary,
    "elementwise.grad": _binary_grad,
}
_OTHERS: Mapping[str, _Rule] = {"scale": _scale, "sum": _sum, "mean_grad": _mean_grad}


join_chains = fuse_runs(_Run)
"""Fuse runs of elementwise operators with outputs of one shape."""
