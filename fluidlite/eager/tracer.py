"""`Tracer`: runs operators by name in dygraph mode (`fluid.dygraph.Tracer`)."""

from __future__ import annotations

from typing import Any

from ..framework import mode
from .autograd import is_recording, set_recording
from .tensor import apply_into


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
