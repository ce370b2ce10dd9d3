"""Runs a case at other sizes than its plan was made for, and compares with the interpreter at each of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidlite.base import unique_name
from fluidlite.base.errors import EnforceNotMet
from fluidlite.base.place import CPUPlace
from fluidlite.executor import Executor, LoDTensor, Scope, scope_guard
from fluidlite.framework import program_guard
from fluidlite.framework.gradients.backward import gradients
from fluidlite.ops import registry
from fluidlite.ops.registry import grad_name

from ...engines import run_by
from ..in_program import OneOperator
from .cases import Case, Chooser
from .compare import differences
from .graphs import Graph
from .ways import INTERMEDIATE, Result, attempt, complete

ROWS = (3, 2, 17, 64, 1, 0, 3)
"""Sizes of the batch; the plan is made for the first."""
GROWTH: tuple[Callable[[int], int], ...] = (
    lambda n: n, lambda n: 2 * n, lambda n: max(2, n - 1), lambda n: n + 15, lambda n: n,
)  # fmt: skip
"""Maps of every size above 1 to another; equal sizes stay equal."""
COPIES = (2, 1, 5, 2)
"""Numbers of repetitions of a case's sequences."""
PARAMETERS = frozenset("W Filter Weight U V Scale Bias Mean Variance Alpha WeightOut Param".split())
"""Slots of a model's parameters: their sizes stay."""


@dataclass
class Found:
    """The result of a case: `differences`, the number of `sizes` that did not raise, and the `guards` of each plan."""

    differences: list[str] = field(default_factory=list)
    sizes: int = 0
    guards: list[str] = field(default_factory=list)

    @property
    def plans(self) -> int:
        return len(self.guards)


