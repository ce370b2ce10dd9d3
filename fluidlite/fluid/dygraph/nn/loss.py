"""Losses as layers."""

from __future__ import annotations

from typing import Any

from ...layers import elementwise_mul, elementwise_sub, reduce_mean, reduce_sum, square
from ..layers import Layer

__all__ = ["BCELoss", "L1Loss", "MSELoss", "NLLLoss"]

_REDUCTIONS = ("sum", "mean", "none")


class _Loss(Layer):
    """A loss of each element, or their sum or mean."""

    def __init__(self, reduction: str) -> None:
        super().__init__()
        if reduction not in _REDUCTIONS:
            raise ValueError(
                f"'reduction' in {type(self).__name__} should be 'sum', 'mean' or 'none', but received {reduction}."
            )
        self.reduction = reduction

    def _reduced(self, losses: Any) -> Any:
        if self.reduction == "none":
            return losses
        return reduce_mean(losses) if self.reduction == "mean" else reduce_sum(losses)

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"


class MSELoss(_Loss):
    """The square of the difference (`fluid.dygraph.MSELoss`). `reduction`: 'mean', 'sum' or 'none'."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Any, label: Any) -> Any:
        """`input` and `label` have the same shape; so has the result for 'none', otherwise it is [1]."""
        return self._reduced(square(elementwise_sub(input, label)))


class L1Loss(_Loss):
    """The absolute value of the difference (`fluid.dygraph.L1Loss`). `reduction`: 'mean', 'sum' or 'none'."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Any, label: Any) -> Any:
        """`input` and `label` have the same shape; so has the result for 'none', otherwise it is [1]."""
        return self._reduced(elementwise_sub(input, label, act="abs"))


class BCELoss(_Loss):
    """Binary cross entropy of probabilities (`fluid.dygraph.BCELoss`).

    `-(label * log(input) + (1 - label) * log(1 - input))`, no logarithm below -100; times `weight`, if given.
    `reduction`: 'mean', 'sum' or 'none'.
    """

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def forward(self, input: Any, label: Any) -> Any:
        """`input` (in [0, 1]) and `label` have the same shape; so has the result for 'none', otherwise it is [1]."""
        losses = self._helper.run("bce_loss", {"X": input, "Label": label})
        return self._reduced(losses if self.weight is None else elementwise_mul(losses, self.weight))


class NLLLoss(_Loss):
    """The negative log likelihood of the right class (`fluid.dygraph.NLLLoss`).

    Args:
        weight: a tensor [C] that weighs the classes; 'mean' divides by the weights of the labels.
        reduction: 'mean', 'sum' or 'none'.
        ignore_index: a label that does not count.
    """

    def __init__(self, weight: Any = None, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index = weight, ignore_index

    def forward(self, input: Any, label: Any) -> Any:
        """`input` holds logarithms of probabilities, [N, C, ...]; `label` int64 classes, [N, ...].

        The result is [1], or for 'none' shaped like `label`. Further axes are treated as one and then restored.
        """
        attrs = {"ignore_index": self.ignore_index, "reduction": self.reduction}
        shape, classes = list(label.shape), input.shape[1]
        if len(input.shape) not in (2, 4):
            input = self._reshaped(input, [shape[0], classes, 1, -1])
            label = self._reshaped(label, [shape[0], 1, -1])
        inputs = {"X": input, "Label": label, "Weight": self.weight}
        loss, _ = self._helper.run("nll_loss", inputs, ("Out", "Total_weight"), attrs)
        if self.reduction == "none" and list(loss.shape) != shape:
            loss = self._reshaped(loss, shape)
        return loss

    def _reshaped(self, x: Any, shape: list[int]) -> Any:
        return self._helper.run("reshape2", {"X": x}, ("Out", "XShape"), {"shape": shape})[0]
