"""`StepPlan`: the interface of compiled plans, their guards on programs, scopes and feeds, and their lock."""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base.arrays import is_plain
from ...base.dtypes import to_numpy
from ...base.sizes import current_shape, formula
from ...framework import Program
from ..failures import Unsupported
from ..lod_tensor import LoDTensor
from .instructions import Instruction
from .request import Request
from .type_env import TypeEnv


class StepPlan(ABC):
    """Runs operators of a program on arrays of the planned types, on one device; holds its scope weakly.

    The caller holds `lock` from `accepts` to `fetch`. `feed_names`: the arrays that `accepts` takes, of which the last
    `followed` are persistable variables; `fetched`: what `fetch` returns. `run_first` and `run_second` run a plan in
    two halves (`Request.early`).
    """

    fetched: list[str]
    has_levels: bool = False
    """Whether a fetched variable has sequences."""

    instructions: list[Instruction]

    def __init__(self, request: Request, meta: TypeEnv) -> None:
        # The plan is kept with the program and must not keep the scope alive.
        self._scope = weakref.ref(request.scope)
        self._scope_version = -1  # of the scope when the plan was bound to it last
        self.version = request.program._version
        self.lock = PlanLock()
        _plans.add(self)
        self.meta = meta
        held = [name for name in request.held if name in meta.persistable]
        self.feed_names, self.followed = [*request.feed, *held], len(held)
        self._fed_levels = [len(meta.lod(name)) for name in self.feed_names]

    def _bind_first(self) -> None:
        """Bind the variables of the scope for the first time; raises Unsupported if one has changed meanwhile."""
        if not self.bind_scope():
            raise Unsupported("a variable of the scope has changed its shape or type during compilation")
        self.meta.forget_scope()

    def _tensors(self) -> dict[str, LoDTensor] | None:
        """The tensors of the persistable variables; None if one is not set, or not of the planned shape and dtype."""
        scope, meta, tensors = self._scope(), self.meta, {}
        if scope is None:
            return None
        for name in meta.persistable:
            found = scope.find_var(name)
            tensor = found.get() if found is not None else None
            if not isinstance(tensor, LoDTensor) or tensor.array is None or tensor.offsets:
                return None
            if tensor.array.shape != meta.shapes[name] or tensor.array.dtype != to_numpy(meta.dtypes[name]):
                return None
            tensors[name] = tensor
        self._scope_version = scope._cell.version
        return tensors

    @abstractmethod
    def bind_scope(self) -> bool:
        """Bind the current arrays of the scope's variables; False if one does not have the planned shape and dtype."""

    def ready(self, program: Program) -> bool:
        """True if the plan is of the program's current version; binds the scope's variables anew if it has changed."""
        if program._version != self.version:
            return False
        scope = self._scope()
        return scope is not None and (self._scope_version == scope._cell.version or self.bind_scope())

    def accepts_raw(self, feed: Mapping[str, Any]) -> bool:
        """Bind a user's feed if it consists of arrays of the planned dtypes and fitting shapes; else return False."""
        arrays = []
        offsets: list[np.ndarray] = []
        for value, levels in zip(feed.values(), self._fed_levels, strict=False):
            if type(value) is LoDTensor:
                if len(value.offsets) != levels or not value._ends_with_rows():
                    return False
                offsets += value.offsets
                value = value.array
            elif levels:
                return False
            if type(value) is not np.ndarray and (value := self._adopted(value)) is None:
                return False
            arrays.append(value)
        arrays += offsets
        return len(arrays) == len(self.feed_names) and self.accepts(arrays)

    def _adopted(self, value: Any) -> Any:
        """A fed value that is no NumPy array as an array that `accepts` takes; None if it cannot be one."""
        return None

    @abstractmethod
    def accepts(self, arrays: list[Any]) -> bool:
        """Bind the arrays of the feeds, in the order of `feed_names`; False, with none bound, if one does not fit."""

    def take(self, arrays: list[Any]) -> None:
        """Bind arrays that have to fit; raises ValueError naming the first that does not."""
        count = len(arrays) - self.followed
        if self.accepts(arrays) or self.accepts(
            [*[array.copy() for array in arrays[:count]], *arrays[count:]]
        ):
            return  # feeds that share memory with variables that the program writes have been copied
        for name, array in zip(self.feed_names, arrays, strict=True):
            wanted = f"{to_numpy(self.meta.dtypes[name])} {list(current_shape(self.meta.shapes[name]))}"
            got = f"{array.dtype} {list(array.shape)}"
            if wanted != got or (isinstance(array, np.ndarray) and not is_plain(array)):
                raise ValueError(
                    f"variable {name!r}: this plan works on an array of {wanted}, got one of {got}"
                )
        raise ValueError(f"this plan works on arrays of {self.feed_names}, which could not be bound")

    def release_gil(self, release: bool) -> None:
        """Set whether steps release the GIL; for little work, acquiring it costs more than other threads gain."""
        return None  # GPU steps are queued without

    @abstractmethod
    def run(self) -> None:
        """Run one step on what is bound; errors name the operator and the user's line."""

    @abstractmethod
    def fetch(self) -> list[np.ndarray]:
        """Copies of the variables to fetch, then those of the offsets of their sequences."""

    @abstractmethod
    def fetch_tensors(self) -> list[LoDTensor]:
        """Copies of the variables to fetch, where they are, with their sequences."""

    @abstractmethod
    def run_first(self) -> list[Any]:
        """Run the forward operators on the bound feeds; returns copies of the early fetches."""

    @abstractmethod
    def run_second(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the backward operators with the late feeds `arrays`; returns copies of the other fetches."""

    @abstractmethod
    def snapshot(self) -> Any:
        """A copy of all temporaries, for `restore`."""

    @abstractmethod
    def restore(self, snapshot: Any) -> None:
        """Copy the temporaries of a snapshot back, so that the second half can run once more."""

    def rest(self) -> None:
        """Free the results of the halves, unless the plan keeps their memory for the next call."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """The instructions of a step, one a line."""

    def _for_feeds(self) -> str:
        """The feeds with their shapes, for descriptions."""
        shapes = (f"{name}[{', '.join(map(formula, self.meta.shapes[name]))}]" for name in self.feed_names)
        return ", ".join(shapes) or "no feeds"


class PlanLock:
    """A lock that a thread which holds it is refused, instead of waiting for itself.

    Finalisers, which the garbage collector calls wherever memory is allocated, and signal handlers may run a
    program in the middle of a step of that program. They have to take another plan.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._taken = False

    def acquire(self, blocking: bool = True) -> bool:
        """Whether the lock has been taken; waits for other threads if `blocking`."""
        if not self._lock.acquire(blocking):
            return False
        if self._taken:
            self._lock.release()
            return False
        self._taken = True
        return True

    def release(self) -> None:
        self._taken = False
        self._lock.release()

    def elsewhere(self) -> bool:
        """Whether another thread holds the lock."""
        if not self._lock.acquire(blocking=False):
            return True
        self._lock.release()
        return False


_plans: weakref.WeakSet[StepPlan] = weakref.WeakSet()


def _give_up_running() -> None:
    """After a fork: invalidate the plans that other threads of the parent were running, which never end here."""
    for plan in list(_plans):
        if plan.lock.elsewhere():
            plan.lock = PlanLock()
            plan.version = -1


os.register_at_fork(after_in_child=_give_up_running)
