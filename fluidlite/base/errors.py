"""Exceptions that Fluid code catches by name, and those for features that are missing here."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

_Error = TypeVar("_Error", bound=type[Exception])

_HOMES: dict[type[Exception], tuple[str, str]] = {}
"""By class that tracebacks show as one of `fluid.core`: the module and name where it is defined."""

_shown_in = "fluidlite.core"


def public(cls: _Error) -> _Error:
    """A class decorator: tracebacks, and pickles, find the class in the package itself (`fluidlite.NotSupportedError`).

    Its name is to be among the imports of `fluidlite/__init__.py`.
    """
    cls.__module__ = "fluidlite"
    return cls


def _of_fluid(cls: _Error) -> _Error:
    """A class decorator: tracebacks show the class as the one of `fluid.core` with its `__name__`."""
    _HOMES[cls] = cls.__module__, cls.__qualname__
    cls.__module__, cls.__qualname__ = _shown_in, cls.__name__
    return cls


def called(name: str) -> Callable[[_Error], _Error]:
    """A class decorator: `type(error).__name__` is the name that Fluid's exception has there, which scripts print and
    compare; tracebacks show `fluid.core.EnforceNotMet` for it, and of others the class's own name.
    """

    def rename(cls: _Error) -> _Error:
        cls.__name__ = name
        return _of_fluid(cls) if name == "EnforceNotMet" else public(cls)

    return rename


def show_as_paddle() -> None:
    """Have tracebacks name Fluid's exceptions as scripts do, which import `paddle.fluid`."""
    global _shown_in
    _shown_in = "paddle.fluid.core"
    for cls in _HOMES:
        cls.__module__ = _shown_in


def _reduced(error: Exception) -> Any:
    """Pickle an exception by where it is defined: names are shared, and depend on the import hook."""
    home = _HOMES.get(type(error))
    return Exception.__reduce__(error) if home is None else (_rebuilt, (*home, error.args, error.__dict__))


def _rebuilt(module: str, name: str, args: tuple[Any, ...], attributes: dict[str, Any]) -> Exception:
    """An exception from its pickle, made without `__init__`, whose parameters may differ from `args`."""
    cls: type[Exception] = getattr(importlib.import_module(module), name)
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


@_of_fluid
class EOFException(Exception):
    """A non-iterable reader has no more data in this epoch (`fluid.core.EOFException`).

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> x = fluid.data("x", [2, 1], "float32")
        >>> loader = fluid.io.DataLoader.from_generator(feed_list=[x], capacity=2, iterable=False)
        >>> _ = loader.set_batch_generator(lambda: iter([[np.ones([2, 1], "float32")]]))
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> loader.start()
        >>> try:
        ...     while True:
        ...         value, = exe.run(fetch_list=[x])
        ... except fluid.core.EOFException:
        ...     loader.reset()
        >>> value.shape
        (2, 1)
    """

    __reduce__ = _reduced


NO_NEXT_DATA = (
    "There is no next data. Catch fluid.core.EOFException where the epoch ends, and call the loader's reset()"
)


@_of_fluid
class EnforceNotMet(Exception):
    """A program could not be run as asked (`fluid.core.EnforceNotMet`): not initialised, not fed, bad value."""

    __reduce__ = _reduced


@public
class NotSupportedError(AttributeError, NotImplementedError):
    """A name, operator or option that Fluid 1.8 has and fluidlite does not have yet."""


@called("AssertionError")
class StaticModeError(AssertionError, TypeError):
    """An attribute of eager tensors was read from a Variable of a static program; Fluid raises AssertionError."""


@called("AssertionError")
class TypeAssertion(AssertionError, TypeError):
    """An argument is of another type than it should be, where Fluid raises AssertionError; also a TypeError."""


@called("EnforceNotMet")
class FormatError(EnforceNotMet, ValueError, RuntimeError):
    """A file, or bytes from one, is not what it should be: foreign, truncated or damaged."""


@called("EnforceNotMet")
class OperatorError(EnforceNotMet, ValueError, AssertionError):
    """An operator was given inputs or attributes that do not fit.

    Fluid finds that out in its layers, where it raises ValueError or AssertionError, or in its native part, which
    raises EnforceNotMet: it is all of these.
    """


@called("ValueError")
class ArgumentError(EnforceNotMet, ValueError, AssertionError):
    """An argument of a layer does not fit; as an OperatorError, whichever of the three Fluid raises."""


@called("AssertionError")
class ArgumentAssertion(ArgumentError):
    """An argument of a layer does not fit, and Fluid asserts it."""


@called("EnforceNotMet")
class ArgumentNotMet(ArgumentError):
    """An argument of a layer is wrong; in Fluid the native part raises this."""


@called("TypeError")
class ArgumentTypeError(TypeError, ValueError, AssertionError):
    """An argument is of a wrong type or missing: Fluid raises TypeError, ValueError or AssertionError."""


@called("EnforceNotMet")
class KernelTypeError(EnforceNotMet, TypeError):
    """An eager tensor is of an element type that an operator does not accept.

    Fluid's layers check the types of Variables, with TypeError; its native part checks those of eager tensors.
    """


@public
class DownloadError(RuntimeError):
    """A data file could not be downloaded."""


def wrong_type(var: object) -> type[TypeError]:
    """The class of an error about the element type of `var`: a Variable or an eager tensor."""
    return KernelTypeError if hasattr(type(var), "grad_array") else TypeError


@called("EnforceNotMet")
class MissingFileError(EnforceNotMet, FileNotFoundError):
    """A file that is to be loaded does not exist."""


@called("AssertionError")
class MissingValueError(AssertionError, RuntimeError):
    """A file that is to be loaded does not have a variable's value; Fluid asserts it."""


@called("AssertionError")
class MissingPartError(AssertionError, FileNotFoundError):
    """One of the files of a model is not there, which Fluid asserts."""


@called("FileNotFoundError")
class MissingModelError(FileNotFoundError, ValueError, RuntimeError):
    """A saved model is missing; Fluid raises one of these classes, depending on the other arguments."""


@called("ValueError")
class DataTypeError(TypeError, ValueError):
    """A value is no data type; Fluid raises ValueError."""


@called("ValueError")
class UnknownOperator(NotSupportedError, ValueError):
    """There is no operator of this type; Fluid raises ValueError."""


@called("EnforceNotMet")
class FeedError(EnforceNotMet, ValueError, TypeError):
    """A fed value is nothing that a tensor can hold; also an EnforceNotMet, a ValueError and a TypeError."""


def out_of_range(
    op_type: str, slot: str, bound: int, what: str, ignore: int | None, value: int, position: int
) -> OperatorError:
    """The error for a class or row number `value`, element `position` of input `slot`, outside of [0, bound).

    `what`: the name of the things that `bound` counts ("classes", "rows in W"); `ignore`: a number allowed as well.
    """
    except_for = "" if ignore is None or 0 <= ignore < bound else f" (or {ignore}, which is ignored)"
    return OperatorError(
        f"operator {op_type}: {slot} must be in [0, {bound}){except_for}, since there are {bound} {what}; "
        f"got {value} at position {position}"
    )
