"""What the turns of a loop, and branches in them, leave for their gradients, under the names that it has in line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ...base.dtypes import VarType
from ...framework import Block, Operator
from ...framework.gradients.blocks import kept_names
from ...ops.registry import VERSION
from .branching import RAN, in_line, own_names, results


def kept_inside(ops: Iterable[Operator], inner: Mapping[str, str] | None = None) -> list[str]:
    """What the gradients of the branches among `ops` read of them, by the names that it has in line."""
    names, found = inner or {}, []
    for op in ops:
        kept = kept_names(op) if op.type == "conditional_block" and in_line(op) else None
        if kept is not None:
            (scope,), block = op.outputs["Scope"], op.attrs["sub_block"]
            found.append(names.get(scope, scope) + RAN)
            own = own_names(block)
            found += [own[name] for name in _tensors_made(block) if name in kept]
            found += kept_inside(block.ops, {**names, **own})
    return found


def kept_within(block: Block, ops: Iterable[Operator], kept: Collection[str] | None) -> list[str]:
    """Which variables of a turn, of those that its gradient reads, the operators of its block make."""
    if not kept:
        return []
    made = {name for op in ops for name in results(op) if name in kept}
    return sorted(n for n in made if n in block.vars or block._find_var_recursive(n) is None)


def _tensors_made(block: Block) -> list[str]:
    made = dict.fromkeys(name for op in block.ops for name in results(op))
    return [n for n in made if n in block.vars and block.vars[n].type == VarType.LOD_TENSOR]


def with_environments(
    block: Block, values: dict[str, Any], make: Any, inner: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Values of a run of a block as Python finds them: what branches have kept in environments, made by
    `make(block, values)`, in place of names in line."""
    names = inner or {}
    found = {plain: values[flat] for plain, flat in names.items() if flat in values}
    if inner is None:
        found = {
            name: value
            for name, value in values.items()
            if VERSION + "B" not in name and not name.endswith(RAN)
        }
    for op in block.ops:
        if op.type != "conditional_block" or not op.outputs.get("Scope"):
            continue
        (scope,), branch = op.outputs["Scope"], op.attrs["sub_block"]
        ran = values.get(names.get(scope, scope) + RAN)
        if ran is not None:
            own = own_names(branch)
            inside = with_environments(branch, values, make, own) if ran.item() else None
            found[scope] = [] if inside is None else [make(branch, inside)]
    return found
