"""Whether a program takes its inputs and gives its outputs by `feed` and `fetch` operators (`fluid.executor`).

`Executor.run` feeds and fetches by name, whether a program has such operators or not; these functions are for code that
looks at programs.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ...framework import Block, Variable
from ..feeding import as_array, check


def has_feed_operators(block: Block, feed_targets: Collection[str], feed_holder_name: str) -> bool:
    """Whether `block` has feed operators, which then must be those of the names `feed_targets`.

    Raises Exception, as Fluid does, if they are for other variables, AssertionError if they take them from another
    variable than `feed_holder_name`. Follows `fluid.executor.has_feed_operators`.
    """
    return _has(block, "feed", "X", "Out", set(feed_targets), feed_holder_name)


def has_fetch_operators(
    block: Block, fetch_targets: Collection[Variable | str], fetch_holder_name: str
) -> bool:
    """Whether `block` has fetch operators, which then must be those of `fetch_targets`, Variables or names.

    Raises what `has_feed_operators` does. Follows `fluid.executor.has_fetch_operators`.
    """
    names = {var.name if isinstance(var, Variable) else var for var in fetch_targets}
    return _has(block, "fetch", "Out", "X", names, fetch_holder_name)


def _has(block: Block, kind: str, holder_slot: str, slot: str, targets: set[str], holder: str) -> bool:
    ops = [op for op in block.ops if op.type == kind]
    for op in ops:
        found = {**op.inputs, **op.outputs}[holder_slot][0]
        if found != holder:
            raise AssertionError(f"the {kind} operators of this program go by {found!r}, not by {holder!r}")
        name = {**op.inputs, **op.outputs}[slot][0]
        if name not in targets:
            raise Exception(f"'{kind}_targets' does not have {name} variable")
    if ops and len(ops) != len(targets):
        raise Exception(
            f"{kind.title()} operators in program desc do not match '{kind}_targets': {sorted(targets)}"
        )
    return bool(ops)


def check_feed_shape_type(var: Variable, feed: Any, num_places: int = 1) -> bool:
    """Raise ValueError if `feed` does not have the dtype and shape of `var`; return True otherwise.

    `num_places`: the number of devices that share the rows. Only variables of `fluid.data` are compared. Follows
    `fluid.executor.check_feed_shape_type`.
    """
    array, lod = as_array(feed, var)
    check(var, array[: -(-len(array) // num_places)] if num_places > 1 and not lod else array, lod)
    return True
