"""`fluid.op`: operators by their types, run one at a time on the variables of a scope."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ..base.storage.messages import ATTR_TYPES, messages
from ..executor.functions import BoundOperator
from ..framework.common_attrs import COMMON_ATTRS, tuning
from ..ops.registry import OpDef, Slot, find, is_known, known_types
from .core.programs import get_all_op_protos as core_protos

__all__ = [
    "OpDescCreationMethod",
    "OpInfo",
    "Operator",
    "OperatorFactory",
    "create_op_creation_method",
    "get_all_op_protos",
    "is_str",
]


class OpInfo(NamedTuple):
    """The signature of an operator: slots, each with whether it takes several variables, and attributes."""

    name: str
    inputs: list[tuple[str, bool]]
    outputs: list[tuple[str, bool]]
    attrs: list[str]

    @property
    def method(self) -> Callable[..., BoundOperator]:
        """Makes the operator from names of variables and attributes by keyword."""
        return functools.partial(Operator, self.name)


class OperatorFactory:
    """Makes operators: `Operator('mul', X='x', Y='y', Out='out').run(scope, place)` (`fluid.op.Operator`).

    Slots take names of variables of the scope, or lists of names; other keywords are attributes.
    """

    def __call__(self, *args: str, **kwargs: Any) -> BoundOperator:
        """An operator of the type that is the only argument, or `type=`.

        Raises ValueError for an unknown type, a second argument, and several variables where one belongs; TypeError
        for slots that hold no names and attributes of another type than that of their default.
        """
        if "type" in kwargs:
            args = (*args, kwargs.pop("type"))
        if len(args) != 1:
            raise ValueError(
                f'Except the argument "type",all of the other arguments should be keyword arguments. Got {args}'
            )
        definition = _definition(args[0])
        inputs = _slot_names(definition, definition.input_slots, kwargs, "Input")
        outputs = _slot_names(definition, definition.output_slots, kwargs, "Output")
        attrs = {
            name: _attribute(definition, name, value)
            for name, value in kwargs.items()
            if name not in definition.slots and (name in definition.attrs or name in COMMON_ATTRS)
        }
        return BoundOperator(definition.type, inputs, outputs, attrs)

    def types(self) -> list[str]:
        """The types that there are."""
        return [name for name in known_types() if not _is_gradient(name)]

    def get_op_info(self, t: str) -> OpInfo:
        """The signature of an operator; ValueError for an unknown type."""
        definition = _definition(t)
        return OpInfo(
            t,
            [(slot.name, slot.many) for slot in definition.input_slots],
            [(slot.name, slot.many) for slot in definition.output_slots],
            [*definition.attrs, *tuning(t), *COMMON_ATTRS],
        )

    def get_op_input_names(self, type: str) -> list[str]:
        return [name for name, _ in self.get_op_info(type).inputs]

    def get_op_inputs(self, type: str) -> list[tuple[str, bool]]:
        return self.get_op_info(type).inputs

    def get_op_output_names(self, type: str) -> list[str]:
        return [name for name, _ in self.get_op_info(type).outputs]

    def get_op_outputs(self, type: str) -> list[tuple[str, bool]]:
        return self.get_op_info(type).outputs

    def get_op_attr_names(self, type: str) -> list[str]:
        return self.get_op_info(type).attrs


Operator = OperatorFactory()


def is_str(s: Any) -> bool:
    """Whether `s` is text (`fluid.op.is_str`)."""
    return isinstance(s, str)


def get_all_op_protos() -> list[Any]:
    """The signatures of all operators, as OpProto messages (`fluid.op.get_all_op_protos`)."""
    return [messages().OpProto.FromString(data) for data in core_protos()]


class OpDescCreationMethod:
    """Makes OpDesc messages of an operator from names of variables and attributes by keyword.

    `op_proto`: the operator's signature, one of `get_all_op_protos`. Raises TypeError for anything else.
    Follows `fluid.op.OpDescCreationMethod`.
    """

    def __init__(self, op_proto: Any) -> None:
        if not isinstance(op_proto, messages().OpProto):
            raise TypeError("Type of op_proto should be OpProto in PaddlePaddle.")
        self.__op_proto__ = op_proto

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The message. Raises ValueError for arguments without keyword and several variables where one belongs."""
        if args:
            raise ValueError("Only keyword arguments are supported.")
        made = messages().OpDesc(type=self.__op_proto__.type)
        for listed, slots in (
            (made.inputs, self.__op_proto__.inputs),
            (made.outputs, self.__op_proto__.outputs),
        ):
            for slot in slots:
                given = kwargs.get(slot.name, [])
                names = [given] if is_str(given) else given
                if len(names) > 1 and not slot.duplicable:
                    raise ValueError(f"Input {slot.name} expects only one input, but {len(names)} are given.")
                listed.add(parameter=slot.name, arguments=names)
        for attr in self.__op_proto__.attrs:
            if not attr.generated and kwargs.get(attr.name) is not None:
                filled = made.attrs.add(name=attr.name, type=attr.type)
                field, many = _FIELDS[ATTR_TYPES[attr.type]]
                if many:
                    getattr(filled, field).extend(kwargs[attr.name])
                else:
                    setattr(filled, field, kwargs[attr.name])
        return made

    @staticmethod
    def any_is_true(generator: Iterable[Any]) -> bool:
        """Whether any item is true."""
        return any(generator)


_FIELDS = {
    "INT": ("i", False),
    "FLOAT": ("f", False),
    "STRING": ("s", False),
    "INTS": ("ints", True),
    "FLOATS": ("floats", True),
    "STRINGS": ("strings", True),
    "BOOLEAN": ("b", False),
    "BOOLEANS": ("bools", True),
    "LONG": ("l", False),
    "LONGS": ("longs", True),
}


def create_op_creation_method(op_proto: Any) -> OpInfo:
    """The signature of an operator, with `method`, its constructor (`fluid.op.create_op_creation_method`)."""
    return Operator.get_op_info(op_proto.type)


def _is_gradient(op_type: str) -> bool:
    return op_type.endswith("_grad") and is_known(op_type.removesuffix("_grad"))


def _definition(op_type: str) -> OpDef:
    if not is_known(op_type) or _is_gradient(op_type):
        raise ValueError(f"The operator: {op_type} is not registered.")
    return find(op_type)


def _slot_names(
    definition: OpDef, slots: tuple[Slot, ...], given: dict[str, Any], kind: str
) -> dict[str, list[str]]:
    """The names in `given` for these slots, in the order of the alphabet; an empty list for a slot that is left out."""
    out = {}
    for slot in sorted(slots, key=lambda slot: slot.name):
        names = given.get(slot.name, [])
        names = [names] if isinstance(names, str) else names
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise TypeError(
                f"{kind} {slot.name} of {definition.type} takes names of variables, got {names!r}"
            )
        if len(names) > 1 and not slot.many:
            raise ValueError(
                f"{kind} {slot.name} expects only one {kind.lower()}, but {len(names)} are given."
            )
        out[slot.name] = list(names)
    return out


def _attribute(definition: OpDef, name: str, value: Any) -> Any:
    """`value`; TypeError if the attribute has a default of another type."""
    default = definition.attrs.get(name)
    if default is None or isinstance(default, (list, tuple)):
        return value
    takes = {bool: (bool, int), int: (int,), float: (float, int)}.get(type(default), (type(default),))
    if not isinstance(value, (*takes, np.generic)):
        raise TypeError(f"attribute {name} of {definition.type} must be a {takes[0].__name__}, got {value!r}")
    return value
