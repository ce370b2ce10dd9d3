"""Max pooling that also returns the index of each maximum."""

from __future__ import annotations

from typing import Any

from ..grad_pairs import double_grad, register_double_grad, register_pair
from ..registry import Sequences
from .pool import Pooling, highest, infer_pool, winners


def _pool_with_index(xp: Any, X: Any, **attrs: Any) -> Any:
    pooling = Pooling(xp, X, attrs)
    return pooling.placed(highest(pooling)), pooling.placed(winners(pooling).astype("int32"))


def _pool_with_index_grad(xp: Any, X: Any, Mask: Any, Out_grad: Any, **attrs: Any) -> Any:
    pooling = Pooling(xp, X, attrs)
    return pooling.scattered(pooling.rows(Mask).astype("int64"), pooling.rows(Out_grad))


def _pool_with_index_double_grad(xp: Any, X: Any, Mask: Any, DDX: Any, **attrs: Any) -> Any:
    pooling = Pooling(xp, X, attrs)
    return pooling.placed(pooling.take_flat(DDX, pooling.rows(Mask).astype("int64")))


def _register_indexed(op_type: str, dims: int) -> None:
    attrs = {
        "ksize": [1] * dims,
        "global_pooling": False,
        "strides": [1] * dims,
        "paddings": [0] * dims,
        "adaptive": False,
        "pooling_type": "max",
    }
    register_pair(
        op_type,
        ("X",),
        _pool_with_index,
        _pool_with_index_grad,
        infer_pool,
        "Max pooling that also returns the index of each maximum in the flattened image (Mask, int32).",
        outputs=("Out", "Mask"),
        attrs=attrs,
        keep_out=("Mask",),
        sequences=Sequences(source=None),
        no_grad=("Mask",),
        grad_grad=double_grad("Out", ()),
        cuda=("pooling.pool_with_index", "pooling.pool_with_index_gradient"),
    )
    register_double_grad(op_type, ("X", "Mask"), "Out", (), _pool_with_index_double_grad, attrs, ("X",))


_register_indexed("max_pool2d_with_index", 2)
_register_indexed("max_pool3d_with_index", 3)
