"""Results with NaN or infinities are refused (FLAGS_check_nan_inf); in plans an operator behind each one looks at them.

As in Fluid the results of kernels are looked at, in the order of the names of slots: not what is fed, integers and
arrays of tensors, nor what comes from operators that call Python, run blocks, or work on what is no tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.dtypes import FLOATS
from ...base.errors import EnforceNotMet
from ...base.selected_rows import SelectedRows
from ...framework import Block, Operator
from ...framework.callsite import describe
from ...ops.registry import EMPTY, Effects, OpDef, OpView
from ...ops.tensor.selected_rows import parts
from .inference import in_place_of, runs_alone
from .type_env import TypeEnv


def results(op: Operator) -> list[str]:
    """The results of an operator that are looked at, if they are floats; `EMPTY` stands for one that is not made."""
    if op.definition.effects.host or runs_alone(op):
        return []
    return [name for _, names in sorted(op.outputs.items()) for name in names]


def look_at(op: Operator, name: str, value: Any, xp: Any = np) -> None:
    """Raise EnforceNotMet naming operator and variable if `value`, which `op` has made, has NaN or infinities."""
    array = value.values if isinstance(value, SelectedRows) else value
    if getattr(getattr(array, "dtype", None), "kind", "") != "f" or bool(xp.isfinite(array).all()):
        return
    nans, infinite = int(xp.isnan(array).sum()), int(xp.isinf(array).sum())
    raise EnforceNotMet(
        f"[op={op.type}] [tensor={name}] find nan or inf: of {array.size} elements {nans} are NaN and "
        f"{infinite} infinite, which FLAGS_check_nan_inf does not allow{describe(op.line)}"
    )


def _look(xp: Any, X: Sequence[Any], op: Operator, names: Sequence[str]) -> tuple[()]:
    for name, value in zip(names, X, strict=True):
        look_at(op, name, value)
    return ()


LOOK = OpDef(
    "look",
    inputs=("X*",),
    outputs=(),
    attrs={"op": None, "names": ()},
    infer=lambda op: None,
    kernel=_look,
    effects=Effects(host=True),
    doc="Refuses X if they have NaN or infinities; `op` has made them, whose variables `names` are.",
)


class Watch:
    """What stands behind the operators of a block in a plan that looks at their results."""

    def __init__(self, block: Block) -> None:
        # Others have come into their places; renamed copies share their attributes.
        ops = (op for each in block.program.blocks for op in each.ops)
        self._theirs = {(id(op.attrs), op.type): op for op in ops}

    def checks_after(self, op: Operator, meta: TypeEnv) -> list[tuple[Operator, OpView]]:
        """What looks at the results of `op`, if it is one of the program's."""
        theirs = self._theirs.get((id(op.attrs), op.type))
        made: dict[str, str] = {}  # array -> variable
        for name, variable in zip(results(op), results(theirs), strict=True) if theirs is not None else ():
            if variable != EMPTY and meta.dtypes.get(name) in FLOATS:
                made[parts(name)[1] if name in meta.sparse else name] = variable
        made = {name: variable for name, variable in made.items() if not _is_sound(meta.known.get(name))}
        if not made:
            return []
        attrs = {"op": op, "names": list(made.values())}
        look = in_place_of(op, LOOK, {"X": list(made)}, {}, attrs)
        return [(look, OpView(LOOK, look.inputs, {}, attrs, meta))]


def _is_sound(constant: np.ndarray | None) -> bool:
    return constant is not None and bool(np.isfinite(constant).all())
