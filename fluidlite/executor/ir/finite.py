"""NaN checks (FLAGS_check_nan_inf): results with NaN or infinities are errors; plans have check operators for them.

As in Fluid the float results of kernels are checked, in the order of the names of slots: not feeds, integers and
tensor arrays, nor the results of operators that call Python, have sub-blocks, or have non-tensor variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.callsite import describe
from ...base.dtypes import FLOATS
from ...base.errors import EnforceNotMet
from ...base.selected_rows import SelectedRows
from ...framework import Block, Operator
from ...ops.registry import EMPTY, Effects, OpDef, OpView
from ...ops.tensor.selected_rows import parts
from .inference import in_place_of, is_unplannable
from .type_env import TypeEnv


def checked_results(op: Operator) -> list[str]:
    """The results of an operator to check, if they are floats; `EMPTY` for each that it leaves out."""
    if op.definition.effects.host or is_unplannable(op):
        return []
    return [name for _, names in sorted(op.outputs.items()) for name in names]


def check(op: Operator, name: str, value: Any, xp: Any = np) -> None:
    """Raise EnforceNotMet naming operator and variable if `value`, a result of `op`, has NaN or infinities."""
    array = value.values if isinstance(value, SelectedRows) else value
    if getattr(getattr(array, "dtype", None), "kind", "") != "f" or bool(xp.isfinite(array).all()):
        return
    nans, infinite = int(xp.isnan(array).sum()), int(xp.isinf(array).sum())
    raise EnforceNotMet(
        f"[op={op.type}] [tensor={name}] find nan or inf: of {array.size} elements {nans} are NaN and "
        f"{infinite} infinite, which FLAGS_check_nan_inf does not allow{describe(op.line)}"
    )


def _check_all(xp: Any, X: Sequence[Any], op: Operator, names: Sequence[str]) -> tuple[()]:
    for name, value in zip(names, X, strict=True):
        check(op, name, value)
    return ()


CHECK_FINITE = OpDef(
    "check_finite",
    inputs=("X*",),
    outputs=(),
    attrs={"op": None, "names": ()},
    infer=lambda op: None,
    kernel=_check_all,
    effects=Effects(host=True),
    doc="Raises EnforceNotMet if X, the variables `names` that `op` has written, have NaN or infinities.",
)


class FiniteChecks:
    """Makes the NaN checks that follow the operators of a block in a plan."""

    def __init__(self, block: Block) -> None:
        # By attributes, which the renamed copies in the plan share with the program's operators.
        ops = (op for each in block.program.blocks for op in each.ops)
        self._originals = {(id(op.attrs), op.type): op for op in ops}

    def checks_after(self, op: Operator, meta: TypeEnv) -> list[tuple[Operator, OpView]]:
        """The check of the results of `op`; none if `op` is not the program's or all results are finite constants."""
        original = self._originals.get((id(op.attrs), op.type))
        if original is None:
            return []
        checked: dict[str, str] = {}  # array -> variable
        for name, variable in zip(checked_results(op), checked_results(original), strict=True):
            if variable == EMPTY or meta.dtypes.get(name) not in FLOATS:
                continue
            array = parts(name)[1] if name in meta.sparse else name
            if not _is_finite(meta.constants.get(array)):
                checked[array] = variable
        if not checked:
            return []
        attrs = {"op": op, "names": list(checked.values())}
        check = in_place_of(op, CHECK_FINITE, {"X": list(checked)}, {}, attrs)
        return [(check, OpView(CHECK_FINITE, check.inputs, {}, attrs, meta))]


def _is_finite(constant: np.ndarray | None) -> bool:
    return constant is not None and bool(np.isfinite(constant).all())
