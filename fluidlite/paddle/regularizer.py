"""Weight decay (`paddle.regularizer`)."""

from __future__ import annotations

from ..fluid.regularizer import L1DecayRegularizer, L2DecayRegularizer

__all__ = ["L1Decay", "L2Decay"]


class L1Decay(L1DecayRegularizer):
    """The sum of magnitudes times `coeff`: adds coeff * sign(parameter) to gradients (`paddle.regularizer.L1Decay`)."""

    def __init__(self, coeff: float = 0.0) -> None:
        super().__init__(coeff)


class L2Decay(L2DecayRegularizer):
    """Half the sum of squares times `coeff`: adds coeff * parameter to gradients (`paddle.regularizer.L2Decay`)."""

    def __init__(self, coeff: float = 0.0) -> None:
        super().__init__(coeff)
