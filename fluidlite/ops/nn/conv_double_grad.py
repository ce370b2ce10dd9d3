"""Second derivatives of convolutions and of their transposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..grad_pairs import Kernel, or_zeros, register_double_grad
from .conv import convolution_attrs, convolve, convolve_grad, convolve_transposed, convolve_transposed_grad


def _second(forward: Kernel, back: Kernel, given: Sequence[Any], how: Sequence[Any]) -> tuple[Any, Any, Any]:
    """The gradients for images, filters and the gradient of the output.

    Convolutions are linear in images and in filters, so that those of the gradient come from `forward` and `back`, one
    of the two in turn replaced by what reaches its gradient. `given` is what precedes the attributes `how` below.
    """
    xp, images, filters, dout, dd_images, dd_filters, dd_bias = given
    some, others = or_zeros(xp, dd_images, images), or_zeros(xp, dd_filters, filters)
    for_images, _, _ = back(xp, images, others, None, dout, *how)
    _, for_filters, _ = back(xp, some, filters, None, dout, *how)
    for_dout = forward(xp, some, filters, dd_bias, *how) + forward(xp, images, others, None, *how)
    return for_images, for_filters, for_dout


def _conv_double_grad(
    xp: Any,
    Input: Any,
    Filter: Any,
    DOutput: Any,
    DDInput: Any,
    DDFilter: Any,
    DDBias: Any,
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str,
    groups: int,
    dilations: Sequence[int],
    data_format: str,
) -> Any:
    given = (xp, Input, Filter, DOutput, DDInput, DDFilter, DDBias)
    how = (strides, paddings, padding_algorithm, groups, dilations, data_format)
    return _second(convolve, convolve_grad, given, how)


def _transposed_double_grad(
    xp: Any,
    Input: Any,
    Filter: Any,
    DOutput: Any,
    DDInput: Any,
    DDFilter: Any,
    DDBias: Any,
    strides: Sequence[int],
    paddings: Sequence[int],
    padding_algorithm: str,
    groups: int,
    dilations: Sequence[int],
    data_format: str,
    output_size: Sequence[int],
) -> Any:
    given = (xp, Input, Filter, DOutput, DDInput, DDFilter, DDBias)
    how = (strides, paddings, padding_algorithm, groups, dilations, data_format, output_size)
    return _second(convolve_transposed, convolve_transposed_grad, given, how)


_KEPT, _WANTED = ("Input", "Filter", "Bias?"), ("Input", "Filter")
_GIVEN = (*_WANTED, "Bias")

for _type, _dims in (("conv2d", 2), ("depthwise_conv2d", 2), ("conv3d", 3)):
    register_double_grad(
        _type,
        _KEPT,
        "Output",
        _WANTED,
        _conv_double_grad,
        convolution_attrs(_dims),
        _GIVEN,
        "convolution_double_grad.double_grad",
    )
    register_double_grad(
        _type + "_transpose",
        _KEPT,
        "Output",
        _WANTED,
        _transposed_double_grad,
        convolution_attrs(_dims, output_size=[]),
        _GIVEN,
        "convolution_double_grad.transposed_double_grad",
    )
