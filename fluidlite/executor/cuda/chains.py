"""GPU fusion of consecutive elementwise launches into one kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...backend.cupy_ import launch
from ...backend.cupy_.launchers import elementwise
from ...base.sizes import middle, product
from ...ops.kernels.fusion import REAL, Operand, Repeated, Step, Steps
from ...ops.registry import OpView, grad_name
from ..ir.instructions import Instruction
from ..passes.chains import ElementwiseRun, Part
from .launch import Get, Launch, one_by_one

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

_OUT_GRAD, _X_GRAD, _Y_GRAD = grad_name("Out"), grad_name("X"), grad_name("Y")
_SAME = "same"
"""The step whose result is its operand."""


class _Run(ElementwiseRun):
    """Launches of operators; the steps are functions of `backend/cupy_/launchers/elementwise.py`."""

    most_steps = elementwise.MOST_STEPS
    owns_results = True

    def steps_of(self, each: Instruction) -> Steps | None:
        view = each.view
        rule = None if view is None or each.action.type not in REAL else _rule(view)
        if view is None or rule is None:
            return None
        meta, size = view.meta, product(view.meta.shape(each.writes[0]))
        dtypes = {meta.dtype(name) for name in (*each.reads, *each.writes)}
        if not size or len(dtypes) > 1 or any(product(meta.shape(name)) != size for name in each.writes):
            return None
        self._shapes = meta.shapes
        steps = rule(view)
        if steps is None or not {name for step in steps for name in step.made}.issuperset(each.writes):
            return None
        return Steps(size, tuple(steps))

    def call(self, parts: list[Part], results: list[str]) -> Launch | None:
        if sum(any(step.kernel != _SAME for step in part.steps) for part in parts) < 2:
            return None
        made = {name for part in parts for name in part.made}
        if (
            len({name for part in parts for name in part.read} - made) + len(results)
            > elementwise.MOST_ARRAYS
        ):
            return None
        # Of each name that is made the number of its step, or the input that it is.
        values: dict[Operand, Operand | int] = {}
        steps: list[tuple[Step, list[Operand | int]]] = []
        for step in (step for part in parts for step in part.steps):
            operands = [values.get(one, one) for one in step.operands]
            values[step.made[0]] = operands[0] if step.kernel == _SAME else len(steps)
            if step.kernel != _SAME:
                steps.append((step, operands))
        read = [one for _, operands in steps for one in operands]
        inputs = [one for one in dict.fromkeys(read) if one is not None and not isinstance(one, int)]
        stored = [value for value in dict.fromkeys(map(values.get, results)) if isinstance(value, int)]
        if not stored or len(inputs) + len(stored) > elementwise.MOST_ARRAYS:
            return None

        def number(value: Operand | int) -> int | None:
            if value is None:
                return None
            return len(inputs) + value if isinstance(value, int) else inputs.index(value)

        chain = elementwise.Chain(
            tuple(isinstance(one, Repeated) for one in inputs),
            tuple(
                elementwise.Step(step.kernel, tuple(map(number, each)), len(step.floats))
                for step, each in steps
            ),
            tuple(len(inputs) + value for value in stored),
        )
        found = {
            name: stored.index(value) if isinstance(value := values[name], int) else value for name in results
        }
        numbers = [number for step, _ in steps for number in step.floats]
        launches = [part.instruction for part in parts]
        run = _FusedChain(chain, inputs, found, numbers, [self._shapes[name] for name in results], launches)
        names = (one.name if isinstance(one, Repeated) else one for one in inputs)
        return Launch(f"chain.{launches[0].action.type}", (*names, *results), run=run)


@dataclass(frozen=True)
class _FusedChain:
    """Runs a chain, or its operators one by one if the arrays do not fit it.

    `results`: name -> the number of the stored value, or the input that it is, in the order of `shapes`.
    """

    chain: elementwise.Chain
    inputs: Sequence[str | Repeated]
    results: Mapping[str, Any]
    numbers: Sequence[float]
    shapes: Sequence[tuple[int, ...]]
    launches: Sequence[Instruction]

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        repeated = [one if isinstance(one, Repeated) else None for one in self.inputs]
        names = [one.name if isinstance(one, Repeated) else one for one in self.inputs]
        arrays = [launch.dense(device, get(name)) for name in names]
        if not launch.real(*arrays):
            outputs = one_by_one(self.launches, device, get)
            return {name: outputs[name] for name in self.results}
        layouts = [None if one is None else (one.count, one.stretch) for one in repeated]
        outs = elementwise.run(device, self.chain, arrays, layouts, self.numbers, self.shapes[0])
        return {
            name: (outs[value] if isinstance(value, int) else get(value)).reshape(shape)
            for (name, value), shape in zip(self.results.items(), self.shapes, strict=True)
        }


_Rule = Callable[[OpView], "list[Step] | None"]


def _rule(view: OpView) -> _Rule | None:
    """The rule of an operator: a function from its view to its steps; None if it has no rule."""
    place, _, name = (view.definition.dispatch.cuda or "").partition(":")
    if place in _FAMILIES:
        return lambda view: _FAMILIES[place](view, name)
    return _OTHERS.get(view.type)


def _step(function: str, operands: Sequence[Operand], made: str, numbers: Sequence[float] = ()) -> Step:
    return Step(function, tuple(operands), (made,), floats=tuple(numbers))


def _attributes(view: OpView) -> list[float]:
    numbers = [float(view.attr(name)) for name in view.definition.attrs]
    return numbers + [0.0] * (3 - len(numbers))


def _unary(view: OpView, name: str) -> list[Step]:
    return [_step(f"{name}_of", [view.name("X")], view.name("Out"), _attributes(view))]


def _unary_grad(view: OpView, name: str) -> list[Step]:
    operands = [view.name_or_none("X") or view.name_or_none("Out"), view.name(_OUT_GRAD)]
    return [_step(f"{name}_slope", operands, view.name(_X_GRAD), _attributes(view))]


def _operands(view: OpView) -> list[Operand] | None:
    """X and Y, repeated if it has fewer elements; None if it cannot be."""
    layout = middle(view.shape("X"), view.shape("Y"), view.attr("axis"))
    if layout is None:
        return None
    whole = layout[1] == product(view.shape("X"))
    return [view.name("X"), view.name("Y") if whole else Repeated(view.name("Y"), *layout[1:])]


def _binary(view: OpView, name: str) -> list[Step] | None:
    operands = _operands(view)
    return None if operands is None else [_step(f"{name}_of_both", operands, view.name("Out"))]


def _binary_grad(view: OpView, name: str) -> list[Step] | None:
    factors = _operands(view)
    if factors is None or (view.has(_Y_GRAD) and not isinstance(factors[1], str)):
        return None  # the gradient for Y is a sum
    if name in ("add", "sub"):
        factors = [None, None]
    gradient, steps = view.name(_OUT_GRAD), []
    for slot, letter in ((_X_GRAD, "x"), (_Y_GRAD, "y")):
        if view.has(slot):
            same = name == "add" or (name == "sub" and letter == "x")
            function, operands = (
                (_SAME, [gradient]) if same else (f"{name}_slope_{letter}", [*factors, gradient])
            )
            steps.append(_step(function, operands, view.name(slot)))
    return steps


def _scale(view: OpView) -> list[Step] | None:
    if view.has("ScaleTensor"):
        return None
    numbers = [float(view.attr(name)) for name in ("scale", "bias", "bias_after_scale")]
    return [_step("scaled", [view.name("X")], view.name("Out"), numbers)]


def _sum(view: OpView) -> list[Step] | None:
    total, *terms = view.names("X")
    if not 1 <= len(terms) <= 7:
        return None
    out, steps = view.name("Out"), []
    for k, term in enumerate(terms, 1):
        made = out if k == len(terms) else f"{out}@{k}"
        steps.append(_step("add_of_both", [total, term], made))
        total = made
    return steps


def _mean_grad(view: OpView) -> list[Step]:
    size = product(view.shape("X"))
    return [
        _step("scaled", [Repeated(view.name(_OUT_GRAD), 1, size)], view.name(_X_GRAD), [1 / size, 0.0, 1.0])
    ]


_FAMILIES: Mapping[str, Callable[[OpView, str], list[Step] | None]] = {
    "elementwise.function": _unary,
    "elementwise.function_grad": _unary_grad,
    "elementwise.forward": _binary,
    "elementwise.grad": _binary_grad,
}
_OTHERS: Mapping[str, _Rule] = {"scale": _scale, "sum": _sum, "mean_grad": _mean_grad}

join_chains = _Run.fuse
"""The pass for GPUs."""