def tiled(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """`array` with more or fewer elements along each axis: what is added are some of its own, in no order."""
    rng = np.random.default_rng(4)
    for axis, n in enumerate(shape):
        own = array.shape[axis]
        if n != own and own:
            array = array.take(np.append(np.arange(own), rng.integers(0, own, max(0, n - own)))[:n], axis)
    return np.ascontiguousarray(array)


def by_rows(case: Case) -> list[Case] | None:
    """The case with as many rows as `ROWS` says, of all inputs that have as many as the first with some."""
    counts = [a.shape[0] for items in _fed(case).values() for a in items if a.ndim and a.shape[0]]
    if not counts:
        return None
    return [
        _changed(case, lambda a, to=to: (to if a.shape[0] == counts[0] else a.shape[0], *a.shape[1:]))
        for to in ROWS
    ]


def _fed(case: Case) -> dict[str, list[np.ndarray]]:
    return {slot: items for slot, items in case.inputs.items() if slot not in PARAMETERS}


def by_every_axis(case: Case) -> list[Case] | None:
    """The case with all sizes of what is no parameter changed."""
    return [
        _changed(case, lambda a, grown=grown: tuple(grown(n) if n > 1 else n for n in a.shape))
        for grown in GROWTH
    ]


def _changed(case: Case, shape: Callable[[np.ndarray], Sequence[int]]) -> Case:
    inputs = dict(case.inputs)
    for slot, items in _fed(case).items():
        inputs[slot] = [tiled(a, shape(a)) if a.ndim else a for a in items]
    return Case(case.op, inputs, case.attrs, case.outputs, case.lods)


def by_sequences(case: Case) -> list[Case] | None:
    """The case with its sequences several times, at times without the last one."""
    lods = [lod for slot in case.inputs for lod in case.lods.get(slot, []) if lod]
    counts = {len(lod[0]) - 1 for lod in lods}
    made = [_repeated(case, lods[0], times) for times in COPIES]
    if len(counts) == 1 and min(counts) > 1:
        made += [_repeated(case, lods[0], times, -1) for times in (1, 2)]
    return made


def _repeated(case: Case, first: Any, times: int, drop: int = 0) -> Case:
    lengths = [len(level) - 1 for level in first] + [first[-1][-1]]
    ends = _rows_of(_repeated_lod(first, times, drop), lengths[-1] * times)
    after = dict(zip(lengths[::-1], ends[::-1], strict=True))
    inputs: dict[str, list[np.ndarray]] = {}
    lods: dict[str, list[Any]] = {}
    for slot, items in case.inputs.items():
        inputs[slot], lods[slot] = [], []
        for array, lod in zip(items, case.lods.get(slot, [None] * len(items)), strict=True):
            new = _repeated_lod(lod, times, drop) if lod else lod
            rows = array.shape[0] if array.ndim else 0
            to = new[-1][-1] if new else after.get(rows, rows)
            inputs[slot].append(tiled(array, (to, *array.shape[1:])) if array.ndim else array)
            lods[slot].append(new)
    return Case(case.op, inputs, case.attrs, case.outputs, lods)


def _rows_of(lod: Any, rows: int) -> list[int]:
    return [len(level) - 1 for level in lod] + [lod[-1][-1] if lod else rows]


def _repeated_lod(lod: Any, times: int, drop: int) -> list[list[int]]:
    made = []
    for level in lod:
        lengths = np.tile(np.diff(level), times)
        made.append(np.concatenate([[0], np.cumsum(lengths)]).astype(int).tolist())
    if drop:
        keep = len(made[0]) - 1 + drop
        for k, level in enumerate(made):
            made[k] = level[: keep + 1]
            keep = made[k][-1]
    return made


def check(case: Case, changed: Callable[[Case], list[Case] | None] = by_rows) -> Found:
    """Compare plan and interpreter, results and gradients, at all sizes that `changed` makes of a case."""
    if any(lod for slot in case.inputs for lod in case.lods.get(slot, [])):
        changed = by_sequences
    found = Found()
    cases = changed(case)
    if cases is None:
        return found
    wants = [complete(each, gradients_too=False) for each in cases]
    kept = [number for number, want in enumerate(wants) if not _without_rows(want)]
    cases, wants = [cases[number] for number in kept], [wants[number] for number in kept]
    if not cases or "error" in wants[0]:
        return found
    for gradient in (True, False):
        try:
            program = _program(cases, wants, gradient)
            break
        except EnforceNotMet:  # it wants to know these sizes while the program is built, or has no gradient
            continue
    else:
        return found
    runs = [attempt(lambda feed=feed: program.run_at("interpret", feed)) for feed in program.feeds]
    if "error" in runs[0]:
        return found
    with scope_guard(Scope()):
        executor = Executor(CPUPlace())
        for number, (feed, want) in enumerate(zip(program.feeds, runs, strict=True)):
            before = len(program.plans())
            got = attempt(lambda feed=feed: program.run_at("plan", feed, executor))
            messages = differences(want, got)
            if (
                messages and "error" in got
            ):  # plans look at sizes that some reference kernels take as they come
                anew = attempt(lambda feed=feed: program.anew().run_at("plan", feed))
                messages = differences(anew, got)
            shapes = {name: shape_of(value) for name, value in feed.items()}
            found.differences += [f"run {number} {shapes}: {text}" for text in messages]
            if "error" not in want and not program.small(feed):
                found.sizes += 1
                found.guards += program.plans()[: len(program.plans()) - before]
    return found


def _without_rows(result: Result) -> bool:
    """Whether there are no sequences in something that has sequences; nobody can feed that."""
    return any(name.endswith("@LOD") and min(map(len, lod)) < 2 for name, lod in result.items())


class AtSizes(OneOperator):
    """A program of one operator, and feeds of several sizes; what differs between them is declared as open."""

    feeds: list[dict[str, Any]]
    shapes: dict[str, list[tuple[int, ...]]]
    fetches: list[str]

    def declared(self, name: str, array: np.ndarray) -> Sequence[int]:
        shapes = self.shapes.get(name, [])
        if any(len(shape) != array.ndim for shape in shapes):
            return array.shape
        return [-1 if any(shape[k] != n for shape in shapes) else n for k, n in enumerate(array.shape)]

    def anew(self) -> AtSizes:
        """The same, with no plans."""
        copied = copy.copy(self)
        copied.program = self.program.clone()
        return copied

    def run_at(self, engine: str, feed: dict[str, Any], executor: Executor | None = None) -> Result:
        with run_by(engine):
            if executor is None:
                with scope_guard(Scope()):
                    return self._fetched(Executor(CPUPlace()), feed)
            return self._fetched(executor, feed)

    def _fetched(self, executor: Executor, feed: dict[str, Any]) -> Result:
        names = self.fetches
        got = executor.run(self.program, feed=feed, fetch_list=names, return_numpy=False)
        made: Result = {name: np.array(tensor) for name, tensor in zip(names, got, strict=True)}
        made.update({f"{n}@LOD": t.lod() for n, t in zip(names, got, strict=True) if t.lod()})
        return made

    def plans(self) -> list[str]:
        """The guards of the plans made so far, the one used last in front."""
        found = [plan for by in self.program._plans.values() for cache in by.values() for plan in cache.plans]
        return [", ".join(map(str, plan.meta.sizes.guards.values())) for plan in found]

    def small(self, feed: dict[str, Any]) -> bool:
        """Whether one of the sizes that vary is 0 or 1, for which plans are made one by one."""
        for name, value in feed.items():
            for axis, n in enumerate(shape_of(value)):
                if n < 2 and any(other[axis] != n for other in self.shapes[name]):
                    return True
            if isinstance(value, LoDTensor) and any(len(level) < 3 for level in value.lod()):
                return True
        return False


def _program(cases: list[Case], wants: list[Result], gradient: bool) -> AtSizes:
    """A program for all of these cases, with the gradient if there is one and it is wanted."""
    case = cases[0]
    definition = registry.find(case.op)
    weights = _weights(case, wants) if gradient and definition.grad is not None else {}
    slots = _differentiable(case) if weights else []
    feeds = [_feed(each) for each in cases]
    for name, arrays in weights.items():
        for feed, array in zip(feeds, arrays, strict=True):
            feed[grad_name(name) + "_given"] = array
    with unique_name.guard():
        program = AtSizes.__new__(AtSizes)
        program.shapes = {name: [shape_of(feed[name]) for feed in feeds] for name in feeds[0]}
        program.__init__(  # type: ignore[misc]
            definition, case.inputs, case.attrs, {s: [None] * n for s, n in case.outputs.items()}, case.lods
        )
        names = [var.name for slot in program.outputs for var in program.outputs[slot]]
        made = {var.name: var for slot in program.outputs.values() for var in slot}
        if slots:
            with program_guard(program.program):
                starts = []
                for name, arrays in weights.items():
                    lod = wants[0].get(f"{name}@LOD")
                    starts.append(program._fed(grad_name(name) + "_given", arrays[0], lod))
                wanted = [var for slot in slots for var in program.inputs[slot]]
                gradients([made[name] for name in weights], wanted, starts)
            block = program.program.global_block()
            names += [grad_name(var.name) for var in wanted if block.has_var(grad_name(var.name))]
    for feed, want in zip(feeds, wants, strict=True):
        for name in weights:
            lod = want.get(f"{name}@LOD")
            if lod:
                feed[grad_name(name) + "_given"] = with_lod(feed[grad_name(name) + "_given"], lod)
    program.feeds, program.fetches = feeds, names
    return program


def shape_of(value: Any) -> tuple[int, ...]:
    return np.asarray(value).shape


def with_lod(array: np.ndarray, lod: Any) -> Any:
    tensor = LoDTensor()
    tensor.set(array, CPUPlace())
    tensor.set_lod(lod)
    return tensor


def _feed(case: Case) -> dict[str, Any]:
    feed: dict[str, Any] = {}
    for slot, items in case.inputs.items():
        for k, (array, lod) in enumerate(zip(items, case.lods.get(slot, [None] * len(items)), strict=True)):
            feed[f"{slot}_{k}"] = with_lod(array, lod) if lod else array
    return feed


def _weights(case: Case, wants: Iterable[Result]) -> dict[str, list[np.ndarray]]:
    """For each output with a gradient what to begin with at each size; for sizes that raise that of the first."""
    wants = list(wants)
    made: dict[str, list[np.ndarray]] = {}
    no_grad = registry.find(case.op).no_grad
    for slot, count in case.outputs.items():
        if slot in no_grad or slot in INTERMEDIATE:
            continue
        names = [f"{slot}_out_{k}" for k in range(count)]
        if not all(wants[0].get(n) is not None and wants[0][n].dtype.kind == "f" for n in names):
            continue
        rng = np.random.default_rng(1)
        for name in names:
            likes = [want[name] if "error" not in want else wants[0][name] for want in wants]
            made[name] = [rng.uniform(-1, 1, like.shape).astype(like.dtype) for like in likes]
    return made


def _differentiable(case: Case) -> list[str]:
    definition = registry.find(case.op)
    return [
        slot.name
        for slot in definition.input_slots
        if slot.name not in definition.no_grad
        and case.inputs.get(slot.name)
        and all(a.dtype.kind == "f" for a in case.inputs[slot.name])
    ]


def check_program(number: int) -> Found:
    """The same for a random program of several operators; the size of the batch changes."""
    graph = like = None
    for _ in range(2):
        rng = np.random.default_rng([78, number])
        graph = Graph(Chooser(lambda low, high, rng=rng: int(rng.integers(low, high + 1))), like)
        found = Found()
        try:
            fetches = graph.build()
        except EnforceNotMet:  # it wants to know this size while the program is built
            return found
        like = like or graph
    assert graph is not None
    opened = [name for name in graph.feed if -1 in graph.block.var(name).shape]
    feeds = []
    for rows in (graph.rows(), *ROWS):
        feeds.append(dict(graph.feed))
        for name in opened:
            value = graph.feed[name]
            feeds[-1][name] = tiled(value, (rows, *value.shape[1:]))
    # Operators that nobody asks for may raise in the interpreter, and some of its kernels take what plans refuse.
    valid = [
        feed
        for feed in feeds
        if not any("error" in _steps(graph, engine, [feed], fetches)[0] for engine in ("interpret", "plan"))
    ]
    ends = [_steps(graph, engine, valid, fetches) for engine in ("interpret", "plan")]
    for feed, want, got in zip(valid, *ends, strict=True):
        shapes = {name: value.shape for name, value in feed.items()}
        found.differences += [f"{shapes}: {text}" for text in differences(want, got, rtol=1e-3)]
    found.sizes = len(valid)
    return found


def _steps(graph: Graph, engine: str, feeds: list[Any], fetches: list[str]) -> list[Result]:
    with run_by(engine):
        return graph.steps(feeds, fetches)
