"""`paddle.ParamAttr`."""

from __future__ import annotations

from typing import Any

from ..fluid import param_attr

__all__ = ["ParamAttr"]


class ParamAttr(param_attr.ParamAttr):
    """Name, initial value and training of a parameter (`paddle.ParamAttr`).

    Arguments as of `fluid.ParamAttr`, and `need_clip`: whether the optimizer's `grad_clip` is for this parameter too.
    """

    def __init__(
        self,
        name: str | None = None,
        initializer: Any = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = True,
        need_clip: bool = True,
    ) -> None:
        super().__init__(name, initializer, learning_rate, regularizer, trainable, do_model_average)
        self.need_clip = need_clip

    def _to_kwargs(self, with_initializer: bool = False) -> dict[str, Any]:
        return {**super()._to_kwargs(with_initializer), "need_clip": self.need_clip}
