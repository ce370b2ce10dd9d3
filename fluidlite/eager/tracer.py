"""`Tracer` runs operators by name in dygraph mode (`fluid.dygraph.Tracer`); `BackwardStrategy` has the options of
`backward`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.dtypes import VarType, to_numpy, to_vartype
from ..framework import mode
from . import placing
from .autograd import is_recording, set_recording
from .tensor import NoValue, Tensor, apply_into

__all__ = ["BackwardStrategy"]


def _varbase_creator(
    type: VarType = VarType.LOD_TENSOR,
    name: str | None = None,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    persistable: bool | None = None,
    **kwargs: Any,
) -> Tensor:
    """A tensor for a result of `Tracer.trace_op`: zeros of `shape`, empty by default; -1 counts as 0."""
    kind = to_numpy(VarType.FP32 if dtype is None else to_vartype(dtype))
    sizes = (0,) if shape is None else tuple(max(size, 0) for size in shape)
    tensor = Tensor(placing.to_default_device(np.zeros(sizes, kind)), name)
    tensor.persistable = bool(persistable)
    tensor.stop_gradient = False
    return tensor


_supported_int_dtype_ = [VarType.UINT8, VarType.INT8, VarType.INT16, VarType.INT32, VarType.INT64]


def monkey_patch_math_varbase() -> None:
    """Without effect: eager tensors are born with their operators (`fluid.dygraph.math_op_patch`)."""


class DeclaredTensor(Tensor):
    """A variable of `fluid.data` or `create_tensor` in dygraph mode: a shape and an element type, without a value."""

    def __init__(self, name: str, shape: Sequence[int], dtype: Any, stop_gradient: bool) -> None:
        self._declared = list(shape), to_vartype(dtype)
        super().__init__(NoValue(name), name, stop_gradient)

    @property
    def shape(self) -> list[int]:
        return self._declared[0] if isinstance(self.array, NoValue) else super().shape

    @property
    def dtype(self) -> VarType:
        return self._declared[1] if isinstance(self.array, NoValue) else super().dtype

    def __repr__(self) -> str:
        if isinstance(self.array, NoValue):
            return f"name {self.name}, shape: {self.shape}, not inited"
        return super().__repr__()

    __str__ = __repr__


class Tracer:
    """The switches and operators of eager tensors (`fluid.framework._dygraph_tracer()` in dygraph mode)."""

    _enable_program_desc_tracing = False

    @property
    def _train_mode(self) -> bool:
        """Whether gradients are recorded; can be assigned."""
        return is_recording()

    @_train_mode.setter
    def _train_mode(self, recording: bool) -> None:
        set_recording(bool(recording))

    @property
    def _expected_place(self) -> Any:
        """Where tensors without arguments are made; can be assigned."""
        return mode._current_expected_place()

    @_expected_place.setter
    def _expected_place(self, place: Any) -> None:
        mode.set_place(place)

    def train_mode(self) -> None:
        """Switch to training mode for functions outside of layers, and record gradients."""
        self._switch(True)

    def eval_mode(self) -> None:
        """Switch to evaluation mode for functions outside of layers, without recording gradients."""
        self._switch(False)

    def _switch(self, training: bool) -> None:
        set_recording(training)
        mode.set_training(training)

    def variable(self, **described: Any) -> Tensor:
        """A tensor for an operator's result, or for data, for `Block.create_var` in dygraph mode."""
        if described.get("is_data"):
            return DeclaredTensor(*(described[key] for key in ("name", "shape", "dtype", "stop_gradient")))
        return _varbase_creator(**described)

    def trace_op(
        self,
        type: str,
        inputs: dict[str, Any],
        outputs: dict[str, Any],
        attrs: dict[str, Any] | None,
        stop_gradient: bool = False,
    ) -> None:
        """Run operator `type` on tensors and put its results into the tensors of `outputs`, lists by slot."""
        present = {slot: list(tensors) for slot, tensors in inputs.items() if tensors}
        apply_into(type, present, outputs, attrs)
        if stop_gradient:
            for tensors in outputs.values():
                for tensor in tensors:
                    tensor.stop_gradient = True


class BackwardStrategy:
    """How `backward` sums gradients. `sort_sum_gradient` asks for a fixed order, which is always kept here.

    Follows `fluid.dygraph.BackwardStrategy`.
    """

    def __init__(self) -> None:
        self.sort_sum_gradient = False
