"""Kernels of matrix products, and of attention."""

from __future__ import annotations

from .epilogues import Epilogue
from .kernel_def import declare

declare(
    "gemm",
    "A B C Bias?",
    "C",
    ints="m n k trans_a trans_b act?",
    floats="alpha beta",
    epilogue=Epilogue("Bias", ("m", "n"), last_axis=True, activation="act", accumulates="beta"),
)
declare(
    "gemm_batched",
    "A B C",
    ints="m n k trans_a trans_b batch stride_a stride_b stride_c",
    floats="alpha beta",
)
declare("gemm_pack", "B Packed", ints="k n trans_b")
declare("gemm_packed", "A Packed C Bias?", "C", ints="m n k act?", floats="beta")

_HEADS = "outer heads m n k d across"
_STRIDES = "outer_stride_{0} head_stride_{0} row_stride_{0}"


def _strides(*names: str) -> str:
    """The strides of operands, and those of the bias, which has one more."""
    return " ".join([*map(_STRIDES.format, names), _STRIDES.format("bias"), "column_stride_bias"])


declare(
    "attention",
    "Q K V Bias? Mask? Out",
    ints=f"{_HEADS} {_strides('q', 'k', 'v', 'out')}",
    floats="alpha factor",
)
declare(
    "attention_grad",
    "Q K V Bias? Mask? DOut DQ? DK? DV?",
    "DQ DK DV",
    ints=f"{_HEADS} {_strides('q', 'k', 'v', 'dout', 'dq', 'dk', 'dv')}",
    floats="alpha factor",
)
