"""Sums, means, products, largest and smallest elements over neighbouring dimensions, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ....base.sizes.shapes import collapse, reduced_axes
from .. import launch

if TYPE_CHECKING:
    from ..device import CudaDevice

_FEW = 512
"""Fewer rows or tiles than this do not fill a GPU, so long ones are split."""

_LONG, _HIGH = 4096, 512
"""The least elements of a row, and rows of a tile of 32 columns, for a block of their own."""

_WARP_ROW = 1024
"""Rows up to this length are reduced by a warp, longer ones by a block."""


def team(count: int, n: int) -> tuple[str, int, int]:
    """The launch of a kernel over `count` rows of `n` elements: the suffix of its name, blocks, threads."""
    if n <= _WARP_ROW:
        return "_warp", launch.blocks_for(count, 4), 128
    return "_block", launch.blocks_for(count, 1), launch.THREADS


def reduced(device: CudaDevice, x: Any, how: str, layout: tuple[int, int, int], scale: float = 1.0) -> Any:
    """`scale` times the `how` (sum, prod, max or min) of `x`, seen as (pre, n, post), over n: [pre, post].

    `x` must be dense and float32 or float64; the sum of nothing is 0.
    """
    pre, n, post = layout
    if post == 1:
        splits = parts(pre, n, _LONG)
        out = device.xp.empty((pre, splits), x.dtype)
        if pre:
            name, blocks, threads = team(pre * splits, -(-n // splits))
            factor = 1.0 if splits > 1 else scale
            launch.grid(
                "reduce", f"{how}_rows{name}", x.dtype, blocks, threads, x, out, pre, n, splits, float(factor)
            )
    else:
        splits = parts(pre * -(-post // 32), n)
        out = device.xp.empty((pre, splits, post), x.dtype)
        if pre and post:
            blocks = launch.blocks_for(pre * splits * -(-post // 32), 1)
            factor = 1.0 if splits > 1 else scale
            args = (x, out, pre, n, post, splits, float(factor))
            launch.grid("reduce", f"{how}_columns", x.dtype, blocks, launch.THREADS, *args)
    if splits > 1:
        return reduced(device, out, how, (pre, splits, post), scale)
    return out.reshape(pre, post)


def parts(units: int, n: int, worth: int = _HIGH) -> int:
    """How many parts to cut each of `units` tiles of `n` rows (or rows of `n` elements) into; `worth` of these are
    worth a block."""
    if units >= _FEW or n < 2 * worth:
        return 1
    return min(-(-n // worth), max(_FEW // max(units, 1), 1))


def summed_to_middle(device: CudaDevice, x: Any, layout: tuple[int, int, int], scale: float = 1.0) -> Any:
    """`scale` times the sum of `x`, seen as (pre, n, post), over pre and post: n elements."""
    pre, n, post = layout
    if post > 1:
        x, scale = reduced(device, x, "sum", (pre * n, post, 1), scale), 1.0 if pre > 1 else scale
        if pre == 1:
            return x.reshape(n)
    return reduced(device, x, "sum", (1, pre, n), scale).reshape(n)


def spread(device: CudaDevice, g: Any, like: Any, layout: tuple[int, int, int], scale: float = 1.0) -> Any:
    """`scale` times `g` [pre, post] repeated along n, in the shape of `like`, which is seen as (pre, n, post)."""
    dx = device.xp.empty(like.shape, like.dtype)
    pre, n, post = layout
    launch.each(
        "reduce", "spread", dx.dtype, dx.size, launch.dense(device, g), dx, dx.size, n, post, float(scale)
    )
    return dx


def mean(device: CudaDevice, X: Any) -> Any:
    """Launcher of `mean`."""
    if not launch.real(X) or not X.size:
        return NotImplemented
    return reduced(device, launch.dense(device, X), "sum", (1, X.size, 1), 1.0 / X.size).reshape(1)


def mean_grad(device: CudaDevice, X: Any, Out_grad: Any) -> Any:
    """Launcher of `mean_grad`."""
    if not launch.real(X, Out_grad) or not X.size:
        return NotImplemented
    return spread(device, Out_grad, X, (1, X.size, 1), 1.0 / X.size)


def _layout(X: Any, dim: Any, reduce_all: bool) -> tuple[tuple[int, int, int] | None, tuple[int, ...]]:
    """`X` as (pre, n, post) around the reduced axes, if kernels can take it; and its shape with these as ones."""
    axes = reduced_axes(X.ndim, dim, reduce_all)
    layout = collapse(X.shape, axes)
    kept = tuple(1 if axis in axes else n for axis, n in enumerate(X.shape))
    return (None if layout is None or 0 in layout else layout), kept


def forward(how: str) -> Callable[..., Any]:
    """The launcher of `reduce_<how>`."""

    def launcher(device: CudaDevice, X: Any, dim: Any, keep_dim: bool, reduce_all: bool) -> Any:
        layout, kept = _layout(X, dim, reduce_all)
        if layout is None or not launch.real(X):
            return NotImplemented
        scale = 1.0 / layout[1] if how == "mean" else 1.0
        out = reduced(device, launch.dense(device, X), "sum" if how == "mean" else how, layout, scale)
        if keep_dim:
            return out.reshape(kept)
        axes = reduced_axes(X.ndim, dim, reduce_all)
        return out.reshape(tuple(n for axis, n in enumerate(X.shape) if axis not in axes) or (1,))

    return launcher


def grad(how: str) -> Callable[..., Any]:
    """The launcher of `reduce_<how>_grad`."""

    def spreading(device: CudaDevice, X: Any, Out_grad: Any, dim: Any, reduce_all: bool) -> Any:
        layout, _ = _layout(X, dim, reduce_all)
        if layout is None or not launch.real(X, Out_grad):
            return NotImplemented
        return spread(device, Out_grad, X, layout, 1.0 / layout[1] if how == "mean" else 1.0)

    def choosing(device: CudaDevice, X: Any, Out: Any, Out_grad: Any, dim: Any, reduce_all: bool) -> Any:
        layout, _ = _layout(X, dim, reduce_all)
        if layout is None or not launch.real(X, Out, Out_grad):
            return NotImplemented
        dx = device.xp.empty(X.shape, X.dtype)
        x, out, g = (launch.dense(device, array) for array in (X, Out, Out_grad))
        launch.each("reduce", "spread_to_equal", X.dtype, X.size, x, out, g, dx, X.size, *layout[1:])
        return dx

    return choosing if how in ("max", "min") else spreading
