"""`while` and its gradient as turns that are taken together: loops that count, and go through arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...base.rank_table import RankTable
from ...base.tensor_array import TensorArray
from ...framework import Operator
from ...framework.gradients.blocks import kept_names
from ..blocks.environment import Environment, Run
from ..plan.counted import Access, Counted
from ..plan.kept_branches import kept_within
from .form import Carried, Taken, Turns
from .stacks import Packed, Stack, Turned, listed

MOST_TURNS = 1 << 24
"""More turns are taken one by one: what is said of each beforehand would take more memory than what they work on."""


class _Unfit(Exception):
    """What the variables of a loop hold does not fit turns that are taken together."""


class _Loop:
    """The turns of one loop, from what its variables hold.

    `start`: what each counter is at place 0; `back`: whether turns go from the last place to the first.
    """

    def __init__(self, form: Counted, environment: Environment, count: int, back: bool) -> None:
        self.form = form
        self.environment = environment
        self.count = count
        self.back = back
        self.given: dict[str, Stack] = {}
        self.carried: dict[str, Carried] = {}
        self.shortened: dict[str, tuple[str, np.ndarray]] = {}
        self.starts = {name: self.integer(name) - (count - 1 if back else 0) for name in form.counters}

    def integer(self, name: str) -> int:
        value = self.environment.find(name)
        if not isinstance(value, np.ndarray) or value.size != 1 or value.dtype.kind != "i":
            raise _Unfit
        return int(value.item())

    def first(self, access: Access) -> int:
        """The index of an element at place 0."""
        at = self.starts[access.counter] + access.offset
        if at < 0:
            raise _Unfit
        return at

    def array(self, name: str) -> TensorArray:
        value = self.environment.find(name)
        if not isinstance(value, TensorArray):
            raise _Unfit
        return value

    def shorten(self) -> None:
        """Note which variables are the first rows of others."""
        for each in self.form.shortened:
            table = self.environment.find(each.table)
            start = self.starts[each.counter] + each.offset
            if not isinstance(table, RankTable) or start < 0:
                raise _Unfit
            rows = table.running[start : start + self.count]
            if len(rows) < self.count:
                raise _Unfit
            if each.source not in self.given and each.source not in self.carried:
                same = self.environment.find(each.source)
                if self.environment.lod_of(each.source) or not isinstance(same, np.ndarray):
                    raise _Unfit
                self.given[each.source] = _stack([same] * self.count)
            self.shortened[each.variable] = each.source, np.array(rows, np.int64)

    def carry(self, names: Iterable[str]) -> None:
        """Have variables of outside go from turn to turn."""
        for name in names:
            value = self.environment.find(name)
            if not isinstance(value, np.ndarray) or not value.ndim or self.environment.lod_of(name):
                raise _Unfit
            self.carried[name] = Carried(name, np.ascontiguousarray(value), None)

    def take(self, run: Run, wanted: Iterable[str], sums: Iterable[str] = ()) -> Taken | None:
        form = self.form
        turns = Turns(
            form.block, form.ops, self.count, self.back, self.given, self.carried,
            list(dict.fromkeys(wanted)), list(sums), self.shortened,
        )  # fmt: skip
        return run.turns(turns, self.environment)

    def leave(self, taken: Taken, arrays: dict[str, TensorArray]) -> None:
        """Store what the turns have written to `arrays`, and the counters."""
        form = self.form
        for access in form.writes:
            array, stack, start = arrays[access.array], taken.stacks[access.variable], self.first(access)
            read = next((each for each in form.reads if each.array == access.array), None)
            if read is not None and read.like:  # taken out again by the next turn
                array.write(start, stack.element(0))
            elif len(array) or start:
                array.put(start, [stack.element(place) for place in range(self.count)])
            else:
                bounds = [0, *np.cumsum(stack.rows).tolist()]
                arrays[access.array] = TensorArray.cut(stack.packed(), bounds)
        for name, step in form.counters.items():
            value = self.environment.find(name)
            self.environment.put(name, value + value.dtype.type(step * self.count))


def take_while(run: Run, op: Operator, environment: Environment) -> bool:
    """Run all turns of a loop whose first one is due; False, with nothing done, if they have to be taken one by one."""
    form = run.counted(op)
    if form is None:
        return False
    assert form.limit is not None
    try:
        counter, offset, limit = form.limit
        loop = _Loop(form, environment, 1, False)
        count = loop.count = max(1, loop.integer(limit) - loop.integer(counter) - offset + 1)
        if count > MOST_TURNS:
            raise _Unfit
        written = {access.array: access for access in form.writes}
        for read in form.reads:
            array, start = loop.array(read.array), loop.first(read)
            if read.array in written:
                (first,) = _elements(array, start, 1)
                after = written[read.array].variable
                loop.carried[read.variable] = Carried(after, np.ascontiguousarray(first), None)
            else:
                loop.given[read.variable] = _stack_of(array, start, count)
        loop.shorten()
        before, only = form.outer
        loop.carry(before)
        arrays = {name: _array_of(environment, name) for name in written}
    except _Unfit:
        return False
    kept = kept_names(op)
    block = form.block
    found = [*loop.given, *loop.carried, *loop.shortened]
    within = [name for name in found if name in (kept or ()) and name in block.vars]
    within += [*kept_within(block, form.ops, kept), *form.inside]
    taken = loop.take(run, [*(access.variable for access in form.writes), *only, *within])
    if taken is None:
        return False
    loop.leave(taken, arrays)
    for name, array in arrays.items():
        environment.put(name, array)
    for name in before:
        environment.put(name, taken.last[name])
    for name in only:
        environment.put(name, taken.stacks[name].element(count - 1))
    (condition,) = op.inputs["Condition"]
    environment.put(condition, np.zeros_like(environment.get(condition, op)))
    for name in op.outputs.get("StepScopes", ()):
        saved = {each: taken.stacks[each] for each in within}
        environment.put(name, Turned(block, environment.world, saved, count))
    return True


def take_while_grad(
    run: Run, op: Operator, state: Environment, arrays: dict[str, TensorArray], sums: Iterable[str]
) -> dict[str, Any] | None:
    """Run the gradient's block for all turns; None, with nothing done, if that has to be done turn by turn.

    `state`: the gradients that go from turn to turn, which are there afterwards; `arrays`: those of arrays, by the
    names that they have in the block, which are changed. Returns the gradients that are `sums` over the turns.
    """
    turned = state.find(op.inputs["StepScopes"][0])
    if not isinstance(turned, Turned) or not len(turned):
        return None
    form = run.counted(op)
    if form is None:
        return None
    count = len(turned)
    try:
        loop = _Loop(form, state, count, True)
        loop.given.update(turned.stacks)
        written = {access.array: access for access in form.writes}
        for access in form.writes:
            start = loop.first(access)
            if access.array not in arrays or _present(
                arrays[access.array],
                start,
                1 if access.array in {read.array for read in form.reads} else count,
            ):
                raise _Unfit
        for read in form.reads:
            _give_gradient(loop, read, written.get(read.array), arrays)
        loop.shorten()
        before, only = form.outer
        if only or not {*before} <= state.values.keys():
            raise _Unfit
        loop.carry(before)
    except _Unfit:
        return None
    made = {name for inner in form.ops for name in inner.writes()}
    added = [name for name in sums if name in made and name not in arrays and name not in state.values]
    taken = loop.take(run, [access.variable for access in form.writes], added)
    if taken is None:
        return None
    for read in form.reads:
        array, start = arrays[read.array], loop.first(read)
        array.take_out(start, count if read.like else 0)
    loop.leave(taken, arrays)
    for name in before:
        state.keep(name, taken.last[name])
    return dict(taken.sums)


def _give_gradient(
    loop: _Loop, read: Access, write: Access | None, arrays: Mapping[str, TensorArray]
) -> None:
    """Note what a gradient's turns read of an array: what others have put there, or what the turn before has."""
    if read.array not in arrays:
        raise _Unfit
    array, start, count = arrays[read.array], loop.first(read), loop.count
    if not read.like:
        raise _Unfit
    like = loop.given.get(read.like)
    if like is None:
        raise _Unfit
    if write is None:
        loop.given[read.variable] = _gradients(array, start, like)
        return
    if count > 1 and _present(array, start, count - 1):
        raise _Unfit
    last = start + count - 1
    first = (
        _elements(array, last, 1)[0] if _present(array, last, 1) else np.zeros_like(like.element(count - 1))
    )
    loop.carried[read.variable] = Carried(write.variable, np.ascontiguousarray(first), like.rows)


