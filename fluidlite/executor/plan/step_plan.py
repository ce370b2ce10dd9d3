"""`StepPlan`: what everybody asks of a plan, wherever it runs, and what all plans have in common."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...base.arrays import is_plain
from ...base.dtypes import to_numpy
from ...base.sizes import current_shape, formula
from ...framework import OpRole, Program
from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope
from . import fusion
from .analysis import Analysis
from .forking import watch
from .instructions import Instruction
from .locking import PlanLock
from .meta import ExactMeta
from .refusals import CannotPlan


class StepPlan(ABC):
    """Runs operators of a program on arrays that fit, on whatever device; holds its scope weakly.

    Whoever runs one holds its `lock`, from `accepts` to `fetch`.
    """

    passes: Sequence[fusion.Pass]
    """What the fuser can put together."""

    fetched: list[str]
    """What is fetched, in order; then perhaps what goes with it."""

    has_levels: bool = False
    """Whether something that is fetched has sequences."""

    followed: int = 0
    """How many of `feed_names`, at their end, are persistable variables."""

    version: int
    lock: PlanLock
    meta: ExactMeta
    feed_names: list[str]
    instructions: list[Instruction]
    _scope: weakref.ref[Scope]
    _scope_version: int  # the version of the scope that the plan was bound to last
    _fed_levels: list[int]
    _roots: dict[str, str]
    """Names for the memory of others."""

    def __init__(self, program: Program, scope: Scope, analysis: Analysis) -> None:
        # The plan is kept with the program and must not keep the scope alive.
        self._scope = weakref.ref(scope)
        self._scope_version = -1
        self._roots = {}
        self.version = program._version
        self.lock = PlanLock()
        watch(self)
        self.meta = analysis.meta
        self.feed_names = analysis.feed_names
        self._fed_levels = [len(self.meta.lod(name)) for name in self.feed_names]

    def _fused(self, instructions: list[Instruction], needed: Iterable[str]) -> list[Instruction]:
        """The instructions after the fuser; `needed`: what must have its value in the end."""
        return fusion.fuse(instructions, needed, self.passes, self._roots)

    def _persistables(self, instructions: Iterable[Instruction]) -> set[str]:
        """The persistable variables which instructions write."""
        return {*filter(self.meta.is_persistable, {name for each in instructions for name in each.writes})}

    def _bind_first(self) -> None:
        """Bind the scope's variables when everything is there; CannotPlan if that cannot be done."""
        if not self.bind_scope():
            raise CannotPlan("a variable of the scope gets another shape or type")
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
        """Use the scope's variables as they are now; False if a shape or dtype is not the planned one any more."""

    def ready(self, program: Program) -> bool:
        """Whether the plan still says what the program does; follows the scope if that has changed."""
        if program._version != self.version:
            return False
        scope = self._scope()
        return scope is not None and (self._scope_version == scope._cell.version or self.bind_scope())

    @abstractmethod
    def follow(self, names: Sequence[str]) -> None:
        """Have `accepts` take the arrays of these persistable variables as well, after those of the feeds.

        For variables whose memory belongs to somebody else, who may replace it from one step to the next.
        """

    def accepts_raw(self, feed: Mapping[str, Any]) -> bool:
        """Take what the user feeds, if it is arrays of the planned dtypes, and shapes that fit; False otherwise."""
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
        """What is fed and is no array of NumPy, as an array that `accepts` takes; None if there is none."""
        return None

    @abstractmethod
    def accepts(self, arrays: list[Any]) -> bool:
        """Bind the arrays of the feeds, in the order of `feed_names`; False, with none of them bound, if one does not
        fit."""

    def take(self, arrays: list[Any]) -> None:
        """`accepts` for arrays that have to fit; raises ValueError naming the first that does not."""
        count = len(arrays) - self.followed
        if self.accepts(arrays) or self.accepts(
            [*[array.copy() for array in arrays[:count]], *arrays[count:]]
        ):
            return  # a copy is needed of what shares its memory with variables that the program writes
        for name, array in zip(self.feed_names, arrays, strict=True):
            wanted = f"{to_numpy(self.meta.dtypes[name])} {list(current_shape(self.meta.shapes[name]))}"
            got = f"{array.dtype} {list(array.shape)}"
            if wanted != got or (isinstance(array, np.ndarray) and not is_plain(array)):
                raise ValueError(
                    f"variable {name!r}: this plan works on an array of {wanted}, got one of {got}"
                )
        raise ValueError(f"this plan works on arrays of {self.feed_names}, which could not be bound")

    def release_gil(self, release: bool) -> None:
        """Whether other threads of Python run meanwhile; for little work, waiting to be let back in costs more."""
        return None  # where a step is only given to somebody else there is nothing to do

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
    def describe(self) -> str:
        """The instructions of a step, one a line."""

    def _for_feeds(self) -> str:
        """The feeds with their shapes, for descriptions."""
        shapes = (f"{name}[{', '.join(map(formula, self.meta.shapes[name]))}]" for name in self.feed_names)
        return ", ".join(shapes) or "no feeds"


class TwoPhases(StepPlan):
    """A plan that stops before its first backward operator: the others run later, on gradients that come in between."""

    _cut: int
    """The first instruction of the second phase."""

    def _fused(self, instructions: list[Instruction], needed: Iterable[str]) -> list[Instruction]:
        """The two phases, each fused for itself."""
        roles = [each.op.attrs.get("op_role", 0) & OpRole.Backward for each in instructions]
        cut = next((k for k, role in enumerate(roles) if role), len(roles))
        read = {name for each in instructions[cut:] for name in each.reads}
        first = super()._fused(instructions[:cut], {*needed, *read})
        self._cut = len(first)
        return [*first, *super()._fused(instructions[cut:], needed)]

    @abstractmethod
    def run_first(self) -> list[Any]:
        """Run the forward operators on what `accepts` has taken; returns copies of the fetches."""

    @abstractmethod
    def run_second(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the backward operators with the late feeds `arrays`; returns copies of the late fetches."""

    @abstractmethod
    def snapshot(self) -> Any:
        """All temporaries as they are now, for `restore`."""

    @abstractmethod
    def restore(self, snapshot: Any) -> None:
        """Put the temporaries back, so that the second phase can run once more."""

    def rest(self) -> None:
        """Let go of what a call has computed, unless its memory is kept for the next one anyway."""
        return None
