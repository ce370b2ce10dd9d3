"""The delete_var operator: variables that a program has no more use for."""

from __future__ import annotations

from ..registry import OpDef, OpView, register


def _infer(op: OpView) -> None:
    """Infer nothing: there are no outputs."""


register(
    OpDef(
        "delete_var",
        inputs=("X*",),
        outputs=(),
        infer=_infer,
        kernel=lambda xp, X: (),
        doc="Says that a run has no more use for X, whose memory goes when nothing reads it: plans know by themselves.",
    )
)
