"""`Pool2D`."""

from __future__ import annotations

from typing import Any

from ...layers.checks import numbers
from ...layers.nn.pooling import pooling_attrs
from ..layers import Layer

__all__ = ["Pool2D"]


class Pool2D(Layer):
    """The maximum or the mean of each window of an image (`fluid.dygraph.Pool2D`).

    Args:
        pool_size: the window: an integer or [height, width].
        pool_type: 'max' or 'avg'.
        pool_stride, pool_padding: an integer or [height, width].
        global_pooling: the window is the whole image; size and padding are ignored.
        use_cudnn: accepted and without effect.
        ceil_mode: keep a last window that reaches beyond the image.
        exclusive: an average counts only what lies inside of the image.

    Raises:
        ValueError: for arguments that do not fit; names them.
    """

    def __init__(
        self,
        pool_size: Any = -1,
        pool_type: str = "max",
        pool_stride: Any = 1,
        pool_padding: Any = 0,
        global_pooling: bool = False,
        use_cudnn: bool = True,
        ceil_mode: bool = False,
        exclusive: bool = True,
    ) -> None:
        pool_padding, global_pooling = (
            numbers(pool_padding, 2, "pool_padding", "Pool2D"),
            bool(global_pooling),
        )
        attrs = pooling_attrs("Pool2D", 2, locals())
        super().__init__()
        self._attrs = attrs

    def forward(self, input: Any) -> Any:
        """`input` is [N, C, H, W]; the result has the same N and C."""
        return self._helper.run("pool2d", {"X": input}, attrs=self._attrs)

    def extra_repr(self) -> str:
        return f"{self._attrs['pooling_type']}, size={self._attrs['ksize']}, stride={self._attrs['strides']}"
