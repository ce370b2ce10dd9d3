"""`ProgramTranslator`: the switch for tracing, and access to traced programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....eager import Tensor
from ....framework import Program, Variable
from ..dygraph_to_static.runtime.calls import built
from . import models, static_function
from .static_function import kept, source_of, undecorated


@dataclass
class ConcreteProgram:
    """The program of a declarative function, as `ProgramCache.last` returns it.

    `captured`: all eager tensors that are part of it, parameters included, by the names of their variables.
    """

    inputs: list[Variable]
    outputs: list[Variable]
    parameters: list[Tensor]
    main_program: Program
    startup_program: Program
    captured: Mapping[str, Tensor] = field(default_factory=dict)


class ProgramCache:
    """Access to the program that ran last (`ProgramTranslator.get_program_cache`)."""

    def last(self) -> tuple[str, tuple[ConcreteProgram, Callable[..., Any]]]:
        """The name of the function, its program, and a callable that runs it on a list of tensors.

        Raises AssertionError, as Fluid does, if none has run.
        """
        traced = static_function.latest()
        if traced is None:
            raise AssertionError("No valid cached program in ProgramCache.")
        held = [tensor for tensor in traced.captured.values() if tensor.stands_for == "parameter"]
        concrete = ConcreteProgram(
            traced.inputs, traced.outputs, held, traced.program, traced.startup, traced.captured
        )
        return traced.name, (concrete, traced)


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
        """Switch tracing on."""
        static_function.enable(True)

    @property
    def enable_declarative(self) -> bool:
        """Whether declarative functions run as programs."""
        return static_function.enabled()

    def enable(self, enable_declarative: bool) -> None:
        """Switch whether declarative functions run as programs (the default) or eagerly.

        Raises TypeError for anything but True and False.
        """
        if not isinstance(enable_declarative, bool):
            raise TypeError(
                f"'enable_declarative' of ProgramTranslator.enable must be True or False, got {enable_declarative!r}"
            )
        static_function.enable(enable_declarative)

    def get_output(self, dygraph_func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `dygraph_func(*args, **kwargs)`, as a program if tracing is on.

        Raises AssertionError, as Fluid does, for what cannot be called.
        """
        _check(dygraph_func, "get_output")
        return kept(dygraph_func)(*args, **kwargs)

    def get_func(self, dygraph_func: Callable[..., Any]) -> Callable[..., Any]:
        """The function to call with Variables to build a program; `dygraph_func` as it was written with tracing off."""
        _check(dygraph_func, "get_func")
        plain = undecorated(dygraph_func)
        return built(plain) if static_function.enabled() else plain  # type: ignore[no-any-return]

    def get_program_cache(self) -> ProgramCache:
        """Access to the program that ran last."""
        return ProgramCache()

    def get_program(
        self, dygraph_func: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> tuple[Program, Program, list[Variable], list[Variable]] | Any:
        """The program of `dygraph_func` for these arguments: (main, startup, inputs, outputs).

        With tracing off, returns the function's result, as in Fluid.
        """
        _check(dygraph_func, "get_program")
        if not static_function.enabled():
            return undecorated(dygraph_func)(*args, **kwargs)
        traced = kept(dygraph_func).traced(*args, **kwargs)
        return traced.program, traced.startup, traced.inputs, traced.outputs

    def get_code(self, dygraph_func: Callable[..., Any]) -> str:
        """The source of `dygraph_func` as it is traced: with helpers where conditions and loops may be on tensors."""
        _check(dygraph_func, "get_code")
        return source_of(dygraph_func)

    def save_inference_model(
        self, dirname: str, feed: Sequence[int] | None = None, fetch: Sequence[int] | None = None
    ) -> None:
        """Save the program that a declarative function ran last, for `fluid.io.load_inference_model`.

        `feed`, `fetch`: the indices of the inputs and outputs to keep, all by default. Raises RuntimeError if none has
        run, IndexError for an index out of range.
        """
        traced = static_function.latest()
        if traced is None:
            raise RuntimeError("save_inference_model: no declarative function has run yet")
        models.save_program(traced, dirname, feed, fetch)


def _check(function: Any, method: str) -> None:
    if not callable(function):
        raise AssertionError(f"Input dygraph_func is not a callable in ProgramTranslator.{method}")
