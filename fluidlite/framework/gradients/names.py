"""Names of gradient variables, and dependencies among operators (`fluid.backward`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...base import callsite
from ...ops.registry import GRAD, grad_name
from ..block import Block
from ..operator import Operator
from ..program import Program
from ..variable import Variable
from .recompute import seed_dropouts

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


__all__ = ["ProgramStats"]


class ProgramStats:
    """Def-use information on the operators of a block, for recomputation (`fluid.backward.ProgramStats`).

    Args:
        block: the block with the variables.
        ops: the operators, in order.

    `build_stats` fills `op_deps` (operator position -> positions of the producers of its inputs, `in_ops`, and of the
    readers of its outputs, `out_ops`) and `var_op_deps` (variable name -> positions of its readers,
    `var_as_input_ops`, and writers, `var_as_output_ops`).
    """

    def __init__(self, block: Block, ops: Sequence[Operator]) -> None:
        self.block, self.ops = block, ops
        self.op_deps: dict[int, dict[str, list[int]]] = {}
        self.var_op_deps: dict[str, dict[str, list[int]]] = {}

    def build_stats(self) -> None:
        """Collect the dependencies of the operators."""
        for index, op in enumerate(self.ops):
            made = self.op_deps[index] = {"in_ops": [], "out_ops": []}
            for name in op.input_arg_names:
                of = self._of(name)
                made["in_ops"] += of["var_as_output_ops"]
                of["var_as_input_ops"].append(index)
            for name in op.output_arg_names:
                self._of(name)["var_as_output_ops"].append(index)
            for source in made["in_ops"]:
                self.op_deps[source]["out_ops"].append(index)

    def _of(self, name: str) -> dict[str, list[int]]:
        return self.var_op_deps.setdefault(name, {"var_as_input_ops": [], "var_as_output_ops": []})

    def get_input_nodes(self) -> list[str]:
        """The names that no operator writes, without persistable variables."""
        return [
            name
            for name, of in self.var_op_deps.items()
            if not of["var_as_output_ops"] and not self.block._is_persistable(name)
        ]

    def get_reserved_vars(self) -> list[str]:
        """The variables that recomputation keeps: the seeds of dropouts."""
        return [name for op in self.ops if op.type == "seed" for name in op.output_arg_names]

    def get_out_of_subgraph_vars(self, begin_op_idx: int, end_op_idx: int) -> list[str]:
        """The variables that pass the borders of the operators [`begin_op_idx`, `end_op_idx`).

        A name is listed once for each later operator that reads it, and each earlier one that writes it.
        """
        names = []
        for op in (self.ops[index] for index in range(begin_op_idx, end_op_idx)):
            for name in op.output_arg_names:
                names += [name for index in self._of(name)["var_as_input_ops"] if index >= end_op_idx]
            for name in op.input_arg_names:
                names += [name for index in self._of(name)["var_as_output_ops"] if index < begin_op_idx]
        return names

    def is_subgraph(self, var_group1: Iterable[str], var_group2: Iterable[str]) -> tuple[bool, int, int]:
        """Whether operators lead from the first names to the second: (that, the first reader's position, the last
        writer's). A name that no operator has makes it (False, the number of operators, -1).
        """
        first_group, second_group = list(var_group1), list(var_group2)
        if not all(name in self.var_op_deps for name in (*first_group, *second_group)):
            return False, len(self.ops), -1
        readers = [i for name in first_group for i in self._of(name)["var_as_input_ops"]]
        writers = [i for name in second_group for i in self._of(name)["var_as_output_ops"]]
        first, last = min(readers, default=len(self.ops)), max(writers, default=-1)
        return first < last, first, last

    def sort_checkpoints(self, checkpoints_name: Iterable[str]) -> list[str]:
        """The names in the order in which operators last write them; a warning for names that no operator has."""
        known = []
        for name in checkpoints_name:
            if name in self.var_op_deps:
                known.append(name)
            else:
                callsite.warn(f"checkpoint {name!r} is left out: no operator has it")
        return sorted(known, key=lambda name: max(self._of(name)["var_as_output_ops"], default=-1))

    def modify_forward_desc_for_recompute(self) -> None:
        """Give each dropout its seed from an operator of its own, so that both computations use the same one."""
        seed_dropouts(self.ops)
