"""Switching dygraph mode on and off, and tensors from arrays (`fluid.dygraph.base`)."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from ... import backend, eager
from ...base import context, unique_name
from ...base.dtypes import to_vartype
from ...base.errors import FeedError
from ...base.place import Place
from ...eager import grad, no_grad
from ...framework import (
    ComplexVariable,
    Program,
    Variable,
    mode,
    program_guard,
    switch_main_program,
    switch_startup_program,
    tracing,
)
from ...framework.mode import in_dygraph_mode
from .. import layers

__all__ = [
    "disable_dygraph",
    "disable_imperative",
    "enable_dygraph",
    "enable_imperative",
    "enabled",
    "grad",
    "guard",
    "in_dygraph_mode",
    "no_grad",
    "to_variable",
]


def _check_place(place: Place | None) -> None:
    """Warn if `place` is not usable. Raises TypeError if it is no place, ValueError for a GPU that does not exist."""
    if place is None:
        return
    if not isinstance(place, Place):
        raise TypeError(f"a place is fluid.CPUPlace() or fluid.CUDAPlace(0), got {place!r}")
    backend.device_at(place)


@contextmanager
def guard(place: Place | None = None) -> Iterator[None]:
    """Dygraph mode inside the block: `with fluid.dygraph.guard():` (`fluid.dygraph.guard`).

    Generated names start from 0, the default programs are new ones, and gradients are recorded. The previous state is
    restored afterwards, also after an exception. Can also decorate a function.

    Args:
        place: the device of new tensors (parameters, constants, `to_variable`); operators compute on that of their
            arguments. By default that of an enclosing guard or `paddle.set_device`, else the CPU (`--device gpu`: the
            GPU).

    Raises:
        TypeError: if `place` is no place. ValueError: for a GPU that this machine does not have.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> with fluid.dygraph.guard():
        ...     x = fluid.dygraph.to_variable(np.array([1, 2], "float32"))
        ...     print((x * x).numpy())
        [1. 4.]
    """
    _check_place(place)
    number = eager.serial()
    with ExitStack() as stack:
        stack.enter_context(program_guard(Program(), Program()))
        stack.enter_context(mode.building(False))
        stack.enter_context(unique_name.guard())
        stack.enter_context(mode.guard(True))
        stack.enter_context(mode.training_guard(True))
        stack.enter_context(eager.recording(True))
        if place is not None:
            stack.enter_context(mode.place_guard(place))
        stack.callback(eager.set_serial, number)
        eager.set_serial(0)
        yield


class _Before:
    """The state replaced by `enable_dygraph`, which `disable_dygraph` restores."""

    def __init__(self, place: Place | None) -> None:
        self.place = mode.set_place(place) if place is not None else None
        self.placed = place is not None
        self.mode = None if mode.eager_by_default() else False
        self.recording, self.training = eager.is_recording(), mode.is_training()
        self.number = eager.serial()
        self.programs = switch_main_program(Program()), switch_startup_program(Program())
        self.names = unique_name.switch()
        mode.switch(True)
        mode.set_training(True)
        eager.set_recording(True)
        eager.set_serial(0)

    def restore(self) -> None:
        if self.placed:
            mode.set_place(self.place)
        mode.switch(self.mode)
        mode.set_training(self.training)
        eager.set_recording(self.recording)
        eager.set_serial(self.number)
        switch_main_program(self.programs[0])
        switch_startup_program(self.programs[1])
        unique_name.switch(*self.names)


_before: context.Slot[_Before | None] = context.Slot("dygraph.before", None)


def enable_dygraph(place: Place | None = None) -> None:
    """Dygraph mode from here on, until `disable_dygraph` (`fluid.enable_dygraph`).

    Without effect where it is on. `place`: see `guard`. Raises TypeError if it is no place, ValueError for a GPU that
    this machine does not have.
    """
    _check_place(place)
    if not in_dygraph_mode():
        _before.set(_Before(place))


def disable_dygraph() -> None:
    """End what `enable_dygraph` began; without effect otherwise (`fluid.disable_dygraph`)."""
    before = _before.get()
    if before is not None:
        _before.set(None)
        before.restore()


enable_imperative, disable_imperative = enable_dygraph, disable_dygraph


def enabled() -> bool:
    """Whether dygraph mode is on (`fluid.dygraph.enabled`)."""
    return in_dygraph_mode()


@contextmanager
def _switch_tracer_mode_guard_(is_train: bool = True) -> Iterator[None]:
    """Have gradients recorded inside the block, or not."""
    with eager.recording(is_train):
        yield


@contextmanager
def param_guard(parameters: Any) -> Iterator[None]:
    """Without effect: traces capture the parameters of layers when they are used."""
    yield


@contextmanager
def program_desc_tracing_guard(enable: bool) -> Iterator[None]:
    """Without effect: `fluid.dygraph.jit` traces."""
    yield


def _switch_to_static_graph_(func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`, run in static mode."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        with mode.guard(False):
            return func(*args, **kwargs)

    return call


switch_to_static_graph = _switch_to_static_graph_
Tracer = eager.Tracer


def to_variable(value: Any, name: str | None = None, zero_copy: bool | None = None) -> Any:
    """A tensor with the elements of a NumPy array, where tensors are made (`fluid.dygraph.to_variable`; see `guard`).

    Args:
        value: the array; a tensor or Variable is returned as it is. Complex numbers give a ComplexVariable.
        name: the tensor's name, by default a generated one.
        zero_copy: False: copy the array. By default a tensor on the CPU shares its memory, as in Fluid, if it is
            contiguous: later changes of the array are visible in the tensor.

    In a function that is translated outside of dygraph mode (`dygraph_to_static_func`), returns `layers.assign(value)`.

    Raises:
        AssertionError, as in Fluid: outside of dygraph mode. TypeError: `value` is neither array nor tensor. FeedError
        (an EnforceNotMet and TypeError): its elements are of a type that Fluid does not have.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> with fluid.dygraph.guard():
        ...     x = fluid.dygraph.to_variable(np.array([1.0, 2.0], "float32"))
        ...     x.stop_gradient = False
        ...     fluid.layers.reduce_sum(x * x).backward()
        ...     print(x.gradient())
        [2. 4.]
    """
    if not in_dygraph_mode() and tracing.current() is None:
        if tracing.rewriter.get() is not None:
            return layers.assign(value)
        raise AssertionError(
            "to_variable works in dygraph mode only: use it inside `with fluid.dygraph.guard():` or after "
            "fluid.enable_dygraph()"
        )
    if isinstance(value, (Variable, ComplexVariable)):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind == "c":
        real, imag = (eager.to_variable(np.ascontiguousarray(part)) for part in (value.real, value.imag))
        return ComplexVariable.from_parts(real, imag, name)
    if isinstance(value, np.ndarray):
        try:
            to_vartype(value.dtype)
        except TypeError as error:
            raise FeedError(f"to_variable: {error}") from None
    if zero_copy is not False and isinstance(value, np.ndarray):
        return eager.Tensor(eager.placing.to_default_device(np.asarray(value, order="C")), name)
    return eager.to_variable(value, name)


def _print_debug_msg(parameter_list: Any, limit: int = 5, is_test: bool = False) -> None:
    """Log that there are no debug counters, as Fluid without FLAGS_dygraph_debug; the arguments are without effect."""
    logging.getLogger().warning(
        "Debug mode is not enabled: fluidlite does not count names and tensors; use gc and tracemalloc"
    )
