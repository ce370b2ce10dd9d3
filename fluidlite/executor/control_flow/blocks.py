"""Facts about operators with blocks: what they read and write, their gradients, and which may be part of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ...base.dtypes import VarType
from ...framework import Block, Operator, Program
from ...framework.gradients.blocks import kept_names
from ...framework.gradients.versions import changes_nothing
from ...ops.registry import EMPTY, VERSION, Control, grad_name
from ..ir.inference import NON_TENSORS, is_non_tensor, is_noop, is_unplannable

if TYPE_CHECKING:
    from .inlining import Inliner

TRIP_COUNT = "@TRIPS"
"""Suffix of the predicate of a branch, or the trip count of a loop, that inlined gradients read in place of scopes."""

RANKING = frozenset(
    "lod_rank_table max_sequence_len reorder_lod_tensor_by_rank reorder_lod_tensor_by_rank_grad lod_tensor_to_array "
    "array_to_lod_tensor read_from_array write_to_array while while_grad".split()
)
"""The operators that loops over ranked sequences consist of; see `ragged_scan.py`."""

ON_ARRAYS = frozenset(
    "write_to_array read_from_array lod_array_length tensor_array_to_tensor tensor_array_to_tensor_grad".split()
)
"""The operators on tensor arrays that plans have counterparts of; see `array_ops.py`."""


_WITHOUT_BLOCK = Control()


Names = Mapping[str, str]
"""Variable -> its name after inlining, of the blocks around an operator."""

INLINE: dict[str, Callable[[Inliner, Operator, Names], Iterator[Operator]]] = {}
"""By type of operator, the function that yields its operators in a plan; `constructs.py` has them."""


def control(op: Operator) -> Control:
    """How an operator runs its block; of kind "" for operators without one."""
    return op.definition.effects.control or _WITHOUT_BLOCK


def is_recurrent(op: Operator) -> bool:
    return control(op).kind == "recurrent"


def needs_lowering(op: Operator) -> bool:
    """True if plans may have other operators in the place of this one."""
    return op.type in RANKING or op.type in ON_ARRAYS or is_recurrent(op)


def is_block(op: Operator) -> bool:
    """True for branches, loops, and their gradients."""
    return control(op).kind in ("branch", "loop")


# Pairs of a branch or loop and its gradients, which have the step scopes in common.


def forward_of(op: Operator) -> Operator | None:
    """The branch or loop that `op` is the gradient of; None unless exactly one has its step scopes."""
    how = control(op)
    found = [
        each
        for each in _of_program(op)
        if control(each).kind == how.kind
        and not control(each).gradient
        and each.outputs.get(control(each).scopes) == op.inputs[how.scopes]
    ]
    return found[0] if len(found) == 1 else None


def backward_of(op: Operator) -> list[Operator]:
    """The gradients of a branch or loop: one for each time that the program has been differentiated."""
    slot = control(op).scopes
    return [each for each in _of_program(op) if each.inputs.get(slot) == op.outputs[slot]]


def gradients(op: Operator) -> list[tuple[str, str]]:
    """Each variable that a block reads with its gradient, where that is an outer variable: gradients that `minimize`
    computes inside of a branch are not."""
    slot = control(op).reads
    pairs = zip(op.inputs.get(slot, ()), op.outputs.get(grad_name(slot), ()), strict=True)
    return [(n, out) for n, out in pairs if out != EMPTY and op.block._find_var_recursive(out) is not None]


def incoming_gradients(op: Operator) -> dict[str, str]:
    """The variables that a branch writes, each with its incoming gradient."""
    outs = op.inputs.get("Out", ())
    return dict(zip(outs, op.inputs.get("Out@GRAD", (EMPTY,) * len(outs)), strict=True))


def _of_program(op: Operator) -> list[Operator]:
    """The operators with blocks of the program of `op`."""
    program: Program = op.block.program
    return program._derived(_with_blocks)


def _with_blocks(program: Program) -> list[Operator]:
    return [op for block in program.blocks for op in block.ops if op.sub_blocks()]


# What may be inlined, as far as the program alone tells.


def is_inlinable(op: Operator, arrays: bool = False) -> bool:
    """True if an operator is a branch or a loop, or belongs to a branch, and a plan may have it inlined. `arrays`:
    whether operators on tensor arrays count as well.
    """
    if op.type == "select_input":
        return True
    if op.type in ON_ARRAYS:
        return arrays
    if op.type == "select_output":
        return _for_branches_only(op)
    if is_recurrent(op):
        return _steps_are_inlinable(op)
    if op.type not in INLINE or len(op.inputs.get(_predicate(op), ())) != 1:
        return False
    return _block_is_inlinable(op, arrays)


def _predicate(op: Operator) -> str:
    """The slot of the condition, or of the scopes that tell a gradient how often the block has run."""
    how = control(op)
    return how.scopes if how.gradient else how.predicate


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
    return control(op).gradient or block.vars.keys() >= {*_facts(block.program).of(block)[1]}


def _block_is_inlinable(op: Operator, arrays: bool) -> bool:
    is_gradient = control(op).gradient
    if is_gradient and not _gradient_is_inlinable(op, arrays):
        return False
    block = op.attrs["sub_block"]
    # A shared block would be inlined once for each operator that runs it, and nested ones that often again.
    if block.idx in _facts(block.program).shared:
        return False
    ranked = ranks(op)
    for inner in filter(is_unplannable, block.ops):
        fits = is_noop(inner) or changes_nothing(inner) or is_inlinable(inner, arrays)
        if not fits and not (ranked and inner.type in RANKING):
            return False
    if any(var.persistable for var in block.vars.values()):
        return False
    # Gradients decrement counters that are not among their outputs, and blocks do not list all arrays.
    outside = [name for name in written_outside(op) if not (arrays and is_non_tensor(op, name))]
    return is_gradient or {*op.writes()}.issuperset(outside)


def ranks(op: Operator) -> bool:
    """True if the block of an operator, or of its forward operator, makes a rank table."""
    forward = forward_of(op) if control(op).gradient else op
    return forward is not None and any(
        each.type == "lod_rank_table" for each in forward.attrs["sub_block"].ops
    )


def _gradient_is_inlinable(op: Operator, arrays: bool) -> bool:
    block = op.attrs["sub_block"]
    kinds = (VarType.LOD_TENSOR, VarType.LOD_TENSOR_ARRAY) if arrays else (VarType.LOD_TENSOR,)
    if forward_of(op) is None:
        return False
    if control(op).kind == "loop":
        names = [*op.inputs.get("Out@GRAD", ()), *(name for pair in gradients(op) for name in pair)]
        found = map(op.block._find_var_recursive, names)
        return all(var is not None and var.type in kinds for var in found)
    for name, out in gradients(op):
        var = op.block._find_var_recursive(name)
        if var is None or any(each.type not in kinds for each in (var, op.block._var_recursive(out))):
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


# What operators read and write, their blocks included.


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


def written_outside(op: Operator) -> list[str]:
    """The outer variables that the block of an operator may write, without persistable ones."""
    block: Block = op.attrs["sub_block"]
    found = _facts(block.program).of(block)[1]
    if control(op).gradient:
        forward = forward_of(op)
        inside = {grad_name(name) for name, _ in gradients(op)} | {*op.attrs.get("original_output_grad", ())}
        inside |= {*forward.attrs["sub_block"].vars} if forward is not None else {*()}
        found = {name: None for name in found if name not in inside}
        found.update(dict.fromkeys(out for _, out in gradients(op)))
    return list(found)


def results(op: Operator) -> list[str]:
    """The variables that an operator of a plan may write; of blocks without persistable variables and step scopes."""
    return written_outside(op) if is_block(op) else [*op.writes()]


def read_before(op: Operator) -> list[str]:
    """The variables whose earlier values remain if the block of an operator does not run."""
    return written_outside(op) if is_block(op) else []


def reads(op: Operator) -> list[str]:
    """The variables that an operator of a plan reads, those that its block reads included."""
    if not is_block(op):
        return [*op.reads()]
    block: Block = op.attrs["sub_block"]
    found = _facts(block.program).of(block)[0]
    if not control(op).gradient:
        return [*op.inputs[_predicate(op)], *found]
    others = [name for name in op.inputs.get("Out@GRAD", ()) if name != EMPTY]
    inside = {*op.attrs.get("original_output_grad", ())}
    return [*(name for name, _ in gradients(op)), *others, *(name for name in found if name not in inside)]


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


# Residuals: variables of branches and of loop iterations that gradients read, under their names after inlining.


def mangled_names(block: Block) -> dict[str, str]:
    """The names of a block's variables after inlining."""
    return {name: f"{name}{VERSION}B{block.idx}" for name in block.vars}


