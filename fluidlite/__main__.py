"""`python -m fluidlite SCRIPT [ARGS]` and the command `fluidlite`: run scripts written for Fluid 1.8."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from . import __version__, old_scripts
from .base import flags
from .distributed import environment
from .paddle import hook, script

_WITH_VALUE = ("-m", "-c", "--device")


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv` (by default that of the process); returns the exit status.

    The script's own SystemExit passes through. Wrong use raises SystemExit of status 2.
    """
    args = list(script.command_line() if argv is None else argv)
    environment.adopt()
    if args and args[0][:1] != "-" and not os.path.exists(args[0]) and args[0] in _commands().names():
        return _commands().run(args[0], args[1:])  # type: ignore[no-any-return]
    load = _command_line(args)
    if load is None:
        return 0
    hook.install()
    hook.announce()
    _keep_package_importable()
    gc.freeze()  # loaded modules stay: a collection over them at exit would take longer than loading many of them
    return script.run(load)


def _command_line(args: list[str]) -> Callable[[], script.Program] | None:
    """The function that loads the program to run, or None if there is none; also sets the options."""
    while args and args[0].startswith("-"):
        option, equals, value = args.pop(0).partition("=")
        if option in _WITH_VALUE and not equals:
            if not args:
                _wrong_use(f"{option} needs an argument")
            value = args.pop(0)
        if option in ("-h", "--help"):
            _commands().parser().print_help()
            return None
        if option in ("-V", "--version"):
            print(f"fluidlite {__version__}")
            return None
        if option == "-":
            return partial(script.from_text, sys.stdin.buffer.read(), args, "-", "<stdin>")
        if option == "-m":
            return partial(script.from_module, value, args)
        if option == "-c":
            return partial(script.from_text, value, args)
        if option == "--strict":
            old_scripts.set_strict(True)
            continue
        if option == "--list-old":
            old_scripts.list_at_exit()
            continue
        if option != "--device":
            _wrong_use(f"unknown option {option}")
        try:
            flags.set_device(value)
        except ValueError as error:
            _wrong_use(f"--device: {error}")
    if not args:
        _wrong_use("no script was given")
    path = args.pop(0)
    if not os.path.exists(path):
        if path in _commands().names():
            _wrong_use(f"the command {path} stands first, before all options")
        _wrong_use(f"no script {path!r}{_commands().meant(path)}")
    if problem := script.problem(path):
        _wrong_use(problem)
    return partial(script.from_file, path, args)


def _commands() -> Any:
    from . import commands  # argparse is slow to import, and scripts without options do without

    return commands


def _wrong_use(message: str) -> NoReturn:
    from .commands import wrong_use

    wrong_use("fluidlite", message)


def _keep_package_importable() -> None:
    """Go on finding this package when it was found through the entry of `sys.path` that the script's takes
    over."""
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    if root not in sys.path[1:]:
        sys.path.append(root)


if __name__ == "__main__":
    status = main()
    if status and not sys.flags.inspect:  # `python -i` goes on in the script
        sys.exit(status)
