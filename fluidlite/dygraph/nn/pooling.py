"""`Pool2D`."""

from __future__ import annotations

from typing import Any

from ...layers.checks import numbers
from ...layers.nn.pooling import pooling_attrs
from ..layers import Layer, setting

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
        exclusive: averages ignore the padding.

    Raises:
        ValueError: for arguments that do not fit; names them.
    """

    _pool_type, _pool_size, _pool_stride = setting("pooling_type"), setting("ksize"), setting("strides")
    _pool_padding, _global_pooling = setting("paddings"), setting("global_pooling")
    _use_cudnn, _ceil_mode, _exclusive = setting("use_cudnn"), setting("ceil_mode"), setting("exclusive")
    _l_type = "pool2d"

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
        return self._helper.run(self._l_type, {"X": input}, attrs=self._attrs)

    def extra_repr(self) -> str:
        return f"{self._pool_type}, size={self._pool_size}, stride={self._pool_stride}"
