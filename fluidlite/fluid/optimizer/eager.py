"""Optimizers on eager parameters: the update operators of a private program, run in place on the parameters.

An update rule is written once, as the operators that `Optimizer.minimize` appends to a program. For eager parameters
`EagerSteps` has the same code append them to a private program whose gradients are fed, makes a plan of it, and lets
every step bind the arrays of gradients and parameters and run the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend.cupy_ import library
from ...base import unique_name
from ...base.arrays import owned, plain_copy
from ...base.dtypes import VarType
from ...base.errors import ArgumentError, ArgumentTypeError, EnforceNotMet, NotSupportedError
from ...base.reports import profiling
from ...base.selected_rows import SelectedRows
from ...eager import Parameter, Tensor, placing
from ...executor import LoDTensor, Scope
from ...executor.compile import compile_plan
from ...executor.executor import run_program
from ...executor.failures import Unsupported
from ...executor.ir.request import Request
from ...executor.ir.step_plan import StepPlan
from ...framework import Block, Program, Variable, default_main_program, mode, program_guard
from ...framework import Parameter as ProgramParameter
from ...ops.registry import grad_name

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice
    from .base import Optimizer


RATE = "learning_rate"
"""The prefix of the name of the learning rate's variable."""


def eager_parameters(given: Sequence[Any] | None, eager: bool, argument: str) -> list[Parameter] | None:
    """The eager parameters in `given`, each once; None if an optimizer with this list works on programs.

    `argument` is what `given` is called; `eager` is the mode that counts when `given` holds nothing. Raises
    AttributeError for no list in eager mode, TypeError for tensors that are not parameters and for lists that mix
    parameters with names or Variables, ValueError for two parameters of the same name.
    """
    if given is None:
        if eager:
            raise AttributeError(
                f"{argument} argument given to the Optimizer should not be None in dygraph mode."
            )
        return None
    if not given:
        return [] if eager else None
    if not any(isinstance(item, Tensor) for item in given):
        if eager:
            raise ArgumentTypeError(
                f"{argument} should hold the Parameters of layers in dygraph mode, "
                f"got {type(given[0]).__name__} ({given[0]!r:.60})"
            )
        return None
    chosen: dict[str, Parameter] = {}
    for item in given:
        if not isinstance(item, Parameter):
            name = f" {item.name!r}" if isinstance(item, Tensor) else f" {item!r:.60}"
            raise ArgumentTypeError(
                f"{argument} should hold Parameters of layers, got the {type(item).__name__}{name}"
            )
        if chosen.setdefault(item.name, item) is not item:
            raise ArgumentError(
                f"{argument} holds two parameters called {item.name!r}, and their accumulators would be mixed "
                "up; give them names of their own with ParamAttr(name=...)"
            )
    return list(chosen.values())


def programs_only(optimizer: object) -> None:
    """Raise NotSupportedError in dygraph mode, for an optimizer that works on programs only, as in Fluid 1.8."""
    if mode.in_dygraph_mode():
        name = type(optimizer).__name__
        raise NotSupportedError(
            f"In dygraph, don't support {name}. Fluid 1.8 has it for programs only: use it outside of dygraph.guard()"
        )


