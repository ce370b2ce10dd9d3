"""`DevicePlan`: a program for exact shapes as launches on a GPU, which become one CUDA graph."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend import on_device
from ...backend.cupy_ import faults, library, pools
from ...backend.cupy_.recording import Recording
from ...base import flags
from ...base.dtypes import to_numpy
from ...base.reports import profiling
from ..ir.request import Request
from ..ir.step_plan import StepPlan
from ..lod_tensor import LoDTensor
from .feeds import FeedSlots, Fetcher, Layout, Pace
from .launch import needs_host
from .run import LaunchList

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice
    from ..ir.step_plan import PlanLock
    from .compile import Launches


class DevicePlan(StepPlan):
    """Runs `program` on a GPU, on feeds of the shapes that it was compiled for.

    The first step runs launch by launch, with temporaries from a memory pool of the plan's own. The second records the
    same launches as a CUDA graph, which is replayed from then on. Feeds are copied to fixed memory. A program that
    cannot be captured always runs launch by launch; `uncaptured_reason` says why.
    """

    def __init__(self, request: Request, code: Launches) -> None:
        super().__init__(request, code.meta)
        device, capture = request.device, not request.fixed
        assert device is not None
        self.device = device
        self.fetched = code.fetches
        self.instructions = code.instructions
        self.uncaptured_reason = self._reason(capture)
        self._resources = Resources(device, self.lock)
        self._late, self._early, self._cut = [*request.late], request.early or 0, code.cut
        self._values: dict[str, Any] = {}  # between the halves
        fed = [*request.feed, *request.late]
        self._list = LaunchList(code, fed, device)
        self._writes = bool(code.persistable)
        self._layouts = {name: self._layout(name) for name in self.feed_names}
        self._pending: list[Any] = []
        self._results: list[Any] = []
        self._slots: FeedSlots | None = None
        self._pace = Pace(device)
        if capture:
            used = {name: self._layouts[name] for name in request.feed if self._list.reads(name)}
            self._slots = FeedSlots(device, used)
            self._list.arrays.update(self._slots.arrays)
        for name, array in self.meta.constants.items():
            if self._list.reads(name):
                self._list.arrays[name] = device.put(array)
        self._bind_first()
        self._fetcher = Fetcher(device, [self._layout(name) for name in self.fetched])
        weakref.finalize(self, self._resources.release).atexit = False

    def _layout(self, name: str) -> Layout:
        return self.meta.shapes[name], to_numpy(self.meta.dtypes[name])

    def _reason(self, capture: bool) -> str | None:
        """The reason why nothing will be captured; None if no reason is visible before the first step."""
        if not capture:
            return "its feeds are used where they are"
        if not flags.cuda_graphs():
            return "FLUIDLITE_CUDA_GRAPHS=0"
        reasons = [needs_host(op) for launch in self.instructions for op in launch.ops]
        return next((reason for reason in reasons if reason is not None), None)

    def bind_scope(self) -> bool:
        """Take the arrays of the scope's variables, moved to the device; False if the plan does not fit them."""
        tensors = self._tensors()
        if tensors is None:
            return False
        for name, tensor in tensors.items():
            self._bind(name, tensor.on(self.device))
        return True

    def _bind(self, name: str, array: Any) -> None:
        """Use `array` for a persistable variable; a graph that has the address of another array is dropped."""
        if self._list.arrays.get(name) is not array:
            self._list.arrays[name] = array
            if self._resources.graph is not None:
                self._resources.forget_graph()

    def _adopted(self, value: Any) -> Any:
        return self.device.adopt(value) if on_device(value) else None

    def accepts(self, arrays: Sequence[Any]) -> bool:
        layouts = self._layouts
        taken = list(zip(self.feed_names, arrays, strict=True))
        for name, array in taken:
            shape, dtype = layouts[name]
            if array is None or array.shape != shape or array.dtype != dtype:
                return False
        count = len(taken) - self.followed
        for name, array in taken[count:]:
            self._bind(name, self.device.put(array))
        if self._slots is None:
            self._list.arrays.update((name, self.device.put(array)) for name, array in taken[:count])
        else:
            slots = self._slots.arrays
            self._pending = [array for name, array in taken[:count] if name in slots]
        return True

    def run(self) -> None:
        """Queue one step on the accepted feeds; errors name the operator and the user's line."""
        with self.device.selected, library.errors("giving a step to the GPU"):
            buffer = self._pace.begin()
            self._resources.busy = True
            if self._slots is not None:
                self._slots.fill(self._pending, buffer)
                self._pending = []
            try:
                if profiling.active is not None:
                    self._resources.forget_graph()  # single launches are timed; a later step records them anew
                if self._resources.graph is not None:
                    self._resources.graph.launch()
                else:
                    with self.device.active():
                        self._step()
            finally:
                self._pace.end()
        if self._writes:
            scope = self._scope()
            if scope is not None:
                scope._cell.writes += 1  # data parallel replicas copy the variables from here

    def _step(self) -> None:
        """Run a step launch by launch, or record it as a graph and launch that."""
        resources = self._resources
        if self.uncaptured_reason is None and resources.warm and profiling.active is None:
            self._record()
        if resources.graph is not None:
            resources.graph.launch()
        elif self.uncaptured_reason is None:
            with resources.on_own_stream(), resources.memory():
                self._results = self._list.run()
            resources.warm = True
        else:
            self._results = self._list.run()

    def _record(self) -> None:
        """Record the launches as a graph, without computing; on failure keep the reason."""
        resources = self._resources

        def work() -> None:
            with resources.memory():
                self._results = self._list.run()

        reason = ""
        for _ in range(2):
            self._results = []
            try:
                resources.graph = Recording(self.device, work, resources.stream)
                return
            except MemoryError as error:
                reason = str(error)
            except Exception as error:
                reason = str(error)
                break
            resources.release()  # the pool is fragmented by blocks of other sizes
            pools.relieve(self.device)
        self.uncaptured_reason = reason
        self._results = []
        resources.release()

    def fetch(self) -> list[np.ndarray]:
        """Copies on the host. Waits for the GPU, and raises the errors that kernels have reported."""
        if not self.fetched:
            return []
        values = self._fetcher.get(self._results)
        self._pace.synchronized()
        self._resources.busy = False
        faults.raise_pending(self.device)
        return values

    def fetch_tensors(self) -> list[LoDTensor]:
        """Copies on the device, without waiting."""
        with self.device.active(), library.errors("copying what is fetched"):
            return [LoDTensor.wrap(array.copy()) for array in self._results]

    def run_first(self) -> list[Any]:
        with self.device.active():
            self._pace.begin()
            self._values = self._list.start()
            try:
                self._list.advance(self._values, 0, self._cut)
            finally:
                self._pace.end()
            return self._copies(self.fetched[: self._early])

    def run_second(self, arrays: Sequence[Any]) -> list[Any]:
        with self.device.active():
            self._values.update(zip(self._late, map(self.device.put, arrays), strict=True))
            self._list.advance(self._values, self._cut, len(self.instructions))
            return self._copies(self.fetched[self._early :])

    def _copies(self, names: Sequence[str]) -> list[Any]:
        get = self._list.getter(self._values)
        with library.errors("copying results"):
            return [self.device.xp.array(get(name), order="C") for name in names]

    def snapshot(self) -> dict[str, Any]:
        return dict(self._values)

    def restore(self, snapshot: dict[str, Any]) -> None:
        self._values = dict(snapshot)

    def rest(self) -> None:
        self._values = {}

    def describe(self) -> str:
        """The launches of a step, one a line, and whether they are a CUDA graph or why not."""
        state = self.uncaptured_reason
        if state is not None:
            head = f"not captured: {state}"
        elif self._resources.graph is not None:
            head = "one CUDA graph"
        else:
            head = "will be captured in its next step" if self._resources.warm else "has not run yet"
        count = f"{len(self.instructions)} launches"
        lines = [f"{count} on GPU {self.device.number} for {self._for_feeds()}; {head}"]
        return "\n".join([*lines, *(f"  {launch.describe()}" for launch in self.instructions)])


