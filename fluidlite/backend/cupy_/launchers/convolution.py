"""Launchers of convolutions and of their transposes, with their gradients.

A convolution, its gradient for the images and that for the filters are all there is: transposes are the same three,
with the parts of images and results exchanged. Each comes from kernels of our own where every channel has its own
filters, else from cuDNN, and where that is missing or has no algorithm from products of matrices.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ....base.sizes.windows import Geometry, channels_last, forward_geometry, transposed_geometry
from .. import dnn, patches
from ..device import CudaDevice
from ..launch import dense, real
from . import depthwise

_EVERYTHING = ("Input@GRAD", "Filter@GRAD", "Bias@GRAD")


def _computed(
    device: CudaDevice, what: str, first: Any, second: Any, channels: int, g: Geometry, groups: int
) -> Any:
    """`what` ('correlate', 'spread', 'filter_gradient') of two arrays, by the fastest available implementation.

    `channels`: those of the image for each group.
    """
    if channels == 1 and groups > 1:
        return getattr(depthwise, what)(device, first, second, g, groups)
    if first.size and second.size:
        try:
            return getattr(dnn, what)(device, first, second, g, groups)
        except dnn.Unsupported:
            pass
    return getattr(patches, what)(device, first, second, g, groups)


def _first(device: CudaDevice, image: Any, last: bool) -> Any:
    """An image with the channels in front, contiguous."""
    return dense(device, device.xp.moveaxis(image, -1, 1) if last else image)


def _as_given(device: CudaDevice, image: Any, last: bool) -> Any:
    return device.xp.ascontiguousarray(device.xp.moveaxis(image, 1, -1)) if last else image


def _with_bias(device: CudaDevice, out: Any, bias: Any) -> Any:
    """Add the bias of each channel to `out`, in place."""
    if bias is not None:
        device.xp.add(out, bias.reshape(1, -1, *[1] * (out.ndim - 2)), out=out)
    return out


def _bias_gradient(bias: Any, dout: Any, wanted: Collection[str]) -> Any:
    if bias is None or _EVERYTHING[2] not in wanted:
        return None
    return dout.sum(axis=(0, *range(2, dout.ndim))).reshape(bias.shape)


def _geometry(x: Any, filters: Any, attrs: Mapping[str, Any]) -> Geometry:
    """The sizes of a convolution with these attributes, or of a transposed one: those have `output_size`."""
    given = (attrs["strides"], attrs["paddings"], attrs["dilations"], attrs["padding_algorithm"])
    sizes = (x.shape[2:], filters.shape[2:])
    if "output_size" in attrs:
        return transposed_geometry(*sizes, *given, attrs["output_size"])
    return forward_geometry(*sizes, *given)


def _results(device: CudaDevice, what: str, images: Any, filters: Any, bias: Any, attrs: Any) -> Any:
    if not real(images, filters, bias) or filters.shape[0] % attrs["groups"]:
        return NotImplemented
    last = channels_last(attrs["data_format"])
    x, filters = _first(device, images, last), dense(device, filters)
    out = _computed(device, what, x, filters, filters.shape[1], _geometry(x, filters, attrs), attrs["groups"])
    return _as_given(device, _with_bias(device, out, bias), last)


def _gradients(
    device: CudaDevice,
    what: str,
    images: Any,
    filters: Any,
    bias: Any,
    dout: Any,
    attrs: Any,
    wanted: Collection[str] | None,
) -> Any:
    """The gradients for images (by `what`), filters and bias; None for those that are not wanted."""
    if not real(images, filters, bias, dout) or filters.shape[0] % attrs["groups"]:
        return NotImplemented
    wanted = _EVERYTHING if wanted is None else wanted
    last, groups = channels_last(attrs["data_format"]), attrs["groups"]
    x, dout, filters = _first(device, images, last), _first(device, dout, last), dense(device, filters)
    g, channels = _geometry(x, filters, attrs), filters.shape[1]
    dx = dfilter = None
    if _EVERYTHING[0] in wanted:
        dx = _as_given(device, _computed(device, what, dout, filters, channels, g, groups), last)
    if _EVERYTHING[1] in wanted:
        image, out = (x, dout) if what == "spread" else (dout, x)
        dfilter = _computed(device, "filter_gradient", image, out, channels, g, groups)
    return dx, dfilter, _bias_gradient(bias, dout, wanted)


def forward(device: CudaDevice, Input: Any, Filter: Any, Bias: Any, **attrs: Any) -> Any:
    """conv2d, depthwise_conv2d, conv3d."""
    return _results(device, "correlate", Input, Filter, Bias, attrs)


def gradient(
    device: CudaDevice,
    Input: Any,
    Filter: Any,
    Bias: Any,
    Output_grad: Any,
    wanted: Collection[str] | None = None,
    **attrs: Any,
) -> Any:
    """The gradients of `forward`."""
    return _gradients(device, "spread", Input, Filter, Bias, Output_grad, attrs, wanted)


def transposed(device: CudaDevice, Input: Any, Filter: Any, Bias: Any, **attrs: Any) -> Any:
    """conv2d_transpose, depthwise_conv2d_transpose, conv3d_transpose."""
    return _results(device, "spread", Input, Filter, Bias, attrs)


def transposed_gradient(
    device: CudaDevice,
    Input: Any,
    Filter: Any,
    Bias: Any,
    Output_grad: Any,
    wanted: Collection[str] | None = None,
    **attrs: Any,
) -> Any:
    """The gradients of `transposed`."""
    return _gradients(device, "correlate", Input, Filter, Bias, Output_grad, attrs, wanted)
