"""Weight decay: penalties on parameters, added to their gradients (`fluid.regularizer`)."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.dtypes import VarType
from ..base.errors import ArgumentTypeError
from ..base.reports.texts import ShowsArguments
from ..framework import Block, Parameter, Variable, name_scope

__all__ = ["L1Decay", "L1DecayRegularizer", "L2Decay", "L2DecayRegularizer"]

ParamGrad = tuple[Parameter, "Variable | None"]


class WeightDecayRegularizer(ShowsArguments):
    """Base of the regularizers: `regularizer(param, grad, block)` appends the penalty's gradient."""

    def __init__(self, regularization_coeff: float = 0.0) -> None:
        if isinstance(regularization_coeff, bool) or not isinstance(regularization_coeff, (int, float)):
            raise ArgumentTypeError(
                f"the coefficient of {self._title} must be a number, got {regularization_coeff!r}"
            )
        self._regularization_coeff = float(regularization_coeff)

    _title = "WeightDecay"

    def __call__(self, param: Parameter, grad: Variable, block: Block) -> Variable:
        raise NotImplementedError(f"{type(self).__name__} does not say what it adds to a gradient")

    def __str__(self) -> str:
        return f"{self._title}, regularization_coeff={self._regularization_coeff:f}"

    def _scaled(self, source: Variable, out: Variable, block: Block) -> Variable:
        block.append_op(
            type="scale",
            inputs={"X": [source]},
            outputs={"Out": [out]},
            attrs={"scale": self._regularization_coeff, "bias": 0.0, "bias_after_scale": True},
        )
        return out


def _like(param: Parameter, block: Block, name: str | None = None) -> Variable:
    return block.create_var(name=name, dtype=param.dtype, shape=param.shape, lod_level=param.lod_level)


class L2DecayRegularizer(WeightDecayRegularizer):
    """Half the sum of squares: adds coeff * param to the gradient (`fluid.regularizer.L2Decay`).

    Args:
        regularization_coeff: the coefficient.

    Raises:
        TypeError: it is no number.

    Example:
        >>> import paddle.fluid as fluid
        >>> decay = fluid.regularizer.L2Decay(1e-4)
        >>> sgd = fluid.optimizer.SGD(0.1, regularization=decay)
        >>> attr = fluid.ParamAttr(regularizer=fluid.regularizer.L2Decay(0.0))  # this parameter has none
    """

    _title = "L2Decay"

    def __call__(self, param: Parameter, grad: Variable, block: Block) -> Variable:
        return self._scaled(param, _like(param, block), block)


class L1DecayRegularizer(WeightDecayRegularizer):
    """The sum of magnitudes times the coefficient: adds coeff * sign(param) (`fluid.regularizer.L1Decay`)."""

    _title = "L1Decay"

    def __call__(self, param: Parameter, grad: Variable, block: Block) -> Variable:
        sign = _like(param, block)
        block.append_op(type="sign", inputs={"X": [param]}, outputs={"Out": [sign]})
        return self._scaled(sign, sign, block)


def append_regularization_ops(
    parameters_and_grads: Sequence[ParamGrad], regularization: WeightDecayRegularizer | None = None
) -> list[ParamGrad]:
    """Add each parameter's penalty to its gradient: that of its ParamAttr, or else `regularization`.

    Returns the pairs; gradients keep their names, except those that are fed or sparse.
    """
    pairs = list(parameters_and_grads)
    with name_scope("regularization"):
        for place, (param, grad) in enumerate(pairs):
            regularizer = param.regularizer or regularization
            if grad is None or regularizer is None:
                continue
            with param.block.program._optimized_guard([param, grad]):
                block = grad.block
                decay = regularizer(param, grad, block)
                # What is fed is not written to: such a gradient belongs to the caller. Sparse ones become dense.
                total = _like(param, block) if grad.is_data else grad
                if grad.type == VarType.SELECTED_ROWS:
                    total = _like(param, block, f"{grad.name}@NEWGRAD@")
                block.append_op(type="sum", inputs={"X": [grad, decay]}, outputs={"Out": [total]})
            pairs[place] = (param, total)
    return pairs


L1Decay = L1DecayRegularizer
L2Decay = L2DecayRegularizer
