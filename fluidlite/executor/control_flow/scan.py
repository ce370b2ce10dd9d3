"""What stands in plans for loops whose turns are plans of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...base.dtypes import VarType
from ...base.sizes import SymInt, always_equal, current
from ...framework import Block, Operator
from ...ops.math.gemm import Matrix, packing
from ...ops.native import bytes_of_row, itemsize, numel
from ...ops.registry import Call, OpDef, OpView, Sequences
from ..ir.errors import DataDependentShape, Unsupported
from ..ir.ranks import ranked
from ..ir.scan_inputs import FIRST, Feeds
from ..ir.type_env import IterationType
from .array_ops import STASH_POP

SCAN_KERNEL = "turns"
"""Stands for a kernel: takes all turns of a loop."""


def _meta(op: OpView) -> Any:
    return op.meta


READ = ("Packed", "Parts", "Like", "Same", "First", "Const")
MADE = ("Made", "Each", "Last", "Sums")
"""The slots of loops, in the order in which operands stand in the instruction."""


class Carry(NamedTuple):
    """What a turn finds of the turn before: by which name; how many rows it has: those of its place ("n"), those of the
    place before ("m"), or always the same (""); and the name of what is left."""

    name: str
    rows: str
    after: str


@dataclass
class ScanSpec:
    """A loop whose turns are a plan of their own; names are those that variables have in its block.

    Args:
        block, ops: what a turn runs; `back`: whether turns go from the last place to the first.
        names: by slot, what a turn reads and what it makes; see `SCAN`.
        carried: see `Carry`, in the order of slot First.
        shortened: the first rows of something carried, and that.
        bodies: plans for turns, found when the plan around is made, as what follows: `outer`: label of a size in a body
            -> that size outside; `others`: offsets of which a turn has the first, and the rows that go by them;
            `levels`: offsets that are the same in all turns; `rows`: read or made -> by what its rows go, "n" or one
            of `others`; `layout`: where all of it stands in the instruction.
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
    layout: Layout | None = None

    def of(self, *slots: str) -> list[str]:
        """The names in these slots."""
        return [name for slot in slots for name in self.names[slot]]

    def packed(self) -> dict[str, Matrix]:
        """What bodies find packed, and of which of the constants."""
        return {name: matrix for body in self.bodies for name, matrix in body.packed.items()}

    def size(self, label: Any) -> Any:
        """The size outside that a label is of; others are what they are."""
        return self.outer.get(label, label) if isinstance(label, str) else label

    def leaves(self, name: str, uniform: bool) -> str:
        """Which rows something has that only the next turn looks at: as `Carry.rows`, when it is made."""
        if uniform:
            return "n"
        found = {"m": "n", "n": "m", "": ""}[next(each.rows for each in self.carried if each.after == name)]
        if found == "n":
            raise Unsupported(f"how many rows the last turn leaves of {name!r} is found by it")
        return found


def _infer_loop(op: OpView) -> None:
    form: ScanSpec = op.attr("form")
    meta = _meta(op)
    slots = {slot: [_in_iteration(op, form, slot, k) for k in range(op.count(slot))] for slot in READ}
    if any(not shape for slot in slots if slot not in ("Const", "Parts") for shape, _, _ in slots[slot]):
        raise Unsupported("it makes numbers without dimensions")
    _, first, _, rows = _counts(op)
    if not rows:
        raise Unsupported("there are no rows", retryable=True)
    levels = dict.fromkeys(level for found in slots.values() for *_, each in found for level in each)
    form.levels = [level for level in levels if not level.endswith(FIRST)]
    labels = {each.removesuffix(FIRST) for each in levels if each.endswith(FIRST)}
    labels |= {n for found in slots.values() for shape, *_ in found for n in shape if isinstance(n, str)}
    form.others = sorted(labels & meta.ranking.in_order.keys())
    form.rows = {name: each[0][0] for name, each in zip(form.names["Packed"], slots["Packed"], strict=True)}
    form.bodies = []
    carried_rows = _carried_rows(op, form)
    for sizes in _expected_sizes(op, form, carried_rows):
        if any(body.fits(sizes) for body in form.bodies):
            continue
        body, outer = _body(op, form, slots, sizes)
        form.bodies.append(body)
        form.outer.update(outer)
        _note_results(op, form, body, carried_rows)
        for array, (shape, dtype) in body.keeps().items():
            known = meta.element_types.get(array)
            shape = [[*map(form.size, each)] for each in shape]
            if known is not None:
                shape = [[n for n in a if n in b] for a, b in zip(known[0], shape, strict=True)]
            if not all(shape):
                raise Unsupported("what a loop in a turn keeps has other sizes in each")
            meta.element_types[array] = shape, dtype
    for k, ((_, dtype, _), each) in enumerate(zip(slots["First"], form.carried, strict=True)):
        if op.has("Steps") and op.shape("First", k)[0] != first:
            raise Unsupported(f"variable {each.name!r} begins with other rows than a step has")
        for body in form.bodies:
            leaves = each.rows if op.has("Steps") else {"m": "n", "n": "m", "": ""}[each.rows]
            body.check_carried(each.name, each.after, leaves, dtype)