def _gradients(array: TensorArray, start: int, like: Stack) -> Stack:
    """Elements of a gradient, zeros where there are none."""
    count = len(like)
    if not _present(array, start, count):
        return Packed(np.zeros((int(like.rows.sum()), *like.tail), like.dtype), like.rows)
    if start + count <= len(array) and all(each is not None for each in array.arrays[start : start + count]):
        return _stack_of(array, start, count)
    return _stack(
        [
            np.zeros_like(like.element(place))
            if not _present(array, start + place, 1)
            else _elements(array, start + place, 1)[0]
            for place in range(count)
        ]
    )


def _present(array: TensorArray, start: int, count: int) -> bool:
    """Whether some of these elements have been written."""
    if start >= len(array):
        return False
    return any(each is not None for each in array.arrays[start : start + count])


def _elements(array: TensorArray, start: int, count: int) -> list[np.ndarray]:
    """Elements that are all there, and have no sequences."""
    found = array.arrays[start : start + count]
    if len(found) < count or any(not isinstance(each, np.ndarray) for each in found):
        raise _Unfit
    if any(array.lods[start : start + count]):
        raise _Unfit
    return found


def _stack_of(array: TensorArray, start: int, count: int) -> Stack:
    whole = array.whole
    if isinstance(whole, np.ndarray) and whole.flags.carray and not start and count == len(array):
        if whole.ndim and not any(array.lods):
            return Packed(whole, np.diff(array.bounds))
    return _stack(_elements(array, start, count))


def _stack(arrays: list[np.ndarray]) -> Stack:
    found = listed([np.ascontiguousarray(array) for array in arrays])
    if found is None:
        raise _Unfit
    return found


def _array_of(environment: Environment, name: str) -> TensorArray:
    """The array of a variable, which may not have one yet."""
    found = environment.find(name)
    if found is None:
        return TensorArray()
    if not isinstance(found, TensorArray):
        raise _Unfit
    return found


__all__ = ["take_while", "take_while_grad"]
