"""`PRelu`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...initializer import ConstantInitializer
from ..layers import Layer

__all__ = ["PRelu"]


class PRelu(Layer):
    """relu with a trainable slope below zero (`fluid.dygraph.PRelu`).

    Args:
        mode: 'all': one slope; 'channel': one for each channel; 'element': one for each element of a sample.
        channel: the number of channels, for 'channel'.
        input_shape: the shape of the input, for 'element'; its first size, the batch, does not matter.
        param_attr: a ParamAttr, a name or an initializer of the slopes, `weight`; they start as ones.
        dtype: 'float32' or 'float64'.

    Raises:
        ValueError: another mode. AssertionError, as in Fluid: `channel` or `input_shape` is missing.
    """

    def __init__(
        self,
        mode: str,
        channel: int | None = None,
        input_shape: Sequence[int] | None = None,
        param_attr: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__("prelu", dtype)
        shape = [1]
        if mode == "channel":
            if not isinstance(channel, int):
                raise AssertionError(f"channel argument is required when mode is 'channel', got {channel!r}")
            shape = [1, channel, 1, 1]
        elif mode == "element":
            if not isinstance(input_shape, (list, tuple)):
                raise AssertionError(
                    f"input_shape argument is required when mode is 'element', got {input_shape!r}"
                )
            shape = [1, *input_shape[1:]]
        elif mode != "all":
            raise ValueError(f"mode should be one of all, channel, element, got {mode!r}")
        self._mode, self._param_attr, self._alpha_shape = mode, param_attr, shape
        self.weight = self.create_parameter(
            shape, param_attr, dtype, default_initializer=ConstantInitializer(1.0)
        )

    def forward(self, input: Any) -> Any:
        """`input` is [N, C, H, W] for 'channel'; the result has its shape."""
        return self._helper.run("prelu", {"X": input, "Alpha": self.weight}, attrs={"mode": self._mode})

    def extra_repr(self) -> str:
        return f"mode={self._mode}"
