"""Legalization: operators replaced by those that a target has kernels for, and checks that are operators.

float16       stored as such and computed in float32 on the CPU
NaN checks    (FLAGS_check_nan_inf) as in Fluid the float results of kernels are checked, in the order of the names of
              slots: not feeds, integers and tensor arrays, nor the results of operators that call Python, have
              sub-blocks, or have non-tensor variables
SelectedRows  pairs of arrays (`ops/tensor/gather.py`), dense for operators without a rule
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._ext import kernels
from ...base.callsite import describe
from ...base.dtypes import FLOATS, VarType
from ...base.errors import EnforceNotMet
from ...base.selected_rows import SelectedRows
from ...framework import Block, Operator
from ...ops.math.functions import NEAREST
from ...ops.registry import EMPTY, GRAD, Call, Effects, OpDef, OpView, RowRule
from ...ops.tensor.gather import ROWS, VALUES, parts
from ..failures import Unsupported
from .inference import in_place_of, infer, is_unplannable, renamed
from .type_env import TypeEnv


def in_float32(op: Operator, meta: TypeEnv, fed: Sequence[str]) -> Iterator[Operator]:
    """The operators to run for `op`: itself, or casts to float32, it on those, and casts of its results to float16.

    The latter if it has float16 inputs and a native kernel for float32 only. The caller infers each operator before it
    takes the next one.
    """
    inputs = [name for name in dict.fromkeys(op.reads()) if _is_float16(name, op, meta)]
    if not inputs or not _has_kernels(op) or _has_float16_kernels(infer(op, meta, fed)):
        yield op
        return
    outputs = [name for name in op.writes() if meta.dtypes.get(name) == VarType.FP16]
    if any(meta.is_persistable(name) for name in (*inputs, *outputs)):
        yield op
        return
    for name in inputs:
        if not meta.has(_float32_name(name)):
            yield _cast(op, name, _float32_name(name), VarType.FP16, VarType.FP32)
            _copy_lod(meta, name, _float32_name(name))
    results = {name: _RESULT + name for name in outputs}
    for name in outputs:
        _copy_base(meta, name)
    on_float32 = renamed(op, {name: _float32_name(name) for name in inputs}, outputs=False)
    yield renamed(on_float32, results, inputs=False)
    for name, result in results.items():
        yield _cast(op, result, name, meta.dtypes[result], VarType.FP16)
        _copy_lod(meta, result, name)


_RESULT = "FLOAT@RESULT@"


def _copy_base(meta: TypeEnv, name: str) -> None:
    """If `name` is a gradient, give its variable a renamed entry too, from which rules infer the gradient's shape."""
    base, gradient, _ = name.partition(GRAD)
    if gradient and base in meta.shapes:
        meta.shapes.setdefault(_RESULT + base, meta.shapes[base])
        meta.dtypes.setdefault(_RESULT + base, VarType.FP32)


def _float32_name(name: str) -> str:
    """The name of a variable's float32 copy."""
    return name + "@FLOAT"


def _is_float16(name: str, op: Operator, meta: TypeEnv) -> bool:
    return meta.has(name, op) and meta.dtypes[name] == VarType.FP16


def _has_kernels(op: Operator) -> bool:
    definition = op.definition
    return (
        definition.native is not None
        and definition.planning.view is None
        and op.type != "cast"
        and not is_unplannable(op)
    )


def _has_float16_kernels(view: OpView) -> bool:
    """True if the native kernels of an operator move elements only, so that they take float16 inputs unchanged."""
    assert view.definition.native is not None
    calls = view.definition.native(view)
    listed = [calls] if isinstance(calls, Call) else calls
    return listed is not None and all(kernels.available(call.kernel) for call in listed)


def _cast(op: Operator, source: str, target: str, before: VarType, after: VarType) -> Operator:
    """A cast operator with the call site of `op`."""
    attrs = {"in_dtype": int(before), "out_dtype": int(after), NEAREST: after == VarType.FP16}
    return in_place_of(op, "cast", {"X": [source]}, {"Out": [target]}, attrs)


def _copy_lod(meta: TypeEnv, source: str, target: str) -> None:
    if source in meta.lods:
        meta.lods[target] = meta.lods[source]


def checked_results(op: Operator) -> list[str]:
    """The results of an operator to check, if they are floats; `EMPTY` for each that it leaves out."""
    if op.definition.effects.host or is_unplannable(op):
        return []
    return [name for _, names in sorted(op.outputs.items()) for name in names]


def check_finite(op: Operator, name: str, value: Any, xp: Any = np) -> None:
    """Raise EnforceNotMet naming operator and variable if `value`, a result of `op`, has NaN or infinities."""
    array = value.values if isinstance(value, SelectedRows) else value
    if getattr(getattr(array, "dtype", None), "kind", "") != "f" or bool(xp.isfinite(array).all()):
        return
    nans, infinite = int(xp.isnan(array).sum()), int(xp.isinf(array).sum())
    raise EnforceNotMet(
        f"[op={op.type}] [tensor={name}] find nan or inf: of {array.size} elements {nans} are NaN and "
        f"{infinite} infinite, which FLAGS_check_nan_inf does not allow{describe(op.line)}"
    )


