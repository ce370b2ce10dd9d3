"""`GRUUnit`, and `SequenceConv` and `RowConv`, which work in programs only, as in Fluid."""

from __future__ import annotations

from typing import Any

from ....base import callsite
from ....framework import in_dygraph_mode
from ...layers.recurrent.sequences import create_gru_parameters, gru_attrs, gru_step
from ..layers import Layer

__all__ = ["GRUUnit", "RowConv", "SequenceConv"]


def _programs_only(name: str) -> None:
    if in_dygraph_mode():
        raise AssertionError(f"{name} is not supported by dynamic graph mode yet!")


class SequenceConv(Layer):
    """A convolution along sequences (`fluid.dygraph.nn.SequenceConv`); see `fluid.layers.sequence_conv`.

    Args:
        name_scope: the prefix of parameters' names.
        num_filters: how wide the result is.
        filter_size: over how many rows.
        filter_stride: must be 1.
        padding: accepted; rows beyond the ends of a sequence are zeros.
        bias_attr, param_attr: the attributes of `[num_filters]` and `[filter_size * width, num_filters]`.
        act: an activation.

    Raises:
        AssertionError: in dygraph mode, and for another stride.
    """

    def __init__(
        self,
        name_scope: str,
        num_filters: int,
        filter_size: int = 3,
        filter_stride: int = 1,
        padding: Any = None,
        bias_attr: Any = None,
        param_attr: Any = None,
        act: str | None = None,
    ) -> None:
        _programs_only("SequenceConv")
        super().__init__(name_scope)
        if filter_stride != 1:
            raise AssertionError(f"filter_stride must be 1, got {filter_stride}")
        self._num_filters, self._filter_size, self._act = num_filters, filter_size, act
        self._bias_attr, self._param_attr = bias_attr, param_attr
        self.weight: Any = None
        self.bias: Any = None

    def forward(self, input: Any) -> Any:
        """Rows [rows, num_filters] with the sequences of `input`, [rows, width]."""
        if self.weight is None:
            shape = [self._filter_size * input.shape[1], self._num_filters]
            self.weight = self.create_parameter(shape, self._param_attr, input.dtype)
            self.bias = self.create_parameter([self._num_filters], self._bias_attr, input.dtype, is_bias=True)
        attrs = {"contextStart": -(self._filter_size // 2), "contextLength": self._filter_size}
        inputs = {"X": input, "Filter": self.weight}
        out = self._helper.run("sequence_conv", inputs, attrs={"contextStride": 1, **attrs})
        return self._helper.append_activation(self._helper.add_bias(out, self.bias, 1), self._act)


class RowConv(Layer):
    """Lookahead convolution: each row plus the weighted rows after it, column by column (`fluid.dygraph.nn.RowConv`).

    `name_scope`: the prefix of parameters' names; `future_context_size`: the number of later rows used;
    `param_attr`: the attributes of `[future_context_size + 1, width]`; `act`: an activation.
    Raises AssertionError in dygraph mode.
    """

    def __init__(
        self, name_scope: str, future_context_size: int, param_attr: Any = None, act: str | None = None
    ) -> None:
        _programs_only("RowConv")
        super().__init__(name_scope)
        self._future_context_size, self._param_attr, self._act = future_context_size, param_attr, act
        self.weight: Any = None

    def forward(self, input: Any) -> Any:
        """As `input`, [rows, width] in sequences."""
        if self.weight is None:
            shape = [self._future_context_size + 1, input.shape[1]]
            self.weight = self.create_parameter(shape, self._param_attr, input.dtype)
        out = self._helper.run("row_conv", {"X": input, "Filter": self.weight})
        return self._helper.append_activation(out, self._act)


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
