"""Launchers of the second derivatives of convolutions and of their transposes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..device import CudaDevice
from ..launch import real
from .convolution import forward, gradient, transposed, transposed_gradient


def _second(
    device: CudaDevice,
    ahead: Callable[..., Any],
    back: Callable[..., Any],
    given: Sequence[Any],
    attrs: Mapping[str, Any],
    wanted: Collection[str] | None,
) -> Any:
    """The second derivatives of `ops/nn/conv_double_grad.py`, without terms that are zero or not wanted."""
    if not real(*given):
        return NotImplemented
    images, filters, dout, dd_images, dd_filters, dd_bias = given
    if dd_images is None and (dd_filters is None or dd_bias is not None):
        return NotImplemented
    xp = device.xp
    for_images = for_filters = for_dout = None
    if wanted is None or "DInput" in wanted:
        if dd_filters is None:
            for_images = xp.zeros_like(images)
        else:
            for_images = back(device, images, dd_filters, None, dout, wanted=("Input@GRAD",), **attrs)[0]
    if wanted is None or "DFilter" in wanted:
        if dd_images is None:
            for_filters = xp.zeros_like(filters)
        else:
            for_filters = back(device, dd_images, filters, None, dout, wanted=("Filter@GRAD",), **attrs)[1]
    if wanted is None or "DDOutput" in wanted:
        parts = []
        if dd_images is not None:
            parts.append(ahead(device, dd_images, filters, dd_bias, **attrs))
        if dd_filters is not None:
            parts.append(ahead(device, images, dd_filters, None, **attrs))
        for_dout = parts[0] if len(parts) == 1 else xp.add(*parts, out=parts[0])
    return for_images, for_filters, for_dout


def double_grad(
    device: CudaDevice,
    Input: Any,
    Filter: Any,
    DOutput: Any,
    DDInput: Any,
    DDFilter: Any,
    DDBias: Any,
    wanted: Collection[str] | None = None,
    **attrs: Any,
) -> Any:
    """conv2d_grad_grad and the like."""
    given = (Input, Filter, DOutput, DDInput, DDFilter, DDBias)
    return _second(device, forward, gradient, given, attrs, wanted)


def transposed_double_grad(
    device: CudaDevice,
    Input: Any,
    Filter: Any,
    DOutput: Any,
    DDInput: Any,
    DDFilter: Any,
    DDBias: Any,
    wanted: Collection[str] | None = None,
    **attrs: Any,
) -> Any:
    """conv2d_transpose_grad_grad and the like."""
    given = (Input, Filter, DOutput, DDInput, DDFilter, DDBias)
    return _second(device, transposed, transposed_gradient, given, attrs, wanted)
