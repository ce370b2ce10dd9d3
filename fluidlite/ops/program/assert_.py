"""The assert operator: ends the run if a condition does not hold."""

from __future__ import annotations

from typing import Any

from ...backend import to_host
from ..registry import Effects, OpDef, OpView, register


def _assert(xp: Any, Cond: Any, message: str) -> tuple[()]:
    if not to_host(Cond).all():
        raise AssertionError(message)
    return ()


def _infer(op: OpView) -> None:
    """Infer nothing: there are no outputs."""


register(
    OpDef(
        "assert",
        inputs=("Cond",),
        outputs=(),
        attrs={"message": ""},
        infer=_infer,
        kernel=_assert,
        effects=Effects(host=True),
        doc="Raises AssertionError with a message unless all elements of a condition are true.",
    )
)
