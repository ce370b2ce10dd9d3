"""Programs as bytes and text: Fluid's own protocol-buffer form (`__model__`, `.pdmodel`, `print(program)`).

They hold what Fluid 1.8 saves: blocks, variables, operators with all attributes. Seeds, `stop_gradient` and the
class of variables (parameter or not) are not part of the format.

Fluid's own reader insists on the declared type of an attribute (FLOAT for `scale=2`, LONGS for the shape of
`fill_constant`). Most types follow from the operator's declared default, or are declared with it (`Attr`); the
table `_NAMED` has those where Python's types are not enough, for any operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.dtypes import ELEMENT_TYPES, VarType
from ...base.errors import EnforceNotMet, FormatError, NotSupportedError
from ...base.storage.messages import ATTR_TYPES, as_text, from_text, messages, parse
from ...ops import registry
from ...ops.registry import EMPTY, GRAD, grad_name
from .. import verify
from ..block import Block
from ..common_attrs import tuning
from ..operator import Operator
from ..variable import Parameter, Variable

if TYPE_CHECKING:
    from ..operator import Operator
    from ..program import Program


FLUID_VERSION = 1008005
"""The version in saved programs: that of Fluid 1.8.5, whose format they have."""

_FIELDS = ("i", "f", "s", "ints", "floats", "strings", "b", "bools", "block_idx", "l", "blocks_idx", "longs")
_FIELD = dict(zip(ATTR_TYPES, _FIELDS, strict=True))

_DEEPEST = 64
"""Limit of the nesting of blocks: functions that visit them recurse once for each level."""

_PART = f"{GRAD}@RENAME@"
"""The marker between the name of a gradient and the number of one of its parts, which a `sum` adds up."""

_DESCRIBED = {
    VarType.LOD_TENSOR: "lod_tensor",
    VarType.LOD_TENSOR_ARRAY: "tensor_array",
    VarType.SELECTED_ROWS: "selected_rows",
}

# Call stacks are of no use elsewhere and reveal the file names of the user.
_NOT_SAVED = frozenset({"op_callstack"})


def serialize(program: Program) -> bytes:
    """`program` as Fluid 1.8 saves it (`program.desc.serialize_to_string()`).

    Raises TypeError naming operator and attribute for a value that the format cannot hold.
    """
    return bytes(_program_message(program).SerializeToString(deterministic=True))


def message_bytes(thing: Block | Operator | Variable) -> bytes:
    """A part of a program in its saved form (`desc.serialize_to_string()`); raises as `serialize` does."""
    if isinstance(thing, Block):
        message = _block_message(thing)
    elif isinstance(thing, Operator):
        message = _fill_op(messages().OpDesc(), thing)
    else:
        message = _fill_var(messages().VarDesc(), thing)
    return bytes(message.SerializeToString(deterministic=True))


def program_text(program: Program, with_details: bool = False) -> str:
    """The text of `Program.to_string`; with details also unsaved attributes (`stop_gradient`, `trainable`, ...)."""
    if with_details:
        return "\n".join(block_text(block, with_details=True) for block in program.blocks)
    return as_text(_program_message(program))


def block_text(block: Block, with_details: bool = False) -> str:
    """The text of `Block.to_string`."""
    if not with_details:
        return as_text(_block_message(block))
    lines = ["blocks {", f"  idx: {block.idx}", f"  parent_idx: {block.parent_idx}"]
    for var in block.vars.values():
        lines += ["  vars {", _indented(variable_text(var, with_details=True)), "  }"]
    for op in block.ops:
        lines += ["  ops {", _indented(operator_text(op)), "  }"]
    return "\n".join([*lines, "}"])


def variable_text(var: Variable, with_details: bool = False) -> str:
    """The text of `Variable.to_string`."""
    text = as_text(_fill_var(messages().VarDesc(), var))
    if with_details:
        names = ["error_clip", "stop_gradient"]
        if isinstance(var, Parameter):
            names += ["trainable", "optimize_attr", "regularizer", "do_model_average"]
        text += "".join(f"{name}: {getattr(var, name)}\n" for name in names)
    return text


def operator_text(op: Operator) -> str:
    """The text of `Operator.to_string`."""
    return as_text(_fill_op(messages().OpDesc(), op))


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.rstrip("\n").split("\n"))


def _program_message(program: Program) -> Any:
    message = messages().ProgramDesc()
    for block in program.blocks:
        _fill_block(message.blocks.add(), block)
    message.version.version = FLUID_VERSION
    return message


def _block_message(block: Block) -> Any:
    return _fill_block(messages().BlockDesc(), block)


def _fill_block(message: Any, block: Block) -> Any:
    message.idx = block.idx
    message.parent_idx = block.parent_idx
    if block.forward_block_idx != -1:
        message.forward_block_idx = block.forward_block_idx
    for var in block.vars.values():
        _fill_var(message.vars.add(), var)
    for op in block.ops:
        _fill_op(message.ops.add(), op)
    return message


def _fill_var(message: Any, var: Variable) -> Any:
    message.name = var.name
    kind = message.type
    kind.type = int(var.type)
    if var.type == VarType.LOD_TENSOR:
        _fill_tensor(kind.lod_tensor.tensor, var)
        if var.lod_level or not var.persistable:
            kind.lod_tensor.lod_level = var.lod_level
        message.persistable = var.persistable
    elif var.type == VarType.LOD_TENSOR_ARRAY:
        _fill_tensor(kind.tensor_array.tensor, var)
        kind.tensor_array.lod_level = var.lod_level
    elif var.type == VarType.SELECTED_ROWS:
        _fill_tensor(kind.selected_rows, var)
    elif var.type == VarType.READER:
        kind.reader.SetInParent()
    if var.persistable:
        message.persistable = True
    if var.need_check_feed:
        message.need_check_feed = True
    return message


def _fill_tensor(message: Any, var: Variable) -> None:
    message.data_type = int(var.dtype)
    message.dims.extend(var.shape)


def _fill_op(message: Any, op: Operator) -> Any:
    message.type = op.type
    definition, inputs = op.definition, op.inputs
    if op.type == "group_norm_grad" and not inputs.get("Y"):  # Fluid's computes from Y, not from X
        inputs = {**inputs, "Y": [name.partition(GRAD)[0] for name in inputs[grad_name("Y")]]}
    _fill_slots(message.inputs, inputs, (slot.name for slot in definition.input_slots))
    _fill_slots(message.outputs, op.outputs, (slot.name for slot in definition.output_slots))
    attrs = op.declared_attrs()
    if op.type.endswith("_grad"):
        attrs = {**tuning(op.type), **attrs}
    for name, value in sorted(attrs.items()):
        if value is not None and name not in _NOT_SAVED:
            _fill_attr(message.attrs.add(), op, name, value)
    return message


def _fill_slots(message: Any, given: dict[str, list[str]], declared: Iterable[str]) -> None:
    for slot in sorted({*given, *declared}):
        message.add(parameter=slot, arguments=given.get(slot, []))


def _fill_attr(message: Any, op: Operator, name: str, value: Any) -> None:
    kind = wire_type(op, name, value)
    message.name = name
    message.type = ATTR_TYPES.index(kind)
    try:
        if kind.endswith("S"):
            items = value.ravel().tolist() if isinstance(value, np.ndarray) else value
            getattr(message, _FIELD[kind]).extend([_plain(kind[:-1], item) for item in items])
        else:
            setattr(message, _FIELD[kind], _plain(kind, value))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"attribute {name!r} of operator {op.type} cannot be saved: expected {kind}, got {value!r} "
            f"({error})"
        ) from None


def _plain(kind: str, value: Any) -> Any:
    if kind == "BLOCK":
        return value.idx
    if kind == "STRING":
        return value if isinstance(value, (str, bytes)) else str(value)
    return {"FLOAT": float, "BOOLEAN": bool}.get(kind, int)(value)


def parse_program(data: bytes, what: str = "the bytes") -> Program:
    """Parse a program saved here or by Fluid 1.8 (`Program.parse_from_string`).

    All variables are plain ones (the format has no parameters), with the shapes in the file. `what` names the source in
    errors. Raises TypeError for anything but bytes, FormatError if `data` is
    not a program, OperatorError for operators that do not fit, NotSupportedError for an operator that
    fluidlite does not have.
    """
    from ..program import Program

    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"a saved program is read from bytes, got {type(data).__name__}")
    message = parse("ProgramDesc", bytes(data), what)
    try:
        return _read_program(Program(), message, what)
    except UnicodeDecodeError as error:
        raise FormatError(f"{what} is not a ProgramDesc as Fluid writes it: {error}") from None
    except (EnforceNotMet, NotSupportedError) as error:
        if what in str(error):
            raise
        raise type(error)(f"{what}: {error}") from None


def parse_program_text(text: str, what: str = "the text") -> Program:
    """The program that `program_text`, or Fluid's `print(program)`, has made `text` of; errors as `parse_program`."""
    return parse_program(from_text("ProgramDesc", text, what), what)


