"""Data parallelism on the host as one program: what each place computes, the mean of the gradients, and the update."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from ..._ext import threads
from ...framework import Operator, OpRole, Program
from ...ops.registry import EMPTY
from ..running.steps import run_program
from ..tensors.scope import Scope
from .data_parallel import DataParallel, Values

LONG = 0.004
"""Seconds of a step from which on places have threads of their own, whose beginning and end then matter little."""

_TRIES = 5
"""How many steps show how long one takes, as the shortest of them."""


class InOneProgram(DataParallel):
    """As `DataParallel`; of programs of one block with dense gradients a short step is one step of one program.

    It has the operators of each stage, for each place one after the other with variables of their own (`x@PLACE1`), and
    `sum` of each gradient. Kernels share the threads that there are; the places do not. Where steps take long the
    places get threads after all. The numbers are the same either way.
    """

    _steps, _shortest = 0, math.inf
    _joined: Program | None = None

    def _build(self) -> None:
        super()._build()
        self._joined = self._join() if self._steps < _TRIES and self.fits() else None

    def fits(self) -> bool:
        """Whether the program can be run so."""
        crossing = (name for stage in self.stages.stages for name in (*stage.gives, *stage.gradients))
        return len(self.program.blocks) == 1 and not (self.in_turns or any(map(self._is_sparse, crossing)))

    def _join(self) -> Program:
        """The program of all places; `_names` says what their variables are called in the end."""
        joined = self.program.clone()
        self._joined_block = joined.global_block()
        self._names: list[dict[str, str]] = [{} for _ in self.places]
        self._joined_block.ops = []
        for stage in self.stages.stages:
            for place in range(1 if stage.once else len(self.places)):
                ops = self.program.clone().global_block().ops
                for at in stage.ops:
                    self._append(ops[at], place, stage.once)
            for name in stage.gradients:
                self._append_sum(name)
        joined._changed()
        self._own = Scope(self.scope)
        for place, scope in list(enumerate(self.scopes))[1:]:
            for name in self._shared.own:
                self._own._vars[_at(place, name)] = scope._vars[name]
        return joined

    def _append(self, op: Operator, place: int, once: bool) -> None:
        """Append an operator of a place, or one for all of them, to the program of all places."""
        for slot, held in op.inputs.items():
            op.inputs[slot] = [self._name(place, name) for name in held]
        for slot, held in op.outputs.items():
            for name in held:
                for other, names in enumerate(self._names):
                    if once or other == place:
                        names[name] = name if once or name == EMPTY else _at(place, name)
            op.outputs[slot] = [self._name(place, name) for name in held]
        op.block = self._joined_block
        self._joined_block.ops.append(op)

    def _append_sum(self, name: str) -> None:
        block = self._joined_block
        inputs = {"X": [block.vars[self._name(place, name)] for place in range(len(self.places))]}
        role = {"op_role": OpRole.Backward}
        block.append_op(type="sum", inputs=inputs, outputs={"Out": block.vars[name]}, attrs=role)
        for names in self._names:
            names[name] = name

    def _name(self, place: int, name: str) -> str:
        """What a variable of a place is called at this point of the program; made if it is not there yet."""
        found = self._names[place].get(name)
        if found is None:
            shared = self._block._is_persistable(name) and name not in self._shared.own
            found = name if shared or name == EMPTY else _at(place, name)
            self._names[place][name] = found
        variables = self._joined_block.vars
        if found not in variables and name in variables:
            variables[found] = variables[name]._copied_to(self._joined_block)
            variables[found].name = found
        return found

    def _step(self, feeds: Sequence[Values], names: Sequence[str]) -> dict[str, list[Any]]:
        if self._joined is None or len(feeds) < len(self.places):
            return super()._step(feeds, names)
        begin = time.perf_counter()
        self._prepare()
        if self._joined is None:
            return super()._step(feeds, names)
        feed = {
            _at(place, name): value for place, values in enumerate(feeds) for name, value in values.items()
        }
        called = {name: [self._name(place, name) for place in range(len(self.places))] for name in names}
        fetched = tuple(dict.fromkeys(new for each in called.values() for new in each))
        values = dict(zip(fetched, run_program(self._joined, feed, fetched, self._own, False), strict=True))
        self._shared.note()
        if self._steps < _TRIES:
            self._steps += 1
            self._shortest = min(self._shortest, time.perf_counter() - begin)
            if self._steps == _TRIES and self._shortest > LONG and threads.count() > 1:
                self._joined = None  # from now on each place has a thread
        return {name: [values[new] for new in each] for name, each in called.items()}


def _at(place: int, name: str) -> str:
    """What a variable that a place has for itself is called."""
    return f"{name}@PLACE{place}" if place else name
