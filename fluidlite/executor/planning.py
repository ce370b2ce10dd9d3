"""What is found out about a program before its plan is made: live operators, exact shapes, constants."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..base.dtypes import VarType, to_numpy, to_vartype
from ..framework import Operator, Program
from ..ops import kernel_types
from ..ops.feed_fetch import ENDS
from ..ops.registry import OpView, Shape, check_result
from ..ops.rows import ROWS, parts
from . import failures
from .lod_tensor import LoDTensor
from .scope import Scope

FOLD_LIMIT = 256
"""Results with more elements are computed at run time even if they could be known before."""


_NO_TENSORS = frozenset({VarType.LOD_TENSOR_ARRAY, VarType.LOD_RANK_TABLE, VarType.STEP_SCOPES})


class CannotPlan(Exception):
    """A program, or this way to run it, needs the interpreter; the message says why."""


class ExactMeta:
    """Answers an operator's questions with the exact shapes of one run, and values that are already known."""

    exact = True

    def __init__(self, program: Program, scope: Scope, feeds: dict[str, np.ndarray]) -> None:
        self.block = program.global_block()
        self._scope: Scope | None = scope
        self.shapes: dict[str, Shape] = {}
        self.dtypes: dict[str, VarType] = {}
        self.known: dict[str, np.ndarray] = {}
        self.persistable: dict[str, LoDTensor] = {}
        self.sparse: dict[str, int] = {}  # SelectedRows -> how many rows they hold
        self.part_of: dict[str, str] = {}  # array of SelectedRows -> these
        self.retyped: set[str] = set()  # what has another type of elements than the program says
        for name, array in feeds.items():
            self.shapes[name] = array.shape
            self._type(name, to_vartype(array.dtype))
        for name in [name for name in feeds if name.endswith(ROWS)]:
            self._fed_rows(name.removesuffix(ROWS))

    def _fed_rows(self, name: str) -> None:
        values = parts(name)[1]
        self.shapes[name] = (self.block.var(name).shape[0], *self.shapes[values][1:])
        self.dtypes[name] = self.dtypes[values]
        self.set_rows(name, self.shapes[values][0])

    def has(self, name: str) -> bool:
        """Whether the variable has a value by now; looks into the scope for those that last."""
        if name in self.shapes:
            return True
        found = self._scope.find_var(name) if self._scope is not None else None
        value = found.get() if found is not None else None
        if not isinstance(value, LoDTensor) or value.array is None:
            return False
        if value.offsets:
            raise CannotPlan(f"variable {name!r} of the scope holds sequences")
        if isinstance(value.array, np.ndarray):
            value.own()
        self.persistable[name] = value
        self.shapes[name] = value.array.shape
        self._type(name, to_vartype(value.array.dtype))
        return True

    def _type(self, name: str, dtype: VarType) -> None:
        self.dtypes[name] = dtype
        if self.declared(name) not in (None, dtype):
            self.retyped.add(name)

    def declared(self, name: str) -> VarType | None:
        """The element type that the program was built with; None for what it has no variable for."""
        var = self.block._find_var_recursive(name)
        return None if var is None else var._dtype

    def lasting(self, name: str) -> bool:
        """Whether a variable outlives the step."""
        if name in self.persistable:
            return True
        var = self.block._find_var_recursive(name)
        return var is not None and var.persistable

    def forget_scope(self) -> None:
        """Look at the scope no more: everything that will be asked for is known."""
        self._scope = None

    def shape(self, name: str) -> Shape:
        return self.shapes[name]

    def dtype(self, name: str) -> VarType:
        return self.dtypes[name]

    def set(self, name: str, shape: Shape, dtype: VarType) -> None:
        if self.shapes.get(name, shape) != shape or self.dtypes.get(name, dtype) != dtype:
            raise CannotPlan(
                f"variable {name!r} gets another shape or type on the way: {dtype} {shape} after "
                f"{self.dtypes[name]} {self.shapes[name]}"
            )
        # What the program declares is not asked: kernels write what is inferred, and that is what gets memory.
        self.shapes[name] = shape
        self._type(name, dtype)

    def value(self, name: str) -> np.ndarray | None:
        return self.known.get(name)

    def rows(self, name: str) -> int | None:
        return self.sparse.get(name)

    def set_rows(self, name: str, count: int) -> None:
        rows, values = parts(name)
        self.sparse[name] = count
        self.part_of[rows] = self.part_of[values] = name
        self.shapes[rows], self.dtypes[rows] = (count,), VarType.INT64
        self.shapes[values], self.dtypes[values] = (count, *self.shapes[name][1:]), self.dtypes[name]


