"""The scan operator: all iterations of a loop as one instruction, whose body is a plan of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...base.dtypes import VarType
from ...base.sizes import SymInt, always_equal, current
from ...framework import Block, Operator
from ...ops.math.matmul import Matrix, packing
from ...ops.native import bytes_of_row, itemsize, numel
from ...ops.registry import Call, OpDef, OpView, Sequences
from ..failures import DataDependentShape, Unsupported
from ..ir.ranks import ranked
from ..ir.request import FIRST, Feeds
from ..ir.type_env import IterationType
from .array_ops import STASH_POP

SCAN_KERNEL = "scan"
"""In the place of a kernel's name: the engine runs all iterations of a loop."""

SPARE = "@SPARE"
"""Suffix of the second buffer of a carried result."""

BOUNDS = "@BOUNDS"
"""Suffix of the offsets whose rows begin, in each iteration, where an operand says."""

SIZE = "size "
"""Prefix of the labels of sizes from outside among integers."""

NEXT = {"m": "n", "n": "m", "": ""}
"""The row count that a carried variable has after an iteration, by that before; see `Carry`."""


INPUT_SLOTS = ("Ragged", "Stacked", "ShapeOnly", "Prefix", "Init", "Invariant")
OUTPUT_SLOTS = ("RaggedOut", "StackedOut", "Final", "Sums")
"""The input and output slots of a scan, in the order of the instruction's operands."""


class Carry(NamedTuple):
    """A loop-carried variable: the name that an iteration reads; its row count, that of this step ("n"), of the step
    before ("m"), or a fixed one (""); and the name of the value for the next iteration."""

    name: str
    rows: str
    after: str


@dataclass
class ScanSpec:
    """The body and the variables of a scan, by their names in its block.

    Args:
        block, ops: the body; `back`: whether iterations go from the last step to the first.
        names: by slot, what the body reads and computes; see `SCAN`.
        carried: the loop-carried variables, in the order of slot Init.
        shortened: a prefix of a carried variable -> that variable.
        bodies: `BodyPlan`s, made with the plan around, as are: `outer`: label of a size in a body -> that size outside;
            `others`: offsets of other sequences, of which each step has a prefix; `levels`: loop-invariant offsets;
            `rows`: ragged input or output -> its row count per step, "n" or one of `others`; `operands`, `ints`: the
            positions in the instruction, of integers by the names of what they are the bytes of and by labels.
    """

    block: Block
    ops: Sequence[Operator]
    back: bool
    names: dict[str, list[str]]
    carried: list[Carry]
    shortened: dict[str, str]
    bodies: list[Any] = field(default_factory=list)
    outer: dict[str, Any] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    rows: dict[str, Any] = field(default_factory=dict)
    operands: dict[str, int] = field(default_factory=dict)
    ints: dict[Any, int] = field(default_factory=dict)

    def of(self, *slots: str) -> list[str]:
        """The names in these slots."""
        return [name for slot in slots for name in self.names[slot]]

    def packed(self) -> dict[str, Matrix]:
        """The weights that bodies read prepacked, by the names of their packed copies."""
        return {name: matrix for body in self.bodies for name, matrix in body.packed.items()}

    def size(self, label: Any) -> Any:
        """The size outside of the scan for a label; other values are returned unchanged."""
        return self.outer.get(label, label) if isinstance(label, str) else label


def _infer_scan(op: OpView) -> None:
    spec: ScanSpec = op.attr("spec")
    meta = op.meta
    slots = {slot: [_in_iteration(op, spec, slot, k) for k in range(op.count(slot))] for slot in INPUT_SLOTS}
    if any(
        not shape for slot in slots if slot not in ("Invariant", "Stacked") for shape, _, _ in slots[slot]
    ):
        raise Unsupported("a variable of its body has no dimensions")
    _, first, _, rows = _counts(op)
    if not rows:
        raise Unsupported("its sequences have no rows", retryable=True)
    levels = dict.fromkeys(level for found in slots.values() for *_, each in found for level in each)
    spec.levels = [level for level in levels if not level.endswith(FIRST)]
    labels = {each.removesuffix(FIRST) for each in levels if each.endswith(FIRST)}
    labels |= {n for found in slots.values() for shape, *_ in found for n in shape if isinstance(n, str)}
    spec.others = sorted(labels & meta.ranking.in_order.keys())
    spec.rows = {name: each[0][0] for name, each in zip(spec.names["Ragged"], slots["Ragged"], strict=True)}
    spec.bodies = []
    carried_rows = _carried_rows(op, spec)
    for sizes in _expected_sizes(op, spec, carried_rows):
        if any(body.fits(sizes) for body in spec.bodies):
            continue
        body, outer = _body(op, spec, slots, sizes)
        spec.bodies.append(body)
        spec.outer.update(outer)
        _set_results(op, spec, body, carried_rows)
        for array, (shape, dtype) in body.stashes().items():
            known = meta.element_types.get(array)
            shape = [[*map(spec.size, each)] for each in shape]
            if known is not None:
                shape = [[n for n in a if n in b] for a, b in zip(known[0], shape, strict=True)]
            if not all(shape):
                raise Unsupported(
                    "the values that an inner loop stashes have different shapes in different iterations"
                )
            meta.element_types[array] = shape, dtype
    for k, ((_, dtype, _), each) in enumerate(zip(slots["Init"], spec.carried, strict=True)):
        if op.has("Steps") and op.shape("Init", k)[0] != first:
            raise Unsupported(f"the initial value of {each.name!r} has another row count than a step")
        for body in spec.bodies:
            body.check_carried(each, each.rows if op.has("Steps") else NEXT[each.rows], dtype)


