"""The command line of `fluidlite`: its parser with the subcommands, their help, and completion for shells."""

from __future__ import annotations

import argparse
import os
import pkgutil
import sys
from collections.abc import Callable
from typing import Any, NoReturn

SCRIPT = "SCRIPT | -m MODULE | -c CODE | -"
DESCRIPTION = """\
Runs a script written for PaddlePaddle Fluid 1.8, unchanged: in it, `import paddle` and `import paddle.fluid` mean
fluidlite, whether or not Paddle is installed, and so they do in Python that the script starts. A directory or zip
file with a __main__.py is a script, too; `-` reads the script from standard input.
"""
ENVIRONMENT = """\
environment:
  FLUIDLITE_DATA=DIRECTORY   where to look for data sets first: mnist/train-images-idx3-ubyte.gz, ...
  FLUIDLITE_OFFLINE=1        do not try to download data sets
  FLUIDLITE_REQUIRE_GPU=1    the same as --device gpu
  FLUIDLITE_STRICT=1         the same as --strict
  FLUIDLITE_TRACEBACK=full   tracebacks with the frames of fluidlite itself
"""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with exit status 2."""

    def error(self, message: str) -> NoReturn:
        wrong_use(self.prog, message)


def wrong_use(program: str, message: str) -> NoReturn:
    """End the process for wrong use of a command: one line, exit status 2."""
    separator = "" if message.endswith("?") else ";"
    print(f"{program}: {message}{separator} try {program} --help", file=sys.stderr)
    raise SystemExit(2)


def run(name: str, args: list[str]) -> int:
    """Run a subcommand with its arguments; returns the exit status. Wrong use ends the process with status 2."""
    options = parser().parse_args([name, *args])
    function: Callable[[argparse.Namespace], int] = pkgutil.resolve_name(options.function)
    return function(options)


def names() -> tuple[str, ...]:
    """The subcommands. A script of the same name in the current folder takes precedence."""
    return tuple(_COMMANDS)


def parser() -> Parser:
    """The whole parser. A command line without a subcommand is parsed by `__main__`, for the sake of a quick start."""
    whole = Parser(
        "fluidlite",
        usage=f"fluidlite [OPTIONS] ({SCRIPT}) [ARGS]\n       fluidlite COMMAND [ARGS]",
        description=DESCRIPTION,
        epilog=ENVIRONMENT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument(
        "--device",
        choices=("auto", "cpu", "gpu"),
        help="what fluid.CUDAPlace means: auto (the default) takes a GPU if there is one and else the CPU, with one "
        "warning; cpu always takes the CPU; gpu makes it an error if there is no usable GPU",
    )
    whole.add_argument(
        "--strict",
        action="store_true",
        help="do not put back what is gone from today's Python and its packages (np.float, time.clock, "
        "collections.Callable, ...): the script gets today's errors",
    )
    whole.add_argument(
        "--list-old",
        action="store_true",
        help="print at exit, instead of warnings, what the script used of it: line, name, today's spelling",
    )
    whole.add_argument("-V", "--version", action="store_true", help="print the version and exit")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND")
    for name, (function, text, add) in _COMMANDS.items():
        one = commands.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", prog=f"fluidlite {name}"
        )
        add(one)
        one.set_defaults(function=function)
    return whole


def _launch(parser: Parser) -> None:
    parser.usage = "fluidlite launch [OPTIONS] (SCRIPT | -m MODULE) [ARGS]"
    parser.add_argument(
        "-n", type=int, metavar="PROCESSES", help="how many; by default all that the hosts have"
    )
    parser.add_argument("--hosts", metavar="FILE", help="machines to run on, a line each: HOST slots=N")
    parser.add_argument("--port", type=int, help="of the addresses that the script sees")
    parser.add_argument("--log_dir", metavar="DIRECTORY", help="where workerlog.N gets what process N prints")
    parser.add_argument(
        "--restart",
        type=int,
        default=0,
        metavar="N",
        help="start all again, N times at most, when one has failed",
    )
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module as a script")
    _add_words(parser, "words")


def _export(parser: Parser) -> None:
    parser.add_argument(
        "folder", metavar="MODEL_DIR", help="what save_inference_model wrote, here or by Paddle"
    )
    parser.add_argument("path", metavar="MODEL.onnx", help="the file to write")
    parser.add_argument("--model", metavar="FILE", help="the file of the program in MODEL_DIR (__model__)")
    parser.add_argument("--params", metavar="FILE", help="the file of the parameters, if they are in one")


def _draw(parser: Parser) -> None:
    _add_output(parser, "NAME.html in this folder")
    parser.add_argument(
        "source", metavar="MODEL_OR_SCRIPT", help="a folder or file of a saved model, or a script"
    )
    _add_words(parser, "args")


def _plot(parser: Parser) -> None:
    parser.add_argument("logdir", metavar="LOGDIR", help="the folder of a run, or of several")
    _add_output(parser, "LOGDIR/curves.html")


def _profile(parser: Parser) -> None:
    _add_output(parser, "SCRIPT.profile.html in this folder")
    parser.add_argument("script", metavar="SCRIPT")
    _add_words(parser, "args")


def _help(parser: Parser) -> None:
    parser.add_argument("command", nargs="?", metavar="COMMAND")


def _completion(parser: Parser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.epilog = 'bash: add `eval "$(fluidlite completion bash)"` to ~/.bashrc; zsh and fish alike'


def _add_output(parser: Parser, default: str) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help=f"the page; by default {default}")


def _add_words(parser: Parser, name: str) -> None:
    """An argument for the rest of the line: what belongs to the script."""
    words = parser.add_argument(name, nargs=argparse.REMAINDER, metavar="ARGS", help="of the script")
    words.required = False


_COMMANDS: dict[str, tuple[str, str, Callable[[Parser], None]]] = {
    "launch": (
        "fluidlite.paddle.distributed.spawning:start_processes",
        "run a script in several processes that train together, here or on other machines, and end them all when one "
        "fails (needs the extra mpi)",
        _launch,
    ),
    "profile": (
        "fluidlite.visual.profile:profile",
        "run a script to its end and write a page of where its time and memory went, and a trace for Perfetto",
        _profile,
    ),
    "draw": (
        "fluidlite.visual.draw:draw",
        "draw a saved model, or the first program that a script trains or tests, as one HTML page",
        _draw,
    ),
    "plot": (
        "fluidlite.visual.curves:plot",
        "draw the curves that LogWriter (visualdl) wrote, as one HTML page (needs the extra visual)",
        _plot,
    ),
    "export": (
        "fluidlite.onnx.exporting:export_model",
        "write a saved inference model as an ONNX model (needs the extra onnx)",
        _export,
    ),
    "completion": (
        "fluidlite.commands:complete",
        "print what completes this command in a shell",
        _completion,
    ),
    "help": ("fluidlite.commands:show_help", "print the help of a command", _help),
}
"""By subcommand: the function that runs it, what it does, and the function that adds its arguments."""


def show_help(options: argparse.Namespace) -> int:
    """`fluidlite help [COMMAND]`."""
    whole = parser()
    if options.command is None:
        whole.print_help()
        return 0
    known = _subparsers(whole)
    if options.command not in known:
        wrong_use("fluidlite", f"no command {options.command!r}{meant(options.command)}")
    known[options.command].print_help()
    return 0


def meant(word: str) -> str:
    """`; did you mean 'export'?` for a word like a subcommand; else nothing."""
    import difflib  # slow to import

    near = difflib.get_close_matches(os.path.basename(word), names(), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def complete(options: argparse.Namespace) -> int:
    """`fluidlite completion SHELL`: print a script for the shell that completes commands, options and files."""
    whole = parser()
    known = _subparsers(whole)
    if options.shell == "fish":
        for name, one in known.items():
            first = f"complete -c fluidlite -n __fish_use_subcommand -a {name}"
            print(f"{first} -d '{one.description}'")
            for option in _options(one):
                dashes = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
                print(f"complete -c fluidlite -n '__fish_seen_subcommand_from {name}' {dashes}")
        return 0
    if options.shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    cases = "\n".join(f"    {name}) words='{' '.join(_options(one))}' ;;" for name, one in known.items())
    print(f"""\
_fluidlite() {{
  local words
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  [ "$COMP_CWORD" = 1 ] && words='{" ".join((*known, *_options(whole)))}'
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _fluidlite fluidlite""")
    return 0


def _subparsers(whole: Parser) -> dict[str, Any]:
    actions = (action for action in whole._actions if isinstance(action, argparse._SubParsersAction))
    return dict(next(actions).choices)


def _options(one: Any) -> list[str]:
    return [option for action in one._actions for option in action.option_strings]