def _is_one_of(size: int, wanted: Sequence[int]) -> bool:
    """Whether a size is one of these, with a guard if no formula says so."""
    return any(always_equal(size, each) for each in wanted) or any(size == each for each in wanted)


def _in_iteration(
    op: OpView, form: ScanSpec, slot: str, k: int
) -> tuple[tuple[Any, ...], VarType, tuple[str, ...]]:
    """What a turn finds of an operand: shape, with the names of sizes that move, type, and offsets."""
    meta, name, shape, dtype = _meta(op), op.name(slot, k), op.shape(slot, k), op.dtype(slot, k)
    if slot in ("Packed", "Parts") and name in meta.iteration_types:
        return meta.iteration_types[name].shape, dtype, meta.iteration_types[name].levels
    levels = op.lod(slot, k)
    if slot == "Const":
        return shape, dtype, levels
    if slot == "Parts":
        return shape[1:], dtype, ()
    _, first, every, rows = _counts(op)
    if slot == "Same" and len(levels) == 1 and levels[0] in meta.ranking.in_order:
        if ranked(meta.ranking.in_order[levels[0]].table, "bounds") == op.name("Bounds"):
            return (levels[0], *shape[1:]), dtype, (levels[0] + FIRST,)
    if levels:
        raise Unsupported("a turn works on sequences")
    if slot in ("Packed", "Same"):
        wanted = (rows,) if slot == "Packed" else (first, every)
        if shape and not _is_one_of(shape[0], wanted):
            raise Unsupported("what its turns read has other rows")
    moves = form.carried[k].rows if slot == "First" else "m" if slot == "Like" else "n"
    return (moves or shape[0], *shape[1:]) if shape else (), dtype, ()


def _expected_sizes(op: OpView, form: ScanSpec, carried_rows: int) -> Iterable[dict[str, int]]:
    """Sizes in turns that there may be, and those that there are now."""
    meta, (_, first, _, _) = _meta(op), _counts(op)
    if op.has("Steps"):
        yield {"n": current(first), "m": current(first)}
        return
    n, m = max(2, current(first)), max(2, current(first), current(carried_rows)) + 1
    moves = bool(form.names["Like"]) or any(each.rows == "m" for each in form.carried)
    counts = [(n, m), (n, n), (1, m), (1, 1)] if moves else [(n, n), (1, 1)]
    if not isinstance(first, SymInt):  # one, or what the program says
        counts = [pair for pair in counts if pair[0] == 1]
    ordered = {each: np.diff(meta.ranking.ordered_now(each).bounds).tolist() for each in form.others}
    every = {each: meta.shapes[each.removesuffix("offsets") + "rows"][0] for each in form.others}
    others = {
        each: max(2, rows[0]) if isinstance(every[each], SymInt) else rows[0]
        for each, rows in ordered.items()
    }
    for n, m in counts:
        yield {"n": n, "m": m, **others}
    if form.others:
        places = np.diff(meta.ranking.now(meta.ranking.in_order[form.others[0]].table).bounds).tolist()
        before = [current(carried_rows), *places]
        for place, n in enumerate(places):
            yield {"n": n, "m": before[place], **{each: rows[place] for each, rows in ordered.items()}}


def _carried_rows(op: OpView, form: ScanSpec) -> int:
    """How many rows something carried has at place 0, where it has those of the place before."""
    _, first, every, _ = _counts(op)
    found = [op.shape("First", k)[0] for k, each in enumerate(form.carried) if each.rows == "m"]
    found += [op.shape("Like", k)[0] for k in range(op.count("Like"))]
    if any(size != first and size != every for size in found):
        raise Unsupported("what its turns leave for the next ones has other rows", retryable=True)
    # Only empty sequences make these differ, which no turn looks at.
    return found[0] if found and all(size == found[0] for size in found) else first


