"""`Switch`: operators that run in the first case that holds."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ...base.dtypes import VarType
from ...base.errors import ArgumentError
from ...framework import Variable
from ...layer_helper import LayerHelper
from ..checks import check_dtype
from ..tensor.comparison import logical_and, logical_not
from .blocks import programs_only
from .conditional_block import ConditionalBlock

__all__ = ["Switch"]


class Switch:
    """Run the block of the first case that holds, which writes to outer variables (`fluid.layers.Switch`).

        with fluid.layers.Switch() as switch:
            with switch.case(step < warm):
                fluid.layers.assign(small, rate)
            with switch.default():
                fluid.layers.assign(large, rate)

    `name` has no effect.
    """

    def __init__(self, name: str | None = None) -> None:
        programs_only("Switch")
        self.helper = LayerHelper("switch", name=name)
        self.inside_scope = False
        self.pre_not_conditions: list[Variable] = []

    def case(self, condition: Variable) -> AbstractContextManager[None]:
        """Build what runs if `condition`, a bool variable of one element, is the first that holds.

        Raises ValueError outside of `with Switch() as switch:`, TypeError for another variable.
        """
        if not self.inside_scope:
            raise ArgumentError("case should be called inside with")
        check_dtype(condition, "condition", "the member function case of fluid.layers.Switch", [VarType.BOOL])
        if not self.pre_not_conditions:
            self.pre_not_conditions.append(logical_not(condition))
        else:
            before = self.pre_not_conditions[-1]
            self.pre_not_conditions.append(logical_and(before, logical_not(condition)))
            condition = logical_and(before, condition)
        return ConditionalBlock([condition], is_scalar_condition=True).block()

    def default(self) -> AbstractContextManager[None]:
        """Build what runs if no case does. Raises ValueError if there is none before."""
        if not self.pre_not_conditions:
            raise ArgumentError("there should be at least one condition")
        return ConditionalBlock([self.pre_not_conditions[-1]], is_scalar_condition=True).block()

    def __enter__(self) -> Switch:
        self.inside_scope = True
        return self

    def __exit__(self, *exc: object) -> None:
        self.inside_scope = False
