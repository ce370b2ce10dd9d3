"""Second derivatives of convolutions and of their transposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .conv import convolution_attrs, convolve, convolve_grad, convolve_transposed, convolve_transposed_grad
from .pairs import or_zeros, register_twice


def _conv_twice(
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
    how = (strides, paddings, padding_algorithm, groups, dilations, data_format)
    images, filters = or_zeros(xp, DDInput, Input), or_zeros(xp, DDFilter, Filter)
    dinput, _, _ = convolve_grad(xp, Input, filters, None, DOutput, *how)
    _, dfilter, _ = convolve_grad(xp, images, Filter, None, DOutput, *how)
    ddout = convolve(xp, images, Filter, DDBias, *how) + convolve(xp, Input, filters, None, *how)
    return dinput, dfilter, ddout


def _transposed_twice(
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
    how = (strides, paddings, padding_algorithm, groups, dilations, data_format, output_size)
    images, filters = or_zeros(xp, DDInput, Input), or_zeros(xp, DDFilter, Filter)
    dinput, _, _ = convolve_transposed_grad(xp, Input, filters, None, DOutput, *how)
    _, dfilter, _ = convolve_transposed_grad(xp, images, Filter, None, DOutput, *how)
    ddout = convolve_transposed(xp, images, Filter, DDBias, *how) + convolve_transposed(
        xp, Input, filters, None, *how
    )
    return dinput, dfilter, ddout


_KEPT, _WANTED = ("Input", "Filter", "Bias?"), ("Input", "Filter")
_GIVEN = (*_WANTED, "Bias")

for _type, _dims in (("conv2d", 2), ("depthwise_conv2d", 2), ("conv3d", 3)):
    register_twice(_type, _KEPT, "Output", _WANTED, _conv_twice, convolution_attrs(_dims), _GIVEN)
    register_twice(
        _type + "_transpose",
        _KEPT,
        "Output",
        _WANTED,
        _transposed_twice,
        convolution_attrs(_dims, output_size=[]),
        _GIVEN,
    )
