"""Different elements, shards of indices, and whether arrays are as good as equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType, to_numpy, to_vartype
from ..registry import Dispatch, OpDef, OpView, Sequences, register


def _different(xp: Any, X: Any, dtype: int) -> tuple[Any, Any, Any]:
    """The different elements in the order of their first places, which of them each element is, how often each is."""
    values, first, inverse, counts = xp.unique(
        X.reshape(-1), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = xp.argsort(first)
    rank = xp.argsort(order)
    kind = to_numpy(dtype)
    return values[order], rank[inverse.reshape(-1)].astype(kind), counts[order].astype(kind)


def _different_here(xp: Any, X: np.ndarray, dtype: int) -> tuple[Any, Any, Any]:
    """`_different` by a native kernel."""
    x = np.ascontiguousarray(X).reshape(-1)
    if x.dtype.kind == "f":
        if x.itemsize not in (4, 8) or np.isnan(x).any():  # each NaN is different from all others
            return _different(xp, X, dtype)
        keys = (x + x.dtype.type(0)).view(f"i{x.itemsize}")  # one zero only
    elif x.dtype.kind == "i" and x.itemsize in (4, 8):
        keys = x
    else:
        return _different(xp, X, dtype)
    from ..._ext import kernels  # brings SciPy

    first, index, counts, found = (np.empty(n, np.int64) for n in (x.size, x.size, x.size, 1))
    kernels.call(f"first_places.i{8 * x.itemsize}", [keys, first, index, counts, found], [x.size])
    n, kind = int(found[0]), to_numpy(dtype)
    return x[first[:n]], index.astype(kind, copy=False), counts[:n].astype(kind)


def _infer_unique(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) != 1:
        raise op.fail(f"X must be a vector, got shape {list(shape)}")
    kind = to_vartype(op.attr("dtype"))
    op.set("Out", (-1,), op.dtype("X"))
    op.set("Index", shape, kind)
    op.set("Count", (-1,), kind)


for _type, _outputs in (("unique", ("Out", "Index")), ("unique_with_counts", ("Out", "Index", "Count"))):

    def _unique(xp: Any, X: Any, dtype: int, *, _count: int = len(_outputs)) -> Any:
        return _different(xp, X, dtype)[:_count]

    def _unique_here(xp: Any, X: Any, dtype: int, *, _count: int = len(_outputs)) -> Any:
        return _different_here(xp, X, dtype)[:_count]

    register(
        OpDef(
            _type,
            inputs=("X",),
            outputs=_outputs,
            attrs={"dtype": int(VarType.INT32)},
            infer=_infer_unique,
            kernel=_unique,
            no_grad=_outputs,
            dispatch=Dispatch(numpy=_unique_here),
            sequences=Sequences(source=None),
            doc="The different elements of a vector by first appearance, which one each element is, their counts.",
        )
    )


def _infer_shard(op: OpView) -> None:
    shards, shard = op.attr("nshards"), op.attr("shard_id")
    if op.attr("index_num") < 1 or shards < 1 or not 0 <= shard < shards:
        raise op.fail(
            f"index_num and nshards must be positive and shard_id in [0, nshards), got {op.attr('index_num')}, "
            f"{shards} and {shard}"
        )
    op.set("Out", op.shape("X"), op.dtype("X"))


def _shard_index(xp: Any, X: Any, index_num: int, nshards: int, shard_id: int, ignore_value: int) -> Any:
    size = -(-index_num // nshards)
    return xp.where(X // size == shard_id, X % size, X.dtype.type(ignore_value))


register(
    OpDef(
        "shard_index",
        inputs=("X",),
        attrs={"index_num": 0, "nshards": 1, "shard_id": 0, "ignore_value": -1},
        infer=_infer_shard,
        kernel=_shard_index,
        no_grad=("Out",),
        doc="Indices counted from the start of shard shard_id; ignore_value for those of other shards.",
    )
)
register(
    OpDef(
        "allclose",
        inputs=("Input", "Other"),
        attrs={"rtol": 1e-5, "atol": 1e-8, "equal_nan": False},
        infer=lambda op: op.set("Out", (1,), VarType.BOOL),
        kernel=lambda xp, Input, Other, rtol, atol, equal_nan: (
            xp.isclose(Input, Other, rtol=rtol, atol=atol, equal_nan=equal_nan).all().reshape(1)
        ),
        no_grad=("Out",),
        sequences=Sequences(source=None),
        doc="Whether no element of Input is farther from that of Other than atol + rtol * |Other|; of shape [1].",
    )
)
