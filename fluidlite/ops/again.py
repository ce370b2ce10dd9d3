"""Which native calls can be made once more, with the same bits and nothing else changed, and how much work they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from ..base.sizes import current
from .chains import ALONE, BOTH
from .registry import Call

_FLOPS_A_BYTE = 6
"""How many floating point operations take as long as reading or writing a byte."""

_FLOAT = 4
"""Bytes of what convolutions make."""

_MOVING = frozenset(
    "scale sum fill copy cast concat split transpose slice expand reduce_sum reduce_max reduce_min reduce_fill "
    "softmax log_softmax layer_norm batch_norm batch_norm_blocks batch_norm_infer batch_norm_blocks_infer dropout "
    "dropout_grad pool2d_max pool2d_avg pool3d_max pool3d_avg resize lookup_table chain gemm_pack".split()
)
"""Kernels that take as long as their operands take to be read and written."""


class Again(NamedTuple):
    """A call that makes results again, and which of its operands they are; names stand for other memory then."""

    call: Call
    results: Sequence[str]


def again(call: Call, reads: Collection[str], results: Sequence[str]) -> Again | None:
    """The call that makes what `call` has made of `reads`, in `results`, or part of that; None if there is none.

    What is drawn and what changes from step to step is not made again: dropout goes by its mask, and batch
    normalisation leaves the moving statistics alone. What others have changed in place is gone.
    """
    stem, _, suffix = call.kernel.partition(".")
    if stem == "dropout":
        (x, out, mask), (n, upscale, _) = call.operands, call.ints
        return Again(Call(f"dropout_grad.{suffix}", [x, mask, out], [n, upscale], call.floats), _named([out]))
    if stem in ("batch_norm", "batch_norm_blocks"):
        x, scale, bias, _, _, *made = call.operands
        # The statistics that are there only matter to those that move, of which nobody reads these.
        return Again(
            Call(call.kernel, [x, scale, bias, scale, scale, *made], call.ints, call.floats), _named(made)
        )
    if not set(reads).isdisjoint(results):
        return None
    return Again(call, results) if _moves(stem) or stem in _PRODUCTS else None


def _named(operands: Sequence[str | None]) -> list[str]:
    return [name for name in operands if name is not None]


def _moves(stem: str) -> bool:
    base = stem.removesuffix("_mid").removesuffix("_dims")
    return stem in _MOVING or base in ALONE or base in BOTH


def work(call: Call, size: Callable[[str], int]) -> float:
    """How much work a call that `again` knows is: bytes read and written, to which calculations are converted.

    `size`: how many bytes a variable has.
    """
    moved = sum(size(name) for name in call.operands if name is not None)
    products = _PRODUCTS.get(call.kernel.partition(".")[0])
    if products is None:
        return moved
    return moved + 2 * products([current(n) for n in call.ints], call, size) / _FLOPS_A_BYTE


def _convolution(
    dims: int, groups: int | None = None
) -> Callable[[list[int], Call, Callable[[str], int]], int]:
    """The multiplications of a convolution; `groups`: the place of their number among the integers."""

    def count(ints: list[int], call: Call, size: Callable[[str], int]) -> int:
        each = ints[1] * math.prod(ints[dims + 3 : 2 * dims + 3]) // (1 if groups is None else ints[groups])
        return size(call.operands[3] or "") // _FLOAT * each

    return count


_PRODUCTS: dict[str, Callable[[list[int], Call, Callable[[str], int]], int]] = {
    "gemm": lambda ints, call, size: math.prod(ints[:3]),
    "gemm_packed": lambda ints, call, size: math.prod(ints[:3]),
    "gemm_batched": lambda ints, call, size: math.prod(ints[:3]) * ints[5],
    "attention": lambda ints, call, size: math.prod(ints[:4]) * (ints[4] + ints[5]),
    "conv2d": _convolution(2, 15),
    "conv2d_norm": _convolution(2, 15),
    "conv2d_last": _convolution(2, 15),
    "conv2d_blocks": _convolution(2, 15),
    "conv2d_blocks_norm": _convolution(2, 15),
    "conv2d_plain": _convolution(2),
    "conv2d_plain_norm": _convolution(2),
    "conv3d": _convolution(3, 21),
    "conv3d_last": _convolution(3, 21),
}
"""Kernels that multiply, and how often they do."""