def _body(
    op: OpView,
    form: ScanSpec,
    slots: dict[str, list[tuple[tuple[Any, ...], VarType, tuple[str, ...]]]],
    sizes: dict[str, int],
) -> tuple[Any, dict[str, Any]]:
    meta = _meta(op)
    said = op.has("Steps") and not isinstance(op.shape("Steps")[1], SymInt)
    feeds = Feeds(sizes, sizes["n"] if said else None)
    if op.has("Steps"):  # in all of which there are as many rows
        feeds.outer.update(dict.fromkeys(sizes, op.shape("Steps")[1]))
    for slot in READ:
        for name, (shape, dtype, levels) in zip(form.names[slot], slots[slot], strict=True):
            feeds.add(name, shape, dtype, levels)
            for short, source in form.shortened.items() if slot == "First" else ():
                if source == name:
                    feeds.add(short, ("n", *shape[1:]), dtype)
    for each in form.ops:
        if each.definition is STASH_POP:
            shape, dtype = meta.element_types[each.attrs["array"]]
            feeds.add(each.inputs["Like"][0], [n[0] for n in shape], dtype)
    for level in form.levels:
        feeds.add(level, meta.shapes[level], VarType.INT64)
    for level in form.others:
        feeds.add(level + FIRST, ("n+1",), VarType.INT64)
    try:
        return meta.make_body(form, feeds), feeds.outer
    except DataDependentShape as refusal:
        raise Unsupported(f"its turns find sizes: {refusal}") from None


def _counts(op: OpView) -> tuple[int, int, int, int]:
    """How many steps there are; how many rows the first one has, sequences without steps have as well, and all have."""
    shapes = _meta(op).shapes
    if op.has("Steps"):
        steps, rows = shapes[op.name("Steps")][:2]
        return steps, rows, rows, steps * rows
    bounds, first, every, items = (
        shapes[op.name(slot)][0] for slot in ("Bounds", "Running", "Order", "Items")
    )
    return bounds - 1, first, every, items


def _note_results(op: OpView, form: ScanSpec, body: Any, carried_rows: int) -> None:
    meta = _meta(op)
    steps, first, _, rows = _counts(op)
    for slot in MADE:
        for k, name in enumerate(form.names[slot]):
            kinds, shape, dtype, levels = body.result(name, slot == "Each")
            kind = form.leaves(name, op.has("Steps")) if slot == "Last" else "n" if slot == "Made" else ""
            # Of what stays, whose rows are those of a step.
            own = form.outer.get(shape[0]) if isinstance(shape[0], str) else None
            same = kind == "n" and op.has("Steps") and own is not None and own == op.shape("Steps")[1]
            if slot == "Sums" and op.has("Steps") and "n" in kinds:
                kind = "n"
            out = op.name(slot, k)
            if slot == "Made" and not same:
                known = meta.iteration_types.get(out)
                found = [n for n in kinds if n == "n" or n in form.others]
                kind = known.shape[0] if known else (found or ["n"])[0]
            if kind not in kinds and not same:
                raise Unsupported(f"variable {name!r} has other rows than the turns want")
            if slot == "Made":
                if any(not level.endswith(FIRST) for level in levels):
                    raise Unsupported(f"variable {name!r} has sequences that a turn makes")
                inner = [form.size(n) for n in shape[1:]]
                meta.iteration_types.setdefault(out, IterationType((kind, *inner), levels))
                form.rows[name] = kind
            elif slot == "Each" and shape[:1] == (0,):  # of which only the shape matters
                meta.iteration_types.setdefault(out, IterationType(tuple(map(form.size, shape)), levels))
                shape = (0,)
            elif slot == "Sums" and all(level in meta.shapes for level in levels):
                op.carry(slot, levels, k)
            elif levels:
                raise Unsupported(f"variable {name!r} has sequences")
            outer = [form.outer[n] if isinstance(n, str) else n for n in shape]
            if kind:
                whole = meta.ranking.in_order[kind].total if kind in form.others else rows
                outer[0] = whole if slot == "Made" else carried_rows if slot == "Last" else first
            if slot == "Each":
                outer.insert(0, steps)
            op.set(slot, outer, dtype, k)