def live(ops: list[Operator], targets: Iterable[str]) -> list[Operator]:
    """The operators that matter: for `targets`, for variables that last, or for what they do besides computing."""
    needed = set(targets)
    kept = []
    for op in reversed(ops):
        if op.type in ENDS:
            continue  # feeds and fetches go by name
        lasting = op.definition.host or any(_lasts(op, name) for name in op.writes())
        if lasting or not needed.isdisjoint(op.writes()):
            kept.append(op)
            needed.update(op.reads())
    return kept[::-1]


def _lasts(op: Operator, name: str) -> bool:
    var = op.block._find_var_recursive(name)
    return var is None or var.persistable


def infer(op: Operator, meta: ExactMeta, fed: Iterable[str]) -> OpView:
    """Exact shapes of the outputs of `op`.

    Raises EnforceNotMet for an input without a value, CannotPlan if the shapes depend on data.
    """
    definition = op.definition
    # Plans have no sequences: an operator that only asks for them has a native kernel for "none".
    needs_sequences = definition.lod and definition.native is None
    if needs_sequences or op.sub_blocks() or definition.infer is None:
        raise CannotPlan(f"operator {op.type} works on sequences or blocks")
    if any(_no_tensor(op, name) for name in (*op.reads(), *op.writes())):
        raise CannotPlan(f"operator {op.type} works on what is no tensor")
    for name in op.reads():
        if not meta.has(name):
            raise failures.missing_value(op, name, fed)
    view = OpView(definition, op.inputs, op.outputs, op.attrs, meta)
    try:
        if not meta.retyped.isdisjoint(op.reads()):
            if kernel_types.check(view, meta.declared)[1]:
                raise CannotPlan(f"operator {op.type} gets data of several types")
        definition.infer(view)
        if definition.rows is not None:
            definition.rows.mark(view)
    except CannotPlan:
        raise
    except Exception as error:
        located = failures.in_operator(op, error)
        if located is error:
            raise
        raise located from error
    for name in op.writes():
        if min(meta.shapes.get(name, (-1,)), default=0) < 0:
            raise CannotPlan(f"operator {op.type} makes variable {name!r}, whose shape depends on data")
    return view


def _no_tensor(op: Operator, name: str) -> bool:
    var = op.block._find_var_recursive(name)
    return var is not None and var.type in _NO_TENSORS


def fold(op: Operator, view: OpView, meta: ExactMeta, written_once: set[str]) -> bool:
    """Compute a small constant now (`fill_constant`, `shape`, ...); False if it is not one."""
    definition = op.definition
    if definition.random or definition.host or definition.kernel is None:
        return False
    if op.type != "shape" and not all(name in meta.known for name in op.reads()):
        return False
    outputs = op.output_arg_names
    if not outputs or not all(name in written_once for name in outputs):
        return False
    if sum(math.prod(meta.shapes[name]) for name in outputs) > FOLD_LIMIT:
        return False
    if op.type == "shape":
        results: list[Any] = [np.array(view.shape("Input"), dtype="int32")]
    else:
        inputs = {slot: [meta.known[name] for name in names] for slot, names in op.inputs.items() if names}
        try:
            results = definition.call(np, inputs, op.attrs)
        except Exception as error:
            raise failures.in_operator(op, error) from error
    for slot, result in zip(definition.output_slots, results, strict=True):
        for name, value in zip(
            op.outputs.get(slot.name, []), result if slot.many else [result], strict=False
        ):
            if value is not None:
                dtype = to_numpy(meta.dtypes[name])
                check_result(op.type, value, meta.shapes[name], dtype)
                meta.known[name] = np.array(value, dtype, order="C")
    return True
