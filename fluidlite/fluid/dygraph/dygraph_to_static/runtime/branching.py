"""Conditions in rewritten functions: Python values are decided at once, tensors become conditional blocks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from .....base.context import Slot as Ambient
from .....base.dtypes import FLOATS, VarType
from .....base.errors import NotSupportedError
from .....framework import Block, Operator, Program, Variable, tracing
from ....layers import assign, cast, fill_constant, logical_and, logical_not, logical_or
from ....layers.control_flow.branching import select_input
from ....layers.control_flow.conditional_block import ConditionalBlock
from ....layers.utils import replaced
from . import values
from .containers import TensorRecords, growing
from .slots import Attribute, Contents, Objects, Slot, Slots, same
from .values import UNSET, here, is_scalar, is_tensor, kind_of, truth

Thunk = Callable[[], Any]

deciding: Ambient[bool] = Ambient("dygraph_to_static.deciding", False)
"""True while a branch or a loop that depends on tensors is built: its operators may not run."""

_COMPARE = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
    "is": operator.is_, "is not": operator.is_not,
}  # fmt: skip

_RISKY = frozenset({"read_from_array", "gather", "gather_nd", "lookup_table", "lookup_table_v2"})
"""Operators that fail for some values: they must not run where Python would have skipped them."""


class Grows(Exception):
    """A list differs in length between two branches or iterations, and must become a tensor array."""

    def __init__(self, slot: Contents, items: list[Any]) -> None:
        super().__init__(slot.label)
        self.slot = slot
        self.items = items


class Changes(Exception):
    """Attributes are changed that are not slots yet; the construct is built once more with them as slots."""

    def __init__(self, attributes: list[Attribute]) -> None:
        super().__init__(*[attribute.label for attribute in attributes])
        self.attributes = attributes


class Checkpoint:
    """A checkpoint of a program under construction, to roll back to before it is built in another way."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._block = program.current_block()
        self._blocks = len(program.blocks)
        self._ops = len(self._block.ops)

    def new(self) -> list[Operator]:
        """The operators appended since the checkpoint."""
        return self._block.ops[self._ops :]

    def roll_back(self) -> None:
        """Remove the operators and blocks appended since the checkpoint."""
        del self._block.ops[self._ops :]
        del self._program.blocks[self._blocks :]
        self._program.current_block_idx = self._block.idx
        self._program._changed()


@contextmanager
def building(block: Block) -> Any:
    """Context manager: operators are appended to `block`."""
    program = block.program
    before = program.current_block_idx
    program.current_block_idx = block.idx
    try:
        yield
    finally:
        program.current_block_idx = before


class _Pick:
    """A value that depends on the condition: `yes` where it holds, `no` where it does not."""

    def __init__(self, label: str, yes: Any, no: Any) -> None:
        self.yes, self.no = yes, no
        known = [value for value in (yes, no) if value is not UNSET]
        tensors = [value for value in known if isinstance(value, Variable)]
        kinds = dict.fromkeys(value.dtype for value in tensors)
        if not kinds:
            kinds = dict.fromkeys(
                [
                    VarType.FP32
                    if VarType.FP32 in (number_kinds := [kind_of(v) for v in known])
                    else max(number_kinds, key=int)
                ]
            )
        if len(kinds) > 1:
            raise NotSupportedError(
                f"{label} is {values_text(yes)} where the condition holds and {values_text(no)} where it does not"
                f"{here()}: it must be of one type; convert it with fluid.layers.cast"
            )
        (self.dtype,) = kinds
        numbers = [value for value in known if is_scalar(value)]
        if (
            tensors
            and self.dtype not in FLOATS
            and any(isinstance(v, float) and not v.is_integer() for v in numbers)
        ):
            raise NotSupportedError(
                f"{label} is {values_text(yes)} where the condition holds and {values_text(no)} where it does "
                f"not{here()}"
            )
        shapes = [value.shape for value in tensors] or [(1,)]
        shape = shapes[-1]
        if len(shapes) == 2 and len(shapes[0]) == len(shapes[1]):
            shape = tuple([a if a == b else -1 for a, b in zip(*shapes, strict=True)])
        self.shape = shape
        self.number = all(is_scalar(value) or isinstance(value, values.Number) for value in known)
        self.stop_gradient = all(not isinstance(v, Variable) or v.stop_gradient for v in known)

    def outside(self, block: Block) -> Variable:
        """Create the variable of `block` for the selected value."""
        var = block.create_var(shape=self.shape, dtype=self.dtype, stop_gradient=self.stop_gradient)
        return values.as_number(var) if self.number else var

    def copy(self, value: Any, out: Variable) -> None:
        """Give `out` one of the two values, in the current block."""
        if value is UNSET:
            values.placeholder(out.block.program.current_block(), out)
        elif is_scalar(value):
            fill_constant([1], self.dtype, value, out=out)
        else:
            assign(values.variable(value), out)
        out._shape = self.shape


