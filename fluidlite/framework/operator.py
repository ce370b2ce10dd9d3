"""`Operator`: one step of a Block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .._ext.operands import DeclaredTypes, Operands, converted, names_by_slot
from ..base import callsite
from ..base.dtypes import VarType, attribute
from ..base.errors import NotSupportedError
from ..ops.registry import Effects, OpDef, OpView, find
from . import tracing
from .common_attrs import COMMON_ATTRS, OpRole, tuning
from .variable import Parameter, Variable

if TYPE_CHECKING:
    from .block import Block
    from .serialization.descs import AttrType, OpDesc


COPY = "@KEPT@"
"""The suffix of a copy that gradients read instead of an overwritten variable; a block and a number follow."""


def _without_type(xp: Any) -> NoReturn:
    raise NotSupportedError("an operator without type cannot be run: set its type first (`desc.set_type`)")


_NOTHING = OpDef(
    "",
    outputs=(),
    kernel=_without_type,
    effects=Effects(host=True),
    doc="What an operator is that has no type yet.",
)


class BlockMeta(DeclaredTypes):
    """Answers an operator's questions about shapes while a block is built."""

    __slots__ = ()
    building = True

    def declares(self, name: str) -> bool:
        """Whether the variable exists."""
        return self.block._find_var_recursive(name) is not None

    def value(self, name: str) -> np.ndarray | None:
        return None

    def rows(self, name: str) -> int | None:
        return -1 if self.block._var_recursive(name).type == VarType.SELECTED_ROWS else None

    def set_rows(self, name: str, count: int) -> None:
        self.block._var_recursive(name).type = VarType.SELECTED_ROWS


