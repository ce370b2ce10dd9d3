"""Short tracebacks for scripts and notebooks: the user's frames and the message, without this package's frames."""

from __future__ import annotations

import opcode
import os
import re
import sys
from types import FunctionType, TracebackType
from typing import Any

from .. import callsite

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_OURS = (_PACKAGE, "fluidlite/_ext/")  # the second: files of compiled code
_LIBRARIES = (os.path.dirname(os.__file__) + os.sep, "<frozen", "<__array_function__")
_RUNNER = (
    _PACKAGE + "__main__.py",
    _PACKAGE + "paddle/script.py",
    _PACKAGE + "old_scripts",
    "<frozen importlib",
)
HINT = "(FLUIDLITE_TRACEBACK=full shows the frames of fluidlite as well)"


def is_full() -> bool:
    """Whether tracebacks keep this package's frames (FLUIDLITE_TRACEBACK=full); ValueError for another text."""
    text = os.environ.get("FLUIDLITE_TRACEBACK", "")
    if text not in ("", "short", "full"):
        raise ValueError(f"the environment variable FLUIDLITE_TRACEBACK must be full or short, got {text!r}")
    return text == "full"


def shorten(error: BaseException, full: bool) -> bool:
    """Remove this package's frames from the tracebacks of `error` and its causes; with `full` only those of the runner.

    Causes go that had no other frames and whose message the error repeats. Returns whether the error may be a fault of
    this package: one of the kinds that faults have, from a hidden frame and not from a `raise` there.
    """
    may_be_fault = isinstance(error, _FAULTS) and not full and not _is_raised(error.__traceback__)
    came_from_ours = hidden = False
    if isinstance(error, TypeError) and not full:
        suggest_argument(error)
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        current.__traceback__, hidden = _without_ours(current.__traceback__, full, hidden)
        if current is error:
            came_from_ours = hidden
        cause = _cause(current)
        while hidden and not full and cause is not None and _is_repeated(cause, current):
            seen.add(id(cause))
            cause = _cause(cause)
            if id(cause) in seen:
                cause = None
            current.__cause__ = cause  # and leaves out the context
        current = cause
    return may_be_fault and came_from_ours and error.__cause__ is None


def _is_raised(traceback: TracebackType | None) -> bool:
    """Whether the innermost frame is at a `raise` statement."""
    if traceback is None:
        return False
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    compiled = not code.co_filename.endswith(".py")  # raises what it means to
    return compiled or code.co_code[traceback.tb_lasti] == _RAISE


_FAULTS = (AttributeError, LookupError, NameError, TypeError, AssertionError, ZeroDivisionError)
_RAISE = opcode.opmap["RAISE_VARARGS"]
_UNEXPECTED = re.compile(r"([\w.]+)\(\) got an unexpected keyword argument '(\w+)'")


def suggest_argument(error: TypeError) -> None:
    """Add the argument that was meant, or all there are, to Python's error about an unknown one of this package."""
    import difflib  # slow to import, as the next one is
    import inspect

    match = _UNEXPECTED.fullmatch(str(error))
    function = _function(match[1]) if match else None
    if match is None or function is None:
        return
    known = [name for name in inspect.signature(function).parameters if name != "self"]
    given = match[2]
    near = [name for name in known if given.startswith(name) or name.startswith(given)]
    near += difflib.get_close_matches(given, known, n=1)
    error.args = (
        f"{error}; did you mean {near[0]!r}?" if near else f"{error}; its arguments are {', '.join(known)}",
    )


def _function(qualname: str) -> Any:
    """The function of this package that Python's errors call so; None if there is none that is loaded, or several."""
    first, _, rest = qualname.partition(".")
    found = set()
    for name, module in list(sys.modules.items()):
        if name.startswith("fluidlite."):
            each: Any = vars(module).get(first)
            for part in rest.split(".") if rest else ():
                each = getattr(each, part, None)
            if isinstance(each, FunctionType) and each.__qualname__ == qualname:
                found.add(each)
    return found.pop() if len(found) == 1 else None


def _without_ours(
    traceback: TracebackType | None, full: bool, hidden: bool
) -> tuple[TracebackType | None, bool]:
    """The traceback without hidden frames, and whether the innermost frame was hidden.

    Frames of libraries that this package called go, too; those of the user's code that it called stay. `hidden`:
    whether the traceback begins in code that this package called.
    """
    shown: list[TracebackType] = []
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if full:
            hidden = file.startswith(_RUNNER)
        else:
            hidden = file.startswith((*_OURS, "<frozen importlib")) or (hidden and _in_library(file))
        if not hidden:
            shown.append(traceback)
        traceback = traceback.tb_next
    for one in reversed(shown):
        one.tb_next = traceback
        traceback = one
    return traceback, hidden


def _in_library(file: str) -> bool:
    """Whether a file belongs to Python or NumPy."""
    if "site-packages" in file:
        return f"site-packages{os.sep}numpy{os.sep}" in file
    return file.startswith(_LIBRARIES)


def _cause(error: BaseException) -> BaseException | None:
    """The exception that a traceback shows before `error`."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _is_repeated(cause: BaseException, error: BaseException) -> bool:
    """Whether a cause says nothing that its effect does not say."""
    return _without_ours(cause.__traceback__, False, True)[0] is None and str(cause) in str(error)


def install() -> None:
    """Shorten the tracebacks that a notebook or IPython shows in this process; calling it again looks for a new one."""
    full = is_full()
    running = callsite.shell()
    show = getattr(running, "showtraceback", None)
    if show is None or show.__module__ == __name__:
        return

    def showtraceback(exc_tuple: Any = None, *args: Any, **options: Any) -> None:
        error = (exc_tuple or sys.exc_info())[1]
        may_be_ours = False
        if isinstance(error, BaseException):
            may_be_ours = shorten(error, full)
            exc_tuple = type(error), error, error.__traceback__
        show(exc_tuple, *args, **options)
        if may_be_ours:
            print(HINT, file=sys.stderr)

    running.showtraceback = showtraceback