def residuals_of_branches(
    ops: Iterable[Operator], inner: Mapping[str, str] | None = None, arrays: bool = False
) -> list[str]:
    """The residuals of the branches and loops among `ops`, without those that iterations of these stash. `inner`:
    variable -> its name after inlining."""
    names, found = inner or {}, []
    for op in ops:
        kept = kept_names(op) if is_block(op) and is_inlinable(op, arrays) else None
        if kept is None:
            continue
        (scope,), block = op.outputs[control(op).scopes], op.attrs["sub_block"]
        found.append(names.get(scope, scope) + TRIP_COUNT)
        if control(op).kind == "branch":
            own = mangled_names(block)
            found += [own[name] for name in _tensors_made(block) if name in kept]
            found += residuals_of_branches(block.ops, {**names, **own}, arrays)
    return found


def residuals_of_block(block: Block, ops: Iterable[Operator], kept: Collection[str] | None) -> list[str]:
    """The variables of an iteration that its gradient reads and the operators of its block write."""
    if not kept:
        return []
    made = {name for op in ops for name in results(op) if name in kept}
    found = {name: block.vars.get(name) or block._find_var_recursive(name) for name in made}
    own = (n for n, var in found.items() if var is None or n in block.vars and var.type not in NON_TENSORS)
    return sorted(own)


def _tensors_made(block: Block) -> list[str]:
    made = dict.fromkeys(name for op in block.ops for name in results(op))
    return [n for n in made if n in block.vars and block.vars[n].type == VarType.LOD_TENSOR]
