"""The target-independent phases of the compiler: from a request to operators with exact shapes.

prune       the operators that the fetches and the updates of state need
structure   blocks inlined between jumps, loops over sequences as scans, one name for each value
infer       exact shapes (formulas of the sizes of feeds), guards, constants
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..base import long_work
from ..base.dtypes import VarType
from ..base.errors import EnforceNotMet
from ..framework import Operator
from ..ops.registry import OpView
from . import failures
from .control_flow import blocks, ragged_scan, recurrent
from .control_flow.array_ops import GET
from .control_flow.inlining import Inliner, predicated
from .failures import DataDependentShape, Unsupported
from .ir import jumps
from .ir.inference import NON_TENSORS, SsaNames, fold, has_control_flow, in_place_of, infer, is_noop, live
from .ir.legalization import (
    FiniteChecks,
    check_padding,
    check_written_once,
    dense_name,
    densified,
    densifying,
    in_float32,
    wholes,
)
from .ir.request import Request
from .ir.type_env import TypeEnv

Step = tuple[Operator, OpView]


@dataclass
class Graph:
    """Operators without blocks, in which each name of a temporary stands for one value.

    `results`: the names of the values to return; `unset`: values that exist only if a branch runs, with that branch;
    `has_scans`: whether loops have become scans.
    """

    ops: list[Operator]
    results: list[str]
    unset: dict[str, Operator] = field(default_factory=dict)
    has_scans: bool = False


@dataclass
class Typed:
    """Operators with exact shapes; those whose results are constants are left out.

    `meta`: the types of the variables; `fetches`: those to return, SelectedRows made dense; `ends_early`: the operators
    end after a data-dependent size, because the rest is invalid for its guess.
    """

    meta: TypeEnv
    steps: list[Step]
    fetches: list[str]
    ends_early: bool = False


def prune(request: Request, meta: TypeEnv) -> list[Operator]:
    """The operators that a step has to run.

    Raises NotFed if an operator, needed or not, reads a data variable that is not fed, and Unsupported if the scope
    holds arrays or rank tables.
    """
    block = request.declarations
    ops = block.ops if request.ops is None else request.ops
    _check_fed(ops, meta, [*request.feed])
    variables = [var for each in request.program.blocks for var in each.vars.values()]
    if any([var.persistable and var.type in NON_TENSORS for var in variables]):
        raise Unsupported("persistable variables are tensor arrays or rank tables")
    # A body has been pruned, and must keep its jumps.
    if request.check_finite or request.body is not None:
        return list(ops)
    return live(list(ops), wholes(request.fetches))


def structure(ops: Sequence[Operator], request: Request, meta: TypeEnv) -> Graph:
    """The operators with sub-blocks inlined, and temporaries in SSA form."""
    graph = Graph(list(ops), [*request.fetches])
    if request.has_jumps:
        if has_control_flow(request.program, ops):
            graph = _inlined(graph, request, meta)
    elif not request.check_finite:
        graph.ops = [*predicated(ops)]
    names = SsaNames(meta.is_persistable, [*request.feed, *request.late])
    graph.ops = [names.renamed(op) for op in graph.ops if not is_noop(op)]
    graph.results = [names.latest.get(name, name) for name in graph.results]
    return graph


def infer_shapes(graph: Graph, request: Request, meta: TypeEnv) -> Typed:
    """Exact shapes and constants of a graph.

    Raises Unsupported when an operator has to run on its own, EnforceNotMet when something it reads is neither fed,
    computed nor initialised.
    """
    inference = _Inference(graph, request, meta)
    inference.run()
    fetches = graph.results
    if inference.ends_early:
        fetches = []
    for name, asked in zip(fetches, request.fetches, strict=False):
        if asked in graph.unset:
            raise Unsupported(
                f"fetched variable {asked!r} has no value if a branch is not taken", graph.unset[asked]
            )
        _check_fetched(name, meta)
    check_padding([op for op, _ in inference.steps], fetches)
    return Typed(meta, inference.steps, inference.dense(fetches), inference.ends_early)


def _check_fed(ops: Iterable[Operator], meta: TypeEnv, fed: list[str]) -> None:
    written: set[str] = set()
    for op in ops:
        for name in blocks.reads(op) if op.definition.effects.control else op.reads():
            var = op.block.vars.get(name)
            if var is None:
                var = op.block._find_var_recursive(name)
            if var is not None and var.is_data and name not in written and not meta.has(name):
                raise failures.missing_value(op, name, fed)
        written.update(op.writes())


def _inlined(graph: Graph, request: Request, meta: TypeEnv) -> Graph:
    """The graph with the blocks of branches and loops between jumps.

    Tensor arrays become names for their elements where indices are known, else memory of the engine.
    """
    if request.check_finite:
        return _with_blocks_inlined(graph, meta, arrays=True, scans=False)
    try:
        return _with_blocks_inlined(graph, meta, arrays=False, scans=True)
    except Unsupported as refusal:
        if not any(op.type in blocks.ON_ARRAYS for op in blocks.everywhere(graph.ops)):
            raise
        try:
            return _with_blocks_inlined(graph, meta, arrays=True, scans=True)
        except Unsupported:
            raise refusal from None


def _with_blocks_inlined(graph: Graph, meta: TypeEnv, arrays: bool, scans: bool) -> Graph:
    ops: Iterable[Operator] = graph.ops
    kept = {name for op in graph.ops for name in blocks.read_before(op) if meta.has(name)}
    lowered = recurrent.Scans()
    loops = ragged_scan.RaggedScans(graph.ops, lowered)
    inliner = Inliner({*meta.shapes, *kept}, arrays, *((lowered, loops) if scans else ()))
    if scans and not arrays:
        ops = [*loops.of(ops)]
    made = inliner.with_prologue([*inliner.of(ops)], inliner.touched + inliner.stashes)
    read = {*graph.results}.union(*(op.reads() for op in made))
    made = [op for op in made if op.definition is not GET or op.outputs["Out"][0] in read]
    if loops.any:
        made = live(made, wholes(graph.results))
    return Graph(made, graph.results, inliner.unset, lowered.any or loops.any)


def _check_fetched(name: str, meta: TypeEnv) -> None:
    if meta.has(name):
        return
    var = meta.block._find_var_recursive(name)
    if var is not None and var.type == VarType.LOD_TENSOR_ARRAY:
        raise Unsupported(f"fetched variable {name!r} is a tensor array")
    if var is not None and var.type == VarType.LOD_TENSOR:
        raise Unsupported(f"fetched variable {name!r} may have no value")
    raise failures.UnknownFetch(name, meta.block.program)


class _Inference:
    """Infers the operators of a graph in order; `steps` is the result."""

    def __init__(self, graph: Graph, request: Request, meta: TypeEnv) -> None:
        self._graph, self._meta = graph, meta
        self._fed = [*request.feed]
        self._widens = request.has_jumps
        self._watch = FiniteChecks(request.declarations) if request.check_finite else None
        self._writes = Counter([name for op in graph.ops for name in op.writes()])
        self.steps: list[Step] = []
        self.ends_early = False

    def run(self) -> None:
        meta, steps = self._meta, self.steps
        enclosing: list[Operator] = []  # the branches and loops around an operator
        begun: list[int] = []  # of each of these, the number of operators with data-dependent sizes before it
        # Steps up to the last operator with data-dependent sizes, and the number of such operators.
        valid = resolved = 0
        for op in long_work.over(self._graph.ops, "shapes of the program"):
            if op.definition in jumps.BEGINS:
                enclosing.append(op)
                begun.append(len(meta.size_labels))
            try:
                self._operator(op, enclosing)
            except (Unsupported, EnforceNotMet) as refusal:
                if valid:
                    self.ends_early = True
                    del steps[valid:]
                    return
                raise self._refusal(refusal, enclosing) from None
            if op.definition in jumps.ENDS:
                first = enclosing.pop()
                if len(meta.size_labels) > begun.pop():
                    steps += self._step(
                        in_place_of(first, jumps.STAGE_BARRIER, {"X": first.inputs["Cond"]}, {}, {})
                    )
            if not enclosing and len(meta.size_labels) > resolved:
                valid, resolved = len(steps), len(meta.size_labels)

    def _operator(self, op: Operator, enclosing: list[Operator]) -> None:
        meta = self._meta
        if enclosing and not meta.sparse.keys().isdisjoint(op.reads()):
            raise Unsupported(f"operator {op.type} reads SelectedRows in a branch")
        resolved = len(meta.size_labels)
        for ready in self._ready(op, bool(enclosing)):
            self.steps += self._step(ready)
        if self._watch is not None:
            self.steps += self._watch.checks_after(op, meta)
        if len(meta.size_labels) > resolved and any(each.definition is jumps.BEGIN for each in enclosing):
            raise Unsupported(f"operator {op.type} has data-dependent sizes in a branch")

    def _refusal(self, refusal: Unsupported | EnforceNotMet, enclosing: list[Operator]) -> Exception:
        """The exception to raise; in branches and loops, a user's error becomes Unsupported: they may never run."""
        if enclosing:
            kind = DataDependentShape if isinstance(refusal, DataDependentShape) else Unsupported
            return kind(str(refusal), enclosing[0], getattr(refusal, "retryable", False))
        if self._graph.has_scans and isinstance(refusal, EnforceNotMet):
            return Unsupported(str(refusal))
        return refusal

    def _ready(self, op: Operator, in_branch: bool) -> Iterable[Operator]:
        """The operators to run for `op`: mostly itself. Casts are shared, so branches, which may not run, have none."""
        meta = self._meta
        for one in densified(op, meta) if meta.sparse else (op,):
            for name in one.reads():
                if name not in meta.shapes:
                    meta.has(name, one)  # records its type
            if VarType.FP16 in meta.kinds and self._widens and not in_branch:
                yield from in_float32(one, meta, self._fed)
            else:
                yield one

    def _step(self, op: Operator) -> list[Step]:
        view = infer(op, self._meta, self._fed)
        if self._meta.sparse:
            check_written_once(op, self._meta, self._writes)
        return [] if fold(op, view, self._meta, self._writes) else [(op, view)]

    def dense(self, fetches: Sequence[str]) -> list[str]:
        """The fetches by the names of their dense forms; adds steps that make SelectedRows dense."""
        meta = self._meta
        for name in fetches:
            if name in meta.sparse and not meta.has(dense_name(name)):
                op = densifying(self.steps[-1][0], name)
                self.steps.append((op, infer(op, meta, self._fed)))
        return [dense_name(name) if name in meta.sparse else name for name in fetches]
