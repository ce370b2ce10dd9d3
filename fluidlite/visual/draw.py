"""`fluidlite draw MODEL_OR_SCRIPT`: a program as a page."""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

from ..base.storage.files import write_file
from ..executor import Executor
from ..framework import Program, default_main_program, default_startup_program
from ..framework.drawing import page
from ..framework.serialization.proto import parse_program
from ..paddle import hook, script


def draw(given: Namespace) -> int:
    """Run `fluidlite draw`; returns the exit status."""
    source = Path(given.source)
    output = Path(given.output or f"{source.resolve().stem}.html")
    try:
        if source.suffix == ".py":
            program = _first_of_script(given.source, given.args)
        elif given.args:
            raise ValueError(f"a model takes no arguments, got {given.args}; options stand before {source}")
        else:
            file = _model_file(source)
            program = parse_program(file.read_bytes(), str(file))
        title = "/".join(source.parts[-2:]) if source.is_dir() else source.name
        write_file(output, page(program, title), folders=False)
    except (OSError, ValueError) as error:
        print(f"fluidlite draw: {error}", file=sys.stderr)
        return 2
    blocks, ops = len(program.blocks), sum(len(block.ops) for block in program.blocks)
    print(f"{ops} operator{'s' * (ops != 1)} in {blocks} block{'s' * (blocks != 1)}: {output}")
    return 0


def _model_file(source: Path) -> Path:
    """The file of the program. Raises FileNotFoundError if there is none."""
    if source.is_file():
        return source
    found = [*source.glob("__model__"), *sorted(source.glob("*.pdmodel"))]
    if not found:
        raise FileNotFoundError(f"{source}: neither a script, nor a model's file, nor a folder with one")
    return found[0]


class _FirstProgram(SystemExit):
    """Ends a script at the first program that it trains or tests."""

    def __init__(self, program: Program) -> None:
        super().__init__(0)
        self.program = program


def _first_of_script(path: str, args: list[str]) -> Program:
    """The first program that a script runs with feeds or fetches, or its default program if it runs none.

    Raises ValueError for a script that builds no program, as those of dygraph mode, and FileNotFoundError.
    """
    if problem := script.problem(path):
        raise FileNotFoundError(problem)
    run = Executor.run

    def watched(executor: Executor, program: Any = None, *rest: Any, **options: Any) -> Any:
        asked = program if program is not None else default_main_program()
        asked = getattr(asked, "_program", asked)
        feeds = rest or options.get("feed") or options.get("fetch_list")
        if isinstance(asked, Program) and feeds and asked is not default_startup_program():
            raise _FirstProgram(asked)
        return run(executor, program, *rest, **options)

    hook.install()
    Executor.run = watched  # type: ignore[method-assign, assignment]
    try:
        if status := script.run(partial(script.from_file, path, args)):
            raise SystemExit(status)
    except _FirstProgram as found:
        return found.program
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    finally:
        Executor.run = run  # type: ignore[method-assign]
    if not default_main_program().global_block().ops:
        raise ValueError(f"{path} builds no program: there is nothing to draw")
    return default_main_program()