class Operator(Operands):
    """An operator of a program: type, variable names by slot, attributes (`fluid.framework.Operator`)."""

    __slots__ = ("block", "line")
    definition: OpDef

    def __init__(
        self,
        block: Block,
        type: str,
        inputs: dict[str, Any] | None,
        outputs: dict[str, Any] | None,
        attrs: dict[str, Any] | None,
    ) -> None:
        self.block = block
        self.type = type
        self.definition = find(type)
        name_of = partial(_name, block)
        self.inputs = names_by_slot(inputs or {}, _VARIABLES, name_of)
        self.outputs = names_by_slot(outputs or {}, _VARIABLES, name_of)
        self.attrs = converted(attrs or {}, attribute)
        self.line = callsite.user_line()

    @classmethod
    def blank(cls, block: Block) -> Operator:
        """An operator without type and variables, to be filled through its `desc`; it cannot run as it is."""
        op = cls.__new__(cls)
        op.block, op.type, op.definition = block, "", _NOTHING
        op.inputs, op.outputs, op.attrs = {}, {}, {}
        op.line = callsite.user_line()
        return op

    @property
    def desc(self) -> OpDesc:
        """This operator in the form of Fluid's native module."""
        from .serialization.descs import OpDesc

        return OpDesc(self)

    def view(self) -> OpView:
        """This operator in the form that its declaration takes."""
        return OpView(self.definition, self.inputs, self.outputs, self.attrs, BlockMeta(self.block))

    def input(self, name: str) -> list[str]:
        """The names of the variables of an input slot."""
        return list(self.inputs.get(name, []))

    def output(self, name: str) -> list[str]:
        """The names of the variables of an output slot."""
        return list(self.outputs.get(name, []))

    @property
    def input_names(self) -> list[str]:
        return sorted(slot.name for slot in self.definition.input_slots)

    @property
    def output_names(self) -> list[str]:
        return sorted(slot.name for slot in self.definition.output_slots)

    def _named(self, results: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        """A kernel's results (see `OpDef.call`) with the names of their variables; without None."""
        for slot, result in zip(self.definition.output_slots, results, strict=True):
            names = self.outputs.get(slot.name)
            if names and result is not None:
                for name, value in zip(names, result if slot.many else (result,), strict=False):
                    if value is not None:
                        yield name, value

    @property
    def attr_names(self) -> list[str]:
        return sorted({*COMMON_ATTRS, *tuning(self.type), *self.definition.attrs, *self.attrs})

    def has_attr(self, name: str) -> bool:
        return any(
            name in known for known in (self.attrs, self.definition.attrs, COMMON_ATTRS, tuning(self.type))
        )

    def attr(self, name: str) -> Any:
        """The value of an attribute, or its default; None if the operator has no such attribute."""
        if name in self.attrs:
            return self.attrs[name]
        if name in COMMON_ATTRS:
            return self._call_stack() if name == "op_callstack" else COMMON_ATTRS[name]()
        return self.definition.attrs.get(name, copy(tuning(self.type).get(name)))

    def attr_type(self, name: str) -> AttrType:
        """The type of an attribute; EnforceNotMet if the operator has none of that name."""
        return self.desc.attr_type(name)

    def all_attrs(self) -> dict[str, Any]:
        """All attributes with their values."""
        return {name: self.attr(name) for name in self.attr_names}

    def declared_attrs(self) -> dict[str, Any]:
        """The attributes that the operator declares or was given."""
        return {**self.definition.attrs, **self.attrs}

    def _call_stack(self) -> list[str]:
        return [] if self.line is None else [f'  File "{self.line[0]}", line {self.line[1]}']

    def _set_attr(self, name: str, value: Any) -> None:
        self.attrs[name] = attribute(value)
        self.block.program._changed()

    _update_desc_attr = _set_attr

    def _block_attr(self, name: str) -> Block:
        """The block that an attribute names."""
        block: Block = self.attr(name)
        return block

    def _block_attr_id(self, name: str) -> int:
        return self.desc._block_attr_id(name)

    def _blocks_attr(self, name: str) -> list[Block]:
        """The blocks that an attribute names."""
        return list(self.attr(name))

    def _blocks_attr_ids(self, name: str) -> list[int]:
        return self.desc._blocks_attr_ids(name)

    def _has_kernel(self, op_type: str) -> bool:
        """Whether operators of this type compute something."""
        return find(op_type).kernel is not None

    def _remove_attr(self, name: str) -> None:
        self.attrs.pop(name, None)
        self.block.program._changed()

    def _rename_input(self, old: str, new: str) -> None:
        _rename(self.inputs, old, new)
        self.block.program._changed()

    def _rename_output(self, old: str, new: str) -> None:
        _rename(self.outputs, old, new)
        self.block.program._changed()

    def _is_optimize_op(self) -> bool:
        return bool(self.attrs.get("op_role", 0) & OpRole.Optimize)

    @property
    def idx(self) -> int:
        """The position in its block; raises ValueError for an operator that was removed."""
        for index, op in enumerate(self.block.ops):
            if op is self:
                return index
        raise ValueError(f"operator {self.type} is not in its block any more")

    def sub_blocks(self) -> list[Block]:
        """The blocks that attributes of this operator name."""
        if not self.definition.effects.control and self.type:
            return []
        result = []
        for value in self.attrs.values():
            result += [
                item
                for item in (value if isinstance(value, list) else [value])
                if isinstance(item, type(self.block))
            ]
        return result

    def to_string(self, throw_on_error: bool = True) -> str:
        """The operator as text, in the form of a saved program."""
        from .serialization import proto

        return proto.operator_text(self)

    def __repr__(self) -> str:
        return self.to_string()

    __str__ = __repr__


_VARIABLES = (Variable, Parameter)


def _name(block: Block, slot: str, item: Any) -> str:
    """The name of a Variable, or a name; of an eager tensor where a trace goes on."""
    if isinstance(item, str):
        return item
    if hasattr(type(item), "stands_for"):
        return tracing.stand_in(block.program, item, slot).name
    if isinstance(item, Variable):
        return item.name
    raise TypeError(
        f"slot {slot} takes a Variable or the name of one, got {item!r} of type {type(item).__name__}"
    )


def _rename(slots: dict[str, list[str]], old: str, new: str) -> None:
    for slot, names in slots.items():
        slots[slot] = [new if name == old else name for name in names]
