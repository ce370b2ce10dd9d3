"""`Inliner`: the blocks of branches and loops between jumps, in one list of operators.

    conditional_block(c) -> y         branch(c)              jumps past the block unless c
      fc(x) -> h                      fc(x) -> h@VB2         variables of the block are renamed
      assign(h) -> y                  assign(h@VB2) -> y@VB2
                                      copy_out(y@VB2) -> y   phi copy: y is in one place whether the block runs or not
                                      branch_end

A variable that has a value before is copied to its place in front (`copy_in`). A loop ends with a back edge (`loop`,
`loop_end`): its loop-carried variables are in the same place when each iteration begins. `constructs.py` has what is
particular to branches, to loops, and to their gradients.

Targets that cannot jump (GPUs, split plans) evaluate small branches unconditionally (`predicated`), which covers those
of learning rate schedules: pure operators on single elements that write persistable variables.

    conditional_block(c) { assign(a) -> lr }      assign(a) -> lr@BRANCH0
                                                  where(c, lr@BRANCH0, lr) -> lr@BRANCH0@CHOSEN
                                                  assign(lr@BRANCH0@CHOSEN) -> lr
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...base.dtypes import VarType
from ...framework import Block, Operator
from ...framework.gradients.blocks import kept_names
from ...framework.gradients.versions import changes_nothing
from ...ops.registry import EMPTY, VERSION, grad_name
from ..failures import Unsupported
from ..ir.inference import in_place_of, is_noop, is_unplannable, renamed
from ..ir.jumps import ASSERT_DEFINED, BACK_EDGE, BEGIN, COPY_IN, COPY_OUT, END, JUMPS, LOOP, UNDEFINED
from . import constructs as constructs  # fills INLINE
from .array_ops import CLEAR, TENSOR_ARRAY, lowered_array_op
from .blocks import INLINE, ON_ARRAYS, is_inlinable, is_recurrent, mangled_names, ranks, written_outside

if TYPE_CHECKING:
    from .ragged_scan import RaggedScans
    from .recurrent import Scans


@dataclass
class Body:
    """The operators of a block, and the names of variables that are local to it."""

    ops: list[Operator]
    local: set[str]


class Inliner:
    """Inlines the blocks of branches and loops into the operators around them.

    Args:
        defined: the variables that are defined before the first operator.
        arrays: whether tensor arrays are memory of the engine.
        scans: lowers `recurrent` operators; None leaves them as they are.
        loops: lowers loops over ranked sequences.

    `unset`: variables without a value unless a branch runs, with that branch; `touched`: the arrays met so far;
    `stashes`: the names of the stashes.

    A construct names a new variable by `introduce`, and sets it by `constant` or `copy_in`; after another operator that
    sets it, it calls `define`. What a body writes and is not in `Body.local` is carried by `jump`.
    """

    def __init__(
        self,
        defined: Collection[str],
        arrays: bool = False,
        scans: Scans | None = None,
        loops: RaggedScans | None = None,
    ) -> None:
        self.unset: dict[str, Operator] = {}
        self.touched: list[str] = []
        self.stashes: list[str] = []
        self.defined = set(defined)
        self.arrays = arrays
        self.array_aliases: dict[str, str] = {}  # gradient of an array -> the array of the same storage
        self._scans = scans
        self._loops = loops
        self._local: set[str] = set()  # the names introduced in the block that is being inlined

    def of(self, ops: Iterable[Operator], names: Mapping[str, str] | None = None) -> Iterator[Operator]:
        """Yield the operators with their blocks inlined. `names`: variable -> its name after inlining."""
        names = names or {}
        for op in ops:
            if is_noop(op) or (is_unplannable(op) and changes_nothing(op)):
                continue
            if op.type in ON_ARRAYS and self.arrays:
                yield from self._checked(self._on_array(op, names))
            elif is_recurrent(op) and self._scans is not None and is_inlinable(op):
                known = {name for name in op.reads() if names.get(name, name) in self.defined}
                for each in self._scans.of(op, known.__contains__):
                    self._local.update({*each.writes()} - {*op.writes()})
                    yield from self._checked(renamed(each, names))
            elif op.type in INLINE and is_inlinable(op, self.arrays):
                try:
                    yield from [*INLINE[op.type](self, op, names)]
                except Unsupported as refusal:
                    raise Unsupported(str(refusal), op) from None
            else:
                yield from self._checked(renamed(op, names))

    def with_prologue(self, ops: Sequence[Operator], arrays: Sequence[str]) -> list[Operator]:
        """The inlined operators behind one that empties the arrays, without the undefined flags that nothing checks."""
        checked = {op.inputs["X"][0].partition(UNDEFINED)[0] for op in ops if op.definition is ASSERT_DEFINED}
        ops = [
            op
            for op in ops
            if checked.issuperset(n.partition(UNDEFINED)[0] for n in op.writes() if UNDEFINED in n)
        ]
        if not arrays:
            return [*ops]
        return [in_place_of(ops[0], CLEAR, {}, {}, {"arrays": arrays}), *ops]

    def _checked(self, op: Operator) -> list[Operator]:
        checks = []
        for name in dict.fromkeys(op.reads()) if op.definition not in JUMPS else ():
            if name in self.unset:
                checks.append(in_place_of(op, ASSERT_DEFINED, {"X": [name + UNDEFINED]}, {}, {}))
                self.define(name)
        self.stashes += [
            n.removesuffix(TENSOR_ARRAY) for n in op.inputs.get("Invariant", ()) if n.endswith(TENSOR_ARRAY)
        ]
        self.define(*op.writes())
        return [*checks, op]

    def _on_array(self, op: Operator, names: Mapping[str, str]) -> Operator:
        made = renamed(op, names)
        name = (op.outputs["Out"] if op.type == "write_to_array" else op.inputs["X"])[0]
        array = self.array(op, name, names)
        gradient = op.outputs.get(grad_name("X"))
        return lowered_array_op(made, array, self.array(op, gradient[0], names) if gradient else "")

    # What constructs are made of.

    def array(self, op: Operator, name: str, names: Mapping[str, str]) -> str:
        """The name of an array's storage."""
        found = names.get(name, name)
        found = self.array_aliases.get(found, found)
        if VERSION + "B" in found or op.block._is_persistable(name):
            raise Unsupported("an array is local to an iteration, or persistable", op)
        if found not in self.touched:
            self.touched.append(found)
        return found

    def stash(self, name: str, block: Block, number: int) -> str:
        """The name of the stash of a variable of a loop; each gradient of the loop, by `number`, has its own."""
        array = f"{name}@STASH{block.idx}.{number}"
        if array not in self.stashes:
            self.stashes.append(array)
        return array

    def scan_residuals(self, op: Operator, names: Mapping[str, str]) -> list[str]:
        """The residuals of scans in the block of a loop that are not variables of the block."""
        found = [] if self._scans is None else self._scans.kept(op.attrs["sub_block"].ops)
        return [name for name in found if name not in names]

    def define(self, *names: str) -> None:
        """Note that variables have values from here on."""
        self.defined.update(names)
        for name in names:
            self.unset.pop(name, None)

    def introduce(self, name: str) -> str:
        """A new name, local to the block that is being inlined."""
        self._local.add(name)
        return name

    def copy_in(self, op: Operator, source: str, out: str) -> Operator:
        self.define(out)
        return in_place_of(op, COPY_IN, {"X": [source]}, {"Out": [out]}, {})

    def constant(self, op: Operator, name: str, value: int, dtype: VarType = VarType.INT64) -> Operator:
        """An operator that sets a variable of one element."""
        self.define(name)
        return _constant(op, name, value, dtype)

    def body(
        self,
        op: Operator,
        names: Mapping[str, str],
        blocks: Sequence[Block],
        repeated: bool = False,
        local: Collection[str] = (),
    ) -> Body:
        """The operators of a block, whose results are defined only where it has run.

        Args:
            names: variable -> its name after inlining, of the block and those around it.
            blocks: the block, and that of its forward operator, whose variables are local to the body.
            repeated: whether it is the body of a loop.
            local: further names that are local to it.
        """
        defined, unset, around = set(self.defined), dict(self.unset), self._local
        self._local = {*local}.union(*(mangled_names(block).values() for block in blocks))
        block = op.attrs["sub_block"]
        ops: Iterable[Operator] = block.ops
        if self._loops is not None and ranks(op):
            ops = [*self._loops.of(ops)]
            written = {name for each in block.ops for name in each.writes()}
            new = {name for each in ops for name in each.writes()} - written
            self._local.update(name for name in new if block._find_var_recursive(name) is None)
        made = [*self.of(ops, names)]
        for name in self.unset.keys() - unset.keys():
            if repeated and name not in self._local:
                raise Unsupported(f"variable {name!r} may be undefined after the last iteration")
        inside, self._local = self._local, around | self._local
        self.defined, self.unset = defined, unset
        return Body(made, inside)

    def jump(self, op: Operator, condition: str, body: Body, repeated: bool = False) -> Iterator[Operator]:
        """Operators between jumps: they run if a condition holds, or as long as it holds if `repeated`.

        What they write outside of their block is copied to one place, whether they run or not.
        """
        block = op.attrs["sub_block"]
        outside = dict.fromkeys(
            name
            for each in body.ops
            for name in each.writes()
            if name != EMPTY and name not in body.local and not block._is_persistable(name)
        )
        for name in [name for name in outside if name not in self.defined]:
            flag = name if name.endswith(UNDEFINED) else name + UNDEFINED
            if name in self._local:
                self.introduce(flag)
            if flag not in outside:
                body.ops.append(_constant(op, flag, 0))
                outside[flag] = None
            if flag not in self.defined:
                yield self.constant(op, flag, 1)
        temporaries = {name: self.introduce(f"{name}{VERSION}B{block.idx}") for name in outside}
        for name in outside:
            if name in self.defined:
                yield in_place_of(op, COPY_IN, {"X": [name]}, {"Out": [name]}, {})
        yield in_place_of(op, LOOP if repeated else BEGIN, {"Cond": [condition]}, {}, op.attrs)
        latest: dict[str, str] = {}
        for each in body.ops:
            made = renamed(each, latest, outputs=False)
            latest.update((name, temporaries[name]) for name in each.writes() if name in temporaries)
            yield renamed(made, latest, inputs=False)
        for name, source in temporaries.items():
            yield in_place_of(op, COPY_OUT, {"X": [source]}, {"Out": [name]}, {})
            if name not in self.defined:
                self.unset.setdefault(name, op)
        yield in_place_of(op, BACK_EDGE if repeated else END, {}, {})


