"""`fluid.dygraph_utils`: bias and activation of eager layers."""

from __future__ import annotations

from typing import Any

from . import eager
from .base import missing

__all__: list[str] = []


def _append_activation_in_dygraph(
    input: Any, act: str | None = None, use_cudnn: bool | None = None, use_mkldnn: bool | None = None
) -> Any:
    """The activation of the name `act` of a tensor; the tensor itself for None."""
    return eager.apply(act, {"X": input}, ("Out",), None) if act else input


def _append_bias_in_dygraph(input: Any, bias: Any = None, axis: int = 1) -> Any:
    """A tensor plus a bias, which begins at dimension `axis`; the tensor itself without one."""
    if bias is None:
        return input
    return eager.apply("elementwise_add", {"X": input, "Y": bias}, ("Out",), {"axis": axis})


__getattr__ = missing.reporter(__name__)
