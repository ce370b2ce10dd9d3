"""Loops in rewritten functions: Python's run while the program is built, those on tensors become `while` operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .....base.dtypes import FLOATS, VarType
from .....base.errors import NotSupportedError
from .....framework import Variable
from ....layers import assign, fill_constant, less_than
from ....layers.control_flow.loops import While
from ....layers.utils import replaced
from . import values
from .branching import (
    Changes,
    Checkpoint,
    Grows,
    Thunk,
    and_,
    branch,
    deciding,
    grow,
    known_truth,
    values_text,
)
from .containers import Source, TensorRecords, of
from .slots import Attribute, Contents, Objects, Slot, Slots, same
from .values import UNSET, here, is_scalar, is_tensor, kind_of, truth

UNROLLED = 64
"""Loops of at most this many iterations, if the number is constant, are unrolled."""

_ATTEMPTS = 12


class _Counter(Slot):
    """The index of the iteration."""

    def __init__(self) -> None:
        super().__init__("the index of the iteration")
        self.value: Any = 0

    def get(self) -> Any:
        return self.value

    def put(self, value: Any) -> None:
        self.value = value


def while_(
    test: Thunk,
    body: Thunk,
    names: Sequence[str],
    live: Sequence[str],
    carried: Sequence[str],
    objects: Objects,
) -> None:
    """`while test(): body()`; see `rewriting` for the arguments."""
    condition = test()
    while not is_tensor(condition):
        if not condition:
            return
        body()
        condition = test()
    _Loop(
        test, body, lambda in_loop: Slots((test, body), names, carried if in_loop else live, carried, objects)
    ).build(condition)


def for_(
    iterable: Any,
    target: Callable[[Any], None],
    body: Thunk,
    ends: Thunk | None,
    names: Sequence[str],
    live: Sequence[str],
    carried: Sequence[str],
    objects: Objects,
) -> None:
    """`for target in iterable: body()`; `ends`, if given, is the condition for another iteration."""
    parts = (target, body) if ends is None else (target, body, ends)

    def slots(in_loop: bool) -> Slots:
        return Slots(parts, names, carried if in_loop else live, carried, objects)

    source = of(iterable)
    if source is not None:
        count = source.known()
        if count is None or count > UNROLLED:
            _counted(source, target, body, ends, slots)
            return
    items = iter(iterable if source is None else source)
    for item in items:
        target(item)
        body()
        condition = True if ends is None else ends()
        if is_tensor(condition):
            assert ends is not None
            for other in items:
                branch(truth(ends()), partial(_iteration, target, body, other), _nothing, slots(True))
            return
        if not condition:
            return


def _iteration(target: Callable[[Any], None], body: Thunk, item: Any) -> None:
    target(item)
    body()


def _nothing() -> None:
    """The empty `else` branch of an iteration that may not run."""


def _counted(
    source: Source,
    target: Callable[[Any], None],
    body: Thunk,
    ends: Thunk | None,
    slots: Callable[[bool], Slots],
) -> None:
    counter = _Counter()
    count = source.count()

    def test() -> Any:
        more = less_than(values.variable(counter.value, VarType.INT64), count)
        if ends is None:
            return more
        return and_(lambda: more, ends)

    def iteration() -> None:
        target(source.item(counter.value))
        body()
        counter.value = counter.value + 1

    def with_counter(in_loop: bool) -> Slots:
        result = slots(in_loop)
        result.assigned.append(counter)
        return result

    counter.value = values.variable(0, VarType.INT64)
    _Loop(test, iteration, with_counter).build(test())


class _Loop:
    """A loop with a tensor as its condition.

    `slots(in_loop)`: its variables; live are those read by the next iteration or, if not `in_loop`, after the loop.
    """

    def __init__(self, test: Thunk, body: Thunk, slots: Callable[[bool], Slots]) -> None:
        self._test, self._body, self._slots = test, body, slots
        self._types: dict[tuple[str, int], tuple[VarType, tuple[int, ...]]] = {}
        self._dynamic: dict[tuple[str, int], tuple[int, ...]] = {}
        self._changed: list[Attribute] = []  # attributes that are no variables of this function
        self._bound: set[str] = set()  # variables that hold another list or dict after an iteration
        self._held: set[int] = set()  # ids of lists and dicts whose elements are loop-carried

    def build(self, condition: Any) -> None:
        """Append the loop; `condition` decides on its first iteration."""
        pred = truth(condition)
        program = values.program() if pred.block.program._tracer is not None else pred.block.program
        for _ in range(_ATTEMPTS):
            checkpoint = Checkpoint(program)
            slots = self._with(False)
            before = slots.values()
            try:
                with deciding.hold(True):
                    self._attempt(pred, slots, before)
                return
            except _Rebuild:
                checkpoint.roll_back()
                slots.restore(before)
            except Changes as changed:
                checkpoint.roll_back()
                slots.restore(before)
                self._changed += changed.attributes
            except Grows as grown:
                checkpoint.roll_back()
                slots.restore(before)
                grow(grown)
            except _Peel:
                checkpoint.roll_back()
                slots.restore(before)
                branch(pred, self._body, _nothing, self._with(True))
                pred = truth(known_truth(self._test())) if is_tensor(pred) else pred
            except BaseException:
                checkpoint.roll_back()
                slots.restore(before)
                raise
        raise NotSupportedError(
            f"the types of the loop's variables still change after {_ATTEMPTS} attempts to build it{here()}"
        )

    def _with(self, in_loop: bool) -> Slots:
        slots = self._slots(in_loop)
        slots.add(self._changed)
        return slots

    def _attempt(self, pred: Variable, slots: Slots, before: list[Any]) -> None:
        loop_values: list[Any] = []
        watch = slots.watch()
        every: list[Slot] = slots.all()
        for slot, value in zip(every, before, strict=True):
            loop_values.append(self._enter(slot, value))
        condition = assign(pred)
        loop = While(condition)
        outer = condition.block
        with loop.block():
            for slot, value in zip(every, loop_values, strict=True):
                slot.put(value if self._keeps(slot, value) else replaced(value, _never, _never))
            self._body()
            next_condition = truth(values.variable(self._test()))
            after = slots.values()
            if changed := watch.changes():
                raise Changes(changed)
            late: list[tuple[Slot, Any]] = []
            writes: list[tuple[Variable, Any]] = []
            for slot, begin, end in zip(every, loop_values, after, strict=True):
                if begin is UNSET:
                    late.append((slot, self._late(slot, end, outer) if slot.live else UNSET))
                elif slot.carried or slot.live:
                    self._pair(slot, begin, end, writes)
            self._write(writes, loop_values)
            assign(next_condition, condition)
        for slot, value in zip(every, loop_values, strict=True):
            slot.put(value if slot.live or slot.carried else UNSET)
        for slot, value in late:
            slot.put(value)

    def _enter(self, slot: Slot, value: Any) -> Any:
        """The value of a variable at the start of an iteration: tensors and numbers become loop-carried Variables."""
        if value is UNSET or isinstance(value, (values.TensorList, TensorRecords)):
            return value
        if not slot.carried:
            return UNSET if not slot.live else value
        if isinstance(slot, Contents) and id(slot.container) not in self._held:
            return value
        if self._keeps(slot, value):
            return value
        number = -1

        def own(item: Any) -> Variable:
            nonlocal number
            number += 1
            return self._own(slot, number, item)

        return replaced(value, lambda item: isinstance(item, Variable) or is_scalar(item), own)

    def _own(self, slot: Slot, number: int, item: Any) -> Variable:
        key = slot.label, number
        if is_scalar(item):
            kind, shape = self._types.get(key, (kind_of(item), (1,)))
            var = fill_constant(list(shape), kind, item)
            if kind in FLOATS:
                var.stop_gradient = False
            if key not in self._types:
                values.as_number(var)
            return var
        if isinstance(item, values.TensorList):
            return item
        var = assign(values.variable(item))
        var.stop_gradient = item.stop_gradient and var.dtype not in FLOATS
        if isinstance(item, values.Number):
            values.as_number(var)
        var._shape = self._dynamic.get(key, var._shape)
        return var

    def _pair(self, slot: Slot, begin: Any, end: Any, writes: list[tuple[Variable, Any]]) -> None:
        """Add the (loop-carried Variable, value at the end of an iteration) pairs of a slot to `writes`."""
        if isinstance(slot, Contents) and id(slot.container) not in self._held:
            if same(begin, end):
                return
            if isinstance(end, list) and len(begin) != len(end):
                raise Grows(slot, end)
            self._held.add(id(slot.container))
            raise _Rebuild
        if self._keeps(slot, begin):
            if end is begin:
                return
            self._bound.add(slot.label)
            raise _Rebuild
        starts: list[Any] = []
        replaced(begin, lambda item: isinstance(item, Variable), starts.append)
        ends: list[Any] = []
        self._match(slot.label, begin, end, ends)
        for number, (start, item) in enumerate(zip(starts, ends, strict=True)):
            self._check(slot, number, start, item)
            writes.append((start, item))

    def _keeps(self, slot: Slot, value: Any) -> bool:
        """True if a variable refers to the same list or dict in all iterations; its elements are another slot."""
        return (
            type(value) in (list, dict) and not isinstance(slot, Contents) and slot.label not in self._bound
        )

    def _match(self, label: str, begin: Any, end: Any, ends: list[Any]) -> None:
        """Append to `ends` the parts of `end` at the positions of the Variables in `begin`."""
        if isinstance(begin, Variable):
            if isinstance(end, Variable) or is_scalar(end):
                if isinstance(begin, values.TensorList) and end is not begin:
                    raise NotSupportedError(f"list {label} is another one after an iteration{here()}")
                ends.append(end)
                return
        elif isinstance(begin, dict) and isinstance(end, dict) and begin.keys() == end.keys():
            for key in begin:
                self._match(f"{label}[{key!r}]", begin[key], end[key], ends)
            return
        elif isinstance(begin, (list, tuple)) and isinstance(end, (list, tuple)) and len(begin) == len(end):
            for k, (one, other) in enumerate(zip(begin, end, strict=True)):
                self._match(f"{label}[{k}]", one, other, ends)
            return
        elif begin is end or (
            type(begin) is type(end) and not isinstance(begin, (list, tuple, dict)) and begin == end
        ):
            return
        raise NotSupportedError(
            f"{label} is {values_text(begin)} before and {values_text(end)} after an iteration of a loop on tensors"
            f"{here()}: only tensors, numbers, and lists, tuples and dicts of equal structure may change there"
        )

    def _check(self, slot: Slot, number: int, start: Variable, item: Any) -> None:
        """Request another attempt if a variable's type or shape differs after an iteration."""
        if isinstance(start, values.TensorList) or item is start:
            return
        key = slot.label, number
        kind = item.dtype if isinstance(item, Variable) else kind_of(item)
        shape = tuple(item.shape) if isinstance(item, Variable) else (1,)
        is_number = isinstance(start, values.Number) or key in self._types
        if kind != start.dtype and is_number and not isinstance(item, Variable):
            if start.dtype in FLOATS:
                return  # a Python number, which is converted
        if kind != start.dtype:
            if not is_number or key in self._types or kind not in FLOATS:
                raise NotSupportedError(
                    f"{slot.label} is of type {start.dtype} before the loop and of type {kind} after an iteration"
                    f"{here()}; convert it with fluid.layers.cast"
                )
            known = start.shape
            self._types[key] = kind, known
            if isinstance(item, values.Number) or not isinstance(item, Variable):
                raise _Rebuild
        plain = isinstance(item, values.Number) or not isinstance(item, Variable)
        if isinstance(start, values.Number) and not plain:
            if not all(isinstance(n, int) and type(n) is int and n >= 0 for n in shape):
                raise _Peel
            self._types[key] = kind, shape
            raise _Rebuild
        if len(shape) == len(start.shape) and shape != start.shape:
            opened = tuple([a if a == b else -1 for a, b in zip(start.shape, shape, strict=True)])
            if opened != start.shape:
                self._dynamic[key] = opened
                raise _Rebuild
        elif len(shape) != len(start.shape):
            raise NotSupportedError(
                f"{slot.label} has {len(start.shape)} dimensions before the loop and {len(shape)} after an iteration"
                f"{here()}"
            )

    def _write(self, writes: list[tuple[Variable, Any]], loop_values: list[Any]) -> None:
        """Assign the loop-carried Variables; values that are targets themselves are copied first."""
        targets = {id(start) for start, item in writes if item is not start}
        moved = [
            (start, assign(item) if id(item) in targets else item)
            for start, item in writes
            if item is not start
        ]
        for start, item in moved:
            shape = start._shape
            if is_scalar(item):
                fill_constant([1], start.dtype, item, out=start)
            elif not isinstance(start, values.TensorList):
                assign(values.variable(item), start)
            start._shape = shape

    def _late(self, slot: Slot, value: Any, outer: Any) -> Any:
        """Variables of the block `outer` for a value that is first assigned inside of the loop."""

        def outside(item: Any) -> Variable:
            var = item if isinstance(item, TensorRecords) else values.variable(item)
            if isinstance(var, (values.TensorList, TensorRecords)):
                raise NotSupportedError(
                    f"list {slot.label} is made inside of the loop{here()}: make it before"
                )
            copy = outer.create_var(shape=var.shape, dtype=var.dtype, stop_gradient=var.stop_gradient)
            values.placeholder(outer, copy)
            assign(var, copy)
            copy._shape = var.shape
            if isinstance(var, values.Number):
                values.as_number(copy)
            return copy

        return replaced(
            value, lambda item: isinstance(item, (Variable, TensorRecords)) or is_scalar(item), outside
        )


def _never(value: Any) -> bool:
    return False


class _Rebuild(Exception):
    """The loop has to be built once more, with the types, shapes and carried containers noted so far."""


class _Peel(Exception):
    """The first iteration has to be built separately: the type that a variable then has depends on it."""
