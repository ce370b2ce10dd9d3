"""Errors of worker processes: transport to the parent, and errors about the processes themselves."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any

from ...base.errors import public
from ...base.reports import tracebacks

# (pickled recipe of the error, or None if it has none; type and message; traceback)
Portable = tuple[bytes | None, str, str]


@public
class WorkerTraceback(Exception):
    """The traceback of an error in a worker process as text; it is the cause of the error raised here."""

    def __str__(self) -> str:
        return f"\n\nin the worker process:\n{self.args[0]}"


class WorkerDone(Exception):
    """A worker has ended regularly; `value` is the return value of its function, `worker` its number."""

    def __init__(self, value: Any, worker: int) -> None:
        super().__init__(value, worker)
        self.value = value
        self.worker = worker


@public
class WorkerDied(RuntimeError):
    """A worker process was killed, or exited, before it was done."""


@public
class WorkerTimeout(RuntimeError, TimeoutError):
    """A worker gave no result within the pool's timeout."""


class PoolClosed(Exception):
    """The pool was closed, perhaps by another thread while this one waited."""


def portable(error: BaseException) -> Portable:
    """An error of this process in a form that can be pickled; its traceback has the user's frames (`tracebacks`)."""
    tracebacks.shorten(error, tracebacks.is_full())
    described = "".join(traceback.format_exception_only(type(error), error)).strip()
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return _recipe(error), described, trace


def _recipe(error: BaseException) -> bytes | None:
    """Pickled: the error itself, or its type, arguments and attributes, whichever reconstructs an equal error.

    None if neither does, and for SystemExit and the like, which must not end the parent.
    """
    if not isinstance(error, Exception):
        return None
    for recipe in (error, (type(error), error.args, error.__dict__)):
        try:
            pickled = pickle.dumps(recipe)
            copy = _made(pickled)
            if type(copy) is type(error) and str(copy) == str(error):
                return pickled
        except Exception:
            continue
    return None


def _made(pickled: bytes) -> BaseException:
    recipe = pickle.loads(pickled)  # safe: only our own worker has the other end of the channel
    if isinstance(recipe, BaseException):
        return recipe
    kind, args, attributes = recipe
    # Not through __init__, whose parameters may differ from `args`.
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


def rebuilt(error: Portable, label: str) -> BaseException:
    """The error of a worker that messages call `label`; its cause is a WorkerTraceback, if that has frames to show.

    A RuntimeError with its type and message if it cannot be reconstructed.
    """
    pickled, described, trace = error
    copy: BaseException | None = None
    if pickled is not None:
        try:
            copy = _made(pickled)
        except Exception:
            pass  # its class cannot be imported here: it is described below
    if copy is None:
        copy = RuntimeError(f"{label} failed: {described}")
    copy.__cause__ = WorkerTraceback(trace) if trace.strip() != described else None
    return copy


def maker(error: BaseException) -> Callable[[], BaseException]:
    """A function that makes copies of the error. Keeping the error itself would keep, by its traceback, the local
    variables of every frame that it was raised through.
    """
    pickled, described, _ = portable(error)
    cause = error.__cause__ if isinstance(error.__cause__, WorkerTraceback) else None

    def make() -> BaseException:
        copy = RuntimeError(described) if pickled is None else _made(pickled)
        copy.__cause__ = cause
        return copy

    return make
