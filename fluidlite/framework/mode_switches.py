"""Switching between programs and dygraph mode from inside, as code written for Fluid's own modules does it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ..base.place import Place
from . import mode

Function = TypeVar("Function", bound=Callable[..., Any])

_tracer: list[Any] = []


def set_tracer(tracer: Any) -> None:
    """Set the result of `_dygraph_tracer` in dygraph mode."""
    _tracer[:] = [tracer]


def _dygraph_tracer() -> Any:
    """The `fluid.dygraph.Tracer` that runs operators in dygraph mode; None outside of it."""
    return _tracer[0] if mode.in_dygraph_mode() and _tracer else None


@contextmanager
def _dygraph_guard(tracer: Any) -> Iterator[None]:
    """Dygraph mode inside the block, or with None static mode; names and default programs stay as they are."""
    with mode.guard(tracer is not None):
        yield


@contextmanager
def _dygraph_place_guard(place: Place | None) -> Iterator[None]:
    """Set the place of new eager tensors inside the block."""
    with mode.place_guard(place):
        yield


def dygraph_only(func: Function) -> Function:
    """`func`, which raises AssertionError outside of dygraph mode (`fluid.framework.dygraph_only`)."""
    name = func.__name__
    return _checked(
        func,
        mode.in_dygraph_mode,
        f"We Only support {name} in imperative mode: call it inside fluid.dygraph.guard()",
    )


def dygraph_not_support(func: Function) -> Function:
    """`func`, which raises AssertionError in dygraph mode (`fluid.framework.dygraph_not_support`)."""
    return _checked(
        func,
        lambda: not mode.in_dygraph_mode(),
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
