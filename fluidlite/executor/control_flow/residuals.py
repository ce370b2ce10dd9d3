"""Residuals: variables of branches and of loop iterations that gradients read, under their names after inlining."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ...base.dtypes import VarType
from ...framework import Block, Operator
from ...framework.gradients.blocks import kept_names
from ..ir.inference import NON_TENSORS
from .branching import TRIP_COUNT, is_inlinable, mangled_names, results
from .gradient_pairs import SCOPES


def residuals_of_branches(
    ops: Iterable[Operator], inner: Mapping[str, str] | None = None, arrays: bool = False
) -> list[str]:
    """The residuals of the branches and loops among `ops`, without those that iterations of these stash. `inner`:
    variable -> its name after inlining."""
    names, found = inner or {}, []
    for op in ops:
        kept = kept_names(op) if op.type in SCOPES and is_inlinable(op, arrays) else None
        if kept is None:
            continue
        (scope,), block = op.outputs[SCOPES[op.type]], op.attrs["sub_block"]
        found.append(names.get(scope, scope) + TRIP_COUNT)
        if op.type == "conditional_block":
            own = mangled_names(block)
            found += [own[name] for name in _tensors_made(block) if name in kept]
            found += residuals_of_branches(block.ops, {**names, **own}, arrays)
    return found


def residuals_of_block(block: Block, ops: Iterable[Operator], kept: Collection[str] | None) -> list[str]:
    """The variables of an iteration that its gradient reads and the operators of its block write."""
    if not kept:
        return []
    made = {name for op in ops for name in results(op) if name in kept}
    found = {name: block.vars.get(name) or block._find_var_recursive(name) for name in made}
    own = (n for n, var in found.items() if var is None or n in block.vars and var.type not in NON_TENSORS)
    return sorted(own)


def _tensors_made(block: Block) -> list[str]:
    made = dict.fromkeys(name for op in block.ops for name in results(op))
    return [n for n in made if n in block.vars and block.vars[n].type == VarType.LOD_TENSOR]
