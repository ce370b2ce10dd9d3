"""Lists of operators that compute in float16 (`fluid.contrib.mixed_precision.fp16_lists`)."""

from __future__ import annotations

from collections.abc import Iterable

from ...base import missing

__all__ = ["AutoMixedPrecisionLists"]

white_list = set("conv2d matmul mul".split())
"""Types that are faster in float16, with little loss of precision."""

black_list = set(
    """
    cos_sim cross_entropy cross_entropy2 exp log mean sigmoid_cross_entropy_with_logits softmax
    softmax_with_cross_entropy square sum
    """.split()
)
"""Types that need the precision or range of float32."""

gray_list = set(
    """
    batch_norm cast dropout elementwise_add elementwise_div elementwise_floordiv elementwise_max elementwise_min
    elementwise_mod elementwise_mul elementwise_pow elementwise_sub fill_constant flatten2 gather gaussian_random
    gaussian_random_batch_size_like get_tensor_from_selected_rows leaky_relu lookup_table pool2d pool3d rank relu
    relu6 reshape2 scale sigmoid sign slice soft_relu stack tanh top_k transpose2 uniform_random_batch_size_like unstack
    """.split()
)
"""Types that compute in the precision of their inputs."""


class AutoMixedPrecisionLists:
    """The three lists for one network (`fluid.contrib.mixed_precision.AutoMixedPrecisionLists`).

    Operators of `white_list` compute in float16, those of `black_list` in float32, those of `gray_list` in the
    precision of their producers; all others in float32.

    Args:
        custom_white_list: types to move to the white list.
        custom_black_list: types to move to the black list.
        custom_black_varnames: names of variables; operators that read or write one compute in float32.

    Raises ValueError if both custom lists have a type.
    """

    def __init__(
        self,
        custom_white_list: Iterable[str] | None = None,
        custom_black_list: Iterable[str] | None = None,
        custom_black_varnames: Iterable[str] | None = None,
    ) -> None:
        self._custom_white_list = custom_white_list
        self._custom_black_list = custom_black_list
        white, black = set(custom_white_list or ()), set(custom_black_list or ())
        if white & black:
            raise ValueError(
                f"Custom white list overlap custom black list: {', '.join(sorted(white & black))} can be in one only"
            )
        self.white_list = (white_list - black) | white
        self.black_list = (black_list - white) | black
        self.gray_list = gray_list - white - black
        self.black_varnames = custom_black_varnames


__getattr__ = missing.reporter(__name__)
