"""split_lod_tensor and merge_lod_tensor; expected numbers are those of Fluid 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base.dtypes import VarType
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel
from ..sequences.test_sequence import lods_of

ROWS = np.arange(6, dtype="float32").reshape(6, 1)


def mask(*values):
    return np.array(values, bool).reshape(-1, 1)


def split(rows, chosen, lod=(), level=0):
    """Both sides and their levels of detail."""
    inputs, lods = {"X": rows, "Mask": chosen}, {"X": [list(lod)], "Mask": [[]]}
    made = run_kernel("split_lod_tensor", inputs, {"level": level}, lods)
    levels = [
        [[int(n) for n in each] for each in side]
        for side in lods_of("split_lod_tensor", inputs, {"level": level}, lods)
    ]
    return made["OutTrue"][0], made["OutFalse"][0], levels


def merge(yes, no, chosen, x=None, lods=((), (), ()), level=0):
    inputs = {"X": ROWS if x is None else x, "Mask": chosen, "InTrue": yes, "InFalse": no}
    known = {"X": [lods[0]], "Mask": [[]], "InTrue": [lods[1]], "InFalse": [lods[2]]}
    made = run_kernel("merge_lod_tensor", inputs, {"level": level}, known)["Out"][0]
    (levels,) = lods_of("merge_lod_tensor", inputs, {"level": level}, known)
    return made, [[int(n) for n in each] for each in levels]


def test_rows():
    x = np.arange(12, dtype="float32").reshape(4, 3)
    chosen = mask(1, 0, 0, 1)
    outputs = {"OutTrue": x[[0, 3]], "OutFalse": x[[1, 2]]}
    check("split_lod_tensor", {"X": x, "Mask": chosen}, {"level": 0}, outputs, grads=("X",), lods={})
    parts = {"X": chosen, "Mask": chosen, "InTrue": x[[0, 3]], "InFalse": x[[1, 2]]}
    check("merge_lod_tensor", parts, {"level": 0}, {"Out": x}, grads=("InTrue", "InFalse"), lods={})


@pytest.mark.parametrize(
    ("lod", "level", "chosen", "yes", "no", "levels"),
    [
        ([[0, 1, 3, 6]], 0, (1, 0, 1), [0, 3, 4, 5], [1, 2], [[[0, 1, 4]], [[0, 2]]]),
        ([[0, 1, 3, 6]], 0, (1, 1, 1), [0, 1, 2, 3, 4, 5], [], [[[0, 1, 3, 6]], [[0]]]),
        ([[0, 1, 1, 6]], 0, (0, 1, 0), [], [0, 1, 2, 3, 4, 5], [[[0, 0]], [[0, 1, 6]]]),
        ([[0, 1, 3], [0, 1, 3, 6]], 0, (1, 0), [0], [1, 2, 3, 4, 5], [[[0, 1], [0, 1]], [[0, 2], [0, 2, 5]]]),
        ([[0, 1, 3], [0, 1, 3, 6]], 1, (1, 0, 1), [0, 3, 4, 5], [1, 2], [[[0, 1, 4]], [[0, 2]]]),
        ([[0, 1, 3, 6]], 1, (1, 0, 0, 1, 1, 0), [0, 3, 4], [1, 2, 5], [[], []]),
        ([], 0, (0,) * 6, [], [0, 1, 2, 3, 4, 5], [[], []]),
    ],
)
def test_sequences_stay_together(lod, level, chosen, yes, no, levels):
    made_yes, made_no, found = split(ROWS, mask(*chosen), lod, level)
    np.testing.assert_array_equal(made_yes, ROWS[yes])
    np.testing.assert_array_equal(made_no, ROWS[no])
    assert found == levels
    whole, together = merge(made_yes, made_no, mask(*chosen), lods=(lod, *found), level=level)
    np.testing.assert_array_equal(whole, ROWS)
    assert together == lod


def test_sequences_of_the_parts_count():
    """A branch may have made its sequences longer, or one row of each."""
    longer, levels = merge(ROWS[:4], ROWS[4:], mask(0, 1), lods=([[0, 3, 6]], [[0, 4]], [[0, 2]]))
    np.testing.assert_array_equal(longer, ROWS[[4, 5, 0, 1, 2, 3]])
    assert levels == [[0, 2, 6]]
    pooled, levels = merge(ROWS[:1], ROWS[1:2], mask(0, 1), lods=([[0, 3, 6]], [], []))
    np.testing.assert_array_equal(pooled, ROWS[[1, 0]])
    assert levels == []


def test_a_gradient_without_sequences_has_those_of_x():
    whole, levels = merge(ROWS[:2], ROWS[2:], mask(0, 1), lods=([[0, 4, 6]], [], []))
    np.testing.assert_array_equal(whole, ROWS[[2, 3, 4, 5, 0, 1]])
    assert levels == [[0, 4, 6]]


def test_a_side_that_has_not_run_has_empty_sequences():
    whole, levels = merge(ROWS[:0], ROWS, mask(0, 1, 0), x=mask(0, 1, 0), lods=([], [], [[0, 2, 6]]))
    np.testing.assert_array_equal(whole, ROWS)
    assert levels == [[0, 2, 2, 6]]


def test_nothing_at_all():
    yes, no, levels = split(ROWS[:0], np.zeros((0, 1), bool))
    assert yes.shape == no.shape == (0, 1) and levels == [[], []]
    assert merge(yes, no, np.zeros((0, 1), bool))[0].shape == (0, 1)


def test_an_empty_side_of_another_width_does_not_matter():
    whole, _ = merge(np.zeros((0, 7), "float32"), ROWS, mask(*[0] * 6))
    np.testing.assert_array_equal(whole, ROWS)


@pytest.mark.parametrize(
    ("chosen", "lod", "message"),
    [
        (mask(1, 0), [], r"an element for each of the 6 rows of X, got shape \[2, 1\]"),
        (mask(1, 0), [[0, 1, 3, 6]], "an element for each of the 3 sequences of X"),
        (np.ones((6, 1), "int32"), [], "Mask must be bool, got int32"),
    ],
)
def test_masks_that_do_not_fit(chosen, lod, message):
    with pytest.raises(OperatorError, match=message):
        split(ROWS, chosen, lod)


@pytest.mark.parametrize(
    ("yes", "no", "lods", "message"),
    [
        (ROWS[:1], ROWS[:1], ([], [], []),
         r"InFalse must have 2 rows, as many as Mask chooses, got shape \[1, 1\]"),
        (ROWS[:1], ROWS[:3], ([], [], [[0, 1, 2, 3]]), "InFalse must have 2 sequences"),
        (ROWS[:1], ROWS[:2].astype("int64"), ([], [], []),
         r"InTrue are float32 \[1\], those of InFalse int64 \[1\]"),
        (ROWS[:1], ROWS[:2], ([], [], [[0, 1, 2]]), "InTrue has 0 levels of sequences and InFalse 1"),
    ],
)  # fmt: skip
def test_sides_that_do_not_fit(yes, no, lods, message):
    with pytest.raises(OperatorError, match=message):
        merge(yes, no, mask(1, 0, 0), lods=lods)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64"])
def test_rows_of_all_element_types_go_two_ways_and_are_ranked(dtype):
    layers = fluid.layers.control_flow
    main = fluid.Program()
    with fluid.program_guard(main):
        x, way = fluid.layers.data("x", [1], lod_level=1), fluid.layers.data("way", [1], dtype="bool")
        yes, no = layers.split_lod_tensor(x, way)
        table = layers.lod_rank_table(x)
        steps = layers.lod_tensor_to_array(x, table)
        fetches = [layers.merge_lod_tensor(yes, no, x, way), layers.array_to_lod_tensor(steps, table)]
    values = np.array([[3], [0], [1], [1]]).astype(dtype)
    sequences = fluid.create_lod_tensor(values, [[1, 3]], fluid.CPUPlace())
    fed = {"x": sequences, "way": np.array([[False], [True]])}
    for got in fluid.Executor(fluid.CPUPlace()).run(main, fed, fetches, return_numpy=False):
        assert got.recursive_sequence_lengths() == [[1, 3]]
        got = np.array(got)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, values)


def test_the_number_of_rows_is_known_in_a_run_only():
    inferred = infer("split_lod_tensor", {"X": ROWS, "Mask": mask(*[1] * 6)})
    assert inferred == {"OutTrue": [((-1, 1), VarType.FP32)], "OutFalse": [((-1, 1), VarType.FP32)]}
    with pytest.raises(OperatorError, match="Mask must be bool"):
        infer("split_lod_tensor", {"X": ROWS, "Mask": ROWS})
    with pytest.raises(OperatorError, match="Mask must be bool"):
        infer("merge_lod_tensor", {"X": ROWS, "Mask": ROWS, "InTrue": ROWS, "InFalse": ROWS})
    for op_type in ("merge_lod_tensor", "merge_lod_tensor_infer"):
        inferred = infer(op_type, {"X": ROWS, "Mask": mask(1), "InTrue": ROWS, "InFalse": ROWS})
        assert inferred == {"Out": [((-1, 1), VarType.FP32)]}
