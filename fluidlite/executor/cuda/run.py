"""`LaunchList`: launches run in order, with variables by name that are freed after their last use."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend import on_device
from ...backend.cupy_ import library, pools
from ...base.dtypes import to_numpy
from ...base.reports import profiling
from ...base.selected_rows import SelectedRows
from ...ops.tensor.gather import parts
from .. import failures
from ..ir.instructions import Instruction, lifetimes
from .launch import Get

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice
    from .compile import Launches


_Times = tuple[str, int, int, Any, Any]
"""The times of a launch for a profile: its name, nanoseconds before and after queueing it, its two events."""


class LaunchList:
    """The launches of `code` in order, on arrays of `device`.

    `arrays`: those of feeds (`fed`), constants and persistable variables, by name. Launches that write persistable
    variables write into their memory. A launch that runs out of memory is retried once, after memory that other plans
    do not need was freed.
    """

    def __init__(self, code: Launches, fed: Sequence[str], device: CudaDevice) -> None:
        self.arrays: dict[str, Any] = {}
        self.launches = code.instructions
        self._device, self._meta = device, code.meta
        self._persistables, self._fetches = code.persistable, code.fetches
        self._fed_rows = [name for name in code.meta.sparse if parts(name)[0] in fed]
        self._dead = self._last_uses()

    def reads(self, name: str) -> bool:
        """True if a launch or a fetch reads variable `name`."""
        return name in self._used or self._meta.part_of.get(name) in self._used

    def _last_uses(self) -> list[list[str]]:
        """For each launch the variables whose last use it is."""
        part_of = self._meta.part_of
        ranges = lifetimes(self.launches, part_of, self._fetches)
        self._used = {*ranges, *self._fetches}
        dead: list[list[str]] = [[] for _ in (*self.launches, None)]
        for name, (_, last) in ranges.items():
            dead[last].append(name)
        return dead[:-1]

    def run(self) -> list[Any]:
        """Queue all launches on the compute stream, which must be active; returns the fetches, contiguous."""
        env = self.start()
        self.advance(env, 0, len(self.launches))
        get = self.getter(env)
        contiguous = self._device.xp.ascontiguousarray
        arrays = [get(name) for name in self._fetches]
        return [array if array.flags.c_contiguous else contiguous(array) for array in arrays]

    def advance(self, env: dict[str, Any], begin: int, end: int) -> None:
        """Queue the launches from `begin` to `end`; `env`: the variables, which are updated."""
        persistent_memory = {id(self.arrays[name].data.mem) for name in self._persistables}
        get = self.getter(env)
        recorder = None if self._device.recording is not None else profiling.active
        times: list[_Times] = []
        run_one = self._launch if recorder is None else partial(self._launch_timed, times)
        for launch, dead in zip(self.launches[begin:end], self._dead[begin:end], strict=True):
            run_one(launch, env, get, persistent_memory)
            for name in dead:
                env.pop(name, None)
        if recorder is not None:
            self._report(recorder, times)

    def start(self) -> dict[str, Any]:
        """The variables before the first launch."""
        env = dict(self.arrays)
        for name in self._fed_rows:
            rows, values = parts(name)
            env[name] = SelectedRows(env[rows], env[values], self._meta.shapes[name][0])
        return env

    def getter(self, env: dict[str, Any]) -> Get:
        """A function that returns variables of `env` by name, also the arrays that SelectedRows consist of."""
        part_of = self._meta.part_of

        def get(name: str) -> Any:
            array = env.get(name)
            if array is None:
                whole = env[part_of[name]]
                return whole.rows if name == parts(part_of[name])[0] else whole.values
            return array

        return get

    def _launch(
        self, launch: Instruction, env: dict[str, Any], get: Get, persistent_memory: set[int]
    ) -> None:
        try:
            with library.errors(f"operator {launch.op.type}"):
                results = self._results(launch, get)
                for name, value in results.items():
                    self._store(name, value, env, persistent_memory)
                for name in launch.action.shaped:
                    nothing = self._device.xp.empty((), to_numpy(self._meta.dtypes[name]))
                    env[name] = self._device.xp.broadcast_to(nothing, self._meta.shapes[name])
        except MemoryError:
            raise
        except Exception as error:
            failures.raise_in_operator(launch.op, error)

    def _launch_timed(
        self,
        times: list[_Times],
        launch: Instruction,
        env: dict[str, Any],
        get: Get,
        persistent_memory: set[int],
    ) -> None:
        """`_launch`, with its times for a profile."""
        stream, event = self._device.compute, self._device.xp.cuda.Event
        before, after, begin = event(), event(), time.perf_counter_ns()
        before.record(stream)
        self._launch(launch, env, get, persistent_memory)
        after.record(stream)
        times.append((launch.name, begin, time.perf_counter_ns(), before, after))

    def _report(self, recorder: profiling.Recorder, times: list[_Times]) -> None:
        """Give the times of all launches to the profiler; waits for the GPU if its times are wanted."""
        if times and recorder.on_device:
            times[-1][-1].synchronize()
        for name, begin, end, before, after in times:
            device_times = None
            if recorder.on_device:
                since = self._device.xp.cuda.get_elapsed_time
                offset = since(times[0][3], before)
                device_times = times[0][1] + int(offset * 1e6), int(since(before, after) * 1e6)
            recorder.add(name, begin, end, device=device_times)

    def _results(self, launch: Instruction, get: Get) -> Mapping[str, Any]:
        try:
            return launch.action.run(self._device, get)
        except (MemoryError, self._device.xp.cuda.memory.OutOfMemoryError):
            if self._device.recording is not None or not self._persistables.isdisjoint(launch.writes):
                raise  # the launch may have overwritten a persistable variable
            pools.relieve(self._device)
            return launch.action.run(self._device, get)

    def _store(self, name: str, value: Any, env: dict[str, Any], persistent_memory: set[int]) -> None:
        """Keep a result with the planned shape and dtype, copied if it shares memory with a persistable variable."""
        if isinstance(value, SelectedRows):
            env[name] = value
            return
        if name in self._persistables:
            target = self.arrays[name]
            if value is not target:
                target[...] = value if on_device(value) else self._device.put(np.asarray(value))
            return
        shape, dtype = self._meta.shapes[name], to_numpy(self._meta.dtypes[name])
        array = value if on_device(value) else self._device.put(np.asarray(value))
        if array.dtype != dtype:
            array = array.astype(dtype)
        elif id(array.data.mem) in persistent_memory:
            array = array.copy()
        if array.shape != shape:
            if array.size == math.prod(shape):
                array = array.reshape(shape)
            elif array.size == 1:
                array = self._device.xp.broadcast_to(array.reshape((1,) * len(shape)), shape).copy()
        env[name] = array
