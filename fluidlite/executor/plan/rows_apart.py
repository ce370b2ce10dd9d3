"""`IfElse` with all rows on both sides, so that no size depends on data: in loops, branches and turns as well.

    split_lod_tensor(x, mask) -> t, f      spread(x, mask) -> t      rows of the side; the others are one of these again
    conditional_block(t) -> a              branch(some(mask))        past the block if no row is of its side
      fc(t) -> h                             fc(t) -> h@VB2
    merge_lod_tensor(a, b, mask) -> y      pick(a, b, mask) -> y     each row from the side that it is of

That is so where the operators of its blocks make each row of their results from the same row of what they read
(`Planning.batchable`), and nobody else looks at these. Gradients that arrive at rows which are not of a side are zeros.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ...base.dtypes import VarType
from ...framework import Block, Operator, Program
from ...framework.operator import COPY, BlockMeta
from ...ops.native import bytes_of_row, numel
from ...ops.registry import EMPTY, GRAD, VERSION, Call, OpDef, OpView, Sequences, Shape, grad_name
from .forward import forward_of
from .refusals import CannotPlan
from .shapes import in_place_of

_SCOPES = ("Scope", "StepScopes", "step_scopes")
_BRANCHES = ("conditional_block", "conditional_block_grad")
_MERGES = ("merge_lod_tensor", "merge_lod_tensor_infer")
_CHOICES = ("select_input", "select_output")
SPLIT = "split_lod_tensor"

MOST = 1 << 23
"""If each row meets more numbers on its way than this by the number of rows, the two sides have their own rows, in
pieces, as what is computed for nothing takes longer than to find out how many there are."""


class Declared(BlockMeta):
    """What the program says about variables, also under the names of their later values."""

    def shape(self, name: str) -> Shape:
        var = self.block._find_var_recursive(name.partition(VERSION)[0])
        return var._shape if var is not None and var._shape is not None else ()


def rows_made(block: Block, op: Operator, moves: Callable[[str], bool]) -> set[str] | None:
    """Which results of an operator that may work on rows one by one have such rows: the others are sums over them. None
    if it may not. `moves`: which variables have rows.
    """
    rule = op.definition.planning.batchable
    if rule is None or not rule(
        OpView(op.definition, op.inputs, op.outputs, op.attrs, Declared(block)), moves
    ):
        return None
    found: set[str] = set()
    for slot, names in op.outputs.items():
        sources = op.inputs.get(slot.removesuffix(GRAD), ()) if slot.endswith(GRAD) else ()
        if not sources or moves(sources[0]):
            found.update(names)
    return found


class _Mixed(Exception):
    """An operator does not work on rows one by one."""


class Side(NamedTuple):
    """The rows where a mask is true, or those where it is false."""

    mask: str
    value: bool


class _Family:
    """The splits, merges and branches of a block, and of its gradient.

    `sides`: what has the rows of one side, and which; `cost`: how many numbers are read for a row. Raises _Mixed.
    """

    def __init__(self, blocks: Collection[Block]) -> None:
        self.sides: dict[str, Side] = {}
        self.cost = 0
        self._masks: set[str] = set()
        self._plain: set[str] = set()
        self._seen: set[int] = set()
        self._within: dict[int, Side] = {}  # attributes of a branch -> its side
        for block in blocks:
            for op in block.ops:
                self._take(op)
        program = next(iter(blocks)).program
        written = Counter(name for block in program.blocks for op in block.ops for name in {*op.writes()})
        if not self.sides.keys().isdisjoint(self._plain) or any(written[name] > 1 for name in self._masks):
            raise _Mixed
        for block in program.blocks:
            for op in block.ops:
                if id(op) not in self._seen and not self.sides.keys().isdisjoint((*op.reads(), *op.writes())):
                    raise _Mixed

    def side(self, op: Operator) -> bool:
        """Of a branch: whether the rows where the mask is true go through it."""
        return self._within[id(op.attrs)].value

    def together(self, op: Operator) -> list[Operator]:
        """What stands for a split or a merge."""
        mask = op.inputs["Mask"]
        if op.type != SPLIT:
            inputs = {slot: op.inputs[slot] for slot in ("Mask", "InTrue", "InFalse")}
            return [in_place_of(op, PICK, inputs, op.outputs, {})]
        return [
            in_place_of(
                op, SPREAD, {"X": op.inputs["X"], "Mask": mask}, {"Out": [out]},
                {"side": slot == "OutTrue", "zeros": GRAD in out, "cost": self.cost},
            )
            for slot in ("OutTrue", "OutFalse")
            for out in op.outputs.get(slot, ())
        ]  # fmt: skip

    def _take(self, op: Operator) -> None:
        self._seen.add(id(op))
        if op.type == SPLIT:
            mask = self._mask(op)
            self._mark(op.outputs.get("OutTrue", ()), Side(mask, True))
            self._mark(op.outputs.get("OutFalse", ()), Side(mask, False))
            self._plain.update(op.inputs["X"])
        elif op.type in _MERGES:
            mask = self._mask(op)
            found = [self.sides.get(op.inputs[slot][0]) for slot in ("InTrue", "InFalse")]
            if found != [Side(mask, True), Side(mask, False)]:
                raise _Mixed
            self._plain.update((*op.inputs["X"], *op.outputs["Out"]))
        elif op.type in _BRANCHES and not op.attr("is_scalar_condition"):
            self._branch(op)
        else:
            self._one(op.block, op)

    def _mask(self, op: Operator) -> str:
        """The mask that an operator goes by, whose value may be kept under another name for the gradient."""
        names = op.inputs["Mask" if "Mask" in op.inputs else "Cond"]
        if len(names) != 1 or ("level" in op.attrs and op.attrs["level"] != 0):
            raise _Mixed
        self._masks.update(names)
        self._plain.update(names)
        return names[0].partition(COPY)[0]

    def _mark(self, names: Iterable[str], side: Side) -> None:
        for name in names:
            if name != EMPTY and self.sides.setdefault(name, side) != side:
                raise _Mixed

    def _side_of(self, names: Iterable[str]) -> Side | None:
        """The side whose rows some of these variables have; None if none of them has any."""
        found = {self.sides[name] for name in names if name in self.sides}
        if len(found) > 1:
            raise _Mixed
        return next(iter(found), None)

    def _one(self, block: Block, op: Operator) -> None:
        self._seen.add(id(op))
        if op.type in _BRANCHES:
            self._inside(op)
            return
        side, writes = self._side_of(op.reads()), {*op.writes()} - {EMPTY}
        made: set[str] = set()
        if side is not None:
            found = self._rows_made(block, op)
            if found is None or op.sub_blocks() or any(map(block._is_persistable, writes)):
                raise _Mixed
            made = found - {EMPTY}
            self._mark(made, side)
            # Of a table, few rows are read.
            read = (
                op.inputs["Ids"]
                if op.definition.planning.pattern in ("lookup", "lookup_grad")
                else op.reads()
            )
            self.cost += sum(math.prod(map(abs, Declared(block).shape(name))) for name in read)
        self._plain.update(name for name in op.reads() if name not in self.sides)
        self._plain.update(writes - made)

    def _rows_made(self, block: Block, op: Operator) -> set[str] | None:
        if op.type == SPLIT or op.type in _MERGES or op.type in _CHOICES:
            whole = {*op.reads()} - {*op.inputs["Mask"]} if op.type in _CHOICES else {*op.reads()}
            return {*op.writes()} if self.sides.keys() >= whole else None
        return rows_made(block, op, self.sides.__contains__)

    def _inside(self, op: Operator) -> None:
        """Take a branch in a block of a side."""
        by_rows = not op.attr("is_scalar_condition")
        if by_rows and family_of(op) is None:
            raise _Mixed
        if any(name in self.sides for name in op.inputs["Cond"]) != by_rows:
            raise _Mixed
        inner: Block = op.attrs["sub_block"]
        for each in inner.ops:
            self._one(inner, each)
        if op.type.endswith("_grad"):
            self._give(op, {name for each in inner.ops for name in each.writes()})

    def _branch(self, op: Operator) -> None:
        block: Block = op.attrs["sub_block"]
        for each in block.ops:
            self._one(block, each)
        names = {name for each in block.ops for name in (*each.reads(), *each.writes())}
        side = self._side_of(names)
        if op.type.endswith("_grad"):
            forward = forward_of(op)
            taken = self._within.get(id(forward.attrs)) if forward is not None else None
            if side not in (None, taken):
                raise _Mixed
            side = taken
        if side is None or side.mask != self._mask(op):
            raise _Mixed
        self._within[id(op.attrs)] = side
        if op.type.endswith("_grad"):
            self._give(op, {name for each in block.ops for name in each.writes()})

    def _give(self, op: Operator, made: set[str]) -> None:
        """Take the gradients that a branch gives: those of rows have rows; others are sums, or nothing."""
        for name, out in zip(op.inputs.get("Input", ()), op.outputs.get("Input@GRAD", ()), strict=True):
            inside = grad_name(name)
            has_rows = name in self.sides
            if (inside in made and (inside in self.sides) != has_rows) or (
                has_rows and name in op.inputs["Out"]
            ):
                raise _Mixed
            if has_rows:
                self._mark([out, inside], self.sides[name])
            elif out != EMPTY:
                self._plain.add(out)


def family_of(op: Operator) -> _Family | None:
    """The splits, merges and branches that an operator is one of, if its rows may stay together."""
    split = op.type == SPLIT or op.type in _MERGES
    if not split and (op.type not in _BRANCHES or op.attr("is_scalar_condition")):
        return None
    program = op.block.program
    version, found = _programs.get(program, (-1, {}))
    if version != program._version:
        version, found = _programs[program] = program._version, {}
    if op.block.idx not in found:
        blocks = _blocks_of(op.block)
        try:
            family: _Family | None = _Family(blocks)
        except _Mixed:
            family = None
        found.update((block.idx, family) for block in blocks)
    return found[op.block.idx]


_programs: WeakKeyDictionary[Program, tuple[int, dict[int, _Family | None]]] = WeakKeyDictionary()


def _blocks_of(block: Block) -> list[Block]:
    """A block of an operator, and those of its gradients."""
    ops = [op for each in block.program.blocks for op in each.ops if op.sub_blocks()]
    owner = next((op for op in ops if block in op.sub_blocks()), None)
    scopes = None if owner is None else _scopes(owner)
    if scopes is None:
        return [block]
    found = [op for op in ops if _scopes(op) == scopes]
    found.sort(key=lambda op: op.type.endswith("_grad"))
    return [each for op in found for each in op.sub_blocks()]


def _scopes(op: Operator) -> str | None:
    slots = op.inputs if op.type.endswith("_grad") else op.outputs
    return next((slots[slot][0] for slot in _SCOPES if slots.get(slot)), None)


def _check_mask(op: OpView, slot: str) -> None:
    if op.dtype("Mask") != VarType.BOOL or any(op.lod(each) for each in (slot, "Mask")):
        raise CannotPlan("sequences go two ways, or by no bools")
    shape = op.shape(slot)
    if not shape or shape[0] == 0 or numel(op, "Mask") != shape[0]:
        raise CannotPlan(f"variable {op.name(slot)!r} has other rows than the mask, or none", passing=True)


def _infer_spread(op: OpView) -> None:
    _check_mask(op, "X")
    if op.shape("X")[0] * op.attr("cost") > MOST:
        raise CannotPlan("too many rows would go through blocks that they are not of")
    op.set("Out", op.shape("X"), op.dtype("X"))


def _infer_pick(op: OpView) -> None:
    _check_mask(op, "InTrue")
    if op.lod("InFalse"):
        raise CannotPlan("sequences go two ways")
    op.set("Out", op.shape("InTrue"), op.dtype("InTrue"))
    op.set("Out", op.shape("InFalse"), op.dtype("InFalse"))


SPREAD = OpDef(
    "spread_rows",
    inputs=("X", "Mask"),
    attrs={"side": True, "zeros": False, "cost": 0},
    infer=_infer_spread,
    native=lambda op: Call(
        "spread_rows",
        [op.name("Mask"), op.name("X"), op.name("Out")],
        [op.shape("X")[0], bytes_of_row(op, "X"), op.attr("side"), op.attr("zeros")],
    ),
    sequences=Sequences(source=None),
    doc="The rows of X where Mask is `side`, in their places; the others are one of these once more, or zeros.",
)
PICK = OpDef(
    "pick_rows",
    inputs=("Mask", "InTrue", "InFalse"),
    infer=_infer_pick,
    native=lambda op: Call(
        "pick_rows",
        [op.name(slot) for slot in ("Mask", "InTrue", "InFalse", "Out")],
        [op.shape("Out")[0], bytes_of_row(op, "Out")],
    ),
    sequences=Sequences(source=None),
    doc="Each row from InTrue or InFalse, as Mask says; of these the others may hold anything.",
)
SOME = OpDef(
    "some_rows",
    inputs=("Mask",),
    attrs={"side": True},
    infer=lambda op: op.set("Out", (1,), VarType.BOOL),
    native=lambda op: Call(
        "some_rows", [op.name("Mask"), op.name("Out")], [numel(op, "Mask"), op.attr("side")]
    ),
    sequences=Sequences(source=None),
    doc="Whether Mask is `side` anywhere.",
)
