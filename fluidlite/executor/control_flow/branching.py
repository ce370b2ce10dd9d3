"""Inlinable branches and loops: in a plan, the operators of their blocks are between jumps.

    conditional_block(c) -> y         branch(c)              jumps past the block unless c
      fc(x) -> h                      fc(x) -> h@VB2         variables of the block are renamed
      assign(h) -> y                  assign(h@VB2) -> y@VB2
                                      copy_out(y@VB2) -> y   phi copy: y is in one place whether the block runs or not
                                      branch_end

A variable that has a value before is copied to its place in front (`copy_in`). A loop ends with a back edge (`loop`,
`loop_end`): its loop-carried variables are in the same place when each iteration begins. The gradient of a branch is
behind a jump by the same predicate, which is kept (`@TRIPS`) in place of the scopes that the interpreter keeps of
blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from ...base.dtypes import VarType
from ...framework import Block, Operator, Program
from ...framework.gradients.versions import changes_nothing
from ...ops.registry import EMPTY, VERSION, grad_name
from ..ir.inference import is_non_tensor, is_noop, is_unplannable
from .gradient_pairs import forward_of, gradients

TRIP_COUNT = "@TRIPS"
"""Suffix of the predicate of a branch, or the trip count of a loop, that inlined gradients read in place of scopes."""


CONDITIONS = {
    "conditional_block": "Cond",
    "conditional_block_grad": "Cond",
    "while": "Condition",
    "while_grad": "StepScopes",
}
"""The operators whose block may be inlined, with the slot of the predicate or trip count."""

STEPS = ("recurrent", "recurrent_grad")
"""The operators that become scans; see `recurrent.py`."""

RANKING = frozenset(
    "lod_rank_table max_sequence_len reorder_lod_tensor_by_rank reorder_lod_tensor_by_rank_grad lod_tensor_to_array "
    "array_to_lod_tensor read_from_array write_to_array while while_grad".split()
)
"""The operators that loops over ranked sequences consist of; see `ragged_scan.py`."""

ON_ARRAYS = frozenset(
    ["write_to_array", "read_from_array", "lod_array_length", "tensor_array_to_tensor"]
    + ["tensor_array_to_tensor_grad"]
)
"""The operators on tensor arrays that plans have counterparts of; see `array_ops.py`."""


def is_inlinable(op: Operator, arrays: bool = False) -> bool:
    """True if an operator is a branch or a loop, or belongs to a branch, and a plan may have it inlined, as far as the
    program alone tells. `arrays`: whether operators on tensor arrays count as well.
    """
    if op.type == "select_input":
        return True
    if op.type in ON_ARRAYS:
        return arrays
    if op.type == "select_output":
        return _for_branches_only(op)
    if op.type in STEPS:
        return _steps_are_inlinable(op)
    if op.type not in CONDITIONS or len(op.inputs.get(CONDITIONS[op.type], ())) != 1:
        return False
    return _block_is_inlinable(op, arrays)


def _steps_are_inlinable(op: Operator) -> bool:
    block: Block = op.attrs["sub_block"]
    for inner in block.ops:
        if is_noop(inner):
            continue
        if (is_unplannable(inner) and not is_inlinable(inner, True)) or inner.definition.effects.host:
            return False
        if inner.attrs.get("is_sparse") or any(map(op.block._is_persistable, inner.writes())):
            return False
    # No block declares the loop-carried variables of a gradient.
    return op.type.endswith("_grad") or block.vars.keys() >= {*_facts(block.program).of(block)[1]}


def _block_is_inlinable(op: Operator, arrays: bool = False) -> bool:
    if op.type.endswith("_grad") and not _gradient_is_inlinable(op, arrays):
        return False
    block = op.attrs["sub_block"]
    # A shared block would be inlined once for each operator that runs it, and nested ones that often again.
    if block.idx in _facts(block.program).shared:
        return False
    ops = (each for each in block.ops if is_unplannable(each))
    ranked = ranks(op)
    if not all(
        is_noop(each)
        or changes_nothing(each)
        or is_inlinable(each, arrays)
        or (ranked and each.type in RANKING)
        for each in ops
    ):
        return False
    if any(var.persistable for var in block.vars.values()):
        return False
    # Gradients decrement counters that are not among their outputs, and blocks do not list all arrays.
    outside = [name for name in written_outside(op) if not (arrays and is_non_tensor(op, name))]
    return op.type.endswith("_grad") or {*op.writes()}.issuperset(outside)


def ranks(op: Operator) -> bool:
    """True if the block of an operator, or of its forward operator, makes a rank table."""
    forward = forward_of(op) if op.type.endswith("_grad") else op
    return forward is not None and any(
        each.type == "lod_rank_table" for each in forward.attrs["sub_block"].ops
    )


class _BlockFacts:
    """Facts on a program's blocks: the numbers of those that several operators run (`shared`), and the outer variables
    that each reads and writes (`of`)."""

    def __init__(self, program: Program) -> None:
        runs = Counter(inner.idx for block in program.blocks for op in block.ops for inner in op.sub_blocks())
        self.shared = frozenset(number for number, count in runs.items() if count > 1)
        self.touched: dict[int, tuple[dict[str, None], dict[str, None]]] = {}

    def of(self, block: Block) -> tuple[dict[str, None], dict[str, None]]:
        if block.idx not in self.touched:
            read = dict.fromkeys(name for op in block.ops for name in reads(op) if name not in block.vars)
            made = dict.fromkeys(name for op in block.ops for name in results(op) if name not in block.vars)
            kept = {name: None for name in made if name != EMPTY and not block._is_persistable(name)}
            self.touched[block.idx] = read, kept
        return self.touched[block.idx]


def _facts(program: Program) -> _BlockFacts:
    return program._derived(_BlockFacts)


def _gradient_is_inlinable(op: Operator, arrays: bool) -> bool:
    block = op.attrs["sub_block"]
    kinds = (VarType.LOD_TENSOR_ARRAY,) if arrays else ()
    if forward_of(op) is None:
        return False
    if op.type == "while_grad":
        names = [*op.inputs.get("Out@GRAD", ()), *(name for pair in gradients(op) for name in pair)]
        found = map(op.block._find_var_recursive, names)
        return all(var is not None and var.type in (VarType.LOD_TENSOR, *kinds) for var in found)
    for name, out in gradients(op):
        var = op.block._find_var_recursive(name)
        if var is None or any(
            each.type not in (VarType.LOD_TENSOR, *kinds) for each in (var, op.block._var_recursive(out))
        ):
            return False
        if (
            name in op.inputs.get("Out", ())
            and grad_name(name) in block.vars
            and incoming_gradients(op).get(name, EMPTY) != EMPTY
        ):
            return False
    return True


def _for_branches_only(op: Operator) -> bool:
    """True if only gradients of branches read the results of a `select_output`: then each of them may get the value."""
    outs = {*op.outputs["Out"]}
    for other in op.block.ops:
        if other is not op and not outs.isdisjoint(other.writes()):
            return False
        if other.type != "conditional_block_grad" and not outs.isdisjoint(other.reads()):
            return False
    return all(name in op.block.vars for name in outs)


def written_outside(op: Operator) -> list[str]:
    """The outer variables that the block of an operator may write, without persistable ones."""
    block: Block = op.attrs["sub_block"]
    found = _facts(block.program).of(block)[1]
    if op.type.endswith("_grad"):
        forward = forward_of(op)
        inside = {grad_name(name) for name, _ in gradients(op)} | {*op.attrs.get("original_output_grad", ())}
        inside |= {*forward.attrs["sub_block"].vars} if forward is not None else {*()}
        found = {name: None for name in found if name not in inside}
        found.update(dict.fromkeys(out for _, out in gradients(op)))
    return list(found)


def results(op: Operator) -> list[str]:
    """The variables that an operator of a plan may write; of blocks without persistable variables and step scopes."""
    return written_outside(op) if op.type in CONDITIONS else [*op.writes()]


def read_before(op: Operator) -> list[str]:
    """The variables whose earlier values remain if the block of an operator does not run."""
    return written_outside(op) if op.type in CONDITIONS else []


def reads(op: Operator) -> list[str]:
    """The variables that an operator of a plan reads, those that its block reads included."""
    if op.type not in CONDITIONS:
        return [*op.reads()]
    block: Block = op.attrs["sub_block"]
    found = _facts(block.program).of(block)[0]
    if not op.type.endswith("_grad"):
        return [*op.inputs[CONDITIONS[op.type]], *found]
    others = [name for name in op.inputs.get("Out@GRAD", ()) if name != EMPTY]
    inside = {*op.attrs.get("original_output_grad", ())}
    return [*(name for name, _ in gradients(op)), *others, *(name for name in found if name not in inside)]


def incoming_gradients(op: Operator) -> dict[str, str]:
    """The variables that a branch writes, each with its incoming gradient."""
    outs = op.inputs.get("Out", ())
    return dict(zip(outs, op.inputs.get("Out@GRAD", (EMPTY,) * len(outs)), strict=True))


def everywhere(ops: Iterable[Operator]) -> Iterator[Operator]:
    """Operators, and those of all nested blocks."""
    waiting = [ops]
    seen: set[int] = set()
    while waiting:
        for op in waiting.pop():
            yield op
            blocks = [block for block in op.sub_blocks() if block.idx not in seen]
            seen.update(block.idx for block in blocks)
            waiting += [block.ops for block in blocks]


def mangled_names(block: Block) -> dict[str, str]:
    """The names of a block's variables after inlining."""
    return {name: f"{name}{VERSION}B{block.idx}" for name in block.vars}


def is_local_name(block: Block, *others: Block) -> Callable[[str], bool]:
    """Return a predicate: is this name after inlining local to these blocks?"""
    numbers = {each.idx for one in (block, *others) for each in one.walk()}

    def is_local(name: str) -> bool:
        # Marks other than B and W are those of variables that the loop of a gradient carries: not local to its block.
        for mark in "BWSALMN":
            _, separator, number = name.removesuffix(TRIP_COUNT).rpartition(VERSION + mark)
            if separator and number.isdigit():
                return int(number) in numbers and (mark in "BW" or int(number) != block.idx)
        return False

    return is_local
