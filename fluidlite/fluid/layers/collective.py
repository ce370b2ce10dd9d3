"""`fluid.layers.collective`: layers by which the processes of a run exchange tensors; in one process they copy."""

from __future__ import annotations

from typing import Any

from ...distributed.communicator import REDUCTIONS
from ...framework import Variable, default_main_program
from ..layer_helper import LayerHelper

__all__: list[str] = []


def _new_like(x: Any, suffix: str, stop_gradient: bool = False) -> Any:
    """A new variable like `x`, named after it."""
    block = default_main_program().current_block()
    return block.create_var(
        name=block._new_name(f"{x.name}.{suffix}"),
        shape=x.shape,
        dtype=x.dtype,
        type=x.type,
        persistable=x.persistable if suffix != "tmp" else False,
        stop_gradient=stop_gradient,
    )


def _append(op_type: str, x: Any, out: Any, attrs: dict[str, Any]) -> Any:
    LayerHelper(op_type).append_op(type=op_type, inputs={"X": [x]}, outputs={"Out": [out]}, attrs=attrs)
    return out


def _check_reduction(reduce_type: str) -> None:
    if reduce_type not in REDUCTIONS:
        raise TypeError(f"reduce type can only be {', '.join(REDUCTIONS)}, got {reduce_type!r}")


def _allreduce(x: Any, out: Any = None, reduce_type: str = "sum", sync_mode: bool = False) -> Any:
    """The sum, prod, max or min of `x` over all processes, without gradient (operator allreduce).

    `out`: where to put it, by default a new variable of the shape of `x`. Raises TypeError for other reductions.
    """
    _check_reduction(reduce_type)
    if out is None:
        out = _new_like(x, "tmp", stop_gradient=True)
    return _append(
        "allreduce", x, out, {"reduce_type": REDUCTIONS.index(reduce_type), "sync_mode": sync_mode}
    )


def _broadcast(x: Any, root: int, sync_mode: bool = False) -> Any:
    """`x`, overwritten in all processes by what process `root` has (operator broadcast)."""
    return _append("broadcast", x, x, {"sync_mode": sync_mode, "root": root})


def _c_allreduce(
    x: Any, out: Any = None, reduce_type: str = "sum", ring_id: int = 0, use_calc_stream: bool = False
) -> Any:
    """The sum, prod, max or min of `x` over all processes (operators c_allreduce_*).

    `out`: where to put it, by default a new variable of the shape of `x`. The gradient of a sum is the sum of the
    gradients; the others have none. Raises TypeError for other reductions.
    """
    _check_reduction(reduce_type)
    op_type = f"c_allreduce_{reduce_type}"
    if out is None:
        out = _new_like(x, op_type)
    return _append(op_type, x, out, {"ring_id": ring_id, "use_calc_stream": use_calc_stream})


def _c_broadcast(x: Any, root: int = 0, ring_id: int = 0, use_calc_stream: bool = False) -> Any:
    """`x`, overwritten in all processes by what process `root` has (operator c_broadcast)."""
    return _append(
        "c_broadcast", x, x, {"root": root, "ring_id": ring_id, "use_calc_stream": use_calc_stream}
    )


def _c_allgather(x: Any, nranks: int, ring_id: int = 0, use_calc_stream: bool = False) -> Any:
    """The rows of all `nranks` processes concatenated (operator c_allgather)."""
    out = _new_like(x, "c_allgather")
    attrs = {"nranks": nranks, "ring_id": ring_id, "use_calc_stream": use_calc_stream}
    return _append("c_allgather", x, out, attrs)


def _c_reducescatter(x: Any, nranks: int, ring_id: int = 0, use_calc_stream: bool = False) -> Any:
    """This process' share of the rows of the sum over `nranks` processes (operator c_reducescatter).

    Raises TypeError if `x` is no Variable, ValueError if its rows are no multiple of `nranks`.
    """
    if not isinstance(x, Variable):
        raise TypeError(f"x must be a Variable, got {type(x).__name__}")
    if x.shape[0] > 0 and x.shape[0] % nranks:
        raise ValueError(f"x.shape[0] ({x.shape[0]}) cannot be evenly divided by nranks ({nranks})")
    out = _new_like(x, "c_reducescatter")
    attrs = {"nranks": nranks, "ring_id": ring_id, "use_calc_stream": use_calc_stream}
    return _append("c_reducescatter", x, out, attrs)


def _c_sync_calc_stream(x: Any) -> Any:
    """`x`, once the stream that computes it is done (operator c_sync_calc_stream)."""
    return _append("c_sync_calc_stream", x, x, {})


def _c_sync_comm_stream(x: Any, ring_id: int) -> Any:
    """`x`, once the communication stream is done (operator c_sync_comm_stream)."""
    return _append("c_sync_comm_stream", x, x, {"ring_id": ring_id})
