"""float16 on the CPU: stored as such, computed in float32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..._ext import kernels
from ...base.dtypes import VarType
from ...framework import Operator
from ...ops.math.cast import NEAREST
from ...ops.registry import GRAD, Call, OpView
from .inference import in_place_of, infer, renamed, runs_alone
from .type_env import TypeEnv


def widened(op: Operator, meta: TypeEnv, fed: Sequence[str]) -> Iterator[Operator]:
    """What to run for `op`: itself, or casts to float32, it on those, and casts of its results back to float16.

    The latter if it gets float16 and has a native kernel for float32 only. Each operator has to be inferred before the
    next one is asked for.
    """
    halves = [name for name in dict.fromkeys(op.reads()) if _is_half(name, op, meta)]
    if not halves or not _has_kernels(op) or _computes_in_half(infer(op, meta, fed)):
        yield op
        return
    made = [name for name in op.writes() if meta.dtypes.get(name) == VarType.FP16]
    if any(meta.is_persistable(name) for name in (*halves, *made)):
        yield op
        return
    for name in halves:
        if not meta.has(_wide(name)):
            yield _cast(op, name, _wide(name), VarType.FP16, VarType.FP32)
            _same_sequences(meta, name, _wide(name))
    results = {name: _RESULT + name for name in made}
    for name in made:
        _know_base(meta, name)
    wide = renamed(op, {name: _wide(name) for name in halves}, outputs=False)
    yield renamed(wide, results, inputs=False)
    for name, result in results.items():
        yield _cast(op, result, name, meta.dtypes[result], VarType.FP16)
        _same_sequences(meta, result, name)


_RESULT = "FLOAT@RESULT@"


def _know_base(meta: TypeEnv, name: str) -> None:
    """Let shapes of gradients be found under the names of results: what `name` is the gradient of has that shape."""
    base, gradient, _ = name.partition(GRAD)
    if gradient and base in meta.shapes:
        meta.shapes.setdefault(_RESULT + base, meta.shapes[base])
        meta.dtypes.setdefault(_RESULT + base, VarType.FP32)


def _wide(name: str) -> str:
    """What a variable is called in float32."""
    return name + "@FLOAT"


def _is_half(name: str, op: Operator, meta: TypeEnv) -> bool:
    return meta.has(name, op) and meta.dtypes[name] == VarType.FP16


def _has_kernels(op: Operator) -> bool:
    definition = op.definition
    return (
        definition.native is not None
        and definition.planning.view is None
        and op.type != "cast"
        and not runs_alone(op)
    )


def _computes_in_half(view: OpView) -> bool:
    """Whether there is a native kernel for what it gets; such kernels move elements without a look at them."""
    assert view.definition.native is not None
    calls = view.definition.native(view)
    listed = [calls] if isinstance(calls, Call) else calls
    return listed is not None and all(kernels.available(call.kernel) for call in listed)


def _cast(op: Operator, source: str, target: str, before: VarType, after: VarType) -> Operator:
    """An operator that casts, in the place of `op`."""
    attrs = {"in_dtype": int(before), "out_dtype": int(after), NEAREST: after == VarType.FP16}
    return in_place_of(op, "cast", {"X": [source]}, {"Out": [target]}, attrs)


def _same_sequences(meta: TypeEnv, source: str, target: str) -> None:
    if source in meta.lods:
        meta.lods[target] = meta.lods[source]
