"""Loops in rewritten functions: Python's run while the program is built, those on tensors become `while` operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ....base.dtypes import FLOATS, VarType
from ....base.errors import NotSupportedError
from ....framework import Variable
from ....layers import assign, fill_constant, less_than
from ....layers.control_flow.loops import While
from ...nested import replaced
from . import values
from .branching import Changes, Grows, Mark, Thunk, and_, branch, deciding, grow, known_truth, values_text
from .iterables import Source, of
from .records import TensorRecords
from .slots import Attribute, Contents, Objects, Slot, Slots, same
from .values import UNSET, here, is_scalar, is_tensor, kind_of, truth

UNROLLED = 64
"""Up to how many turns are built one by one where their number is known."""

_ATTEMPTS = 12


class _Counter(Slot):
    """The number of the turn."""

    def __init__(self) -> None:
        super().__init__("the number of the turn")
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
    again = test()
    while not is_tensor(again):
        if not again:
            return
        body()
        again = test()
    _Loop(
        test, body, lambda turn: Slots((test, body), names, carried if turn else live, carried, objects)
    ).build(again)


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
    """`for target in iterable: body()`; `ends` says whether the next turn is to be taken."""
    parts = (target, body) if ends is None else (target, body, ends)

    def slots(turn: bool) -> Slots:
        return Slots(parts, names, carried if turn else live, carried, objects)

    found = of(iterable)
    if found is not None:
        count = found.known()
        if count is None or count > UNROLLED:
            _counted(found, target, body, ends, slots)
            return
    items = iter(iterable if found is None else found)
    for item in items:
        target(item)
        body()
        again = True if ends is None else ends()
        if is_tensor(again):
            assert ends is not None
            for other in items:
                branch(truth(ends()), partial(_turn, target, body, other), _nothing, slots(True))
            return
        if not again:
            return


def _turn(target: Callable[[Any], None], body: Thunk, item: Any) -> None:
    target(item)
    body()


def _nothing() -> None:
    """What there is to do where no turn is taken."""


def _counted(
    found: Source,
    target: Callable[[Any], None],
    body: Thunk,
    ends: Thunk | None,
    slots: Callable[[bool], Slots],
) -> None:
    counter = _Counter()
    count = found.count()

    def test() -> Any:
        more = less_than(values.variable(counter.value, VarType.INT64), count)
        if ends is None:
            return more
        return and_(lambda: more, ends)

    def turn() -> None:
        target(found.item(counter.value))
        body()
        counter.value = counter.value + 1

    def with_counter(turn: bool) -> Slots:
        made = slots(turn)
        made.assigned.append(counter)
        return made

    counter.value = values.variable(0, VarType.INT64)
    loop = _Loop(test, turn, with_counter)
    loop.build(test())


class _Loop:
    """One loop that tensors decide on; `slots(True)`: its variables, of which those matter that a next turn reads."""

    def __init__(self, test: Thunk, body: Thunk, slots: Callable[[bool], Slots]) -> None:
        self._test, self._body, self._slots = test, body, slots
        self._types: dict[tuple[str, int], tuple[VarType, tuple[int, ...]]] = {}
        self._open: dict[tuple[str, int], tuple[int, ...]] = {}
        self._changed: list[Attribute] = []  # attributes that are no variables of this function
        self._bound: set[str] = set()  # variables that hold another list or dict after a turn
        self._held: set[int] = set()  # lists and dicts whose elements change from turn to turn

    def build(self, again: Any) -> None:
        """Append the loop, whose first condition is `again`."""
        pred = truth(again)
        program = values.program() if pred.block.program._tracer is not None else pred.block.program
        for _ in range(_ATTEMPTS):
            mark = Mark(program)
            slots = self._with(False)
            before = slots.values()
            try:
                with deciding.hold(True):
                    self._attempt(pred, slots, before)
                return
            except _Again:
                mark.undo()
                slots.restore(before)
            except Changes as changed:
                mark.undo()
                slots.restore(before)
                self._changed += changed.attributes
            except Grows as grown:
                mark.undo()
                slots.restore(before)
                grow(grown)
            except _Peel:
                mark.undo()
                slots.restore(before)
                branch(pred, self._body, _nothing, self._with(True))
                pred = truth(known_truth(self._test())) if is_tensor(pred) else pred
            except BaseException:
                mark.undo()
                slots.restore(before)
                raise
        raise NotSupportedError(f"the variables of the loop change their types from turn to turn{here()}")

    def _with(self, turn: bool) -> Slots:
        slots = self._slots(turn)
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
        around = condition.block
        with loop.block():
            for slot, value in zip(every, loop_values, strict=True):
                slot.put(value if self._keeps(slot, value) else replaced(value, _never, _never))
            self._body()
            again = truth(values.variable(self._test()))
            after = slots.values()
            if changed := watch.changes():
                raise Changes(changed)
            late: list[tuple[Slot, Any]] = []
            writes: list[tuple[Variable, Any]] = []
            for slot, begin, end in zip(every, loop_values, after, strict=True):
                if begin is UNSET:
                    late.append((slot, self._late(slot, end, around) if slot.live else UNSET))
                elif slot.carried or slot.live:
                    self._pair(slot, begin, end, writes)
            self._write(writes, loop_values)
            assign(again, condition)
        for slot, value in zip(every, loop_values, strict=True):
            slot.put(value if slot.live or slot.carried else UNSET)
        for slot, value in late:
            slot.put(value)

    def _enter(self, slot: Slot, value: Any) -> Any:
        """What a variable holds at the beginning of a turn: Variables of the loop's own for tensors, numbers."""
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
            made = fill_constant(list(shape), kind, item)
            if kind in FLOATS:
                made.stop_gradient = False
            if key not in self._types:
                values.as_number(made)
            return made
        if isinstance(item, values.TensorList):
            return item
        made = assign(values.variable(item))
        made.stop_gradient = item.stop_gradient and made.dtype not in FLOATS
        if isinstance(item, values.Number):
            values.as_number(made)
        made._shape = self._open.get(key, made._shape)
        return made

    def _pair(self, slot: Slot, begin: Any, end: Any, writes: list[tuple[Variable, Any]]) -> None:
        """Note what a variable gets at the end of a turn, leaf by leaf."""
        if isinstance(slot, Contents) and id(slot.container) not in self._held:
            if same(begin, end):
                return
            if isinstance(end, list) and len(begin) != len(end):
                raise Grows(slot, end)
            self._held.add(id(slot.container))
            raise _Again
        if self._keeps(slot, begin):
            if end is begin:
                return
            self._bound.add(slot.label)
            raise _Again
        starts: list[Any] = []
        replaced(begin, lambda item: isinstance(item, Variable), starts.append)
        ends: list[Any] = []
        self._match(slot.label, begin, end, ends)
        for number, (start, item) in enumerate(zip(starts, ends, strict=True)):
            self._check(slot, number, start, item)
            writes.append((start, item))

    def _keeps(self, slot: Slot, value: Any) -> bool:
        """Whether a variable holds one list or dict all the time, whose elements are another slot."""
        return (
            type(value) in (list, dict) and not isinstance(slot, Contents) and slot.label not in self._bound
        )

    def _match(self, label: str, begin: Any, end: Any, ends: list[Any]) -> None:
        """Collect from `end` what stands where `begin` has Variables."""
        if isinstance(begin, Variable):
            if isinstance(end, Variable) or is_scalar(end):
                if isinstance(begin, values.TensorList) and end is not begin:
                    raise NotSupportedError(f"list {label} is another one after a turn of the loop{here()}")
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
            f"{label} is {values_text(begin)} before and {values_text(end)} after a turn of a loop that tensors decide "
            f"on{here()}: tensors and numbers may change there, and lists, tuples and dicts of as many of them"
        )

    def _check(self, slot: Slot, number: int, start: Variable, item: Any) -> None:
        """Have the loop built anew if a variable is of another type or shape after a turn."""
        if isinstance(start, values.TensorList) or item is start:
            return
        key = slot.label, number
        kind = item.dtype if isinstance(item, Variable) else kind_of(item)
        shape = tuple(item.shape) if isinstance(item, Variable) else (1,)
        is_number = isinstance(start, values.Number) or key in self._types
        if kind != start.dtype and is_number and not isinstance(item, Variable):
            if start.dtype in FLOATS:
                return  # a number of Python's
        if kind != start.dtype:
            if not is_number or key in self._types or kind not in FLOATS:
                raise NotSupportedError(
                    f"{slot.label} is of type {start.dtype} before the loop and of type {kind} after a turn{here()}; "
                    "convert it with fluid.layers.cast"
                )
            known = start.shape
            self._types[key] = kind, known
            if isinstance(item, values.Number) or not isinstance(item, Variable):
                raise _Again
        plain = isinstance(item, values.Number) or not isinstance(item, Variable)
        if isinstance(start, values.Number) and not plain:
            if not all(isinstance(n, int) and type(n) is int and n >= 0 for n in shape):
                raise _Peel
            self._types[key] = kind, shape
            raise _Again
        if len(shape) == len(start.shape) and shape != start.shape:
            opened = tuple([a if a == b else -1 for a, b in zip(start.shape, shape, strict=True)])
            if opened != start.shape:
                self._open[key] = opened
                raise _Again
        elif len(shape) != len(start.shape):
            raise NotSupportedError(
                f"{slot.label} has {len(start.shape)} dimensions before the loop and {len(shape)} after a turn{here()}"
            )

    def _write(self, writes: list[tuple[Variable, Any]], loop_values: list[Any]) -> None:
        """Give the loop's variables their new values, all at once."""
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

    def _late(self, slot: Slot, value: Any, around: Any) -> Any:
        """Variables around the loop for what is first assigned inside of it."""

        def outside(item: Any) -> Variable:
            var = item if isinstance(item, TensorRecords) else values.variable(item)
            if isinstance(var, (values.TensorList, TensorRecords)):
                raise NotSupportedError(
                    f"list {slot.label} is made inside of the loop{here()}: make it before"
                )
            made = around.create_var(shape=var.shape, dtype=var.dtype, stop_gradient=var.stop_gradient)
            values.placeholder(around, made)
            assign(var, made)
            made._shape = var.shape
            if isinstance(var, values.Number):
                values.as_number(made)
            return made

        return replaced(
            value, lambda item: isinstance(item, (Variable, TensorRecords)) or is_scalar(item), outside
        )


def _never(value: Any) -> bool:
    return False


class _Again(Exception):
    """The loop has to be built once more, with what has been found out."""


class _Peel(Exception):
    """The first turn has to be built on its own: only it shows what a variable becomes."""
