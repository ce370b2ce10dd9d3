"""Functions of `fluid.executor` beside the executor: about values, shapes and names, and about `feed` operators.

`Executor.run` feeds and fetches by name, whether a program has `feed` and `fetch` operators or not; these functions are
for code that looks at programs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ...base.dtypes import to_numpy, to_vartype
from ...base.errors import FeedError, TypeAssertion
from ...base.place import Place
from ...framework import Block, Operator, Variable
from ..feeding import as_array, check
from ..tensors.lod_tensor import LoDTensor
from ..tensors.scope import Scope, global_scope


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


def as_numpy(tensor: Any) -> Any:
    """The elements of a LoDTensor, None if it has not been set, or of each in a list (`fluid.executor.as_numpy`).

    Raises RuntimeError for a tensor of sequences, AssertionError for anything else, as Fluid does.
    """
    if isinstance(tensor, (list, tuple)):
        return [as_numpy(item) for item in tensor]
    assert isinstance(tensor, LoDTensor), f"as_numpy takes a LoDTensor, got {type(tensor).__name__}"
    if tensor.offsets:
        raise RuntimeError(
            "Some of your fetched tensors hold LoD information. They can not be completely cast to Python ndarray. "
            "Please set the parameter 'return_numpy' as 'False' to return LoDTensor itself directly."
        )
    return None if tensor.array is None else np.array(tensor)


def dimension_is_compatible_with(first: Sequence[int], second: Sequence[int]) -> bool:
    """True if two shapes are equal; -1 and None match any size."""
    if len(first) != len(second):
        return False
    return all(a == b or a in (-1, None) or b in (-1, None) for a, b in zip(first, second, strict=True))


def dtype_is_compatible_with(first: Any, second: Any) -> bool:
    """True if two element types are the same."""
    return to_vartype(first) == to_vartype(second)


def _as_lodtensor(data: Any, place: Place, dtype: Any = None) -> LoDTensor:
    """A tensor on `place` of an array, which keeps its element type, or of a number or tuple in `dtype`.

    Raises AssertionError for a number without `dtype`, RuntimeError for a list, of which `create_lod_tensor` makes
    sequences, EnforceNotMet for what holds no numbers.
    """
    if isinstance(data, list):
        raise RuntimeError("some of the fed data are lists: make arrays or LoDTensors of them")
    if not isinstance(data, np.ndarray):
        if np.isscalar(data):
            if dtype is None:
                raise TypeAssertion(f"dtype should be given for the number {data!r}")
            data = [data]
        data = np.array(data, dtype=None if dtype is None else to_numpy(dtype))
    if data.dtype.hasobject:
        raise FeedError(f"a tensor holds numbers, and there are Python objects in {data!r:.80}")
    tensor = LoDTensor()
    tensor.set(data, place)
    return tensor


def _to_name_str(var: Any) -> str:
    """The name of a variable, or of the first output of an operator; TypeError for anything else."""
    if isinstance(var, (list, tuple)):
        return ",".join(_to_name_str(item) for item in var)
    if isinstance(var, str):
        return var
    if isinstance(var, Variable):
        return var.name
    if isinstance(var, Operator):
        return str(id(var))
    raise TypeError(f"{var!r} should be Variable, Operator or str")


def _fetch_var(name: str, scope: Scope | None = None, return_numpy: bool = True) -> Any:
    """The value of a variable of `scope` (the global scope if None); AssertionError if there is none."""
    assert isinstance(name, str), f"a variable is known by its name, got {name!r}"
    found = (global_scope() if scope is None else scope).find_var(name)
    assert found is not None, (
        f"Cannot find {name} in scope. Perhaps you need to make the variable persistable by using "
        "var.persistable = True in your program."
    )
    tensor = found.get_tensor()
    return as_numpy(tensor) if return_numpy else tensor
