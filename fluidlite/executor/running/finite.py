"""Runs a program operator by operator and stops at the first result with NaN or infinities (FLAGS_check_nan_inf)."""

from __future__ import annotations

from typing import Any

from ...base.errors import EnforceNotMet
from ...base.selected_rows import SelectedRows
from ...framework import Operator
from ...framework.callsite import describe
from .interpret import Interpreter


class FiniteOnly(Interpreter):
    """A run in which each result of each operator is looked at, those in blocks as well.

    What is fed, the elements of tensor arrays and integers are not looked at, as in Fluid. A result is stored before
    it is, so a parameter that an update has spoilt can be read afterwards.
    """

    def _look_at(self, op: Operator, name: str, value: Any) -> None:
        array = value.values if isinstance(value, SelectedRows) else value
        if getattr(getattr(array, "dtype", None), "kind", "") != "f":
            return
        if not bool(self.xp.isfinite(array).all()):
            nans, infinite = int(self.xp.isnan(array).sum()), int(self.xp.isinf(array).sum())
            raise EnforceNotMet(
                f"[op={op.type}] [tensor={name}] find nan or inf: of {array.size} elements {nans} are NaN and "
                f"{infinite} infinite, which FLAGS_check_nan_inf does not allow{describe(op.line)}"
            )
