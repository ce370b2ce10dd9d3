"""Small functions of `fluid.backward` about the names of gradients."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from ...ops.registry import GRAD, grad_name
from ..program import Program
from ..variable import Variable

if TYPE_CHECKING:
    from ..serialization.descs import OpDesc

_append_grad_suffix_ = grad_name


def _strip_grad_suffix_(name: str) -> str:
    """The variable of which `name` is a gradient of any order, renamed or not."""
    return name.partition(GRAD)[0]


def _is_grad_var_(var_name: str) -> bool:
    return GRAD in var_name


def _as_list(x: Any) -> list[Any]:
    """A list of one thing, of the elements of a list or tuple, or of nothing for None."""
    if x is None:
        return []
    return list(x) if isinstance(x, (list, tuple)) else [x]


def _some_in_set_(cands: Iterable[Any], s: Collection[Any]) -> bool:
    return any(item in s for item in cands)


def _all_in_set_(cands: Collection[Any], s: Collection[Any]) -> bool:
    """Whether there are candidates, and all of them are in the set."""
    return bool(cands) and all(item in s for item in cands)


def _get_no_grad_set_name(no_grad_set: Collection[Variable | str] | None) -> set[str]:
    """The names of Variables and names; TypeError for anything else, as Fluid."""
    if not isinstance(no_grad_set, (set, list, tuple, type(None))):
        raise TypeError(
            f"The type of no_grad_set should be set or list or tuple, but received {type(no_grad_set)}"
        )
    for member in no_grad_set or ():
        if not isinstance(member, (Variable, str)) or hasattr(type(member), "stands_for"):
            raise TypeError(
                "The type of no_grad_set's member must be paddle.fluid.Variable or str, but received "
                f"{type(member)}."
            )
    return {member if isinstance(member, str) else member.name for member in no_grad_set or ()}


def _get_stop_gradients_(program: Program) -> dict[int, set[str]]:
    """The names of the gradients that variables with `stop_gradient` would have, by the number of their block."""
    if not isinstance(program, Program):
        raise AssertionError(f"expected a Program, got {type(program).__name__}")
    return {
        block.idx: {grad_name(var.name) for var in block.vars.values() if var.stop_gradient}
        for block in program.blocks
    }


def serialize_op_decs(op_desc: OpDesc) -> str:
    """An operator as text."""
    return str(op_desc._shown)
