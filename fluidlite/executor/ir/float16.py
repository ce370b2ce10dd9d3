"""float16 on the CPU: stored as such, computed in float32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..._ext import kernels
from ...base.dtypes import VarType
from ...framework import Operator
from ...ops.math.cast import NEAREST
from ...ops.registry import GRAD, Call, OpView
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
    """True if native kernels take float16 inputs as they are; such kernels only move elements."""
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