def _read_program(program: Program, message: Any, what: str) -> Program:
    if not message.blocks:
        raise FormatError(f"{what} is not a program as Fluid writes it: it has no blocks")
    count = len(message.blocks)
    for number, block in enumerate(message.blocks):
        forward = block.forward_block_idx
        if (
            block.idx != number
            or block.parent_idx not in (range(number) if number else (-1,))
            or forward >= count
        ):
            raise FormatError(
                f"{what} is a damaged program: block {number} of {count} has idx {block.idx}, parent_idx "
                f"{block.parent_idx} and forward_block_idx {forward}"
            )
    parents = [{block.parent_idx} - {-1} for block in message.blocks]
    _check_nesting(parents, what)
    program.blocks = [Block(program, block.idx, block.parent_idx) for block in message.blocks]
    for block, saved in zip(program.blocks, message.blocks, strict=True):
        block.forward_block_idx = saved.forward_block_idx
        for var in saved.vars:
            _read_var(block, var, what)
    for block, saved in zip(program.blocks, message.blocks, strict=True):
        for op in saved.ops:
            _read_op(block, op, what)
    runs = [{sub.idx for op in block.ops for sub in op.sub_blocks()} for block in program.blocks]
    _check_nesting(runs, what)
    _drop_uncomputed(program)
    program._changed()
    return program


