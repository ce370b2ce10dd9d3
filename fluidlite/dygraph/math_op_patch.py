"""Names of the module in which Fluid gives eager tensors their operators (`fluid.dygraph.math_op_patch`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import missing
from ..base.dtypes import VarType, to_numpy, to_vartype
from ..eager import Tensor, placing

__all__: list[str] = []

_supported_int_dtype_ = [VarType.UINT8, VarType.INT8, VarType.INT16, VarType.INT32, VarType.INT64]


def _varbase_creator(
    type: VarType = VarType.LOD_TENSOR,
    name: str | None = None,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    persistable: bool | None = None,
    **kwargs: Any,
) -> Tensor:
    """A tensor for `Tracer.trace_op` to put a result into; zeros of `shape`, no elements by default."""
    kind = to_numpy(VarType.FP32 if dtype is None else to_vartype(dtype))
    made = Tensor(placing.here(np.zeros((0,) if shape is None else tuple(shape), kind)), name)
    made.persistable = bool(persistable)
    made.stop_gradient = False
    return made


def monkey_patch_math_varbase() -> None:
    """Without effect: eager tensors are born with their operators."""


__getattr__ = missing.reporter(__name__)
