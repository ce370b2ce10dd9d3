"""Exceptions for the error codes of native kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..base.errors import EnforceNotMet, OperatorError

_OUT_OF_RANGE, _NO_MEMORY, _TOO_LARGE, _UNEVEN, _ZERO = 1, 2, 5, 7, 8

_UNEVEN_TEXTS = {
    "chunk_eval": "sequence {0} has {1} rows, not {2}; Inference and Label must have the same sequences",
    "lod_reset": "the offsets must go up from 0 to the {2} rows of X, got {1} at position {0}",
    "merge_lod_tensor": "part {0} (0: InTrue, 1: InFalse) must have {2} rows, as many as Mask chooses, got {1}",
    "sequence_pad": "padded_length must be -1 or at least {1}, the length of the longest sequence, got {2}",
    "sequence_reshape": "sequence {0} has {1} elements, which rows of {2} do not divide",
}
"""Messages for sequences of a wrong size: {0} which one, {1} its size, {2} the size required."""

_EMPTY_TEXTS = {
    "edit_distance": "sequence {0} of Refs is empty, so that nothing can be divided by its length"
}
"""Messages for sequences that must not be empty."""


def division_by_zero(op_type: str) -> str:
    """The message for a division of integers by zero."""
    return f"operator {op_type}: integer division by zero: Y must not hold 0"


def native_error(op_type: str, inputs: Mapping[str, object], code: int, err: Sequence[int]) -> Exception:
    """The exception for an error code of a kernel of operator `op_type`.

    Args:
        op_type: the operator.
        inputs: a description of each input slot that is given.
        code: the kernel's error code, one of `_ext/abi.h`.
        err: the details that belong to the code.
    """
    if code == _OUT_OF_RANGE:
        slot = next((name for name in ("PathTable", "Label", "Ids", "Index") if name in inputs), None)
        if "Inference" in inputs and not err[3]:
            slot = "Inference"
        what = "an input" if slot is None else f"{slot}{inputs[slot]}"
        return OperatorError(
            f"operator {op_type}: {what} must be in [0, {err[2]}); got {err[0]} at position {err[1]}"
        )
    if code == _NO_MEMORY:
        return MemoryError(f"operator {op_type} could not get {err[0]} bytes of memory")
    if code == _TOO_LARGE:
        return EnforceNotMet(
            f"operator {op_type} failed: one of its sizes is {err[0]}, and the library that computes it can take "
            f"{err[1]} at most"
        )
    if code == _UNEVEN:
        which = "the sequences together have" if err[0] < 0 else "sequence {0} has"
        plain = which + " {1} rows, which does not fit the {2} that there are"
        text = (_EMPTY_TEXTS if err[1] == 0 else {}).get(op_type) or _UNEVEN_TEXTS.get(op_type, plain)
        return OperatorError(f"operator {op_type}: {text.format(*err)}")
    if code == _ZERO:
        return OperatorError(division_by_zero(op_type))
    return EnforceNotMet(f"operator {op_type} failed with code {code} (status {err[0]})")