def _drop_uncomputed(program: Program) -> None:
    """Remove operands of sums of gradients that no operator computes: Fluid leaves them there, and skips them.

    They have names that Fluid makes for parts of a gradient; other operands may be fed, or be in the scope.
    """
    made = {name for block in program.blocks for op in block.ops for name in op.output_arg_names}
    for op in (op for block in program.blocks for op in block.ops if op.type == "sum"):
        computed = [name for name in op.inputs["X"] if name in made or _PART not in name]
        if made.intersection(computed):
            op.inputs["X"] = computed


def _check_nesting(leads_to: list[set[int]], what: str) -> None:
    """Raise FormatError for cycles of blocks, or blocks nested deeper than the limit."""
    left = set(range(len(leads_to)))
    for _ in range(_DEEPEST):
        left = {number for number in left if leads_to[number] & left}
    if left:
        raise FormatError(
            f"{what} is a damaged program: blocks {sorted(left)[:8]} lead back to themselves, or are nested more than "
            f"{_DEEPEST} deep"
        )


def _read_var(block: Block, message: Any, what: str) -> None:
    _check_names((message.name,), what)
    kind = VarType(message.type.type)
    shape, dtype, lod_level = None, None, 0
    field = _DESCRIBED.get(kind)
    if field is not None:
        described = getattr(message.type, field)
        tensor = described if kind == VarType.SELECTED_ROWS else described.tensor
        shape, dtype = list(tensor.dims), VarType(tensor.data_type)
        if dtype not in ELEMENT_TYPES:  # a few layers of Paddle mistake the kind of a variable for one
            dtype = None
        lod_level = getattr(described, "lod_level", 0)
    block.create_var(
        name=message.name,
        type=kind,
        shape=shape,
        dtype=dtype,
        lod_level=lod_level,
        persistable=message.persistable,
        need_check_feed=message.need_check_feed,
        is_data=message.need_check_feed,
    )


def _check_names(names: Iterable[str | bytes], what: str) -> None:
    """Raise FormatError for a name that is not text, which the protocol buffers then hand over as bytes."""
    for name in names:
        if not isinstance(name, str):
            raise FormatError(f"{what} is a damaged program: the name {name!r} is not UTF-8")


def _read_op(block: Block, message: Any, what: str) -> None:
    _check_names((message.type, *(attr.name for attr in message.attrs)), what)
    for slot in (*message.inputs, *message.outputs):
        _check_names((slot.parameter, *slot.arguments), what)
    attrs = {
        attr.name: _read_attr(attr, block, what) for attr in message.attrs if attr.name not in _NOT_SAVED
    }
    inputs, outputs = _read_slots(message.inputs), _read_slots(message.outputs)
    _add_left_out(message.type, inputs, outputs)
    op = Operator(block, message.type, inputs, outputs, attrs)
    verify.loaded(op)
    block.ops.append(op)
    for name in op.output_arg_names:
        var = block._find_var_recursive(name)
        if var is not None:
            var.op = op


