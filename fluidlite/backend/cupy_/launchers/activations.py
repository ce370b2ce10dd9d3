"""Functions of one array and their gradients: one launch each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import launch

if TYPE_CHECKING:
    from ..device import CudaDevice


_RARE = frozenset(
    "acos asin atan ceil cos cosh erf expm1 floor log1p log2 log10 pow reciprocal round rsqrt sign sin sinh tan".split()
)
"""The functions of `functions.cu`, which is compiled only for programs that have one of them; others: `unary.cu`."""


def _file(name: str) -> str:
    return "functions" if name in _RARE else "unary"


def _three(numbers: tuple[float, ...]) -> tuple[float, ...]:
    """All kernels here take three numbers."""
    return (*numbers, *(0.0,) * (3 - len(numbers)))


def value(device: CudaDevice, name: str, x: Any, *numbers: float) -> Any:
    """Function `name` applied to `x`, which must be float32 or float64."""
    out = device.xp.empty(x.shape, x.dtype)
    args = (launch.dense(device, x), out, x.size, *_three(numbers))
    launch.each(_file(name), f"{name}_value", x.dtype, x.size, *args)
    return out


def slope(device: CudaDevice, name: str, kept: Any, g: Any, *numbers: float) -> Any:
    """The gradient of function `name` from that of its result; `kept`: its argument or result, as the kernel has it."""
    dx = device.xp.empty(g.shape, g.dtype)
    args = (launch.dense(device, kept), launch.dense(device, g), dx, g.size, *_three(numbers))
    launch.each(_file(name), f"{name}_grad", g.dtype, g.size, *args)
    return dx


def forward(name: str) -> Callable[..., Any]:
    """The launcher of the operator whose kernel is `name`."""

    def launcher(device: CudaDevice, X: Any, **attrs: Any) -> Any:
        return value(device, name, X, *map(float, attrs.values())) if launch.real(X) else NotImplemented

    return launcher


def grad(name: str) -> Callable[..., Any]:
    """The launcher of its gradient operator, which keeps X, Out or neither."""

    def launcher(device: CudaDevice, Out_grad: Any, X: Any = None, Out: Any = None, **attrs: Any) -> Any:
        kept = Out if X is None else X
        if not launch.real(Out_grad, kept):
            return NotImplemented
        return slope(device, name, kept, Out_grad, *map(float, attrs.values()))

    return launcher


def clip(device: CudaDevice, X: Any, Min: Any, Max: Any, min: float, max: float) -> Any:
    """Launcher of `clip`."""
    if Min is not None or Max is not None or not launch.real(X):
        return NotImplemented
    return value(device, "brelu", X, float(min), float(max))


def clip_grad(device: CudaDevice, X: Any, Min: Any, Max: Any, Out_grad: Any, min: float, max: float) -> Any:
    """Launcher of `clip_grad`."""
    if Min is not None or Max is not None or not launch.real(X, Out_grad):
        return NotImplemented
    return slope(device, "brelu", X, Out_grad, float(min), float(max))


def power(device: CudaDevice, X: Any, FactorTensor: Any, factor: float) -> Any:
    """Launcher of `pow`."""
    if FactorTensor is not None or not launch.real(X):
        return NotImplemented
    return value(device, "pow", X, float(factor))


def power_grad(device: CudaDevice, X: Any, FactorTensor: Any, Out_grad: Any, factor: float) -> Any:
    """Launcher of `pow_grad`."""
    if FactorTensor is not None or not launch.real(X, Out_grad):
        return NotImplemented
    return slope(device, "pow", X, Out_grad, float(factor))