def _is_one_of(size: int, wanted: Sequence[int]) -> bool:
    """True if a size equals one of these; adds a guard where that does not follow symbolically."""
    return any(always_equal(size, each) for each in wanted) or any(size == each for each in wanted)


def _in_iteration(
    op: OpView, spec: ScanSpec, slot: str, k: int
) -> tuple[tuple[Any, ...], VarType, tuple[str, ...]]:
    """An operand as an iteration sees it: shape, with labels for sizes that vary, type, and offsets."""
    meta, name, shape, dtype = op.meta, op.name(slot, k), op.shape(slot, k), op.dtype(slot, k)
    if slot in ("Ragged", "Stacked") and name in meta.iteration_types:
        return meta.iteration_types[name].shape, dtype, meta.iteration_types[name].levels
    levels = op.lod(slot, k)
    if slot == "Invariant":
        return shape, dtype, levels
    if slot == "Stacked":
        return shape[1:], dtype, ()
    _, first, every, rows = _counts(op)
    if slot == "Prefix" and len(levels) == 1 and levels[0] in meta.ranking.in_order:
        if ranked(meta.ranking.in_order[levels[0]].table, "bounds") == op.name("Bounds"):
            return (levels[0], *shape[1:]), dtype, (levels[0] + FIRST,)
    if levels:
        raise Unsupported(f"an iteration works on the sequences of {name!r}")
    if slot in ("Ragged", "Prefix"):
        wanted = (rows,) if slot == "Ragged" else (first, every)
        if shape and not _is_one_of(shape[0], wanted):
            raise Unsupported(f"input {name!r} has another row count than the steps")
    moves = spec.carried[k].rows if slot == "Init" else "m" if slot == "ShapeOnly" else "n"
    return (moves or shape[0], *shape[1:]) if shape else (), dtype, ()


def _expected_sizes(op: OpView, spec: ScanSpec, carried_rows: int) -> Iterable[dict[str, int]]:
    """Sizes of iterations to make bodies for: typical ones, then those of the current feeds."""
    meta, (_, first, _, _) = op.meta, _counts(op)
    if op.has("Steps"):
        yield {"n": current(first), "m": current(first)}
        return
    n, m = max(2, current(first)), max(2, current(first), current(carried_rows)) + 1
    moves = bool(spec.names["ShapeOnly"]) or any(each.rows == "m" for each in spec.carried)
    counts = [(n, m), (n, n), (1, m), (1, 1)] if moves else [(n, n), (1, 1)]
    if not isinstance(first, SymInt):  # one, or the declared number
        counts = [pair for pair in counts if pair[0] == 1]
    ordered = {each: np.diff(meta.ranking.ordered_now(each).bounds).tolist() for each in spec.others}
    every = {each: meta.shapes[each.removesuffix("offsets") + "rows"][0] for each in spec.others}
    others = {
        each: max(2, rows[0]) if isinstance(every[each], SymInt) else rows[0]
        for each, rows in ordered.items()
    }
    for n, m in counts:
        yield {"n": n, "m": m, **others}
    if spec.others:
        places = np.diff(meta.ranking.now(meta.ranking.in_order[spec.others[0]].table).bounds).tolist()
        before = [current(carried_rows), *places]
        for place, n in enumerate(places):
            yield {"n": n, "m": before[place], **{each: rows[place] for each, rows in ordered.items()}}