def _constant(op: Operator, name: str, value: int, dtype: VarType = VarType.INT64) -> Operator:
    attrs = {"shape": [1], "dtype": int(dtype), "value": float(value)}
    return in_place_of(op, "fill_constant", {}, {"Out": [name]}, attrs)


# Predication, for targets that cannot jump.


def predicated(ops: Iterable[Operator]) -> Iterator[Operator]:
    """The operators, with those of small branches in the place of each branch, followed by a select per result."""
    for number, op in enumerate(ops):
        if _updates_persistable_only(op) and _is_small(op):
            yield from _selected(op, f"@BRANCH{number}")
        else:
            yield op


def _updates_persistable_only(op: Operator) -> bool:
    """True for a branch without gradient whose results are all persistable variables."""
    return (
        op.type == "conditional_block"
        and is_inlinable(op)
        and kept_names(op) is None
        and not written_outside(op)
    )


def _is_small(op: Operator) -> bool:
    """True if the block consists of pure operators on tensors of one element."""
    for inner in op.attrs["sub_block"].ops:
        names = (*inner.reads(), *inner.writes())
        if not inner.definition.is_pure or not all(_is_single(inner, name) for name in names):
            return False
    return _is_single(op, op.inputs["Cond"][0])


def _is_single(op: Operator, name: str) -> bool:
    var = op.block._find_var_recursive(name)
    return var is not None and var.type == VarType.LOD_TENSOR and var._shape == (1,)


def _selected(op: Operator, suffix: str) -> Iterator[Operator]:
    """The operators of a branch on renamed results, then `where` and `assign` for each variable of the scope."""
    block = op.attrs["sub_block"]
    new_names: dict[str, str] = {}
    for inner in block.ops:
        made = renamed(inner, new_names, outputs=False)
        new_names.update((name, name + suffix) for name in inner.writes() if name not in block.vars)
        yield renamed(made, new_names, inputs=False)
    for name, new in new_names.items():
        selected = name + suffix + "@CHOSEN"
        inputs = {"Condition": list(op.inputs["Cond"]), "X": [new], "Y": [name]}
        yield in_place_of(op, "where", inputs, {"Out": [selected]}, {})
        yield in_place_of(op, "assign", {"X": [selected]}, {"Out": [name]}, {})
