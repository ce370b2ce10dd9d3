"""The declarations of operators in the form of Fluid's protocol buffers (`fluid.framework.OpProtoHolder`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ...ops.registry import OpDef, Slot, find, is_known, known_types
from ..common_attrs import COMMON_ATTRS, tuning
from ..operator import Operator
from ..program import Program
from .descs import AttrType, attr_type


@dataclass(frozen=True)
class OpProtoVar:
    """A slot: whether it takes several variables, and whether it may be left out."""

    name: str
    duplicable: bool
    dispensable: bool
    intermediate: bool = False
    comment: str = ""


@dataclass(frozen=True)
class OpProtoAttr:
    """An attribute and the number of its type."""

    name: str
    type: int
    generated: bool = False
    comment: str = ""


@dataclass(frozen=True)
class OpProto:
    """An operator: its slots, its attributes, and a sentence about what it computes."""

    type: str
    inputs: list[OpProtoVar]
    outputs: list[OpProtoVar]
    attrs: list[OpProtoAttr]
    comment: str


class OpProtoHolder:
    """The declarations of operators (`fluid.framework.OpProtoHolder.instance()`)."""

    @classmethod
    def instance(cls) -> OpProtoHolder:
        """The only instance."""
        return _instance()

    @property
    def op_proto_map(self) -> dict[str, OpProto]:
        """All operators by their types."""
        return {name: _proto(name) for name in known_types()}

    def get_op_proto(self, type: str) -> OpProto:
        """The declaration of operator `type`; ValueError for an unknown type."""
        if not is_known(type):
            raise ValueError(f'Operator "{type}" has not been registered.')
        return _proto(type)

    def update_op_proto(self) -> list[str]:
        """The operators added since construction: none, as all are looked up on demand."""
        return []

    @staticmethod
    def generated_op_attr_names() -> set[str]:
        """The attributes that every operator has."""
        return set(COMMON_ATTRS)


@cache
def _instance() -> OpProtoHolder:
    return OpProtoHolder()


@cache
def _proto(op_type: str) -> OpProto:
    definition = find(op_type)
    return OpProto(
        op_type,
        [_var(slot) for slot in definition.input_slots],
        [_var(slot) for slot in definition.output_slots],
        [OpProtoAttr(name, int(kind)) for name, kind in _attr_types(definition).items()],
        definition.doc,
    )


def _var(slot: Slot) -> OpProtoVar:
    return OpProtoVar(slot.name, slot.many, slot.optional)


def _attr_types(definition: OpDef) -> dict[str, AttrType]:
    op = Operator.blank(Program().global_block())
    op.type, op.definition = definition.type, definition
    known = {
        **definition.attrs,
        **tuning(definition.type),
        **{name: make() for name, make in COMMON_ATTRS.items()},
    }
    return {name: attr_type(op, name) for name, value in known.items() if value is not None}


def get_all_op_protos() -> list[OpProto]:
    """The declarations of all operators (`fluid.framework.get_all_op_protos`)."""
    return list(_instance().op_proto_map.values())
