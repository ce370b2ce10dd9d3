"""Second derivatives of convolutions and of their transposes."""

from __future__ import annotations

from typing import Any

from ..grad_pairs import Kernel, or_zeros, register_double_grad
from .conv import convolution_attrs, convolve, convolve_grad, convolve_transposed, convolve_transposed_grad


def _second(forward: Kernel, back: Kernel) -> Kernel:
    """The kernel of the gradients for images, filters and the gradient of the output.

    Convolutions are linear in images and in filters, so `forward` and `back` compute them with one of the two replaced
    by the gradient of its gradient.
    """

    def kernel(
        xp: Any, Input: Any, Filter: Any, DOutput: Any, DDInput: Any, DDFilter: Any, DDBias: Any, **attrs: Any
    ) -> Any:
        some, others = or_zeros(xp, DDInput, Input), or_zeros(xp, DDFilter, Filter)
        for_images, _, _ = back(xp, Input, others, None, DOutput, **attrs)
        _, for_filters, _ = back(xp, some, Filter, None, DOutput, **attrs)
        for_dout = forward(xp, some, Filter, DDBias, **attrs) + forward(xp, Input, others, None, **attrs)
        return for_images, for_filters, for_dout

    return kernel


_KEPT, _WANTED = ("Input", "Filter", "Bias?"), ("Input", "Filter")
_GIVEN = (*_WANTED, "Bias")

for _type, _dims in (("conv2d", 2), ("depthwise_conv2d", 2), ("conv3d", 3)):
    register_double_grad(
        _type,
        _KEPT,
        "Output",
        _WANTED,
        _second(convolve, convolve_grad),
        convolution_attrs(_dims),
        _GIVEN,
        "convolution_double_grad.double_grad",
    )
    register_double_grad(
        _type + "_transpose",
        _KEPT,
        "Output",
        _WANTED,
        _second(convolve_transposed, convolve_transposed_grad),
        convolution_attrs(_dims, output_size=[]),
        _GIVEN,
        "convolution_double_grad.transposed_double_grad",
    )
