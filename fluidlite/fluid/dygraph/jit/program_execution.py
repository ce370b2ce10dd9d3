"""Execution of traced programs: the forward part at once, the backward part when gradients arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ....base import flags
from ....base.arrays import plain
from ....base.dtypes import FLOATS, VarType
from ....base.errors import EnforceNotMet
from ....base.selected_rows import SelectedRows
from ....eager import placing
from ....executor.compile import compile_plan
from ....executor.failures import Unsupported
from ....executor.feeding import Feed
from ....executor.interpreter.interpreter import Interpreter
from ....executor.interpreter.segmented import SegmentedExecutor
from ....executor.interpreter.segments import ProgramSegments
from ....executor.ir.request import Request
from ....executor.ir.step_plan import StepPlan
from ....framework import OpRole, Program, Variable
from ....framework.gradients.backward import gradients
from ....ops.registry import grad_name
from ....ops.tensor.gather import parts

if TYPE_CHECKING:
    from ....backend.cupy_.device import CudaDevice
    from ....executor.lod_tensor import LoDTensor
    from .traced import Traced

Arrays = list[Any]

SPARE_PLANS = 4
"""At most this many idle plans are kept; a call whose gradients may still be asked for holds one."""


class Runner:
    """Computes the outputs of a traced program, and the gradients of chosen inputs.

    Args:
        traced: the program with its inputs, captured tensors and outputs.
        wanted: for each input and captured tensor, True if its gradient may be asked for; None: no gradients.
        device: the GPU where the arrays are; None for the host.

    `differentiable`: for each output, True if it has a gradient.
    """

    def __init__(
        self, traced: Traced, wanted: tuple[bool, ...] | None, device: CudaDevice | None = None
    ) -> None:
        self._traced = traced
        self.device = device
        self._held = list(traced.captured)
        self._fed = [var.name for var in traced.inputs]
        self.names = [*self._fed, *self._held]
        self.outputs = [var.name for var in traced.computed]
        self.program = traced.program
        self.late: dict[str, str] = {}  # output gradient, an input of the backward part -> its output
        self.gradients: list[str | None] = []
        self.differentiable = [False] * len(self.outputs)
        self._sparse: set[str] = set()
        self._refusal: EnforceNotMet | None = None
        if wanted is not None:
            try:
                self._differentiate(wanted)
            except EnforceNotMet as error:
                # Some operators in evaluation mode have no gradients; raised when gradients are asked for.
                self._refusal = error
                self.program, self.late = traced.program, {}
        self._spare: list[StepPlan] = []
        self._at = {name: k for k, name in enumerate(self.names)}
        self._planned = flags.engine() == "plan"
        self._segments: tuple[ProgramSegments, ProgramSegments] | None = None
        self._check_finite = False  # True if the plans and segments check results for NaN and infinities

    def _differentiate(self, wanted: tuple[bool, ...]) -> None:
        """Append the backward operators to a copy of the program."""
        self.program = program = self._traced.program.clone()
        program._appending_grad_times = self._traced.program._appending_grad_times
        block = program.global_block()
        for name, want in zip(self.names, wanted, strict=True):
            block.vars[name].stop_gradient = not want
        reachable = _depending(program, [n for n, want in zip(self.names, wanted, strict=True) if want])
        targets, weights = [], []
        for k, name in enumerate(self.outputs):
            var = block.vars[name]
            self.differentiable[k] = name in reachable
            if self.differentiable[k]:
                target = _terminal(program, var)
                weight = block.create_var(
                    name=grad_name(target.name), shape=var.shape, dtype=var.dtype, stop_gradient=True
                )
                targets.append(target)
                weights.append(weight)
                self.late[weight.name] = name
        grads: list[Variable | None] = []
        if targets:
            grads = gradients(targets, [block.vars[name] for name in self.names], weights)
        chosen = [
            want and block.vars[name].dtype in FLOATS for name, want in zip(self.names, wanted, strict=True)
        ]
        self.gradients = [
            None if var is None or not want else var.name
            for var, want in zip(grads or [None] * len(self.names), chosen, strict=True)
        ]
        self._sparse = {var.name for var in grads if var is not None and var.type == VarType.SELECTED_ROWS}

    def in_order(self, arrays: Iterable[Any]) -> list[Any]:
        """The gradient, or None, of each input and captured tensor, from the arrays that the backward part computed."""
        rest = iter(arrays)
        heights = self.program.global_block().vars
        ordered: list[Any] = []
        for name in self.gradients:
            if name is None:
                ordered.append(None)
            elif name in self._sparse:
                rows, values = next(rest), next(rest)
                with placing.computing(rows):
                    ordered.append(SelectedRows(rows, values, heights[name].shape[0]).held())
            else:
                ordered.append(next(rest))
        return ordered

    def run(self, arrays: Arrays) -> tuple[Arrays, Callable[..., Any] | None]:
        """The outputs for arrays of the inputs and captured tensors, and the function that computes gradients."""
        if self._check_finite != flags.checks_finite():
            self._check_finite, self._spare, self._segments = not self._check_finite, [], None
        by_plan = self._planned and not (self._check_finite and self.device is not None)
        plan = self._plan(arrays) if by_plan else None
        if plan is None:
            return self._run_without_plan(arrays)
        try:
            outputs = plan.run_first()
        except BaseException:
            self.give_back(plan)
            raise
        if self.device is not None:
            self._traced.bring_back(arrays[len(self._fed) :])
        if self.late:
            return outputs, Planned(self, plan, outputs)
        self.give_back(plan)
        return outputs, self._refuse()

    def _refuse(self) -> Callable[..., Any] | None:
        if self._refusal is None:
            return None
        refusal = self._refusal

        def refuse(grads: Sequence[Any], retain: bool) -> Any:
            raise type(refusal)(*refusal.args)

        return refuse

    def _plan(self, arrays: Arrays) -> StepPlan | None:
        """An idle plan, bound to the arrays; None if the program cannot be planned as a whole."""
        refused = []
        try:
            while self._spare:
                plan = self._spare.pop()
                if plan.accepts(self._for(plan, arrays)):
                    return plan
                refused.append(plan)  # its sizes differ
        finally:
            self._spare[:0] = refused
        if self.device is None:
            count = len(self._fed)
            arrays[:] = [*[plain(array) for array in arrays[:count]], *self._traced.own()]
        self._traced.refresh()
        count = len(self._fed)
        feed = dict(zip(self._fed, arrays[:count], strict=True))
        late_fetches: list[str] = []
        for gradient in self.gradients:
            if gradient is not None:
                late_fetches += parts(gradient) if gradient in self._sparse else [gradient]
        try:
            plan = compile_plan(
                Request(
                    self.program,
                    self._traced.scope,
                    feed,
                    [*self.outputs, *late_fetches],
                    device=self.device,
                    fixed=self.device is not None,
                    held=self._held,
                    early=len(self.outputs),
                    late=self.late,
                    check_finite=self._check_finite and self.device is None,
                )
            )
        except Unsupported:
            self._planned = False
            return None
        plan.take(self._for(plan, arrays))
        return plan

    def _for(self, plan: StepPlan, arrays: Arrays) -> Arrays:
        """The arrays that are fed to a plan, in its order."""
        at = self._at
        return [arrays[at[name]] for name in plan.feed_names]

    def _run_without_plan(self, arrays: Arrays) -> tuple[Arrays, Callable[..., Any] | None]:
        self._traced.refresh()
        feed: Feed = {name: (array, ()) for name, array in zip(self._fed, arrays, strict=False)}
        scope = self._traced.scope
        segmented = self.device is None and flags.engine() == "plan"
        forward, _ = self.halves(segmented)
        if segmented:
            self._traced.own()
            self._traced.refresh()
        run = (
            SegmentedExecutor(forward, scope, feed)
            if segmented
            else Interpreter(self.program, scope, feed, self.device, self._check_finite)
        )
        run.run(forward)
        self._traced.bring_back([scope.var(name).get_tensor().array for name in self._held])
        found = [cast("LoDTensor", run.fetch(name)).array for name in self.outputs]
        outputs = [placing.to_device(array, self.device) for array in found]
        return outputs, Unplanned(self, run, outputs) if self.late else self._refuse()

    def halves(self, segmented: bool) -> tuple[Any, Any]:
        """The forward and the backward operators, if `segmented` partitioned into plans and other segments."""
        ops = self.program.global_block().ops
        late = [op for op in ops if op.attrs.get("op_role", 0) & OpRole.Backward]
        early = [op for op in ops if not op.attrs.get("op_role", 0) & OpRole.Backward]
        if not segmented:
            return early, late
        if self._segments is None:
            read = dict.fromkeys(name for op in late for name in op.reads())
            wanted = [name for name in self.gradients if name is not None]
            self._segments = (
                ProgramSegments(self.program, [*self.outputs, *read], early, self._check_finite),
                ProgramSegments(self.program, wanted, late, self._check_finite),
            )
        return self._segments

    def give_back(self, plan: StepPlan) -> None:
        """Make a plan idle, for a later call; memory of results on a GPU is released."""
        plan.rest()
        self._spare.append(plan)
        if len(self._spare) > SPARE_PLANS:
            del self._spare[0]


class Pending:
    """A call whose gradients may be asked for; the tape calls it with the gradients of the outputs."""

    def __init__(self, runner: Runner, outputs: Arrays) -> None:
        self.runner = runner
        self._like = [(array.shape, array.dtype) for array in outputs]

    def arriving(self, grads: Sequence[Any]) -> Arrays:
        """The gradients of the differentiable outputs as contiguous arrays; zeros where none arrived."""
        arrays = []
        for gradient, (shape, dtype), used in zip(grads, self._like, self.runner.differentiable, strict=True):
            if used:
                arrays.append(self._arrived(gradient, shape, dtype))
        return arrays

    def _arrived(self, gradient: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        if gradient is None:
            return placing.zeros(self.runner.device, shape, dtype)
        dense = placing.to_device(placing.dense(gradient), self.runner.device)
        with placing.computing(dense):
            arrived = dense.astype(dtype, copy=False).reshape(shape)
        return plain(arrived) if isinstance(arrived, np.ndarray) else arrived


class Planned(Pending):
    """A call that holds a plan until it is released from the tape."""

    def __init__(self, runner: Runner, plan: StepPlan, outputs: Arrays) -> None:
        super().__init__(runner, outputs)
        self._plan = plan

    def __call__(self, grads: Sequence[Any], retain: bool) -> list[Any]:
        plan = self._plan
        before: Any = plan.snapshot() if retain else None
        results = self.runner.in_order(plan.run_second(self.arriving(grads)))
        if before is not None:
            plan.restore(before)
        return results

    def __del__(self) -> None:
        self.runner.give_back(self._plan)


class Unplanned(Pending):
    """A call of a program that cannot be planned: the values of all its variables are kept."""

    def __init__(self, runner: Runner, run: Interpreter, outputs: Arrays) -> None:
        super().__init__(runner, outputs)
        self._run = run
        self._before = run.frame.only(run.values)

    def __call__(self, grads: Sequence[Any], retain: bool) -> list[Any]:
        run, runner = self._run, self.runner
        run.frame = self._before.only(self._before.values)
        run.values.update(zip(runner.late, self.arriving(grads), strict=True))
        _, backward = runner.halves(isinstance(run, SegmentedExecutor))
        run.run(backward)
        return [None if name is None else run.values[name] for name in runner.gradients]


def _depending(program: Program, names: list[str]) -> set[str]:
    """The variables computed differentiably from any of `names`, and these."""
    reached = set(names)
    block = program.global_block()
    for op in block.ops:
        if not (op.definition.grad or op.definition.effects.control) or not reached.intersection(
            op.input_arg_names
        ):
            continue
        for slot, names_out in op.outputs.items():
            if slot in op.definition.no_grad:
                continue
            for name in names_out:
                var = block.vars.get(name)
                if var is not None and not var.stop_gradient and var.dtype in FLOATS:
                    reached.add(name)
    return reached


def _terminal(program: Program, var: Variable) -> Variable:
    """`var`, or a copy if an operator reads it, so that the caller's gradient adds to that of these operators."""
    block = program.global_block()
    if not any(var.name in op.input_arg_names for op in block.ops):
        return var
    copy = block.create_var(name=f"{var.name}@RESULT", shape=var.shape, dtype=var.dtype)
    block.append_op(type="assign", inputs={"X": [var]}, outputs={"Out": [copy]})
    return copy
