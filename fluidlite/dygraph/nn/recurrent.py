"""`GRUUnit`."""

from __future__ import annotations

from typing import Any

from ...base import callsite
from ...layers.recurrent.unit import create_gru_parameters, gru_attrs, gru_step
from ..layers import Layer

__all__ = ["GRUUnit"]


class GRUUnit(Layer):
    """One step of a gated recurrent unit (`fluid.dygraph.GRUUnit`).

    Args:
        size: three times the size of the state.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of `weight`, [size / 3, size], and `bias`, [1,
            size]; `bias_attr=False`: no bias.
        activation, gate_activation: one of 'identity', 'sigmoid', 'tanh', 'relu'.
        origin_mode: accepted, with a warning, and without effect, as in Fluid, whose models rely on it.
        dtype: 'float32' or 'float64'.

    Raises:
        ValueError: for another activation.
    """

    def __init__(
        self,
        size: int,
        param_attr: Any = None,
        bias_attr: Any = None,
        activation: str = "tanh",
        gate_activation: str = "sigmoid",
        origin_mode: bool = False,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        attrs = gru_attrs("GRUUnit", activation, gate_activation)
        self.activation, self.gate_activation = attrs["activation"], attrs["gate_activation"]
        if origin_mode:
            callsite.warn(
                "GRUUnit computes as with origin_mode=False, as Fluid 1.8 does: the update gate is the share of "
                "the candidate"
            )
        self._bias_attr = bias_attr
        self.weight, self.bias = create_gru_parameters(
            self.create_parameter, size, param_attr, bias_attr, dtype
        )

    def forward(self, input: Any, hidden: Any) -> tuple[Any, Any, Any]:
        """The state after the step, the old state after the reset gate, and the gates with the candidate.

        `input` is [N, size], already multiplied by the input's weights; `hidden` is the state, [N, size / 3].
        """
        attrs = {"activation": self.activation, "gate_activation": self.gate_activation}
        return gru_step(self._helper, input, hidden, (self.weight, self.bias), attrs)
