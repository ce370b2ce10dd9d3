"""Operators on sequences say sizes that hold for all steps: what changes from step to step is bound nowhere."""

import numpy as np
import pytest

from fluidlite.base.sizes import ShapeEnv, SymInt, current
from fluidlite.ops import registry
from fluidlite.ops.registry import Call, OpView, grad_name

from .. import in_native

FIXED = {"Filter", "PadValue", "Weight", "Bias", "Transition"}
LOD, DEEP = [0, 2, 5, 9], [[0, 2, 2, 3], [0, 4, 5, 9]]


class VaryingMeta(in_native.RunMeta):
    """A run with symbolic numbers of rows and sequences."""

    def __init__(self, arrays, lods):
        super().__init__(arrays, lods)
        self.sizes = ShapeEnv()
        for name, array in arrays.items():
            if name not in FIXED:
                self.shapes[name] = (self.sizes.input_symbol(array.shape[0], name), *array.shape[1:])
        for level in (level for levels in self.lods.values() for level in levels):
            self.shapes[level] = (self.sizes.input_symbol(self.arrays[level].shape[0] - 1, level) + 1,)

    def bound(self):
        """The guards that hold for one size only."""
        return [
            str(guard)
            for guard in self.sizes.guards.values()
            if guard.kind == "==" and not (isinstance(guard.a, SymInt) and isinstance(guard.b, SymInt))
        ]


def floats(*shape):
    return np.random.default_rng(2).uniform(-1, 1, shape).astype("float32")


def whole(*shape):
    return np.zeros(shape, "int64")


CASES = {
    "sequence_expand": ({"X": floats(3, 4), "Y": floats(9, 2)}, {}, {"Y": [LOD]}),
    "sequence_expand by an upper level": (
        {"X": floats(3, 4), "Y": floats(9, 2)}, {"ref_level": 0}, {"Y": DEEP},
    ),
    "sequence_expand of sequences": ({"X": floats(9, 4), "Y": floats(9, 2)}, {}, {"X": [LOD], "Y": [LOD]}),
    "sequence_expand_as": ({"X": floats(3, 4), "Y": floats(9, 2)}, {}, {"Y": [LOD]}),
    "sequence_slice": ({"X": floats(9, 4), "Offset": whole(3, 1), "Length": whole(3, 1) + 1}, {}, {"X": [LOD]}),
    "sequence_reshape": ({"X": floats(9, 4)}, {"new_dim": 2}, {"X": [LOD]}),
    "sequence_reshape to wider rows": ({"X": floats(10, 4)}, {"new_dim": 8}, {"X": [[0, 2, 4, 10]]}),
    "sequence_pad": ({"X": floats(9, 4), "PadValue": floats(1)}, {"padded_length": 6}, {"X": [LOD]}),
    "sequence_pad to the longest": ({"X": floats(9, 4), "PadValue": floats(1)}, {}, {"X": [LOD]}),
    "sequence_unpad": ({"X": floats(3, 4, 2), "Length": whole(3) + 2}, {}, {}),
    "sequence_mask": ({"X": whole(5, 2)}, {"maxlen": 4}, {}),
    "sequence_scatter": ({"X": floats(3, 4), "Ids": whole(9, 1), "Updates": floats(9, 1)}, {}, {"Ids": [LOD]}),
    "lod_reset to those of another": ({"X": floats(9, 4), "Y": floats(9, 1)}, {}, {"Y": DEEP}),
    "lod_reset to offsets that are data": (
        {"X": floats(9, 4), "Y": np.array([0, 4, 9])}, {"append": True}, {"X": [LOD]},
    ),
    "where": ({"Condition": floats(9, 4) > 0, "X": floats(9, 4), "Y": floats(9, 4)}, {}, {"X": [LOD]}),
    "masked_select": ({"X": floats(9, 4), "Mask": floats(9, 4) > 0}, {}, {}),
    "sequence_pool": ({"X": floats(9, 4)}, {"pooltype": "MAX"}, {"X": [LOD]}),
    "sequence_softmax": ({"X": floats(9, 1)}, {}, {"X": [LOD]}),
    "sequence_reverse": ({"X": floats(9, 4)}, {}, {"X": [LOD]}),
    "sequence_enumerate": ({"X": whole(9, 1)}, {"win_size": 2}, {"X": [LOD]}),
    "sequence_conv": (
        {"X": floats(9, 4), "Filter": floats(12, 5)}, {"contextLength": 3, "contextStart": -1}, {"X": [LOD]},
    ),
    "gru": ({"Input": floats(9, 6), "Weight": floats(2, 6), "Bias": floats(1, 6)}, {}, {"Input": [LOD]}),
    "lstm": ({"Input": floats(9, 8), "Weight": floats(2, 8), "Bias": floats(1, 14)}, {}, {"Input": [LOD]}),
    "linear_chain_crf": (
        {"Emission": floats(9, 4), "Transition": floats(6, 4), "Label": whole(9, 1)},
        {}, {"Emission": [LOD], "Label": [LOD]},
    ),
    "crf_decoding": ({"Emission": floats(9, 4), "Transition": floats(6, 4)}, {}, {"Emission": [LOD]}),
    "warpctc": (
        {"Logits": floats(9, 4), "Label": whole(5, 1).astype("int32")}, {}, {"Logits": [LOD], "Label": [[0, 1, 3, 5]]},
    ),
    "edit_distance": ({"Hyps": whole(9, 1), "Refs": whole(5, 1)}, {}, {"Hyps": [LOD], "Refs": [[0, 1, 3, 5]]}),
    "chunk_eval": ({"Inference": whole(9, 1), "Label": whole(9, 1)}, {}, {"Inference": [LOD], "Label": [LOD]}),
    "row_conv": ({"X": floats(9, 4), "Filter": floats(3, 4)}, {}, {"X": [LOD]}),
}  # fmt: skip


