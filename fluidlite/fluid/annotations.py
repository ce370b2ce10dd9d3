"""`fluid.annotations`: marking functions as deprecated."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from ..base import missing

__all__ = ["deprecated"]


def deprecated(
    since: str, instead: str, extra_message: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of functions that say on stderr, whenever they are called, what to use instead."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        text = f"API {func.__name__} is deprecated since {since}. Please use {instead} instead."
        if extra_message:
            text += "\n" + extra_message

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            print(text, file=sys.stderr)
            return func(*args, **kwargs)

        wrapper.__doc__ = f"{text}\n\n{func.__doc__ or ''}"
        return wrapper

    return decorate


__getattr__ = missing.reporter(__name__)
