"""Programs in the form of Fluid's native module: `Program.desc`, `Block.desc`, `Operator.desc`, `Variable.desc`.

They are views without state: changes through them change the program, and the reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from ...base import dtypes
from ...base.errors import EnforceNotMet
from ...ops.registry import find
from .. import verify
from ..block import Block
from ..operator import Operator
from ..program import Program
from ..variable import Variable
from . import proto
from .proto import wire_type


class AttrType(IntEnum):
    """The types of attributes, with the numbers that saved programs have (`fluid.core.AttrType`)."""

    INT = 0
    FLOAT = 1
    STRING = 2
    INTS = 3
    FLOATS = 4
    STRINGS = 5
    BOOL = 6
    BOOLS = 7
    BLOCK = 8
    LONG = 9
    BLOCKS = 10
    LONGS = 11

    def __str__(self) -> str:
        return f"AttrType.{self.name}"

    __repr__ = __str__


def attr_type(op: Operator, name: str) -> AttrType:
    """The type of an attribute of an operator; EnforceNotMet if it has none of that name."""
    return AttrType[wire_type(op, name, op.attr(name)).replace("BOOLEAN", "BOOL")]


class _View:
    """Two views of one thing are equal."""

    _shown: Any

    def __init__(self, shown: Any) -> None:
        self._shown = shown

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._shown is self._shown  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), id(self._shown)))


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


class VarDesc(_View):
    """A variable (`fluid.core.VarDesc`); made from a name alone it belongs to no program."""

    VarType = dtypes.VarType
    _shown: Variable

    def __init__(self, name: str | Variable) -> None:
        super().__init__(
            name if isinstance(name, Variable) else Variable(Program().global_block(), name=name)
        )

    def name(self) -> str:
        return self._shown.name

    def set_name(self, name: str) -> None:
        """Rename the variable; its block still finds it by the original name."""
        self._shown.name = name

    def type(self) -> dtypes.VarType:
        return self._shown.type

    def set_type(self, type: dtypes.VarType) -> None:
        self._shown.type = dtypes.VarType(type)
        self._changed()

    def dtype(self) -> dtypes.VarType:
        return self._shown.dtype

    def set_dtype(self, dtype: dtypes.VarType) -> None:
        self._shown._dtype = dtypes.VarType(dtype)
        self._changed()

    def shape(self) -> list[int]:
        return list(self._shown.shape)

    get_shape = shape

    def set_shape(self, shape: Sequence[int]) -> None:
        self._shown._shape = tuple(int(n) for n in shape)
        self._shown._shaped = True
        self._changed()

    def lod_level(self) -> int:
        return self._shown.lod_level

    def set_lod_level(self, level: int) -> None:
        self._shown.lod_level = int(level)
        self._changed()

    def persistable(self) -> bool:
        return self._shown.persistable

    def set_persistable(self, persistable: bool) -> None:
        self._shown.persistable = bool(persistable)
        self._changed()

    def need_check_feed(self) -> bool:
        return self._shown.need_check_feed

    def set_need_check_feed(self, need: bool) -> None:
        self._shown.need_check_feed = bool(need)

    def serialize_to_string(self) -> bytes:
        return proto.message_bytes(self._shown)

    def _changed(self) -> None:
        self._shown.block.program._changed()


class OpDesc(_View):
    """An operator (`fluid.core.OpDesc`); without arguments it has no type yet and belongs to no program."""

    _shown: Operator

    def __init__(self, op: Operator | None = None) -> None:
        super().__init__(Operator.blank(Program().global_block()) if op is None else op)

    def type(self) -> str:
        return self._shown.type

    def set_type(self, type: str) -> None:
        """Change the type; NotSupportedError for an unknown one."""
        self._shown.definition = find(type)
        self._shown.type = type
        self._changed()

    def inputs(self) -> dict[str, list[str]]:
        return {slot: list(names) for slot, names in self._shown.inputs.items()}

    def outputs(self) -> dict[str, list[str]]:
        return {slot: list(names) for slot, names in self._shown.outputs.items()}

    def input(self, name: str) -> list[str]:
        """The variables of a slot; EnforceNotMet for a slot that the operator does not have."""
        return self._slot("Input", name, self._shown.inputs, self._shown.input_names)

    def output(self, name: str) -> list[str]:
        """The variables of a slot; EnforceNotMet for a slot that the operator does not have."""
        return self._slot("Output", name, self._shown.outputs, self._shown.output_names)

    def _slot(self, kind: str, name: str, given: dict[str, list[str]], declared: list[str]) -> list[str]:
        if name not in given and name not in declared:
            has = ", ".join(declared)
            raise EnforceNotMet(f"{kind} {name} cannot be found in Op {self._shown.type}, which has {has}")
        return list(given.get(name, []))

    def input_names(self) -> list[str]:
        return sorted({*self._shown.inputs, *self._shown.input_names})

    def output_names(self) -> list[str]:
        return sorted({*self._shown.outputs, *self._shown.output_names})

    def input_arg_names(self) -> list[str]:
        return list(self._shown.input_arg_names)

    def output_arg_names(self) -> list[str]:
        return list(self._shown.output_arg_names)

    def set_input(self, slot: str, names: Sequence[str]) -> None:
        self._shown.inputs[slot] = list(names)
        self._changed()

    def set_output(self, slot: str, names: Sequence[str]) -> None:
        self._shown.outputs[slot] = list(names)
        self._changed()

    def _rename_input(self, old: str, new: str) -> None:
        self._shown._rename_input(old, new)

    def _rename_output(self, old: str, new: str) -> None:
        self._shown._rename_output(old, new)

    def attr_names(self) -> list[str]:
        return list(self._shown.attr_names)

    def has_attr(self, name: str) -> bool:
        return self._shown.has_attr(name)

    def attr(self, name: str) -> Any:
        """The value of an attribute; EnforceNotMet if it does not exist."""
        if not self.has_attr(name):
            raise EnforceNotMet(f"Attribute {name} is not found in operator {self._shown.type}")
        value = self._shown.attr(name)
        return BlockDesc(value) if isinstance(value, Block) else value

    def attr_type(self, name: str) -> AttrType:
        self.attr(name)
        return attr_type(self._shown, name)

    def _set_attr(self, name: str, value: Any) -> None:
        self._shown._set_attr(name, value._shown if isinstance(value, BlockDesc) else value)

    set_block_attr = _set_attr

    def set_blocks_attr(self, name: str, blocks: Sequence[BlockDesc]) -> None:
        self._shown._set_attr(name, [block._shown for block in blocks])

    def remove_attr(self, name: str) -> None:
        self._shown._remove_attr(name)

    def _block_attr_id(self, name: str) -> int:
        return int(self.attr(name).id)

    def _blocks_attr_ids(self, name: str) -> list[int]:
        return [block.idx for block in self.attr(name)]

    def block(self) -> BlockDesc:
        return BlockDesc(self._shown.block)

    def check_attrs(self) -> None:
        """No effect: missing attributes have their defaults."""

    def infer_shape(self, block: BlockDesc) -> None:
        """Set shapes and dtypes of the outputs, after checking the operator; OperatorError if it does not fit."""
        verify.operator(self._shown)

    infer_var_type = infer_shape

    def copy_from(self, other: OpDesc) -> None:
        """Take type, slots and attributes of another operator."""
        mine, theirs = self._shown, other._shown
        mine.type, mine.definition = theirs.type, theirs.definition
        mine.inputs, mine.outputs, mine.attrs = other.inputs(), other.outputs(), dict(theirs.attrs)
        self._changed()

    def serialize_to_string(self) -> bytes:
        return proto.message_bytes(self._shown)

    def _changed(self) -> None:
        self._shown.block.program._changed()


class BlockDesc(_View):
    """A block (`fluid.core.BlockDesc`). Names may be bytes or text."""

    _shown: Block

    @property
    def id(self) -> int:
        return self._shown.idx

    @property
    def parent(self) -> int:
        return self._shown.parent_idx

    def get_forward_block_idx(self) -> int:
        return self._shown.forward_block_idx

    def _set_forward_block_idx(self, idx: int) -> None:
        self._shown.forward_block_idx = idx

    def op_size(self) -> int:
        return len(self._shown.ops)

    def op(self, index: int) -> OpDesc:
        """Operator number `index`; IndexError if there are not as many."""
        if not 0 <= index < self.op_size():
            raise IndexError(f"block {self.id} has operators 0 to {self.op_size() - 1}, got {index}")
        return OpDesc(self._shown.ops[index])

    def append_op(self) -> OpDesc:
        """A new operator at the end, which has no type until `set_type` or `copy_from` gives it one."""
        return self._insert_op(self.op_size())

    def _prepend_op(self) -> OpDesc:
        return self._insert_op(0)

    def _insert_op(self, index: int) -> OpDesc:
        return OpDesc(self._shown._insert_blank(index))

    def _remove_op(self, begin: int, end: int) -> None:
        """Remove operators `begin` to `end` - 1."""
        for _ in range(begin, min(end, self.op_size())):
            self._shown._remove_op(begin)

    def all_vars(self) -> list[VarDesc]:
        return [VarDesc(var) for var in self._shown.vars.values()]

    def has_var(self, name: str | bytes) -> bool:
        return _text(name) in self._shown.vars

    def find_var(self, name: str | bytes) -> VarDesc | None:
        """The variable `name` of this block, or None."""
        found = self._shown.vars.get(_text(name))
        return None if found is None else VarDesc(found)

    def find_var_recursive(self, name: str | bytes) -> VarDesc | None:
        """The variable `name` of this block or of one around it, or None."""
        found = self._shown._find_var_recursive(_text(name))
        return None if found is None else VarDesc(found)

    def has_var_recursive(self, name: str | bytes) -> bool:
        return self.find_var_recursive(name) is not None

    def var(self, name: str | bytes) -> VarDesc:
        """The variable `name` of this block, made if there is none."""
        return self.find_var(name) or VarDesc(self._shown.create_var(name=_text(name)))

    def _rename_var(self, old: str | bytes, new: str | bytes) -> None:
        self._shown._rename_var(_text(old), _text(new))

    def _remove_var(self, name: str | bytes) -> None:
        if self.has_var(name):
            self._shown._remove_var(_text(name))

    def serialize_to_string(self) -> bytes:
        return proto.message_bytes(self._shown)


class ProgramDesc(_View):
    """A program (`fluid.core.ProgramDesc`): a new one, a copy of another, or a view of a `Program`."""

    _shown: Program

    def __init__(self, program: Program | ProgramDesc | None = None) -> None:
        if isinstance(program, ProgramDesc):
            program = program._shown.clone()
        super().__init__(Program() if program is None else program)

    def num_blocks(self) -> int:
        return len(self._shown.blocks)

    def block(self, index: int) -> BlockDesc:
        """Block number `index`; IndexError if there are not as many."""
        return BlockDesc(self._shown.blocks[index])

    def append_block(self, parent: BlockDesc) -> BlockDesc:
        """A new block inside `parent`."""
        block = Block(self._shown, self.num_blocks(), parent.id)
        self._shown.blocks.append(block)
        return BlockDesc(block)

    def get_feed_target_names(self) -> list[str]:
        """The variables that `feed` operators of the first block fill."""
        ops = self._shown.global_block().ops
        return [op.output("Out")[0] for op in ops if op.type == "feed"]

    def get_fetch_target_names(self) -> list[str]:
        """The variables that `fetch` operators of the first block take."""
        return [op.input("X")[0] for op in self._shown.global_block().ops if op.type == "fetch"]

    def serialize_to_string(self) -> bytes:
        """The program as bytes; `Program.parse_from_string` reads them."""
        return proto.serialize(self._shown)

    def parse_from_string(self, data: bytes) -> None:
        """Replace the program by the one in `data`; raises as `Program.parse_from_string` does."""
        self._shown._take_blocks(proto.parse_program(data))

    def flush(self) -> None:
        """No effect: there are no copies."""

    def _version(self) -> int:
        return proto.FLUID_VERSION

    def _set_version(self, version: int = proto.FLUID_VERSION) -> None:
        """No effect: programs are saved with the version of Fluid whose format they have."""
