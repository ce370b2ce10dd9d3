"""The mode of calls without tensor arguments: they build programs or compute at once.

Calls with tensor arguments follow these instead. At the end, the switches and checks that Fluid's own modules use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from ..base import context, flags
from ..base.place import CPUPlace, CUDAPlace, Place

_eager: context.Slot[bool | None] = context.Slot("eager", None)
_modern: context.Slot[bool] = context.Slot("modern", False)
_building: context.Slot[bool] = context.Slot("building", False)
_training: context.Slot[bool] = context.Slot("training", True)
_place: context.Slot[Place | None] = context.Slot("place", None)
_CPU = CPUPlace()


def in_dygraph_mode() -> bool:
    """Whether dygraph mode is on for the names of Fluid 1.8, which are static by default.

    Follows `fluid.in_dygraph_mode`.
    """
    return _eager.get() is True


def eager_by_default() -> bool:
    """Whether the names of Paddle 2.0 compute at once: they do unless static mode was switched on."""
    return _eager.get() is not False


def layers_compute() -> bool:
    """Whether a `Layer` made now has parameters that are eager tensors; otherwise they belong to the default program.

    Dygraph mode and `paddle.enable_static` decide. Where neither does, layers belong to the program inside of
    `program_guard`, and in scripts that use nothing of Paddle 2.0 (`be_modern`), as in Fluid 1.8, whose default mode is
    static.
    """
    eager = _eager.get()
    return _modern.get() and not _building.get() if eager is None else eager


def be_modern() -> None:
    """Note that the script uses `paddle.nn`, `paddle.jit` or `disable_static` of 2.0, whose default mode is dygraph."""
    _modern.set(True)


def building(on: bool = True) -> AbstractContextManager[bool]:
    """Set whether programs are built inside the block, except in dygraph mode (`program_guard`)."""
    return _building.hold(on)


def is_building() -> bool:
    """Whether this is inside of `building`."""
    return _building.get()


def guard(eager: bool | None) -> AbstractContextManager[bool | None]:
    """Set dygraph mode on (True), off (False) or undecided (None) inside the block."""
    return _eager.hold(eager)


def switch(eager: bool | None) -> None:
    """Change the mode of the enclosing guard, or of the process outside of any."""
    _eager.set(eager)


def is_training() -> bool:
    """Whether the last `train()` or `eval()` of any layer in dygraph mode was `train()`; True at its start.

    Layers have a flag of their own; this is for functions, which belong to no layer.
    """
    return _training.get()


def training_guard(training: bool) -> AbstractContextManager[bool]:
    """Set training mode on or off inside the block."""
    return _training.hold(training)


def set_training(training: bool) -> None:
    """Change training mode until the end of the enclosing guard."""
    _training.set(training)


def place_guard(place: Place | None) -> AbstractContextManager[Place | None]:
    """Set the place of eager tensors made without tensor arguments (parameters, constants, arrays) inside the block.

    None: the default, which is the CPU, or the first GPU where one is required (`--device gpu`).
    """
    return _place.hold(place)


def set_place(place: Place | None) -> Place | None:
    """Set the place of the enclosing guard, or of the process outside of any; returns the previous one."""
    before = _place.get()
    _place.set(place)
    return before


def _current_expected_place() -> Place:
    """The place of new eager tensors (`fluid.framework._current_expected_place`)."""
    place = _place.get()
    if place is None:
        return CUDAPlace(0) if flags.device() == "gpu" else _CPU
    return place


Function = TypeVar("Function", bound=Callable[..., Any])

_tracer: list[Any] = []


def set_tracer(tracer: Any) -> None:
    """Set the result of `_dygraph_tracer` in dygraph mode."""
    _tracer[:] = [tracer]


def _dygraph_tracer() -> Any:
    """The `fluid.dygraph.Tracer` that runs operators in dygraph mode; None outside of it."""
    return _tracer[0] if in_dygraph_mode() and _tracer else None


@contextmanager
def _dygraph_guard(tracer: Any) -> Iterator[None]:
    """Dygraph mode inside the block, or with None static mode; names and default programs stay as they are."""
    with guard(tracer is not None):
        yield


@contextmanager
def _dygraph_place_guard(place: Place | None) -> Iterator[None]:
    """Set the place of new eager tensors inside the block."""
    with place_guard(place):
        yield


def dygraph_only(func: Function) -> Function:
    """`func`, which raises AssertionError outside of dygraph mode (`fluid.framework.dygraph_only`)."""
    name = func.__name__
    return _checked(
        func,
        in_dygraph_mode,
        f"We Only support {name} in imperative mode: call it inside fluid.dygraph.guard()",
    )


def dygraph_not_support(func: Function) -> Function:
    """`func`, which raises AssertionError in dygraph mode (`fluid.framework.dygraph_not_support`)."""
    return _checked(
        func,
        lambda: not in_dygraph_mode(),
        f"We don't support {func.__name__} in imperative mode: call it outside of fluid.dygraph.guard()",
    )


def fake_interface_only(func: Function) -> Function:
    """Make a method of eager tensors raise AssertionError elsewhere (`fluid.framework.fake_interface_only`)."""
    return _checked(
        func,
        lambda: False,
        f"'{func.__name__}' needs an eager tensor: make one inside fluid.dygraph.guard()",
    )


def _checked(func: Function, holds: Callable[[], bool], message: str) -> Function:
    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not holds():
            raise AssertionError(message)
        return func(*args, **kwargs)

    return call  # type: ignore[return-value]
