"""Gradient clips under the names of Paddle 2.0: `paddle.nn.ClipGradByGlobalNorm` and its like."""

from __future__ import annotations

from ...clip import GradientClipByGlobalNorm, GradientClipByNorm, GradientClipByValue
from ...framework import Parameter

__all__ = ["ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"]


class _ByNeed:
    """Parameters made with `ParamAttr(need_clip=False)` do not take part."""

    def _wants(self, param: Parameter) -> bool:
        return bool(param.need_clip)


class ClipGradByValue(_ByNeed, GradientClipByValue):
    """Moves every element of a gradient into [min, max]; `min` is -max by default.

    Follows `paddle.nn.ClipGradByValue`.
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        super().__init__(max, min)


class ClipGradByNorm(_ByNeed, GradientClipByNorm):
    """Shortens each gradient alone to the norm `clip_norm` (`paddle.nn.ClipGradByNorm`)."""

    def __init__(self, clip_norm: float) -> None:
        super().__init__(clip_norm)


class ClipGradByGlobalNorm(_ByNeed, GradientClipByGlobalNorm):
    """Shortens all gradients together so that the norm of them all is at most `clip_norm`.

    Follows `paddle.nn.ClipGradByGlobalNorm`.
    """

    def __init__(self, clip_norm: float, group_name: str = "default_group") -> None:
        super().__init__(clip_norm, group_name)
