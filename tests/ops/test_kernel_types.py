"""Element types of operators, as recorded from real Paddle 1.8.5, which ran each operator, and each gradient operator,
with every type in every input.
"""

import gzip
import json
from pathlib import Path

import numpy as np

from fluidlite.base.dtypes import to_numpy, to_vartype
from fluidlite.ops import kernel_types, registry
from fluidlite.ops.registry import OperatorError, OpView

TYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
RECORDED = json.loads(gzip.decompress(Path(__file__).with_name("kernel_types.json.gz").read_bytes()))
"""By operator: inputs with the types that they ran with at first, and a bit for each of `variants`, behind a one."""

# What an input may be depends on attributes here, or on whether another input has sequences.
DEPENDING = {
    "cross_entropy", "fill_any_like", "fill_constant", "gather_nd_grad", "lod_reset", "pad_constant_like_grad",
    "softmax_with_cross_entropy", "softmax_with_cross_entropy_grad",
}  # fmt: skip
# Paddle reads the bytes of these as if they were of another type.
MISREAD = {"deformable_conv", "deformable_conv_v1", "deformable_conv_grad", "deformable_conv_v1_grad"}
WHOLE = {"uint8", "int8", "int16", "int32", "int64"}


def variants(base):
    """Other types for the inputs of `base` (types by slot): for those of one type together, for all of these but one,
    and for each alone.
    """
    groups = {}
    for slot, dtype in base.items():
        groups.setdefault(dtype, []).append(slot)
    for group, slots in groups.items():
        for dtype in TYPES:
            if len(slots) > 1 and dtype != group:
                yield base | dict.fromkeys(slots, dtype)
                for kept in slots:
                    yield base | dict.fromkeys(slots, dtype) | {kept: group}
    for slot, own in base.items():
        for dtype in TYPES:
            if dtype != own:
                yield base | {slot: dtype}


class Types:
    """Answers for inputs that are called as their slots."""

    def __init__(self, types):
        self.types = {slot: to_vartype(np.dtype(dtype)) for slot, dtype in types.items()}

    def dtype(self, name):
        return self.types[name]

    def shape(self, name):
        return (1,)


def accepted(op, base, types):
    """Whether an operator that was declared with inputs of `base` computes on inputs of `types`."""
    view = OpView(registry.find(op), {slot: [slot] for slot in types}, {}, {}, Types(types))
    try:
        kernel_types.check(view, Types(base).dtype)
    except OperatorError:
        return False
    return True


def integers_of_other_sizes(op, types):
    """Whether an input that Paddle reads integers of one size from has others."""
    rule = kernel_types.rule_of(op)
    read = {slot: rule.others.get(slot, rule.kinds) for slot in types}
    return any(
        len(kinds) == 1 and WHOLE >= {str(to_numpy(kind)) for kind in kinds} and types[slot] in WHOLE
        for slot, kinds in read.items()
    )


def differences(op):
    for inputs, bits in RECORDED[op]:
        base = {slot: str(np.dtype(kind)) for slot, kind in (part.split(":") for part in inputs.split())}
        assert accepted(op, base, base)
        for types, bit in zip(variants(base), bin(int(bits, 16))[3:], strict=True):
            ours = accepted(op, base, types)
            if ours and bit == "0" and op not in DEPENDING and not integers_of_other_sizes(op, types):
                yield f"{op} takes {types}"
            if not ours and bit == "1" and op not in MISREAD:
                yield f"{op} refuses {types}"


def test_as_recorded():
    assert [text for op in sorted(RECORDED) for text in differences(op)] == []