def calls_of(view):
    """The native calls after `infer`; none where only the data know a size."""
    view.definition.infer(view)
    view.meta.spread(view)
    shapes = view.meta.shapes
    if any(current(n) < 0 for names in view.outputs.values() for name in names for n in shapes.get(name, ())):
        return []
    found = view.definition.native(view) or []
    return [found] if isinstance(found, Call) else found


@pytest.mark.parametrize("what", CASES)
def test_no_size_is_bound(what):
    arrays, attrs, lods = CASES[what]
    definition = registry.find(what.partition(" ")[0])
    inputs = {slot: [slot] for slot in arrays}
    outputs = {slot.name: [f"{slot.name}_out"] for slot in definition.output_slots}
    view = OpView(definition, inputs, outputs, attrs, VaryingMeta(arrays, lods))
    for call in calls_of(view):
        assert any(isinstance(number, SymInt) for number in call.ints), f"{call.kernel}: all sizes are fixed"
    assert view.meta.bound() == []
    if definition.grad is None:
        return
    want = in_native._reference(view, arrays, lods)
    known, levels = {**arrays, **want.arrays}, {**lods, **want.lods}
    for name in want.arrays:
        known[grad_name(name)], levels[grad_name(name)] = want.arrays[name], want.lods.get(name, [])
    for spec in definition.grad(OpView(definition, inputs, outputs, attrs, in_native.RunMeta(known, levels))):
        reads = {name for names in spec.inputs.values() for name in names}
        meta = VaryingMeta(
            {name: known[name] for name in reads}, {name: levels[name] for name in reads if name in levels}
        )
        back = OpView(registry.find(spec.type), spec.inputs, spec.outputs, spec.attrs, meta)
        calls = calls_of(back)
        assert calls, f"{spec.type} has no native kernel"
        for call in calls:
            assert any(isinstance(number, SymInt) for number in call.ints), (
                f"{call.kernel}: all sizes are fixed"
            )
        assert back.meta.bound() == []
