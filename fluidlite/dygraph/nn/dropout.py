"""`Dropout`."""

from __future__ import annotations

from typing import Any

from ...framework import default_main_program
from ...layers.nn.probability import DROPOUTS, dropout_attrs
from ..layers import Layer

__all__ = ["Dropout"]


class Dropout(Layer):
    """Sets elements to zero at random while training (`fluid.dygraph.Dropout`).

    Args:
        p: the probability of each element to become zero.
        seed: draw the same mask each time; by default the program's `random_seed`, or another one each time.
        dropout_implementation: 'downgrade_in_infer' multiplies by 1 - p in evaluation mode; 'upscale_in_train' divides
            by 1 - p in training mode.
        is_test: accepted and without effect, as in Fluid: `eval` and `train` decide.

    Raises:
        AssertionError, as in Fluid: `p` is no number in [0, 1], or the implementation is another.
    """

    def __init__(
        self,
        p: float = 0.5,
        seed: int | None = None,
        dropout_implementation: str = "downgrade_in_infer",
        is_test: bool = False,
    ) -> None:
        if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
            raise AssertionError(f"p of Dropout should be a number between 0 and 1, got {p!r}")
        if dropout_implementation not in DROPOUTS:
            raise AssertionError(
                "dropout_implementation should be 'downgrade_in_infer' or 'upscale_in_train', got "
                f"{dropout_implementation!r}"
            )
        super().__init__()
        self._dropout_prob, self._seed, self._is_test = p, seed, is_test
        self._dropout_implementation = dropout_implementation

    def forward(self, input: Any) -> Any:
        """`input` has any shape, and so has the result."""
        seed = self._seed if self._seed is not None else default_main_program().random_seed or None
        attrs = dropout_attrs(self._dropout_prob, not self.training, seed, self._dropout_implementation)
        out, _ = self._helper.run("dropout", {"X": input}, ("Out", "Mask"), attrs, stop_gradient=("Mask",))
        return out

    def extra_repr(self) -> str:
        return f"p={self._dropout_prob}"
