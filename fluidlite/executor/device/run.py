"""Running launches one by one: variables by name, kept as long as somebody will read them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend import on_device
from ...backend.cupy_ import library, pools
from ...base.dtypes import to_numpy
from ...base.reports import profiling
from ...base.selected_rows import SelectedRows
from ...ops.tensor.selected_rows import parts
from .. import failures
from ..plan.instructions import Instruction, lifetimes
from ..plan.meta import ExactMeta
from .launch import Get

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


_Begun = tuple[str, int, int, Any, Any]
"""A launch that was given to a GPU: its name, nanoseconds before and after, events before and after."""


class LaunchList:
    """`launches` in order, on arrays of `device`.

    `given`: the arrays of feeds, constants and persistable variables, by name. Launches that write a variable of
    `persistable` write into its memory. `fetches`: the variables that `run` returns. `fed`: what is fed.
    If there is no memory for a launch, what others do not need is freed, and it is tried once more.
    """

    def __init__(
        self,
        launches: Sequence[Instruction],
        meta: ExactMeta,
        persistable: AbstractSet[str],
        fetches: Sequence[str],
        fed: Sequence[str],
        device: CudaDevice,
    ) -> None:
        self.given: dict[str, Any] = {}
        self.launches = list(launches)
        self._device = device
        self._meta = meta
        self._persistables = persistable
        self._fetches = list(fetches)
        self._fed_rows = [name for name in meta.sparse if parts(name)[0] in fed]
        self._dead = self._last_uses()

    def reads(self, name: str) -> bool:
        """Whether a launch, or whoever fetches, looks at variable `name`."""
        return name in self._used or self._meta.part_of.get(name) in self._used

    def _last_uses(self) -> list[list[str]]:
        """For each launch the variables that nobody looks at after it."""
        part_of = self._meta.part_of
        lives = lifetimes(self.launches, part_of, self._fetches)
        self._used = {*lives, *self._fetches}
        dead: list[list[str]] = [[] for _ in (*self.launches, None)]
        for name, (_, last) in lives.items():
            dead[last].append(name)
        return dead[:-1]

    def run(self) -> list[Any]:
        """Give all launches to the compute stream, which must be active; returns the fetches, contiguous."""
        env = self.start()
        self.advance(env, 0, len(self.launches))
        get = self.getter(env)
        contiguous = self._device.xp.ascontiguousarray
        found = [get(name) for name in self._fetches]
        return [array if array.flags.c_contiguous else contiguous(array) for array in found]

    def advance(self, env: dict[str, Any], begin: int, end: int) -> None:
        """Give the launches from `begin` to `end` to the compute stream; `env`: the variables before and after."""
        written = {id(self.given[name].data.mem) for name in self._persistables}
        get = self.getter(env)
        recorder = None if self._device.recording is not None else profiling.active
        begun: list[_Begun] = []
        one = self._one if recorder is None else partial(self._one_between_events, begun)
        for launch, dead in zip(self.launches[begin:end], self._dead[begin:end], strict=True):
            one(launch, env, get, written)
            for name in dead:
                env.pop(name, None)
        if recorder is not None:
            self._tell(recorder, begun)

    def start(self) -> dict[str, Any]:
        """The variables before the first launch."""
        env = dict(self.given)
        for name in self._fed_rows:
            rows, values = parts(name)
            env[name] = SelectedRows(env[rows], env[values], self._meta.shapes[name][0])
        return env

    def getter(self, env: dict[str, Any]) -> Get:
        """A function that gives variables of `env` by name, also the arrays that SelectedRows consist of."""
        part_of = self._meta.part_of

        def get(name: str) -> Any:
            found = env.get(name)
            if found is None:
                whole = env[part_of[name]]
                return whole.rows if name == parts(part_of[name])[0] else whole.values
            return found

        return get

    def _one(self, launch: Instruction, env: dict[str, Any], get: Get, written: set[int]) -> None:
        try:
            with library.errors(f"operator {launch.op.type}"):
                made = self._made(launch, get)
                for name, value in made.items():
                    self._store(name, value, env, written)
        except MemoryError:
            raise
        except Exception as error:
            located = failures.in_operator(launch.op, error)
            if located is error:
                raise
            raise located from error

    def _one_between_events(
        self, begun: list[_Begun], launch: Instruction, env: dict[str, Any], get: Get, written: set[int]
    ) -> None:
        """`_one`, noting when it was given to the GPU, and events before and after it."""
        stream, event = self._device.compute, self._device.xp.cuda.Event
        before, after, begin = event(), event(), time.perf_counter_ns()
        before.record(stream)
        self._one(launch, env, get, written)
        after.record(stream)
        begun.append((launch.name, begin, time.perf_counter_ns(), before, after))

    def _tell(self, recorder: profiling.Recorder, begun: list[_Begun]) -> None:
        """Record all launches of a step, once the GPU is done with them if its times are wanted."""
        if begun and recorder.on_device:
            begun[-1][-1].synchronize()
        for name, begin, end, before, after in begun:
            there = None
            if recorder.on_device:
                since = self._device.xp.cuda.get_elapsed_time
                offset = since(begun[0][3], before)
                there = begun[0][1] + int(offset * 1e6), int(since(before, after) * 1e6)
            recorder.add(name, begin, end, device=there)

    def _made(self, launch: Instruction, get: Get) -> Mapping[str, Any]:
        try:
            return launch.action(self._device, get)
        except (MemoryError, self._device.xp.cuda.memory.OutOfMemoryError):
            if self._device.recording is not None or not self._persistables.isdisjoint(launch.writes):
                raise  # it may have written already
            pools.relieve(self._device)
            return launch.action(self._device, get)

    def _store(self, name: str, value: Any, env: dict[str, Any], written: set[int]) -> None:
        """Keep a result: with the planned type, and not in the memory of a variable that may be written later on."""
        if isinstance(value, SelectedRows):
            env[name] = value
            return
        if name in self._persistables:
            mine = self.given[name]
            if value is not mine:
                mine[...] = value if on_device(value) else self._device.put(np.asarray(value))
            return
        shape, dtype = self._meta.shapes[name], to_numpy(self._meta.dtypes[name])
        array = value if on_device(value) else self._device.put(np.asarray(value))
        if array.dtype != dtype:
            array = array.astype(dtype)
        elif id(array.data.mem) in written:
            array = array.copy()
        if array.shape != shape:
            if array.size == math.prod(shape):
                array = array.reshape(shape)
            elif array.size == 1:
                array = self._device.xp.broadcast_to(array.reshape((1,) * len(shape)), shape).copy()
        env[name] = array
