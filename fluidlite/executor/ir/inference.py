"""Analyses of operators before lowering: dead code, SSA names, shape inference, LoD, constant folding."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy
from ...base.sizes import SymInt, is_fixed
from ...framework import Operator, Program, sequences
from ...framework.gradients.blocks import names_read
from ...ops import kernel_types
from ...ops.program.host import ENDS
from ...ops.registry import VERSION, OpDef, OperatorError, OpView, check_result, find
from .. import failures
from ..failures import Unsupported
from . import jumps
from .type_env import TypeEnv

FOLD_LIMIT = 256
"""Constants with more elements are not folded, unless the operator lists them in an attribute."""

NON_TENSORS = frozenset({VarType.LOD_TENSOR_ARRAY, VarType.LOD_RANK_TABLE, VarType.STEP_SCOPES})


def in_place_of(
    op: Operator,
    kind: str | OpDef,
    inputs: dict[str, list[str]],
    outputs: dict[str, list[str]],
    attrs: dict[str, Any] | None = None,
) -> Operator:
    """An operator with the call site of `op`, for errors; without `attrs` it has the attributes of `op`."""
    made = copy.copy(op)
    made.definition = find(kind) if isinstance(kind, str) else kind
    made.type, made.inputs, made.outputs = made.definition.type, inputs, outputs
    if attrs is not None:
        made.attrs = attrs
    return made


def renamed(op: Operator, names: Mapping[str, str], inputs: bool = True, outputs: bool = True) -> Operator:
    """`op` with other names for the variables in `names`."""
    if not names or names.keys().isdisjoint((*op.input_arg_names, *op.output_arg_names)):
        return op
    made = copy.copy(op)
    if inputs:
        made.inputs = {slot: [names.get(n, n) for n in each] for slot, each in op.inputs.items()}
    if outputs:
        made.outputs = {slot: [names.get(n, n) for n in each] for slot, each in op.outputs.items()}
    return made


class SsaNames:
    """SSA renaming: a temporary that is written several times, or given and overwritten, gets a name for each value.

    Args:
        stays: whether a variable keeps its name, as persistable ones do, whose memory is the scope's.
        given: the variables with an initial value.
        mark: the prefix of the number in new names.

    `latest`: the current names of renamed variables.
    """

    def __init__(self, stays: Callable[[str], bool], given: Iterable[str], mark: str = "") -> None:
        self._stays, self._mark = stays, mark
        self._written = set(given)
        self._counts: Counter[str] = Counter()
        self.latest: dict[str, str] = {}

    def renamed(self, op: Operator) -> Operator:
        """The operator with SSA names; called for all operators in order."""
        made = renamed(op, self.latest, outputs=False) if self.latest else op
        writes = op.output_arg_names
        for name in writes if op.definition is not jumps.COPY_OUT else ():
            if name in self._written and not self._stays(name):
                self._counts[name] += 1
                self.latest[name] = f"{name}{VERSION}{self._mark}{self._counts[name]}"
        self._written.update(writes)
        return renamed(made, self.latest, inputs=False) if self.latest else made


def live(ops: list[Operator], targets: Iterable[str]) -> list[Operator]:
    """Dead code elimination: the operators that `targets`, persistable variables, or side effects need."""
    needed = set(targets)
    kept = []
    for at, op in reversed([*enumerate(ops)]):
        if op.type in ENDS:
            continue  # feeds and fetches have names instead
        if op.definition is jumps.BACK_EDGE:  # an iteration reads values that the previous one has written
            needed.update(name for each in _loop(ops, at) for name in each.reads())
        if not needed.isdisjoint(op.writes()) or _has_effects(op):
            kept.append(op)
            needed.update(op.reads())
            if op.definition.effects.control:
                # The inputs of gradient operators need not have all variables that their blocks read.
                needed.update(*map(names_read, op.sub_blocks()))
    return kept[::-1]


def _loop(ops: list[Operator], end: int) -> Iterable[Operator]:
    """The operators of an inlined loop from its back edge at `end` to its beginning."""
    inside = 0
    for op in ops[end::-1]:
        yield op
        inside += (op.definition is jumps.BACK_EDGE) - (op.definition is jumps.LOOP)
        if not inside:
            return


def _has_effects(op: Operator) -> bool:
    """True if an operator, or one in its sub-blocks, has side effects."""
    effects = op.definition.effects
    if effects.host or op.inputs.get(effects.consumes):
        return True
    variables = op.block.vars
    for name in op.writes():
        var = variables.get(name)
        if var is None:
            var = op.block._find_var_recursive(name)
        if var is not None and var.persistable:
            return True
    blocks = op.sub_blocks() if effects.control else ()
    return any([_has_effects(each) for block in blocks for each in block.ops])


def is_noop(op: Operator) -> bool:
    """True if a step skips an operator: feed, fetch and reader operators, and those whose output is their input."""
    passes_on = op.definition.planning.noop
    if passes_on is not None and op.outputs[passes_on[0]] == op.inputs[passes_on[1]]:
        return True
    return op.type in ENDS or (
        op.definition.effects.host and op.definition.kernel is None and not op.definition.effects.control
    )


def is_unplannable(op: Operator) -> bool:
    """True if an operator cannot be an instruction; inlining may replace it by operators that can.

    It has sub-blocks, non-tensor or uninitialised variables, or updates its output.
    """
    definition, effects = op.definition, op.definition.effects
    if definition.infer is None or effects.control or effects.updates or effects.uninitialized:
        return True
    names = op.block.program._derived(_non_tensors)
    return bool(names) and any(
        [name in names and is_non_tensor(op, name) for name in (*op.reads(), *op.writes())]
    )


def has_control_flow(program: Program, ops: Iterable[Operator]) -> bool:
    """True if a program has blocks of branches or loops, or variables that are no tensors, such as tensor arrays, or
    if an operator chooses between variables.
    """
    if len(program.blocks) > 1 or program._derived(_non_tensors):
        return True
    return any([op.definition.effects.control is not None for op in ops])


def infer(op: Operator, meta: TypeEnv, fed: Iterable[str]) -> OpView:
    """Infer the shapes of the outputs of `op`.

    Raises EnforceNotMet for an input without a value, Unsupported for shapes that depend on data, and for an output
    that is persistable and not yet in the scope.
    """
    definition = op.definition
    reads, writes = op.reads(), op.writes()
    for name in writes:
        if meta.is_persistable(name) and name not in meta.shapes and not meta.has(name, op):
            reason = f"operator {op.type} makes variable {name!r}, which is not in the scope yet"
            raise Unsupported(reason, op, retryable=True)
    if definition.infer is None or is_unplannable(op):
        raise Unsupported(
            f"operator {op.type} has sub-blocks, updates its output, or has non-tensor variables", op
        )
    for name in reads:
        if name not in meta.shapes and not meta.has(name, op):
            raise failures.missing_value(op, name, fed)
    view = OpView(definition, op.inputs, op.outputs, op.attrs, meta)
    try:
        if meta.retyped and not meta.retyped.isdisjoint(reads):
            _check_types(view, meta)
        definition.infer(view)
        unknown = any([n < 0 for name in writes for n in meta.shapes.get(name, ())])
        if unknown or (
            definition.sequences.takes_lod and definition.native is None and not definition.sequences.inferred
        ):
            meta.measure_results(op, view)
        if meta.lods:
            carry_over(op, view, meta)
        if definition.dispatch.rows is not None:
            definition.dispatch.rows.mark(view)
    except Unsupported as refusal:
        refusal.op = op
        raise
    except Exception as error:
        failures.raise_in_operator(op, error)
    return view


def _check_types(view: OpView, meta: TypeEnv) -> None:
    """Raise as `kernel_types.check`; Unsupported for operators without a kernel, and for inputs of several types."""
    try:
        _, several = kernel_types.check(view, meta.declared)
    except OperatorError:
        if view.definition.kernel is None:
            raise Unsupported("a variable changes its element type") from None
        raise
    if several:
        raise Unsupported(f"operator {view.type} has inputs of several element types")


def is_non_tensor(op: Operator, name: str) -> bool:
    """True for tensor arrays, rank tables and step scopes."""
    var = op.block._find_var_recursive(name)
    return var is not None and var.type in NON_TENSORS


def _non_tensors(program: Program) -> frozenset[str]:
    """The names of variables that are no tensors in any block of a program."""
    return frozenset(
        name for block in program.blocks for name, var in block.vars.items() if var.type in NON_TENSORS
    )


def declared_type(op: Operator, name: str) -> np.dtype | None:
    """The declared element type of a variable of `op`."""
    var = op.block._find_var_recursive(name)
    return None if var is None or var._dtype is None else to_numpy(var._dtype)


def carry_over(op: Operator, view: OpView, meta: TypeEnv) -> None:
    """Propagate the LoD of inputs to outputs, as the operator's declaration says, where the row counts match.

    Raises Unsupported for operators that concatenate sequences, whose offsets plans do not compute.
    """
    for one in sequences.kept(view):
        levels = meta.lods.get(one.source)
        if not levels or one.out in meta.lods:
            continue
        shape = meta.shapes.get(one.out)
        fits = shape is not None and one.fits(shape, meta.shapes[one.source])
        if one.others and (fits or all(len(meta.lod(name)) == len(levels) for name in one.others)):
            raise Unsupported(f"operator {op.type} concatenates sequences", op)
        if not fits:
            continue
        if meta.is_persistable(one.out):
            raise Unsupported(f"persistable variable {one.out!r} would have sequences", op)
        meta.lods[one.out] = levels


def _computed(op: Operator, view: OpView, meta: TypeEnv, symbolic: bool) -> list[Any]:
    """The results of an operator on constants, or on symbolic values."""
    size_values = op.definition.planning.size_values
    if size_values is not None:
        (out,) = op.output_arg_names
        return [np.array(size_values(view), dtype=object if symbolic else to_numpy(meta.dtypes[out]))]
    inputs = {slot: [meta.value(name) for name in names] for slot, names in op.inputs.items() if names}
    return op.definition.call(np, inputs, op.attrs)


def _fold_symbolic(op: Operator, view: OpView, meta: TypeEnv) -> None:
    """Record the results of an operator on symbolic sizes, if they are formulas of these."""
    if not all(
        to_numpy(meta.dtypes[name]).kind == "i" and is_fixed(meta.shapes[name])
        for name in op.output_arg_names
    ):
        return
    try:
        with meta.sizes.without_specialising():
            results = _computed(op, view, meta, symbolic=True)
    except Exception:  # the kernel does not take symbols: each step computes the result
        return
    for name, value in op._named(results):
        if isinstance(value, np.ndarray) and value.shape == meta.shapes[name]:
            if all(isinstance(n, (int, SymInt, np.integer)) for n in value.flat):
                meta.symbolic_values[name] = value


def fold(op: Operator, view: OpView, meta: TypeEnv, writes: Counter[str]) -> bool:
    """Constant folding: compute small results of constant inputs (`fill_constant`, `shape`, ...).

    Returns False for an operator that stays in the plan. Integer results on symbolic sizes are recorded as formulas.
    `writes`: the number of writes of each variable.
    """
    definition = op.definition
    if not definition.is_pure or definition.sequences.takes_lod:
        return False
    reads, outputs = op.reads(), op.output_arg_names
    if definition.planning.size_values is None:
        for name in reads:
            if name not in meta.constants and name not in meta.symbolic_values:
                return False
    if not outputs or any([writes[name] != 1 or op.block._is_persistable(name) for name in outputs]):
        return False
    if not meta.symbolic_values.keys().isdisjoint(reads) or not all(
        [is_fixed(meta.shapes[name]) for name in (*reads, *outputs)]
    ):
        _fold_symbolic(op, view, meta)
        return False
    listed = sum(len(value) for value in op.attrs.values() if isinstance(value, (list, tuple)))
    if sum(math.prod(meta.shapes[name]) for name in outputs) > max(FOLD_LIMIT, listed):
        return False
    try:
        results = _computed(op, view, meta, symbolic=False)
    except Exception as error:
        failures.raise_in_operator(op, error)
    for name, value in op._named(results):
        dtype = to_numpy(meta.dtypes[name])
        check_result(op.type, value, meta.shapes[name], dtype)
        meta.constants[name] = np.array(value, dtype, order="C")
    return True
