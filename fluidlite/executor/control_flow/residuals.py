"""What the turns of a loop, and branches in them, leave for their gradients, under the names that it has in line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ...base.dtypes import VarType
from ...framework import Block, Operator
from ...framework.gradients.blocks import kept_names
from ..ir.inference import NON_TENSORS
from .branching import RAN, is_inlinable, mangled_names, results
from .gradient_pairs import SCOPES


def residuals_of_branches(
    ops: Iterable[Operator], inner: Mapping[str, str] | None = None, arrays: bool = False
) -> list[str]:
    """What the gradients of the branches and loops among `ops` read of them, but for what turns of these have kept; by
    the names that it has in line."""
    names, found = inner or {}, []
    for op in ops:
        kept = kept_names(op) if op.type in SCOPES and is_inlinable(op, arrays) else None
        if kept is None:
            continue
        (scope,), block = op.outputs[SCOPES[op.type]], op.attrs["sub_block"]
        found.append(names.get(scope, scope) + RAN)
        if op.type == "conditional_block":
            own = mangled_names(block)
            found += [own[name] for name in _tensors_made(block) if name in kept]
            found += residuals_of_branches(block.ops, {**names, **own}, arrays)
    return found


def residuals_of_block(block: Block, ops: Iterable[Operator], kept: Collection[str] | None) -> list[str]:
    """Which variables of a turn, of those that its gradient reads, the operators of its block make."""
    if not kept:
        return []
    made = {name for op in ops for name in results(op) if name in kept}
    found = {name: block.vars.get(name) or block._find_var_recursive(name) for name in made}
    own = (n for n, var in found.items() if var is None or n in block.vars and var.type not in NON_TENSORS)
    return sorted(own)


def _tensors_made(block: Block) -> list[str]:
    made = dict.fromkeys(name for op in block.ops for name in results(op))
    return [n for n in made if n in block.vars and block.vars[n].type == VarType.LOD_TENSOR]
