"""`Tracer`: runs operators by name in dygraph mode (`fluid.dygraph.Tracer`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.dtypes import VarType, to_numpy, to_vartype
from ..framework import mode
from . import placing
from .autograd import is_recording, set_recording
from .tensor import Tensor, apply_into


def _varbase_creator(
    type: VarType = VarType.LOD_TENSOR,
    name: str | None = None,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    persistable: bool | None = None,
    **kwargs: Any,
) -> Tensor:
    """A tensor for `Tracer.trace_op` to put a result into; zeros of `shape`, no elements by default.

    A dimension of -1 is none yet.
    """
    kind = to_numpy(VarType.FP32 if dtype is None else to_vartype(dtype))
    sizes = (0,) if shape is None else tuple(max(size, 0) for size in shape)
    made = Tensor(placing.here(np.zeros(sizes, kind)), name)
    made.persistable = bool(persistable)
    made.stop_gradient = False
    return made


class Tracer:
    """What `fluid.framework._dygraph_tracer()` gives in dygraph mode: the switches and operators of eager tensors."""

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
        """Training mode for functions that belong to no layer, and gradients are recorded."""
        self._switch(True)

    def eval_mode(self) -> None:
        """Evaluation mode for functions that belong to no layer, and no gradients are recorded."""
        self._switch(False)

    def _switch(self, training: bool) -> None:
        set_recording(training)
        mode.set_training(training)

    def variable(self, **described: Any) -> Tensor:
        """What `Block.create_var` makes in dygraph mode: a tensor for an operator to put its result into."""
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
        given = {slot: list(tensors) for slot, tensors in inputs.items() if tensors}
        apply_into(type, given, outputs, attrs)
        if stop_gradient:
            for tensors in outputs.values():
                for tensor in tensors:
                    tensor.stop_gradient = True