def _add_left_out(op_type: str, inputs: dict[str, list[str]], outputs: dict[str, list[str]]) -> None:
    """Add inputs that Paddle's gradient operators omit, as they read only shapes; they follow from the gradients."""
    known = op_type.endswith("_grad") and registry.is_known(op_type)
    for slot in registry.find(op_type).input_slots if known else ():
        gradients = [name for name in outputs.get(grad_name(slot.name), ()) if name != EMPTY]
        if slot.shape_only and not slot.optional and slot.name not in inputs and gradients:
            names = outputs[grad_name(slot.name)]
            inputs[slot.name] = [(gradients[0] if n == EMPTY else n).partition(GRAD)[0] for n in names]


def _read_slots(slots: Sequence[Any]) -> dict[str, list[str]]:
    return {slot.parameter: list(slot.arguments) for slot in slots if slot.arguments}


def _read_attr(message: Any, block: Block, what: str) -> Any:
    kind = ATTR_TYPES[message.type]
    value = getattr(message, _FIELD[kind])
    if kind in ("BLOCK", "BLOCKS"):
        blocks = [
            _sub_block(index, block, message.name, what) for index in ([value] if kind == "BLOCK" else value)
        ]
        return blocks[0] if kind == "BLOCK" else blocks
    return list(value) if kind.endswith("S") else value


def _sub_block(index: int, block: Block, attr: str, what: str) -> Block:
    if not 0 < index < len(block.program.blocks) or index == block.idx:
        raise FormatError(
            f"{what} is a damaged program: attribute {attr!r} in block {block.idx} names block {index} "
            f"of {len(block.program.blocks)}"
        )
    return block.program.blocks[index]


_BY_NAME = {
    "FLOATS": (
        "anchor_sizes aspect_ratios bbox_reg_weights fixed_ratios fixed_sizes fp32_values max_sizes "
        "min_sizes scale_y "
        "stride variance variances"
    ),
    "LONG": (
        "blocksize max_average_window min_average_window min_row_size_to_use_multithread mod_by num_columns "
        "num_rows out_val_if_empty padding_idx seek"
    ),
    "LONGS": "height_sections int64_values shifts",
    "STRINGS": (
        "op_role_var op_callstack endpoints epmap states ex_states varnames table_names "
        "skip_eager_deletion_vars original_output_grad"
    ),
}
_NAMED = {name: kind for kind, names in _BY_NAME.items() for name in names.split()}
_INT32 = range(-(2**31), 2**31)


def wire_type(op: Operator, name: str, value: Any) -> str:
    """The name of the attribute type that a saved program gives to attribute `name` of `op`, which has
    `value`.

    Raises TypeError for a value that no attribute can hold.
    """
    known = op.definition.attr_types.get(name) or _NAMED.get(name)
    if known is not None:
        return known
    default = op.definition.attrs.get(name)
    if default is not None and not (isinstance(default, (list, tuple)) and not default):
        declared = _of_value(default)
        if declared not in ("INT", "INTS"):
            return declared
    try:
        return _of_value(value)
    except TypeError:
        raise TypeError(
            f"attribute {name!r} of operator {op.type} cannot be saved: expected numbers, strings, blocks or "
            "lists "
            f"of them, got {value!r} of type {type(value).__name__}"
        ) from None


def _of_value(value: Any) -> str:
    from ..block import Block

    if isinstance(value, np.ndarray):
        value = value.ravel().tolist()
    if isinstance(value, (list, tuple)):
        kinds = {_of_value(item) for item in value}
        if kinds <= {"INT", "LONG"}:
            return "LONGS" if "LONG" in kinds else "INTS"
        if kinds <= {"INT", "LONG", "FLOAT"}:
            return "FLOATS"
        if len(kinds) > 1:
            raise TypeError
        return kinds.pop() + "S"
    if isinstance(value, Block):
        return "BLOCK"
    if isinstance(value, (bool, np.bool_)):
        return "BOOLEAN"
    if isinstance(value, (int, np.integer, VarType)):
        return "INT" if int(value) in _INT32 else "LONG"
    if isinstance(value, (float, np.floating)):
        return "FLOAT"
    if isinstance(value, (str, bytes)):
        return "STRING"
    raise TypeError
