"""Runs a program operator by operator with the reference kernels.

What plans are tested against (`FLUIDLITE_ENGINE=interpret`); programs that cannot be planned run so too, on a GPU only.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...framework import Block, Operator
from ..blocks.environment import Environment
from .program_run import ProgramRun


class Interpreter(ProgramRun):
    """One run of a program whose operators come one after the other, in all blocks."""

    def run(self, part: Iterable[Operator] | None = None) -> None:
        self.run_each(self.program.global_block().ops if part is None else part)

    def run_block(self, block: Block, environment: Environment) -> None:
        for op in block.ops:
            self.run_alone(op, environment)

    def loop(self, op: Operator, environment: Environment) -> bool | None:
        """Not done here."""
        return False