class EagerSteps:
    """The eager half of an optimizer: its parameters, their accumulators, and their update programs.

    There is one update for each set of parameters with gradients; all share the accumulators.
    """

    def __init__(self, optimizer: Optimizer, parameters: list[Parameter]) -> None:
        self.parameters = parameters
        self.rate: float | None = None
        self._optimizer = optimizer
        self._scope = Scope()
        self._updates: dict[tuple[int, ...], EagerUpdate] = {}
        self._names: dict[str, str] = {}
        self._tensors: dict[str, Tensor] = {}
        self._given: dict[str, Tensor] = {}
        self._loaded = _Saved({})
        self._rate_array: Any = None
        self._rate_written: float | None = None
        self._device: CudaDevice | None = None

    def step(self) -> None:
        """Take the next learning rate and update every trainable parameter that has a gradient."""
        self.rate = self._optimizer._next_rate()
        chosen = [p for p in self.parameters if p.grad_array is not None and p.trainable]
        self._update(chosen, [p.grad_array for p in chosen])

    def apply(self, pairs: Iterable[Any]) -> None:
        """Like `step`, with the gradients of `pairs`."""
        self.rate = self._optimizer._next_rate()
        chosen = [(param, grad) for param, grad in pairs if grad is not None and param.trainable]
        grads = [placing.to_device_of(grad.array, param.array) for param, grad in chosen]
        self._update([param for param, _ in chosen], grads)

    def pairs(self) -> list[Any]:
        """The trainable parameters that have a gradient, with it."""
        return [
            (p, Tensor(p.grad_array, grad_name(p.name)))
            for p in self.parameters
            if p.grad_array is not None and p.trainable
        ]

    def clear_gradients(self) -> None:
        for param in self.parameters:
            param.clear_gradient()

    def name(self, stem: str) -> str:
        """A unique name that begins with `stem`, and is the same in all updates."""
        result = self._names.get(stem)
        if result is None:
            result = self._names[stem] = unique_name.generate(stem)
        return result

    def stand_in(self, tensor: Tensor, block: Block) -> Variable:
        """The variable that `tensor`, given by the user in place of a number, is in a private program."""
        known = block.vars.get(tensor.name)
        if known is None:
            known = block.create_var(
                name=tensor.name, shape=tensor.shape, dtype=tensor.dtype, persistable=True, stop_gradient=True
            )
            self._given[tensor.name] = tensor
        return known

    def rate_tensor(self) -> Tensor | None:
        """The learning rate of the last step as a tensor of shape [1]; None before the first."""
        return self._tensors.get(self._names.get(RATE, ""))

    def held_rate(self) -> float | None:
        """The learning rate after the last step, or as it was set since; None before the first step.

        Scripts give the rate's tensor another value, or put another tensor into `_learning_rate_map`. A value written
        on a GPU is not seen, since looking would wait for the device.
        """
        own = self.rate_tensor()
        for tensor in self._optimizer._learning_rate_map.values():
            if tensor is not own:
                return float(tensor)
        if own is None:
            return None
        return float(own.array[0]) if type(own.array) is np.ndarray else self.rate

    def accumulators(self) -> dict[str, Tensor]:
        """The accumulators by name: of all parameters the first, of all the second, ..."""
        result: dict[str, Tensor] = {}
        for by_param in self._optimizer._accumulators.values():
            for tensor in by_param.values():
                assert isinstance(tensor, Tensor)
                result[tensor.name] = tensor
        return result

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore the accumulators from `state`; those that do not exist yet take their values when they are made.

        Raises AssertionError for a missing one, ValueError for one of another shape or dtype, before anything changes.
        """
        arrays = {
            name: np.asarray(placing.host(value.array if isinstance(value, (Tensor, LoDTensor)) else value))
            for name, value in state.items()
        }
        own = self.accumulators()
        found, saved = {}, _Saved(arrays)
        for name, tensor in own.items():
            array = saved.find(name)
            if array is None:
                raise AssertionError(f"optimizer variable {name} not found{_among(arrays)}")
            found[name] = _fitting(name, array, tensor.array)
        for name, array in found.items():
            placing.overwrite(own[name].array, array)
        self._loaded = _Saved({name: array.copy() for name, array in arrays.items()})

    def _update(self, chosen: list[Parameter], grads: list[Any]) -> None:
        if not chosen:
            return
        clip = self._optimizer._grad_clip
        if clip is not None and clip._is_eager:
            pairs = [(p, Tensor(grad, grad_name(p.name))) for p, grad in zip(chosen, grads, strict=True)]
            clipped = {param.name: grad.array for param, grad in clip(pairs) if grad is not None}
            chosen = [param for param in chosen if param.name in clipped]
            grads = [clipped[param.name] for param in chosen]
        if library.array_type is not None:  # without CuPy everything is on the host
            self._follow(chosen)
            grads = [
                placing.to_device_of(grad, param.array) for param, grad in zip(chosen, grads, strict=True)
            ]
        key = tuple([id(param) for param in chosen])
        update = self._updates.get(key)
        if update is None or not update.takes(grads):
            update = self._updates[key] = self._build(chosen, grads)
            if not update.takes(grads):
                raise EnforceNotMet(
                    f"the gradients of {[param.name for param in chosen]} do not fit the parameters"
                )
        self._write_rate()
        update.run(grads)

    def _write_rate(self) -> None:
        array = self._rate_array
        if array is None:
            return
        if type(array) is np.ndarray:
            if array[0] != self.rate:
                array[0] = self.rate
        elif self._rate_written != self.rate:
            # Not compared with the current value: that would wait for the device.
            placing.overwrite(array, np.array([self.rate], array.dtype))
            self._rate_written = self.rate

    def _follow(self, chosen: list[Parameter]) -> None:
        """Move the accumulators and other persistable variables to the device of the parameters."""
        device = placing.device_of(chosen[0].array)
        for param in chosen:
            if placing.device_of(param.array) is not device:
                raise ArgumentError(
                    f"the parameters of an optimizer must be at one place: {chosen[0].name!r} is on "
                    f"{chosen[0].place!r}, {param.name!r} on {param.place!r}"
                )
        if device is self._device:
            return
        self._device = device
        self._updates.clear()
        self._rate_array = None
        for name, tensor in self._tensors.items():
            tensor.array = placing.to_device(tensor.array, device)
            self._scope.var(name).set(LoDTensor.wrap(tensor.array))

    def _build(self, chosen: list[Parameter], grads: list[Any]) -> EagerUpdate:
        """The update of `chosen`; makes the accumulators that they do not have yet."""
        optimizer = self._optimizer
        program, startup = Program(), Program()
        before, optimizer._accumulators = optimizer._accumulators, {}
        rates, optimizer._learning_rate_map = optimizer._learning_rate_map, {}
        if optimizer._dtype is None:
            optimizer._dtype = chosen[0].dtype
        try:
            with mode.guard(False), program_guard(program, startup):
                block = program.global_block()
                optimizer._append_updates(
                    [
                        (_variable(param, block), _fed(param, grad, block))
                        for param, grad in zip(chosen, grads, strict=True)
                    ]
                )
            made = optimizer._accumulators
        finally:
            optimizer._accumulators = before
            optimizer._learning_rate_map = rates
        self._start(startup)
        for key, by_param in made.items():
            tensors: dict[str, Any] = before.setdefault(key, {})
            for name, var in by_param.items():
                tensors.setdefault(name, self._tensors[var.name])
        rate = self._scope.find_var(self.name(RATE))
        self._rate_array = rate.get_tensor().array if rate is not None else None
        if rate is not None and not rates:
            rates[default_main_program()] = self._tensors[self.name(RATE)]  # type: ignore[assignment]
        self._rate_written = None
        held: dict[str, Tensor] = {param.name: param for param in chosen}
        held.update((name, tensor) for name, tensor in self._given.items() if name in block.vars)
        return EagerUpdate(program, self._scope, chosen, grads, held, self._tensors, self._device)

    def _start(self, startup: Program) -> None:
        """Initialise new accumulators and the learning rate."""
        fresh = Scope()
        run_program(startup, {}, (), fresh, True, check_finite=False)
        new = {}
        for name in fresh.local_var_names():
            if self._scope.find_var(name) is None:
                var = fresh.find_var(name)
                assert var is not None
                new[name] = np.array(var.get_tensor().array)
        for name, array in new.items():
            if self._loaded.arrays and name != self._names.get(RATE):
                saved = self._loaded.find(name)
                if saved is None:
                    raise AssertionError(
                        f"Optimizer set error, {name} should in state dict{_among(self._loaded.arrays)}"
                    )
                np.copyto(array, _fitting(name, saved, array))
        for name, array in new.items():
            put = placing.to_device(array, self._device)
            self._scope.var(name).set(LoDTensor.wrap(put))
            self._tensors[name] = Tensor(put, name, persistable=True)


def _variable(param: Parameter, block: Block) -> ProgramParameter:
    """Create the parameter of a private program that represents an eager one."""
    return block.create_parameter(
        name=param.name,
        shape=param.shape,
        dtype=param.dtype,
        trainable=True,
        optimize_attr=param.optimize_attr,
        regularizer=param.regularizer,
        gradient_clip_attr=param.gradient_clip_attr,
        need_clip=param.need_clip,
        origin=param,
    )


def _fed(param: Parameter, grad: Any, block: Block) -> Variable:
    """The gradient of a parameter, as a variable that is fed."""
    kind = VarType.SELECTED_ROWS if isinstance(grad, SelectedRows) else VarType.LOD_TENSOR
    return block.create_var(
        name=grad_name(param.name), shape=param.shape, dtype=param.dtype, type=kind, is_data=True
    )


class _Saved:
    """The accumulators of a state dict. A name's number counts optimizers and may be another one than ours.

    A second optimizer for the same parameters, in the same process, numbers its accumulators on.
    """

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays
        self._alike: dict[str, list[np.ndarray]] = {}
        for name, array in arrays.items():
            stem, _, number = name.rpartition("_")
            if number.isdecimal():
                self._alike.setdefault(stem, []).append(array)

    def find(self, name: str) -> np.ndarray | None:
        """The value saved for accumulator `name`, or for the only one that differs from it in its number."""
        alike = self._alike.get(name.rpartition("_")[0], [])
        return self.arrays.get(name, alike[0] if len(alike) == 1 else None)


def _fitting(name: str, array: np.ndarray, like: np.ndarray) -> np.ndarray:
    if array.shape != like.shape or array.dtype != like.dtype:
        raise ArgumentError(
            f"optimizer variable {name} has shape {list(like.shape)} and dtype {like.dtype}, the saved one has "
            f"shape {list(array.shape)} and dtype {array.dtype}"
        )
    return array


def _among(state: Iterable[str]) -> str:
    names = sorted(state)
    listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f": the state dict has {listed}" if names else ": the state dict is empty"


RELEASE_FROM = 1 << 16
"""Updates of this many elements or more release the GIL; for fewer, reacquiring it costs more."""


class EagerUpdate:
    """Runs `program`, which updates `params` from the gradients fed to it, on the memory of the tensors themselves.

    Args:
        program: update operators; gradients are its data variables, everything else lasts.
        scope: holds the accumulators and the learning rate.
        params: the parameters, in the order of the gradients that `run` takes.
        grads: gradients like those to come.
        held: tensors by the names of the variables that they stand for.
        accumulators: tensors that share the memory of variables of `scope`.
        device: the GPU where all of them are; None for the host.

    Raises EnforceNotMet if the gradients do not fit the parameters.
    """

    def __init__(
        self,
        program: Program,
        scope: Scope,
        params: Sequence[Parameter],
        grads: Sequence[Any],
        held: Mapping[str, Tensor],
        accumulators: Mapping[str, Tensor],
        device: CudaDevice | None = None,
    ) -> None:
        self._program = program
        self._scope = scope
        self._fed = [grad_name(param.name) for param in params]
        self._held = dict(held)
        self._tensors = list(held.values())
        self._numbers = len(held) > len(params)
        self._accumulators = accumulators
        self._device = device
        self._kinds = [type(grad) for grad in grads]
        self._plan = None if SelectedRows in self._kinds else self._planned(grads)

    def _planned(self, grads: Sequence[Any]) -> StepPlan | None:
        for (name, _), array in zip(self._held.items(), self._arrays(), strict=True):
            self._scope.var(name).set(LoDTensor.wrap(array))
        feed = dict(zip(self._fed, grads, strict=True))
        try:
            plan = compile_plan(
                Request(
                    self._program, self._scope, feed, (), device=self._device, fixed=True, held=[*self._held]
                )
            )
        except Unsupported:
            return None
        plan.release_gil(sum(grad.size for grad in grads) >= RELEASE_FROM)
        return plan

    def _arrays(self) -> list[Any]:
        """The arrays of the held tensors, all where the parameters are; the user's numbers may be elsewhere."""
        arrays = [tensor.array for tensor in self._tensors]
        for k in range(len(self._fed), len(arrays)):
            arrays[k] = placing.to_device(arrays[k], self._device)
        return arrays

    def takes(self, grads: Sequence[Any]) -> bool:
        """Bind gradients and parameters; False if one is of another kind, shape or dtype than planned, or cannot be
        updated where it is."""
        plan = self._plan
        if plan is None:
            return [type(grad) for grad in grads] == self._kinds
        held = self._arrays() if self._numbers else [tensor.array for tensor in self._tensors]
        if plan.accepts([*grads, *held]):
            return True
        if not all(isinstance(array, np.ndarray) for array in (*grads, *held)):
            return False
        for tensor in self._tensors:
            tensor.array = owned(tensor.array)
        return plan.accepts([*[plain_copy(grad) for grad in grads], *self._arrays()])

    def run(self, grads: Sequence[Any]) -> None:
        """Update the parameters, after `takes` has agreed to the gradients."""
        recorder = profiling.active
        with nullcontext() if recorder is None else recorder.span(profiling.UPDATE):
            if self._plan is not None:
                self._plan.run()
            else:
                self._run_as_program(grads)

    def _run_as_program(self, grads: Sequence[Any]) -> None:
        """Have the executor plan and run this; results in new memory are copied to the tensors' memory."""
        shared = [
            (self._scope.var(name), tensor)
            for name, tensor in (*self._accumulators.items(), *self._held.items())
        ]
        for var, tensor in shared:
            if var.get_tensor().array is not tensor.array:
                var.set(LoDTensor.wrap(tensor.array))
        feed = dict(zip(self._fed, grads, strict=True))
        run_program(self._program, feed, (), self._scope, True, self._device, check_finite=False)
        for var, tensor in shared:
            made = var.get_tensor().array
            if made is not None and made is not tensor.array:
                placing.overwrite(tensor.array, made)