def _carried_rows(op: OpView, spec: ScanSpec) -> int:
    """The initial row count of the carried variables that have the rows of the step before ("m")."""
    _, first, every, _ = _counts(op)
    found = [op.shape("Init", k)[0] for k, each in enumerate(spec.carried) if each.rows == "m"]
    found += [op.shape("ShapeOnly", k)[0] for k in range(op.count("ShapeOnly"))]
    if any(size != first and size != every for size in found):
        raise Unsupported(
            "the initial row count of a carried variable differs from the step's", retryable=True
        )
    # They differ by empty sequences only, which no iteration reads.
    return found[0] if found and all(size == found[0] for size in found) else first


def _body(
    op: OpView,
    spec: ScanSpec,
    slots: dict[str, list[tuple[tuple[Any, ...], VarType, tuple[str, ...]]]],
    sizes: dict[str, int],
) -> tuple[Any, dict[str, Any]]:
    meta = op.meta
    said = op.has("Steps") and not isinstance(op.shape("Steps")[1], SymInt)
    feeds = Feeds(sizes, sizes["n"] if said else None)
    if op.has("Steps"):  # all steps have equally many rows
        feeds.outer.update(dict.fromkeys(sizes, op.shape("Steps")[1]))
    for slot in INPUT_SLOTS:
        for name, (shape, dtype, levels) in zip(spec.names[slot], slots[slot], strict=True):
            feeds.add(name, shape, dtype, levels)
            for short, source in spec.shortened.items() if slot == "Init" else ():
                if source == name:
                    feeds.add(short, ("n", *shape[1:]), dtype)
    for each in spec.ops:
        if each.definition is STASH_POP:
            shape, dtype = meta.element_types[each.attrs["array"]]
            feeds.add(each.inputs["Like"][0], [n[0] for n in shape], dtype)
    for level in spec.levels:
        feeds.add(level, meta.shapes[level], VarType.INT64)
    for level in spec.others:
        feeds.add(level + FIRST, ("n+1",), VarType.INT64)
    try:
        return meta.make_body(spec, feeds), feeds.outer
    except DataDependentShape as refusal:
        raise Unsupported(f"its body has data-dependent sizes: {refusal}") from None


def _counts(op: OpView) -> tuple[int, int, int, int]:
    """The number of steps, the rows of the first step without and with empty sequences, and the rows of all steps."""
    shapes = op.meta.shapes
    if op.has("Steps"):
        steps, rows = shapes[op.name("Steps")][:2]
        return steps, rows, rows, steps * rows
    bounds, first, every, items = (
        shapes[op.name(slot)][0] for slot in ("Bounds", "Running", "Order", "Items")
    )
    return bounds - 1, first, every, items


def _set_results(op: OpView, spec: ScanSpec, body: Any, carried_rows: int) -> None:
    meta = op.meta
    steps, first, _, rows = _counts(op)
    for slot in OUTPUT_SLOTS:
        for k, name in enumerate(spec.names[slot]):
            kinds, shape, dtype, levels = body.result(name, slot == "StackedOut")
            kind = "n" if slot == "RaggedOut" else ""
            if slot == "Final":
                before = next(each.rows for each in spec.carried if each.after == name)
                kind = "n" if op.has("Steps") else NEXT[before]
                if before == "m" and not op.has("Steps"):
                    raise Unsupported(f"the row count of {name!r} after the last iteration is data-dependent")
            # Where all steps have equally many rows, a fixed row count may be that of the steps.
            own = spec.outer.get(shape[0]) if isinstance(shape[0], str) else None
            same = kind == "n" and op.has("Steps") and own is not None and own == op.shape("Steps")[1]
            if slot == "Sums" and op.has("Steps") and "n" in kinds:
                kind = "n"
            out = op.name(slot, k)
            if slot == "RaggedOut" and not same:
                known = meta.iteration_types.get(out)
                found = [n for n in kinds if n == "n" or n in spec.others]
                kind = known.shape[0] if known else (found or ["n"])[0]
            if kind not in kinds and not same:
                raise Unsupported(f"the row count of variable {name!r} is not that of the steps")
            if slot == "RaggedOut":
                if any(not level.endswith(FIRST) for level in levels):
                    raise Unsupported(f"variable {name!r} has sequences that an iteration computes")
                inner = [spec.size(n) for n in shape[1:]]
                meta.iteration_types.setdefault(out, IterationType((kind, *inner), levels))
                spec.rows[name] = kind
            elif slot == "StackedOut" and shape[:1] == (0,):  # only its shape is read
                meta.iteration_types.setdefault(out, IterationType(tuple(map(spec.size, shape)), levels))
                shape = (0,)
            elif slot == "Sums" and all(level in meta.shapes for level in levels):
                op.carry(slot, levels, k)
            elif levels:
                raise Unsupported(f"variable {name!r} has sequences")
            outer = [spec.outer[n] if isinstance(n, str) else n for n in shape]
            if kind:
                whole = meta.ranking.in_order[kind].total if kind in spec.others else rows
                outer[0] = whole if slot == "RaggedOut" else carried_rows if slot == "Final" else first
            if slot == "StackedOut":
                outer.insert(0, steps)
            op.set(slot, outer, dtype, k)


