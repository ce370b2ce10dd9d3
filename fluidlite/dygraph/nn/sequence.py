"""`SequenceConv` and `RowConv`, which work in programs only, as in Fluid."""

from __future__ import annotations

from typing import Any

from ...framework import in_dygraph_mode
from ..layers import Layer

__all__ = ["RowConv", "SequenceConv"]


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