_live: weakref.WeakSet[Resources] = weakref.WeakSet()


class Resources:
    """Stream, memory pool and graph of a plan on `device`, created on first use.

    `lock`: is held while the plan runs. `warm`: a step has run with this pool, so its memory is allocated and all
    kernels are compiled. `busy`: a step, and with it copies from the plan's page-locked memory, may be under way.
    """

    def __init__(self, device: CudaDevice, lock: PlanLock) -> None:
        self._device = device
        self._lock = lock
        self._pool: pools.PlanPool | None = None
        self._stream: Any = None
        self.graph: Recording | None = None
        self.warm = self.busy = False
        _live.add(self)

    @property
    def stream(self) -> Any:
        """The stream of the first step and of recording, so that the pool has allocated memory for it."""
        if self._stream is None:
            self._stream = self._device.xp.cuda.Stream(non_blocking=True)
        return self._stream

    @contextmanager
    def memory(self) -> Iterator[None]:
        """Allocate from the pool of the plan inside the block."""
        if self._pool is None:
            self._pool = pools.PlanPool(self._device)
        if self._device.recording is not None:
            self._pool.lift_limit()
        with self._device.xp.cuda.using_allocator(self._pool.pool.malloc):
            yield

    @contextmanager
    def on_own_stream(self) -> Iterator[None]:
        """Compute on `stream` inside the block, ordered after earlier and before later work of the main stream.

        One thread at a time: kernels on other streams than the main one share workspaces and tickets.
        """
        device, stream = self._device, self.stream
        with device.lock:
            device.chain(device.main, stream)
            try:
                with device.diverted(stream):
                    yield
            finally:
                device.chain(stream, device.main)

    def forget_graph(self) -> None:
        """Free the graph after its last run has finished."""
        if self.busy:
            with suppress(self._device.xp.cuda.runtime.CUDARuntimeError):  # the next wait raises it
                self._device.main.synchronize()
            self.busy = False
        self.graph = None

    def release(self) -> None:
        """Free everything; the next step starts cold."""
        self.forget_graph()
        self._pool = self._stream = None
        self.warm = False


@pools.on_shortage
def _release_idle(device: CudaDevice) -> None:
    """Free the resources of plans that are not running."""
    for resources in list(_live):
        if resources._device is device and resources._lock.acquire(blocking=False):
            try:
                resources.release()
            finally:
                resources._lock.release()


@library.on_forget
def _release_all() -> None:
    for resources in list(_live):
        resources.release()
