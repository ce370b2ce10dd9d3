"""Runs a program as `__main__`, as the interpreter itself would, with its own part left out of tracebacks."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib.util
import io
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, FrameType, ModuleType, TracebackType

from .. import old_scripts
from ..base import missing
from ..base.names.fluid_modules import real_name
from ..base.reports import tracebacks

Program = tuple[CodeType, ModuleType]
"""Compiled code and the module, not yet in `sys.modules`, that it is to run in."""

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 and the number of SIGINT, as shells count."""


def problem(path: str) -> str:
    """The reason why the script at a path cannot be run; empty if it can."""
    if not os.path.exists(path):
        return f"there is no script {path}"
    if os.path.isdir(path) and PathFinder.find_spec("__main__", [path]) is None:
        return f"the folder {path} has no __main__.py to run"
    return ""


_arguments: list[tuple[list[str], list[str]]] = []
"""Lists installed as `sys.argv`, each with the one it replaced."""


def command_line() -> list[str]:
    """The arguments that this process was started with, also when a debugger starts it over."""
    return next((before for now, before in _arguments if now is sys.argv), sys.argv)[1:]


def _set_argv(argv: list[str]) -> None:
    """Make `argv` the `sys.argv` of the script."""
    _arguments[:] = [(argv, [sys.argv[0], *command_line()])]
    sys.argv = argv


def from_file(path: str, args: list[str]) -> Program:
    """The script `path`, or the `__main__.py` in a directory or zip file of that name."""
    _set_argv([path, *args])
    spec = PathFinder.find_spec("__main__", [path])
    if spec is not None:
        _search_first(path)
        return _from_spec(spec)
    _search_first(os.path.dirname(os.path.realpath(path)))
    module = _module(__file__=path, __loader__=SourceFileLoader("__main__", path))
    with open(path, "rb") as script:
        return _compiled(script.read(), path), module


def from_module(name: str, args: list[str]) -> Program:
    """The program of `python -m NAME ARGS`. Raises ImportError if there is no such module, or none that can be
    run."""
    _search_first(os.getcwd())
    _set_argv(["-m", *args])
    spec = importlib.util.find_spec(_module_here(name))
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    if spec is None:
        raise ImportError(f"no module named {name} that can be run", name=name)
    program = _from_spec(spec)
    sys.argv[0] = spec.origin or name
    return program


def _module_here(name: str) -> str:
    """The name of the module to run: for one of Paddle, its counterpart in this package."""
    if name.partition(".")[0] != "paddle":
        return name
    real = real_name(name)
    return name if missing.spec_of(real) is None else real


def from_text(text: str | bytes, args: list[str], name: str = "-c", filename: str = "<string>") -> Program:
    """The program `text`; `name` becomes `sys.argv[0]`, `filename` stands in tracebacks."""
    _search_first("")
    _set_argv([name, *args])
    return _compiled(text, filename), _module()


def run(load: Callable[[], Program]) -> int:
    """Load a program and run it as `__main__`; returns its exit status.

    An exception is reported by `sys.excepthook` without the frames of this package (`tracebacks`); Ctrl-C in one
    line. SystemExit passes through, and so does everything under `python -m pdb`.
    """
    full = tracebacks.is_full()
    atexit.register(_flush_open_files)
    try:
        code, module = load()
        sys.modules["__main__"] = module
        exec(code, module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        debugged = _debugged()
        may_be_ours = tracebacks.shorten(error, full or debugged)
        if debugged:
            raise
        if isinstance(error, KeyboardInterrupt):
            print(f"\ninterrupted{_last_line(error.__traceback__)}", file=sys.stderr)
            return INTERRUPTED
        # As the interpreter sets them, for post-mortem debuggers.
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        if sys.version_info >= (3, 12):
            sys.last_exc = error
        sys.excepthook(type(error), error, error.__traceback__)
        if may_be_ours:
            print(tracebacks.HINT, file=sys.stderr)
        return 1
    return 0


def _debugged() -> bool:
    """Whether a debugger has started this program, and will inspect its error."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") != "bdb":
        frame = frame.f_back
    return frame is not None


def _flush_open_files() -> None:
    """Flush files that are still open.

    A script that patches a class of this package, which C code references, keeps its own variables alive: the
    interpreter then exits without closing their files, and buffered data would be lost.
    """
    for thing in gc.get_objects():
        if type(thing) in (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom) and not thing.closed:
            with contextlib.suppress(OSError, ValueError):
                thing.flush()


def _compiled(source: str | bytes, filename: str) -> CodeType:
    if old_scripts.active():
        return old_scripts.rewriting.compiled(source, filename)
    return compile(source, filename, "exec", dont_inherit=True)


def _from_spec(spec: ModuleSpec) -> Program:
    loader = old_scripts.for_user(spec.loader) if old_scripts.active() else spec.loader
    get_code = getattr(loader, "get_code", None)
    code = get_code(spec.name) if get_code is not None else None
    if code is None:
        raise ImportError(f"{spec.name} has no Python code that can be run", name=spec.name)
    # A directory or zip file is not a module: its __spec__ would tell multiprocessing to import `__main__`.
    own_spec = None if spec.name == "__main__" else spec
    package = spec.name.rpartition(".")[0]
    return code, _module(__file__=spec.origin, __loader__=spec.loader, __spec__=own_spec, __package__=package)


def _module(**attributes: object) -> ModuleType:
    module = ModuleType("__main__")
    module.__dict__.update(attributes)
    return module


def _search_first(path: str) -> None:
    """Put `path` first in `sys.path`, in place of the interpreter's own entry (which safe_path omits)."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = path


def _last_line(traceback: TracebackType | None) -> str:
    """' at FILE:LINE' of the innermost frame in the program's own file."""
    main = getattr(sys.modules["__main__"], "__file__", None)
    place = ""
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == main:
            place = f" at {main}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place
