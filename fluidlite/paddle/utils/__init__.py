"""`paddle.utils`: tensors of other libraries (`dlpack`), curves (`plot`, `plotcurve`), images and batches of them."""

from __future__ import annotations

from typing import Any

from ...backend.dlpack import from_external
from ...base.dtypes import to_vartype
from ...eager import Tensor
from . import image_util, plot, preprocess_util
from .plot import Ploter

__all__ = [
    "Ploter",
    "dlpack",
    "image_util",
    "plot",
    "plotcurve",
    "preprocess_img",
    "preprocess_util",
]


def to_dlpack(x: Any) -> Any:
    """The memory of the eager tensor `x` as a DLPack capsule, which another library can take once.

    What is computed on a GPU is ready for CUDA's default stream; a library that uses another stream takes the tensor
    itself (`torch.from_dlpack(x)`). Raises TypeError for anything but an eager tensor. Follows
    `paddle.utils.dlpack.to_dlpack`.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"to_dlpack takes an eager tensor, got {type(x).__name__}")
    return x.__dlpack__()


def from_dlpack(dlpack_tensor: Any) -> Tensor:
    """A tensor over the memory of a DLPack capsule, or of an array of another library, without gradient.

    It lives where that memory is. Elements in a layout that is not C's are copied. Raises TypeError for anything else
    and for types of elements that Fluid does not have, ValueError for a capsule that was taken before. Follows
    `paddle.utils.dlpack.from_dlpack`.
    """
    array = from_external(dlpack_tensor)
    to_vartype(array.dtype)
    return Tensor(array)
