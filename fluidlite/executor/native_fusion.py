"""What the fuser can put together for the host: products with bias and activation, and updates of one kind."""

from __future__ import annotations

from ..ops.math import gemm
from ..ops.optimizers import updates as optim
from ..ops.registry import Call
from .fusion import Gathering, Member, grown, joined
from .instructions import Instruction, Uses


def _product(before: Instruction, after: Instruction, uses: Uses) -> Instruction | None:
    """A product with what adds a row to each row of its result, or with a function of each element."""
    product, call = before.action, after.action
    if not isinstance(product, Call) or not isinstance(call, Call) or not gemm.is_product(product):
        return None
    result, read = uses.root(product.operands[2] or ""), [uses.root(name or "") for name in call.operands]
    if read[0] != result or read.count(result) != 1:
        return None
    action = gemm.with_bias(product, call) or gemm.with_activation(
        product, call, after.op.definition.epilogue
    )
    if action is None:
        return None
    others = (name for name in after.reads if uses.root(name) != result)
    return joined(before, after, action, (*before.reads, *others), after.writes)


class _Updates(Gathering):
    """Optimizers' updates of one kind, rate and constants as one call over many parameters."""

    def member(self, position: int) -> Member | None:
        instruction = self.instructions[position]
        if not isinstance(instruction.action, Call) or not instruction.op._is_optimize_op():
            return None
        key = optim.update_kind(instruction.action)
        return None if key is None else Member(key, instruction)

    def together(self, members: list[Member]) -> list[Instruction]:
        parts = [member.main for member in members]
        if len(parts) == 1:
            return parts
        return [
            Instruction(
                tuple(dict.fromkeys(op for part in parts for op in part.ops)),
                tuple(dict.fromkeys(name for part in parts for name in part.reads)),
                tuple(dict.fromkeys(name for part in parts for name in part.writes)),
                optim.joined([part.action for part in parts]),
            )
        ]


PASSES = (grown(_product), _Updates.run)