def _native_scan(op: OpView) -> list[Call]:
    spec: ScanSpec = op.attr("spec")
    meta, names = op.meta, spec.names
    steps, first, _, _ = _counts(op)
    operands: dict[str, str | None] = {"": op.name_or_none("Bounds")}
    for slot in (*INPUT_SLOTS, *OUTPUT_SLOTS):
        operands.update(zip(names[slot], op.names(slot), strict=True))
    for k, name in enumerate(names["Final"]):
        operands[name + SPARE] = spare = op.name("Final", k) + SPARE
        meta.set(spare, op.shape("Final", k), op.dtype("Final", k))
    calls: list[Call] = []
    owner = next(op.name(slot) for slot in OUTPUT_SLOTS if op.count(slot))
    for name, matrix in spec.packed().items():
        outside = op.name("Invariant", names["Invariant"].index(matrix.name))
        operands[name] = scratch = f"{owner}@{name}"
        meta.set(scratch, (matrix.packed_elements,), meta.dtypes[outside])
        calls.append(packing(matrix._replace(name=outside), scratch))
    for level in spec.others:
        operands |= {level + FIRST: level, level + BOUNDS: level.removesuffix("offsets") + "bounds"}
    operands |= {level: level for level in spec.levels}
    ints: dict[Any, int] = {0: steps, 1: first, 2: _carried_rows(op, spec)}
    for slot in ("Ragged", "Stacked", "RaggedOut", "StackedOut"):
        ints |= {name: bytes_of_row(op, slot, k) for k, name in enumerate(names[slot])}
    ints |= {name: numel(op, "Sums", k) * itemsize(op, "Sums", k) for k, name in enumerate(names["Sums"])}
    ints |= {SIZE + label: size for label, size in spec.outer.items()}
    spec.operands = {name: at for at, name in enumerate(operands)}
    spec.ints = {name: at for at, name in enumerate(ints)}
    return [*calls, Call(SCAN_KERNEL, [*operands.values()], [*ints.values()])]


SCAN = OpDef(
    SCAN_KERNEL,
    inputs=(
        "Steps?#", "Bounds?", "Running?#", "Order?#", "Items?#",
        "Ragged*?", "Stacked*?", "ShapeOnly*?#", "Prefix*?", "Init*?", "Invariant*?",
    ),
    outputs=("RaggedOut*?", "StackedOut*?", "Final*?", "Sums*?"),
    attrs={"spec": None},
    infer=_infer_scan,
    native=_native_scan,
    sequences=Sequences(source=None),
    doc="All iterations of a loop over the time steps of sequences. Ragged: the rows of all steps, step by step; "
    "Stacked: one element of fixed size per step; Prefix: each step has the first rows; Init: loop-carried variables "
    "before the first iteration; ShapeOnly: only the shape is read; Invariant: loop-invariant. RaggedOut, StackedOut: "
    "results of all steps; Final: loop-carried variables after the last iteration; Sums: sums over the iterations.",
)  # fmt: skip


def moving_memory(
    spec: ScanSpec, kinds: dict[str, int]
) -> tuple[list[tuple[int, int, int, int]], dict[str, int]]:
    """The memory that moves between iterations, as `Engine.add_loop` takes it, and the indices of variables in it."""
    operands, ints = spec.operands, spec.ints
    moving: dict[str, tuple[int, int, int, int]] = {}
    for slot in ("Ragged", "RaggedOut", "Stacked", "StackedOut"):
        kind = kinds["packed" if slot.startswith("Ragged") else "each"]
        for name in spec.names[slot]:
            bounds = operands.get(spec.rows.get(name, "n") + BOUNDS, 0)
            moving[name] = kind, operands[name], bounds, ints[name]
    for name in (*spec.of("ShapeOnly", "Prefix"), *(level + FIRST for level in spec.others)):
        moving[name] = kinds["same"], operands[name], 0, 0
    for name in spec.names["Final"]:
        moving[name] = kinds["last"], operands[name], operands[name + SPARE], 0
    index = {name: at for at, name in enumerate([*moving, *(each.name for each in spec.carried)])}
    for each in spec.carried:
        moving[each.name] = kinds["carried"], operands[each.name], index[each.after], 0
    return [*moving.values()], index | {name: index[source] for name, source in spec.shortened.items()}
