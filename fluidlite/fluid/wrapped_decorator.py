"""`fluid.wrapped_decorator`: decorators that keep the name, documentation and signature of functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import contextmanager as signature_safe_contextmanager
from typing import Any

from ..base import missing

__all__ = ["signature_safe_contextmanager", "wrap_decorator"]


def wrap_decorator(decorator_func: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[..., Any]:
    """`decorator_func` as a decorator that keeps the signature of functions (`fluid.wrapped_decorator`)."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(func)(decorator_func(func))

    return decorate


__getattr__ = missing.reporter(__name__)
