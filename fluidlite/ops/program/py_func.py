"""py_func: a function of the user's in a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..host_fallback import hosted
from ..registry import (
    GRAD,
    Attr,
    Effects,
    LodArray,
    OpDef,
    OperatorError,
    OpSpec,
    OpView,
    Sequences,
    grad_name,
    register,
)
from ..sequence import Lods

Function = Callable[[list[LodArray]], list[LodArray | None]]

_functions: list[Function] = []


def registered(function: Function) -> int:
    """Register `function` under a number for programs, for the life of the process, as programs may live as long."""
    _functions.append(function)
    return len(_functions) - 1


@hosted
def _py_func(xp: Any, X: list[Any], forward_callable_id: int, lod: Lods) -> Any:
    if not 0 <= forward_callable_id < len(_functions):
        raise OperatorError(
            f"operator py_func: there is no function {forward_callable_id}; a saved program does not hold functions, "
            "the script has to build it anew"
        )
    levels = [lod_of or () for lod_of in lod.get("X", [])]
    # Functions get copies, as in Fluid: other operators do not see their writes into inputs.
    given = [LodArray(xp.array(x), own) for x, own in zip(X, levels, strict=True)]
    made = _functions[forward_callable_id](given)
    return [one and LodArray(xp.asarray(one.array), one.lod) for one in made]


def _infer(op: OpView) -> None:
    """Give gradients the shape and type of their variables; other outputs keep those that the user declared."""
    for index, name in enumerate(op.outputs.get("Out", ())):
        base = name.split(GRAD)[0]
        if name and base != name and not op.exact and op.has_meta(base):
            op.set("Out", op.meta.shape(base), op.meta.dtype(base), index)


def _rule(op: OpView) -> list[OpSpec]:
    function = op.attr("backward_callable_id")
    if function < 0:
        return []
    skipped = set(op.attr("backward_skip_vars"))
    own, made = list(op.names("X")), list(op.names("Out"))
    takes = [name for name in (*own, *made) if name not in skipped]
    takes += [grad_name(name) for name in made]
    gives = [grad_name(name) for name in own]
    return [OpSpec("py_func", {"X": takes}, {"Out": gives}, {"forward_callable_id": function})]


register(
    OpDef(
        "py_func",
        inputs=("X*?",),
        outputs=("Out*?",),
        attrs={
            "forward_callable_id": 0,
            "backward_callable_id": -1,
            "backward_skip_vars": Attr([], "STRINGS"),
        },
        infer=_infer,
        kernel=_py_func,
        grad=_rule,
        sequences=Sequences(takes_lod=True, source=None),
        effects=Effects(host=True, user_errors=True, external="calls Python functions"),
        doc="Calls a Python function with the inputs; what it returns are the outputs.",
    )
)
