"""`python -m fluidlite SCRIPT [ARGS]` and the command `fluidlite`: run scripts written for Fluid 1.8."""

from __future__ import annotations

import gc
import os
import pkgutil
import sys
from collections.abc import Callable
from functools import partial

from . import __version__, old_scripts
from .base import flags
from .distributed import environment
from .paddle import children, hook, script

USAGE = """\
usage: fluidlite [--device auto|cpu|gpu] [--strict] [--list-old] (SCRIPT | -m MODULE | -c CODE | -) [ARGS]
       fluidlite launch -n PROCESSES [--hosts FILE] [--port PORT] [--log_dir DIRECTORY] [--restart N] SCRIPT [ARGS]
       fluidlite export MODEL_DIR MODEL.onnx [--model FILE] [--params FILE]
       fluidlite draw [-o FILE] (MODEL | SCRIPT [ARGS])
       fluidlite plot LOGDIR [-o FILE]
       fluidlite profile [-o FILE] SCRIPT [ARGS]
"""

HELP = f"""\
{USAGE}
Runs a script written for PaddlePaddle Fluid 1.8, unchanged: in it, `import paddle` and `import paddle.fluid` mean
fluidlite, whether or not Paddle is installed, and so they do in Python that the script starts. A directory or zip
file with a __main__.py is a script, too; `-` reads the script from standard input. `launch` runs it in several
processes that train together, on this machine or on those that FILE lists (HOST slots=N), and ends them all when
one fails; it needs the extra `mpi`. `export` writes a saved inference model as an ONNX model; it needs the extra
`onnx`. `draw` makes an HTML page of the graph of a saved model, or of the first program that a script trains or
tests. `plot` draws the curves that `fluidlite.visual.LogWriter` (`visualdl`) wrote into a folder, as one HTML page;
it needs the extra `visual`. `profile` runs a script and writes an HTML page of where its time and memory went.

options:
  --device DEVICE  what fluid.CUDAPlace means: auto (the default) takes a GPU if there is one and else the
                   CPU, with one warning; cpu always takes the CPU; gpu makes it an error if there is no
                   usable GPU
  --strict         do not put back what is gone from today's Python and its packages (np.float, time.clock,
                   collections.Callable, ...): the script gets today's errors
  --list-old       print at exit, to standard error, what the script used of it: line, name, today's spelling
  --version        print the version and exit
  -h, --help       print this text and exit

environment:
  FLUIDLITE_DATA=DIRECTORY  where to look for data sets first: mnist/train-images-idx3-ubyte.gz, ...
  FLUIDLITE_OFFLINE=1       do not try to download data sets
  FLUIDLITE_REQUIRE_GPU=1   the same as --device gpu
  FLUIDLITE_STRICT=1        the same as --strict
"""


_COMMANDS = {
    "launch": "fluidlite.paddle.distributed.command_line:start_processes",
    "draw": "fluidlite.visual.draw:draw",
    "export": "fluidlite.onnx.command_line:main",
    "plot": "fluidlite.visual.curves:plot",
    "profile": "fluidlite.visual.profile:profile",
}
"""Subcommands and their functions; a script of the same name in the current folder takes precedence."""

_WITH_VALUE = ("-m", "-c", "--device")


class UsageError(Exception):
    """The command line makes no sense."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv` (by default that of the process); returns the exit status.

    The script's own SystemExit passes through.
    """
    args = list(script.command_line() if argv is None else argv)
    environment.adopt()
    if args and args[0] in _COMMANDS and not os.path.exists(args[0]):
        return pkgutil.resolve_name(_COMMANDS[args[0]])(args[1:])  # type: ignore[no-any-return]
    try:
        load = _command_line(args)
    except UsageError as error:
        print(f"{USAGE}fluidlite: {error}", file=sys.stderr)
        return 2
    if load is None:
        return 0
    hook.install()
    children.announce()
    _keep_package_importable()
    gc.freeze()  # loaded modules stay: a collection over them at exit would take longer than loading many of them
    return script.run(load)


def _command_line(args: list[str]) -> Callable[[], script.Program] | None:
    """The function that loads the program to run, or None if there is none; also sets the options."""
    while args and args[0].startswith("-"):
        option, equals, value = args.pop(0).partition("=")
        if option in _WITH_VALUE and not equals:
            if not args:
                raise UsageError(f"{option} needs an argument")
            value = args.pop(0)
        if option in ("-h", "--help"):
            print(HELP, end="")
            return None
        if option == "--version":
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
            raise UsageError(f"unknown option {option}")
        try:
            flags.set_device(value)
        except ValueError as error:
            raise UsageError(f"--device: {error}") from None
    if not args:
        raise UsageError("no script was given")
    path = args.pop(0)
    if problem := script.problem(path):
        raise UsageError(problem)
    return partial(script.from_file, path, args)


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
