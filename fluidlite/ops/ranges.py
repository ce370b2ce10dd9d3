"""Checks that class labels and row numbers lie in range."""

from __future__ import annotations

from typing import Any

from .registry import OperatorError


def require_in_range(
    xp: Any, op_type: str, slot: str, ids: Any, bound: int, what: str, ignore: int | None = None
) -> None:
    """Raise OperatorError unless every element of `ids` is in [0, bound) or equal to `ignore`.

    `what` says what `bound` counts ("classes", "rows of W"); the error names operator, slot, value and
    position.
    """
    bad = (ids < 0) | (ids >= bound)
    if ignore is not None:
        bad = bad & (ids != ignore)
    if not bool(bad.any()):
        return
    position = int(xp.argmax(bad.ravel()))
    value = int(ids.ravel()[position])
    except_for = "" if ignore is None or 0 <= ignore < bound else f" (or {ignore}, which is ignored)"
    raise OperatorError(
        f"operator {op_type}: {slot} must be in [0, {bound}){except_for}, since there are {bound} {what}; "
        f"got {value} at position {position}"
    )
