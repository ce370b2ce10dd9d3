"""Arithmetic of two arrays with its gradients, sums of several, and scaling."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from ....base.sizes.shapes import middle
from .. import launch
from .reductions import summed_to_middle

if TYPE_CHECKING:
    from ..device import CudaDevice

_layout = functools.lru_cache(maxsize=4096)(middle)

_MANY = 8
"""The number of arrays that one launch of the sum kernel takes."""


def forward(name: str) -> Callable[..., Any]:
    """The launcher of `elementwise_<name>`; see `broadcast.middle` for the shapes it takes."""

    def launcher(device: CudaDevice, X: Any, Y: Any, axis: int) -> Any:
        layout = _layout(X.shape, Y.shape, axis)
        if layout is None or not launch.real(X, Y):
            return NotImplemented
        out = device.xp.empty(X.shape, X.dtype)
        args = (launch.dense(device, X), launch.dense(device, Y), out, X.size, *layout[1:])
        launch.each("binary", f"{name}_value", X.dtype, X.size, *args)
        return out

    return launcher


def grad(name: str) -> Callable[..., Any]:
    """The launcher of `elementwise_<name>_grad`."""

    def launcher(
        device: CudaDevice, X: Any, Y: Any, Out_grad: Any, axis: int, wanted: Collection[str] | None = None
    ) -> Any:
        layout = _layout(X.shape, Y.shape, axis)
        if layout is None or not launch.real(X, Y, Out_grad):
            return NotImplemented
        g = launch.dense(device, Out_grad)
        for_x = wanted is None or "X@GRAD" in wanted
        for_y = wanted is None or "Y@GRAD" in wanted
        if name == "add":
            return (g if for_x else None), (_summed(device, g, Y.shape, layout) if for_y else None)
        if name == "sub" and X.size != Y.size:
            return (g if for_x else None), (_summed(device, g, Y.shape, layout, -1.0) if for_y else None)
        dx = device.xp.empty(X.shape, X.dtype) if for_x else None
        dy = device.xp.empty(X.shape, X.dtype) if for_y else None
        args = (launch.dense(device, X), launch.dense(device, Y), g, dx, dy, X.size, *layout[1:])
        launch.each("binary", f"{name}_grad", X.dtype, X.size, *args)
        return dx, None if dy is None else _summed(device, dy, Y.shape, layout)

    return launcher


def _summed(
    device: CudaDevice, g: Any, shape: tuple[int, ...], layout: tuple[int, int, int], scale: float = 1.0
) -> Any:
    """The gradient for Y, of `shape`: the sum over the positions that Y was broadcast to."""
    if layout[1] == g.size:
        return g.reshape(shape)
    return summed_to_middle(device, g, layout, scale).reshape(shape)


def add_many(device: CudaDevice, X: list[Any]) -> Any:
    """Launcher of `sum`."""
    if not launch.real(*X):
        return NotImplemented
    out = device.xp.empty(X[0].shape, X[0].dtype)
    rest = [launch.dense(device, x) for x in X]
    while rest:
        now, rest = rest[:_MANY], rest[_MANY:]
        given = now + [None] * (_MANY - len(now))
        launch.each("binary", "add_many", out.dtype, out.size, *given, out, out.size)
        if rest:
            rest.insert(0, out)
    return out


def scale(
    device: CudaDevice, X: Any, ScaleTensor: Any, scale: float, bias: float, bias_after_scale: bool
) -> Any:
    """Launcher of `scale`."""
    if not launch.real(X, ScaleTensor):
        return NotImplemented
    out = device.xp.empty(X.shape, X.dtype)
    numbers = (X.size, float(scale), float(bias), bias_after_scale)
    launch.each("binary", "scale", X.dtype, X.size, launch.dense(device, X), ScaleTensor, out, *numbers)
    return out
