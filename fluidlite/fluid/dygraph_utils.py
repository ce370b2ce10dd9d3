"""Bias and activation for layers of dygraph mode (`fluid.dygraph_utils`)."""

from __future__ import annotations

from typing import Any

from ..base import missing
from ..framework import dygraph_only
from .layer_helper import run_op

__all__: list[str] = []


@dygraph_only
def _append_activation_in_dygraph(
    input: Any, act: str | None = None, use_cudnn: Any = None, use_mkldnn: Any = None
) -> Any:
    """The activation `act`, an operator from X to Out, of a tensor; the tensor itself for None."""
    return input if act is None else run_op(act, {"X": input})


@dygraph_only
def _append_bias_in_dygraph(input: Any, bias: Any = None, axis: int = 1) -> Any:
    """A tensor plus `bias` along `axis`; the tensor itself for None."""
    return input if bias is None else run_op("elementwise_add", {"X": input, "Y": bias}, attrs={"axis": axis})


__getattr__ = missing.reporter(__name__)
