"""`ProgramTranslator`: the switch for tracing, and access to what it makes."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from ...framework import Program, Variable
from . import saving, static_function
from .static_function import kept, undecorated


def source_of(function: Callable[..., Any]) -> str:
    """The source of a function without common indentation; OSError if there is none."""
    return textwrap.dedent(inspect.getsource(undecorated(function)))


class ProgramTranslator:
    """Says whether `declarative` functions run as programs; the same object every time
    (`fluid.dygraph.ProgramTranslator`).
    """

    _only: ProgramTranslator | None = None

    def __new__(cls) -> ProgramTranslator:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    @classmethod
    def get_instance(cls) -> ProgramTranslator:
        """The only instance."""
        return cls()

    @classmethod
    def reset(cls) -> None:
        """Switch tracing on again."""
        static_function.enable(True)

    @property
    def enable_declarative(self) -> bool:
        """Whether declarative functions run as programs."""
        return static_function.enabled()

    def enable(self, enable_declarative: bool) -> None:
        """Whether declarative functions run as programs from here on (at first they do), or eagerly."""
        static_function.enable(bool(enable_declarative))

    def get_output(self, dygraph_func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What `dygraph_func(*args, **kwargs)` returns, computed by a program if tracing is on.

        Raises AssertionError, as Fluid does, for what cannot be called.
        """
        _check(dygraph_func, "get_output")
        return kept(dygraph_func)(*args, **kwargs)

    def get_func(self, dygraph_func: Callable[..., Any]) -> Callable[..., Any]:
        """The function to call with Variables to build a program: `dygraph_func` as it was written."""
        _check(dygraph_func, "get_func")
        return undecorated(dygraph_func)  # type: ignore[no-any-return]

    def get_program(
        self, dygraph_func: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> tuple[Program, Program, list[Variable], list[Variable]] | Any:
        """The program of `dygraph_func` for such arguments: (main, startup, inputs, outputs).

        With tracing off, what the function returns, as in Fluid.
        """
        _check(dygraph_func, "get_program")
        if not static_function.enabled():
            return undecorated(dygraph_func)(*args, **kwargs)
        traced = kept(dygraph_func).traced(*args, **kwargs)
        return traced.program, traced.startup, traced.inputs, traced.outputs

    def get_code(self, dygraph_func: Callable[..., Any]) -> str:
        """The source of `dygraph_func`: tracing runs the code as it is."""
        _check(dygraph_func, "get_code")
        return source_of(dygraph_func)

    def save_inference_model(
        self, dirname: str, feed: Sequence[int] | None = None, fetch: Sequence[int] | None = None
    ) -> None:
        """Save the program that a declarative function ran last, for `fluid.io.load_inference_model`.

        `feed`, `fetch`: the numbers of the inputs and outputs to keep, all by default. Raises RuntimeError if none has
        run, IndexError for a number that does not exist.
        """
        traced = static_function.latest()
        if traced is None:
            raise RuntimeError("save_inference_model: no declarative function has run yet")
        saving.save(traced, dirname, feed, fetch)


def _check(function: Any, method: str) -> None:
    if not callable(function):
        raise AssertionError(f"Input dygraph_func is not a callable in ProgramTranslator.{method}")
