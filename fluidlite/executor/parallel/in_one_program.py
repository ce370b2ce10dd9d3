"""Data parallelism on the host as one program: what each place computes, the mean of the gradients, and the update."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..._ext import threads
from ...base.dtypes import FLOATS
from ...base.place import Place
from ...framework import OpRole, Program
from ...ops.registry import EMPTY
from ..running.steps import run_program
from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope
from .data_parallel import DataParallel

LONG = 0.004
"""Seconds of a step from which on places have threads of their own, whose beginning and end then matter little."""

_TRIES = 5
"""How many steps show how long one takes, as the shortest of them."""


class InOneProgram(DataParallel):
    """As `DataParallel`; of programs of one block with dense gradients a short step is one step of one program.

    It has the operators of each place one after the other, with variables of their own (`x@PLACE1`), then `sum` and
    `scale` of each gradient, then the update. Kernels share the threads that there are; the places do not. Where steps
    take long the places get threads after all. The numbers are the same either way.
    """

    def __init__(
        self, program: Program, places: Sequence[Place], scope: Scope, average: bool, shared: bool
    ) -> None:
        super().__init__(program, places, scope, average, shared)
        self._joined: Program | None = None
        if self.fits():
            self._join()

    def fits(self) -> bool:
        """Whether the program can be run so."""
        return len(self.program.blocks) == 1 and not self.sparse and not self.in_turns

    def _join(self) -> None:
        shared = {name for name in self.forward.global_block().vars if self._is_shared(name)}
        self._names = [self._names_of(place, shared) for place in range(len(self.places))]
        self._own = Scope(self.scope) if self.private else self.scope
        self._joined = self._make()
        self._steps, self._shortest = 0, math.inf

    def _is_shared(self, name: str) -> bool:
        return self.program.global_block()._is_persistable(name) and name not in self.private

    def _names_of(self, place: int, shared: set[str]) -> dict[str, str]:
        """What the variables of the forward and backward pass are called at a place, if it is not their own name."""
        if place == 0:
            return {}
        ops = self.forward.global_block().ops
        used = {name for op in ops for name in (*op.input_arg_names, *op.output_arg_names)}
        names = (used | set(self.forward.global_block().vars)) - shared - {EMPTY}
        return {name: f"{name}@PLACE{place}" for name in names}

    def _make(self) -> Program:
        joined = self.forward.clone()
        block = joined.global_block()
        ops = block.ops
        for names in self._names[1:]:
            for name, new in names.items():
                if name in block.vars:
                    copy = block.vars[name]._copied_to(block)
                    copy.name = new
                    block.vars[new] = copy
            for op in self.forward.clone().global_block().ops:
                for slots in (op.inputs, op.outputs):
                    slots.update({slot: [names.get(n, n) for n in held] for slot, held in slots.items()})
                op.block = block
                ops.append(op)
        block.ops = ops
        for name in self.exchanged:
            self._append_mean(block, name)
        for op in self.update.clone().global_block().ops:
            op.block = block
            block.ops.append(op)
        joined._changed()
        return joined

    def _append_mean(self, block: Any, name: str) -> None:
        places = [block.vars[names.get(name, name)] for names in self._names]
        role = {"op_role": OpRole.Backward}
        block.append_op(type="sum", inputs={"X": places}, outputs={"Out": places[0]}, attrs=role)
        if self.average and places[0].dtype in FLOATS:
            scale = {"scale": 1.0 / len(places), **role}
            block.append_op(type="scale", inputs={"X": places[0]}, outputs={"Out": places[0]}, attrs=scale)

    def _step(
        self, feeds: Sequence[Mapping[str, Any]], wanted: Sequence[str], once: Sequence[str]
    ) -> dict[str, list[LoDTensor]]:
        if self._joined is None or len(feeds) < len(self.places):
            return super()._step(feeds, wanted, once)
        begin = time.perf_counter()
        self._prepare()
        feed = {
            names.get(name, name): value
            for names, part in zip(self._names, feeds, strict=True)
            for name, value in part.items()
        }
        fetched = [names.get(name, name) for name in wanted for names in self._names]
        values = iter(run_program(self._joined, feed, (*fetched, *once), self._own, False))
        found = {name: [self._shared_out(name, next(values)) for _ in self.places] for name in wanted}
        found |= {name: [value] * len(self.places) for name, value in zip(once, values, strict=True)}
        if self._steps < _TRIES:
            self._steps += 1
            self._shortest = min(self._shortest, time.perf_counter() - begin)
            if self._steps == _TRIES and self._shortest > LONG and threads.count() > 1:
                self._joined = None  # from now on each place has a thread
        return found

    def _prepare(self) -> None:
        """Of what only the forward pass writes each place has its own copy, in one program by the place's names."""
        super()._prepare()
        if self._joined is not None:
            for names, scope in zip(self._names[1:], self.scopes[1:], strict=True):
                own = {names[name]: scope._vars[name] for name in self.private if name in scope._vars}
                self._own._vars.update(own)