def _native_loop(op: OpView) -> list[Call]:
    form: ScanSpec = op.attr("form")
    meta, layout = _meta(op), Layout(form)
    form.layout = layout
    steps, first, _, _ = _counts(op)
    calls: list[Call] = []
    operands: list[str | None] = [op.name_or_none("Bounds")]
    ints: list[int] = [steps, first, _carried_rows(op, form)]
    for slots, places in ((READ, layout.read), (MADE, layout.made)):
        for slot in slots:
            places.update(_put(form.names[slot], op.names(slot), operands))
    spares = [name + "@SPARE" for name in op.names("Last")]
    for k, spare in enumerate(spares):
        meta.set(spare, op.shape("Last", k), op.dtype("Last", k))
    layout.spares.update(_put(form.names["Last"], spares, operands))
    owner = next(op.name(slot) for slot in MADE if op.count(slot))
    for name, matrix in form.packed().items():
        outside = op.name("Const", form.names["Const"].index(matrix.name))
        scratch = f"{owner}@{name}"
        meta.set(scratch, (matrix.packed_elements,), meta.dtypes[outside])
        calls.append(packing(matrix._replace(name=outside), scratch))
        layout.read.update(_put([name], [scratch], operands))
    for level in form.others:
        layout.read.update(_put([level + FIRST], [level], operands))
        layout.bounds.update(_put([level], [level.removesuffix("offsets") + "bounds"], operands))
    layout.read.update(_put(form.levels, form.levels, operands))
    for slot in ("Packed", "Parts", "Made", "Each"):
        rows = [bytes_of_row(op, slot, k) for k in range(op.count(slot))]
        layout.numbers.update(_put(form.names[slot], rows, ints))
    sums = [numel(op, "Sums", k) * itemsize(op, "Sums", k) for k in range(op.count("Sums"))]
    layout.numbers.update(_put(form.names["Sums"], sums, ints))
    layout.sizes.update(_put(form.outer, form.outer.values(), ints))
    return [*calls, Call(SCAN_KERNEL, operands, ints)]


def _put(names: Iterable[str], what: Iterable[Any], into: list[Any]) -> dict[str, int]:
    """Add something for each of some names, and say where it stands."""
    begin = len(into)
    into += what
    return {name: begin + k for k, name in enumerate(names)}


SCAN = OpDef(
    SCAN_KERNEL,
    inputs=(
        "Steps?#", "Bounds?", "Running?#", "Order?#", "Items?#",
        "Packed*?", "Parts*?", "Like*?#", "Same*?", "First*?", "Const*?",
    ),
    outputs=("Made*?", "Each*?", "Last*?", "Sums*?"),
    attrs={"form": None},
    infer=_infer_loop,
    native=_native_loop,
    sequences=Sequences(source=None),
    doc="All turns of a loop over sequences that are ranked. Packed: the rows of all places in the order of steps; "
    "Parts: of one size at all places; Same: of which each turn has the first rows; First: what the first turn finds "
    "of the turn before; Like: what only the shape is asked of; Const: what is the same in all turns. Made: the rows "
    "that all make; Each: what all make of one size; Last: what the last one leaves; Sums: sums over the turns.",
)  # fmt: skip


class Layout:
    """Where in the instruction of a loop its operands and integers stand: what `Engine.add_loop` is told.

    Operands by the names of what is read and made: of the latter also those of which turns have two (`spares`), and by
    the names of offsets how many rows each turn has (`bounds`). `numbers`: bytes of rows, and of sums; `sizes`: those
    outside, by their labels in bodies.
    """

    def __init__(self, form: ScanSpec) -> None:
        self.form = form
        self.read: dict[str, int] = {}
        self.made: dict[str, int] = {}
        self.spares: dict[str, int] = {}
        self.bounds: dict[str, int] = {}
        self.numbers: dict[str, int] = {}
        self.sizes: dict[str, int] = {}

    def sums(self) -> list[tuple[int, int]]:
        """Of each sum where it is, and how many bytes it has."""
        return [(self.made[name], self.numbers[name]) for name in self.form.names["Sums"]]

    def moving(
        self, kinds: dict[str, int]
    ) -> tuple[list[tuple[int, int, int, int]], dict[str, int], dict[str, int]]:
        """What moves; the numbers that what is read has there, and those of what is made."""
        form = self.form
        moving: list[tuple[int, int, int, int]] = []
        read: dict[str, int] = {}
        made: dict[str, int] = {}

        def take(kind: str, slot: str, found: dict[str, int], operands: dict[str, int]) -> None:
            for name in form.names[slot]:
                found[name] = len(moving)
                bounds = self.bounds.get(form.rows.get(name, "n"), 0)
                moving.append((kinds[kind], operands[name], bounds, self.numbers[name]))

        take("packed", "Packed", read, self.read)
        take("each", "Parts", read, self.read)
        for name in (*form.of("Like", "Same"), *(level + FIRST for level in form.others)):
            read[name] = len(moving)
            moving.append((kinds["same"], self.read[name], 0, 0))
        take("packed", "Made", made, self.made)
        take("each", "Each", made, self.made)
        for name in form.names["Last"]:
            made[name] = len(moving)
            moving.append((kinds["last"], self.made[name], self.spares[name], 0))
        for each in form.carried:
            read[each.name] = len(moving)
            after = made[each.after] if each.after in made else read[each.after]
            moving.append((kinds["carried"], self.read[each.name], after, 0))
        read.update((name, read[source]) for name, source in form.shortened.items())
        return moving, read, made
