"""Dependencies among operators, by their positions (`fluid.backward.ProgramStats`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...base import callsite
from ..block import Block
from ..operator import Operator
from .recompute import seed_dropouts

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
