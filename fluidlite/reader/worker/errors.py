"""Errors of worker processes: how they travel to the parent, and those of the processes themselves."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any

# (how to make it again, pickled, or None if that does not work; type and message; traceback)
Portable = tuple[bytes | None, str, str]


class WorkerTraceback(Exception):
    """The traceback of an error in a worker process as text; it is the cause of the error raised here."""

    def __str__(self) -> str:
        return f"\n\nin the worker process:\n{self.args[0]}"


class WorkerDone(Exception):
    """A worker has ended as it should; `value` is what its function returned, `worker` its number."""

    def __init__(self, value: Any, worker: int) -> None:
        super().__init__(value, worker)
        self.value = value
        self.worker = worker


class WorkerDied(RuntimeError):
    """A worker process was killed, or left by itself, before it was done."""


class WorkerTimeout(RuntimeError, TimeoutError):
    """A worker gave nothing for as long as the pool's timeout."""


class PoolClosed(Exception):
    """The pool was closed, perhaps by another thread while this one waited."""


def portable(error: BaseException) -> Portable:
    """An error of this process in a form that can be pickled."""
    described = "".join(traceback.format_exception_only(type(error), error)).strip()
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return _recipe(error), described, trace


def _recipe(error: BaseException) -> bytes | None:
    """Pickled: the error itself, or its type, arguments and attributes, whichever makes the same error again.

    None if neither does, and for SystemExit and the like, which must not end the parent.
    """
    if not isinstance(error, Exception):
        return None
    for recipe in (error, (type(error), error.args, error.__dict__)):
        try:
            pickled = pickle.dumps(recipe)
            again = _made(pickled)
            if type(again) is type(error) and str(again) == str(error):
                return pickled
        except Exception:
            continue
    return None


def _made(pickled: bytes) -> BaseException:
    recipe = pickle.loads(pickled)  # from our own worker, nobody else has the other end of its channel
    if isinstance(recipe, BaseException):
        return recipe
    kind, args, attributes = recipe
    # Not through __init__, which may take other arguments than those that it hands on.
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


def rebuilt(error: Portable, label: str) -> BaseException:
    """The error of a worker that messages call `label`; its cause is a WorkerTraceback.

    A RuntimeError with its type and message if it cannot be made again.
    """
    pickled, described, trace = error
    again: BaseException | None = None
    if pickled is not None:
        try:
            again = _made(pickled)
        except Exception:
            pass  # its class cannot be imported here: described below
    if again is None:
        again = RuntimeError(f"{label} failed: {described}")
    again.__cause__ = WorkerTraceback(trace)
    return again


def maker(error: BaseException) -> Callable[[], BaseException]:
    """A function that makes errors like this one, without keeping it: the traceback that it gets on its way would keep
    all that its receiver had in hand.
    """
    pickled, described, _ = portable(error)
    cause = error.__cause__ if isinstance(error.__cause__, WorkerTraceback) else None

    def make() -> BaseException:
        again = RuntimeError(described) if pickled is None else _made(pickled)
        again.__cause__ = cause
        return again

    return make
