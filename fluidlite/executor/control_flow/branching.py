"""Branches and loops in plans: the operators of a block stand in line with the others, behind a jump past them.

    conditional_block(c) -> y         begin_branch(c)     past the block unless c
      fc(x) -> h                      fc(x) -> h@VB2      what the block declares has names of its own
      assign(h) -> y                  assign(h@VB2) -> y@VB2
                                      merge(y@VB2) -> y   what others read, in one place whether the block runs or not
                                      end_branch

A variable that held something before is copied to that place in front (`hold`). A loop ends with a jump back to the one
past it (`loop`, `loop_end`): what it replaces is in the same place when each turn begins. The gradient of a branch
stands behind a jump by the same condition: what the condition was (`@RAN`) takes the place of the environments that are
kept of blocks that run through Python.
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

RAN = "@RAN"
"""Stands behind the name of the environments that a branch keeps: whether it has run; that a loop keeps: how often."""


CONDITIONS = {
    "conditional_block": "Cond",
    "conditional_block_grad": "Cond",
    "while": "Condition",
    "while_grad": "StepScopes",
}
"""The operators that run a block which may stand in line, and the slot of what says whether, or how often."""

STEPS = ("recurrent", "recurrent_grad")
"""The operators whose steps may be turns in a plan; see `stepping.py`."""

RANKING = frozenset(
    "lod_rank_table max_sequence_len reorder_lod_tensor_by_rank reorder_lod_tensor_by_rank_grad lod_tensor_to_array "
    "array_to_lod_tensor read_from_array write_to_array while while_grad".split()
)
"""The operators that loops over ranked sequences are made of; see `turning.py`."""

ON_ARRAYS = frozenset(
    ["write_to_array", "read_from_array", "lod_array_length", "tensor_array_to_tensor"]
    + ["tensor_array_to_tensor_grad"]
)
"""The operators on tensor arrays that plans have operators of their own for; see `elements.py`."""


def is_inlinable(op: Operator, arrays: bool = False) -> bool:
    """Whether an operator is a branch or a loop, or belongs to a branch, and may be in a plan, as far as can be said
    without knowing what varies. `arrays`: whether operators on tensor arrays may as well.
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
    # What goes from step to step of a gradient is declared by no block.
    return op.type.endswith("_grad") or block.vars.keys() >= {*_known(block.program).of(block)[1]}


def _block_is_inlinable(op: Operator, arrays: bool = False) -> bool:
    if op.type.endswith("_grad") and not _gradient_is_inlinable(op, arrays):
        return False
    block = op.attrs["sub_block"]
    # Each operator would put a shared block in its place, and those in it the ones that they share.
    if block.idx in _known(block.program).shared:
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
    # Gradients count counters back that they do not name, and blocks do not name all arrays.
    outside = [name for name in written_outside(op) if not (arrays and is_non_tensor(op, name))]
    return op.type.endswith("_grad") or {*op.writes()}.issuperset(outside)


def ranks(op: Operator) -> bool:
    """Whether a block, or the one that it is the gradient of, ranks sequences."""
    forward = forward_of(op) if op.type.endswith("_grad") else op
    return forward is not None and any(
        each.type == "lod_rank_table" for each in forward.attrs["sub_block"].ops
    )


class _Known:
    """What is known of a program's blocks: which several operators run, by number (`shared`), and what each reads and
    writes of what is around it (`of`)."""

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


def _known(program: Program) -> _Known:
    return program._derived(_Known)


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
            and arriving(op).get(name, EMPTY) != EMPTY
        ):
            return False
    return True


def _for_branches_only(op: Operator) -> bool:
    """Whether only gradients of branches read what a `select_output` makes: then the others may get it as well."""
    outs = {*op.outputs["Out"]}
    for other in op.block.ops:
        if other is not op and not outs.isdisjoint(other.writes()):
            return False
        if other.type != "conditional_block_grad" and not outs.isdisjoint(other.reads()):
            return False
    return all(name in op.block.vars for name in outs)


def written_outside(op: Operator) -> list[str]:
    """The variables outside of its block that a branch may write and that do not last."""
    block: Block = op.attrs["sub_block"]
    found = _known(block.program).of(block)[1]
    if op.type.endswith("_grad"):
        forward = forward_of(op)
        inside = {grad_name(name) for name, _ in gradients(op)} | {*op.attrs.get("original_output_grad", ())}
        inside |= {*forward.attrs["sub_block"].vars} if forward is not None else {*()}
        found = {name: None for name in found if name not in inside}
        found.update(dict.fromkeys(out for _, out in gradients(op)))
    return list(found)


def results(op: Operator) -> list[str]:
    """What an operator of a plan may make, but for persistable variables and the environments of blocks."""
    return written_outside(op) if op.type in CONDITIONS else [*op.writes()]


def read_before(op: Operator) -> list[str]:
    """What an operator needs of what was before: what it writes perhaps stays as it was."""
    return written_outside(op) if op.type in CONDITIONS else []


def reads(op: Operator) -> list[str]:
    """What an operator of a plan reads of what is around it."""
    if op.type not in CONDITIONS:
        return [*op.reads()]
    block: Block = op.attrs["sub_block"]
    found = _known(block.program).of(block)[0]
    if not op.type.endswith("_grad"):
        return [*op.inputs[CONDITIONS[op.type]], *found]
    others = [name for name in op.inputs.get("Out@GRAD", ()) if name != EMPTY]
    inside = {*op.attrs.get("original_output_grad", ())}
    return [*(name for name, _ in gradients(op)), *others, *(name for name in found if name not in inside)]


def arriving(op: Operator) -> dict[str, str]:
    """The variables that a branch writes, each with the gradient that comes to it."""
    outs = op.inputs.get("Out", ())
    return dict(zip(outs, op.inputs.get("Out@GRAD", (EMPTY,) * len(outs)), strict=True))


def everywhere(ops: Iterable[Operator]) -> Iterator[Operator]:
    """Operators, and those of the blocks that they run."""
    waiting = [ops]
    seen: set[int] = set()
    while waiting:
        for op in waiting.pop():
            yield op
            blocks = [block for block in op.sub_blocks() if block.idx not in seen]
            seen.update(block.idx for block in blocks)
            waiting += [block.ops for block in blocks]


def mangled_names(block: Block) -> dict[str, str]:
    """What the variables of a branch's block are called in line."""
    return {name: f"{name}{VERSION}B{block.idx}" for name in block.vars}


def is_local_name(block: Block, *others: Block) -> Callable[[str], bool]:
    """What says whether a name in line is that of something that nobody outside of the block, or of others, knows."""
    numbers = {each.idx for one in (block, *others) for each in one.walk()}

    def known(name: str) -> bool:
        for mark in (
            "BWSALMN"
        ):  # all but the first two are of a gradient's block, outside of which they stay from turn to turn
            head, found, number = name.removesuffix(RAN).rpartition(VERSION + mark)
            if found and number.isdigit():
                return int(number) in numbers and (mark in "BW" or int(number) != block.idx)
        return False

    return known