def _check_all(xp: Any, X: Sequence[Any], op: Operator, names: Sequence[str]) -> tuple[()]:
    for name, value in zip(names, X, strict=True):
        check_finite(op, name, value)
    return ()


CHECK_FINITE = OpDef(
    "check_finite",
    inputs=("X*",),
    outputs=(),
    attrs={"op": None, "names": ()},
    infer=lambda op: None,
    kernel=_check_all,
    effects=Effects(host=True),
    doc="Raises EnforceNotMet if X, the variables `names` that `op` has written, have NaN or infinities.",
)


class FiniteChecks:
    """Makes the NaN checks that follow the operators of a block in a plan."""

    def __init__(self, block: Block) -> None:
        # By attributes, which the renamed copies in the plan share with the program's operators.
        ops = (op for each in block.program.blocks for op in each.ops)
        self._originals = {(id(op.attrs), op.type): op for op in ops}

    def checks_after(self, op: Operator, meta: TypeEnv) -> list[tuple[Operator, OpView]]:
        """The check of the results of `op`; none if `op` is not the program's or all results are finite constants."""
        original = self._originals.get((id(op.attrs), op.type))
        if original is None:
            return []
        checked: dict[str, str] = {}  # array -> variable
        for name, variable in zip(checked_results(op), checked_results(original), strict=True):
            if variable == EMPTY or meta.dtypes.get(name) not in FLOATS:
                continue
            array = parts(name)[1] if name in meta.sparse else name
            if not _is_finite(meta.constants.get(array)):
                checked[array] = variable
        if not checked:
            return []
        attrs = {"op": op, "names": list(checked.values())}
        check = in_place_of(op, CHECK_FINITE, {"X": list(checked)}, {}, attrs)
        return [(check, OpView(CHECK_FINITE, check.inputs, {}, attrs, meta))]


def _is_finite(constant: np.ndarray | None) -> bool:
    return constant is not None and bool(np.isfinite(constant).all())


def wholes(names: Iterable[str]) -> list[str]:
    """The variables of `names`, which may be arrays of SelectedRows."""
    return [name.removesuffix(ROWS).removesuffix(VALUES) for name in names]


def check_padding(ops: Sequence[Operator], fetches: Iterable[str]) -> None:
    """Raise Unsupported if the number of different rows, which depends on data, would show in a shape.

    Plans pad the results of such operators (`padding_rows`) with rows of zeros.
    """
    unpacking = [op for op in ops if op.definition.planning.padding_rows == "left"]
    read_by: defaultdict[str, list[Operator]] = defaultdict(list)
    for op in ops if unpacking else ():
        for name in op.input_arg_names:
            read_by[name].append(op)
    names = {name for op in unpacking for name in op.output_arg_names}  # padded
    while names:
        if names.intersection(fetches):
            raise Unsupported(f"the number of rows of the fetched variables {sorted(names)} depends on data")
        readers = [reader for name in names for reader in read_by[name]]
        kept = [reader for reader in readers if reader.definition.planning.padding_rows == "kept"]
        if not all(_sums(reader) for reader in readers if reader not in kept):
            raise Unsupported(f"an operator reads {sorted(names)}, whose number of rows depends on data")
        names = {name for reader in kept for name in reader.output_arg_names}


def _sums(op: Operator) -> bool:
    """True if rows of zeros do not change the results of an operator."""
    return op.definition.planning.padding_rows == "summed" and bool(op.attr("reduce_all"))


def densified(op: Operator, meta: TypeEnv) -> list[Operator]:
    """The operators to run for `op`: itself, or conversions of its SelectedRows to dense arrays, and it on those."""
    if meta.sparse.keys().isdisjoint(op.reads()):
        return [op]
    sparse = [name for name in op.input_arg_names if name in meta.sparse]
    view = OpView(op.definition, op.inputs, op.outputs, op.attrs, meta)
    if row_rule(op, view) is not None:
        if set(sparse).intersection(op.output_arg_names):
            raise Unsupported(f"operator {op.type} overwrites the SelectedRows that it reads")
        return [op]
    before = [densifying(op, name) for name in dict.fromkeys(sparse) if not meta.has(dense_name(name))]
    return [*before, renamed(op, {name: dense_name(name) for name in sparse}, outputs=False)]


def densifying(op: Operator, name: str) -> Operator:
    """An operator that makes the SelectedRows `name` dense, with the call site of `op`."""
    return in_place_of(op, "dense_from_selected_rows", {"X": [name]}, {"Out": [dense_name(name)]}, {})


def dense_name(name: str) -> str:
    """The name of the dense form of SelectedRows in a plan."""
    return name + "@DENSE"


def row_rule(op: Operator, view: OpView) -> RowRule | None:
    """The rule by which `op` works on SelectedRows; None if it works on arrays."""
    found = op.definition.dispatch.rows
    return found if found is not None and found.applies(view) else None


def check_written_once(op: Operator, meta: TypeEnv, writes: Counter[str]) -> None:
    """Raise Unsupported for persistable SelectedRows, or those that several operators write."""
    for name in op.writes():
        if name in meta.sparse and (writes[name] > 1 or meta.is_persistable(name)):
            raise Unsupported(f"the SelectedRows {name!r} are persistable or written several times")