def values_text(value: Any) -> str:
    if value is UNSET:
        return "not assigned"
    if isinstance(value, Variable):
        return f"a tensor of type {value.dtype}"
    return f"{type(value).__name__} {value!r:.40}"


def _join(label: str, yes: Any, no: Any, picks: list[_Pick]) -> Any:
    """The value of a variable after both branches; where they differ, a `_Pick`, which is added to `picks`."""
    if same(yes, no):
        return yes
    if yes is UNSET or no is UNSET:

        def one_sided(value: Any) -> Any:
            if isinstance(value, (values.TensorList, TensorRecords)):
                raise NotSupportedError(
                    f"list {label} is made in one branch only{here()}: make it before the condition"
                )
            picks.append(_Pick(label, UNSET if yes is UNSET else value, UNSET if no is UNSET else value))
            return picks[-1]

        return replaced(
            no if yes is UNSET else yes, lambda value: isinstance(value, (Variable, TensorRecords)), one_sided
        )
    tensors = (Variable,)
    if all(isinstance(value, tensors) or is_scalar(value) for value in (yes, no)):
        if is_scalar(yes) and type(yes) is type(no) and yes == no:
            return yes
        if not any(isinstance(value, values.TensorList) for value in (yes, no)):
            picks.append(_Pick(label, yes, no))
            return picks[-1]
    elif type(yes) is type(no):
        if isinstance(yes, dict) and yes.keys() == no.keys():
            return type(yes)((key, _join(f"{label}[{key!r}]", yes[key], no[key], picks)) for key in yes)
        if isinstance(yes, (list, tuple)) and len(yes) == len(no):
            items = [
                _join(f"{label}[{k}]", a, b, picks) for k, (a, b) in enumerate(zip(yes, no, strict=True))
            ]
            return type(yes)(*items) if hasattr(yes, "_fields") else type(yes)(items)
        if not isinstance(yes, (list, tuple, dict)) and bool(yes == no):
            return yes
    raise NotSupportedError(
        f"{label} is {values_text(yes)} where the condition holds and {values_text(no)} where it does not{here()}: "
        "a condition on tensors can choose between tensors, numbers, and lists, tuples and dicts of equal structure"
    )


def branch(pred: Variable, yes: Thunk, no: Thunk, slots: Slots | None, what: str = "the value") -> Any:
    """Build both functions as conditional blocks; `pred` selects the returned value and the slots' values."""
    program = pred.block.program if tracing.current() is None else values.program()
    slots = Slots((yes, no), (), (), (), ()) if slots is None else slots
    while True:
        checkpoint = Checkpoint(program)
        before = slots.values()
        try:
            return _branch(program, pred, yes, no, slots, before, what)
        except Changes as changed:
            checkpoint.roll_back()
            slots.restore(before)
            slots.add(changed.attributes)
        except Grows as grown:
            checkpoint.roll_back()
            slots.restore(before)
            grow(grown)
            slots.contents.remove(grown.slot)
        except BaseException:
            program.current_block_idx = checkpoint._block.idx
            raise


def grow(grown: Grows) -> None:
    """Replace a list by a tensor array with the same elements."""
    slot = grown.slot
    if slot.holder.get() is not slot.container:
        raise NotSupportedError(f"list {slot.label} is no longer the value of its variable{here()}")
    now = slot.container if isinstance(slot.container, list) else [slot.container]
    slot.holder.put(growing(slot.label, list(now), grown.items))


def _branch(
    program: Program, pred: Variable, yes: Thunk, no: Thunk, slots: Slots, before: list[Any], what: str
) -> Any:
    blocks, returned, after = [], [], []
    watch = slots.watch()
    for part in (yes, no):
        block = program._create_block()
        blocks.append(block)
        with deciding.hold(True):
            returned.append(part())
        program.current_block_idx = block.parent_idx
        after.append(slots.values())
        slots.restore(before)
        if changed := watch.changes():
            raise Changes(changed)
    outside = program.current_block()
    picks: list[_Pick] = []
    result = _join(what, returned[0], returned[1], picks)
    joins: list[tuple[Slot, Any, bool]] = []
    for slot, one, other in zip(slots.all(), *after, strict=True):
        if isinstance(slot, Contents) and isinstance(one, list) and len(one) != len(other):
            raise Grows(slot, [*one, *other])
        if same(one, other):
            joins.append((slot, one, False))
        elif slot.live:
            joins.append((slot, _join(slot.label, one, other, picks), True))
        else:
            joins.append((slot, UNSET, False))
    chosen = _selected(picks, blocks, outside, pred)

    def made(value: Any) -> Any:
        return replaced(value, lambda item: isinstance(item, _Pick), lambda pick: chosen[id(pick)])

    for slot, value, joined in joins:
        slot.put(made(value) if joined else value)
    return made(result)


