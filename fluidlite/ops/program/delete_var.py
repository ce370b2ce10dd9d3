"""The delete_var operator: variables that a program has no more use for."""

from __future__ import annotations

from typing import Any

from ..registry import OpDef, OpView, register


def _delete(xp: Any, X: Any) -> tuple[()]:
    return ()


def _infer(op: OpView) -> None:
    """Infer nothing: there are no outputs."""


register(
    OpDef(
        "delete_var",
        inputs=("X*",),
        outputs=(),
        infer=_infer,
        kernel=_delete,
        doc="Says that a run has no more use for X, whose memory goes when nothing reads it: plans know by themselves.",
    )
)