def _selected(
    picks: list[_Pick], blocks: Sequence[Block], outside: Block, pred: Variable
) -> dict[int, Variable]:
    """Append the conditional blocks and the selects of their results; returns a variable for each pick, by id."""
    sides: list[list[Variable]] = []
    for block, side in zip(blocks, ("yes", "no"), strict=True):
        outs: list[Variable] = []
        with building(block):
            for pick in picks:
                outs.append(pick.outside(outside))
                pick.copy(getattr(pick, side), outs[-1])
        sides.append(outs)
    if blocks[0].ops:
        ConditionalBlock([pred], is_scalar_condition=True)._complete(blocks[0])
    if blocks[1].ops:
        ConditionalBlock([logical_not(pred)], is_scalar_condition=True)._complete(blocks[1])
    chosen: dict[int, Variable] = {}
    mask = None
    for pick, one, other in zip(picks, *sides, strict=True):
        mask = mask if mask is not None else cast(pred, VarType.INT32)
        selected = select_input([other, one], mask)
        selected._shape, selected.stop_gradient = pick.shape, pick.stop_gradient
        chosen[id(pick)] = values.as_number(selected) if pick.number else selected
    return chosen


def if_(
    test: Any, then: Thunk, orelse: Thunk, names: Sequence[str], live: Sequence[str], objects: Objects
) -> None:
    """`if test: then() else: orelse()`; see `rewriting` for the arguments."""
    if is_tensor(test) and not isinstance(test, values.TensorList):
        branch(truth(test), then, orelse, Slots((then, orelse), names, live, live, objects))
    else:
        (then if test else orelse)()


def choose(test: Any, yes: Thunk, no: Thunk) -> Any:
    """`yes() if test else no()`."""
    if not is_tensor(test):
        return yes() if test else no()
    return branch(truth(test), yes, no, None, "the conditional expression")


def _both(value: Any, term: Thunk, conjunction: bool) -> Any:
    """`value and term()`, or `value or term()`, where `value` is a tensor."""
    pred = truth(value)
    checkpoint = Checkpoint(pred.block.program if tracing.current() is None else values.program())
    other = term()
    if any(op.type in _RISKY or op.sub_blocks() or op.definition.effects.host for op in checkpoint.new()):
        checkpoint.roll_back()
        if conjunction:
            return branch(pred, lambda: known_truth(term()), lambda: False, None)
        return branch(pred, lambda: True, lambda: known_truth(term()), None)
    if not is_tensor(other):
        if conjunction:
            return value if other else other
        return True if other else value
    if value.dtype == other.dtype != VarType.BOOL:
        return branch(
            pred, lambda: other if conjunction else value, lambda: value if conjunction else other, None
        )
    return (logical_and if conjunction else logical_or)(pred, truth(other))


def known_truth(value: Any) -> Any:
    return truth(value) if is_tensor(value) else bool(value)


def and_(*terms: Thunk) -> Any:
    """`a and b and ...`."""
    value: Any = True
    for term in terms:
        if is_tensor(value):
            value = _both(value, term, True)
        elif not value:
            return value
        else:
            value = term()
    return value


def or_(*terms: Thunk) -> Any:
    """`a or b or ...`."""
    value: Any = False
    for term in terms:
        if is_tensor(value):
            value = _both(value, term, False)
        elif value:
            return value
        else:
            value = term()
    return value


def not_(value: Any) -> Any:
    """`not value`."""
    return logical_not(truth(value)) if is_tensor(value) else not value


def given(value: Any) -> Any:
    return value


def compare(left: Any, *terms: Any) -> Any:
    """`left < a <= b ...`; `terms`: operators, each followed by a function that computes its right operand."""
    result: Any = True
    for sign, right in zip(terms[::2], terms[1::2], strict=True):
        if not is_tensor(result) and not result:
            return result
        value = right()
        comparison = _COMPARE[sign](left, value)
        result = (
            comparison
            if result is True
            else _both(result, partial(given, comparison), True)
            if is_tensor(result)
            else comparison
        )
        left = value
    return result
