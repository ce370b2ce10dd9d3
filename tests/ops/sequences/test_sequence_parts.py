"""Pieces, rows, windows and updates of sequences; expected numbers are those of Fluid 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel
from .test_sequence import lods_of

RAMP = np.arange(12, dtype="float32").reshape(6, 2)
LOD = [[0, 2, 3, 6]]


def column(*numbers):
    return np.array(numbers, "int64").reshape(-1, 1)


def test_sequence_slice():
    inputs = {"X": RAMP, "Offset": column(0, 0, 1), "Length": column(1, 0, 2)}
    lods = {"X": [LOD], "Offset": [[]], "Length": [[]]}
    check("sequence_slice", inputs, {}, {"Out": RAMP[[0, 4, 5]]}, grads=("X",), lods=lods)
    assert lods_of("sequence_slice", inputs, {}, lods) == [[[0, 1, 1, 3]]]


@pytest.mark.parametrize(
    ("offset", "length", "message"),
    [
        ((0, 0, 1), (3, 1, 2), "sequence 0 has 2 rows, but Offset is 0 and Length 3"),
        ((0, 0, -1), (1, 1, 1), "sequence 2 has 3 rows, but Offset is -1 and Length 1"),
        ((0, 2**62, 0), (1, 2**62, 1), f"sequence 1 has 1 rows, but Offset is {2**62} and Length {2**62}"),
        ((0, 0), (1, 1), "X has 3 sequences, but Offset has 2 and Length 2 elements"),
    ],
)
def test_slices_that_are_not_there(offset, length, message):
    inputs = {"X": RAMP, "Offset": column(*offset), "Length": column(*length)}
    with pytest.raises(OperatorError, match=message):
        run_kernel("sequence_slice", inputs, {}, {"X": [LOD]})


@pytest.mark.parametrize(("width", "lod"), [(1, [[0, 4, 6, 12]]), (6, [[0, 1, 2]])])
def test_sequence_reshape(width, lod):
    given = {"X": [LOD if width == 1 else [[0, 3, 6]]]}
    outputs = {"Out": RAMP.reshape(-1, width)}
    check("sequence_reshape", {"X": RAMP}, {"new_dim": width}, outputs, grads=("X",), lods=given)
    assert lods_of("sequence_reshape", {"X": RAMP}, {"new_dim": width}, given) == [lod]


def scattered(*ids):
    updates = np.array([[0.1], [0.2], [0.3], [0.4], [0.5]], "float32")
    return {"X": np.ones((3, 6), "float32"), "Ids": column(*ids), "Updates": updates}


SPOTS = {"X": [[]], "Ids": [[[0, 3, 5]]], "Updates": [[[0, 3, 5]]]}


def test_sequence_scatter_adds_up_ids_that_repeat():
    want = np.ones((3, 6), "float32")
    want[0, [0, 2]] += [0.1, 0.5]
    want[1, [5, 1]] += [0.4, 0.5]
    check("sequence_scatter", scattered(0, 2, 2, 5, 1), {}, {"Out": want}, grads=("X", "Updates"), lods=SPOTS)


def test_sequence_scatter_declares_no_sequences(programs):
    x, updates = (fluid.data(name, [None, width], lod_level=1) for name, width in (("x", 6), ("updates", 1)))
    ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
    assert fluid.layers.sequence_scatter(x, ids, updates).lod_level == 0


def test_sequence_scatter_counts_through_all_axes_of_a_row():
    inputs = {**scattered(0, 4, 4, 5, 1), "X": np.ones((3, 2, 3), "float32")}
    want = np.ones((3, 2, 3), "float32")
    want[0, [0, 1], [0, 1]] += [0.1, 0.5]
    want[1, [1, 0], [2, 1]] += [0.4, 0.5]
    check("sequence_scatter", inputs, {}, {"Out": want}, grads=("X", "Updates"), lods=SPOTS)


def test_sequence_scatter_outside_of_the_row():
    with pytest.raises(OperatorError, match=r"ids must be in \[0, 6\), got 7"):
        run_kernel("sequence_scatter", scattered(0, 2, 7, 5, 1), {}, SPOTS)
    with pytest.raises(OperatorError, match="6 sequences of 5 ids for 3 rows"):
        run_kernel(
            "sequence_scatter",
            scattered(0, 2, 2, 5, 1),
            {},
            {"Ids": [[[0, 1, 2, 3, 4, 5, 5]]], "Updates": [[]]},
        )


def test_sequence_enumerate():
    want = [[0, 1, -1], [1, -1, -1], [2, -1, -1], [3, 4, 5], [4, 5, -1], [5, -1, -1]]
    lods = {"X": [LOD]}
    attrs = {"win_size": 3, "pad_value": -1}
    check("sequence_enumerate", {"X": column(*range(6))}, attrs, {"Out": np.array(want)}, lods=lods)
    assert lods_of("sequence_enumerate", {"X": column(*range(6))}, attrs, lods) == [LOD]
    with pytest.raises(OperatorError, match="win_size must be at least 2, got 1"):
        infer("sequence_enumerate", {"X": column(1)}, {"win_size": 1})


@pytest.mark.parametrize(
    ("y", "attrs", "y_lod", "want"),
    [
        (None, {"target_lod": [0, 4, 6]}, [], [[0, 4, 6]]),
        (None, {"target_lod": [0, 1, 2, 3, 4, 5, 6], "append": True}, [], [*LOD, [0, 1, 2, 3, 4, 5, 6]]),
        (np.array([0, 1, 6], "int32"), {}, [], [[0, 1, 6]]),
        (np.ones((6, 1), "float32"), {}, [[0, 1, 2], [0, 1, 6]], [[0, 1, 2], [0, 1, 6]]),
    ],
)
def test_lod_reset(y, attrs, y_lod, want):
    inputs = {"X": RAMP} if y is None else {"X": RAMP, "Y": y}
    lods = {"X": [LOD]} if y is None else {"X": [LOD], "Y": [y_lod]}
    check("lod_reset", inputs, attrs, {"Out": RAMP}, grads=("X",), lods=lods)
    assert lods_of("lod_reset", inputs, attrs, lods) == [want]


@pytest.mark.parametrize("offsets", [[0, 4, 5], [4, 2], [], [0, 5, 3, 6]])
def test_offsets_that_do_not_fit_the_rows(offsets):
    with pytest.raises(OperatorError, match="the offsets must go up from 0 to the 6 rows of X"):
        run_kernel("lod_reset", {"X": RAMP}, {"target_lod": offsets}, {"X": [LOD]})


def test_sequence_expand_as():
    inputs = {"X": np.array([[1, 2], [3, 4], [5, 6]], "float32"), "Y": RAMP}
    lods = {"X": [[]], "Y": [LOD]}
    want = inputs["X"][[0, 0, 1, 2, 2, 2]]
    check("sequence_expand_as", inputs, {}, {"Out": want}, grads=("X",), lods=lods)
    assert lods_of("sequence_expand_as", inputs, {}, lods) == [LOD]


IMAGES = np.arange(32, dtype="float32").reshape(2, 1, 4, 4)
NO_LODS = {"X": [[]], "Y": [[]]}


def test_im2sequence():
    attrs = {"kernels": [2, 1], "strides": [1, 2], "paddings": [1, 0, 0, 1]}
    image = IMAGES[:1, :, :3, :3]
    want = np.array([[0, 0], [0, 2], [0, 4], [2, 6], [4, 8], [6, 10]], "float32")
    check("im2sequence", {"X": image}, attrs, {"Out": want}, grads=("X",), lods={"X": [[]]})
    assert lods_of("im2sequence", {"X": image}, attrs, {"X": [[]]}) == [[[0, 6]]]


def test_im2sequence_has_one_patch_that_is_less_than_a_stride_too_large():
    attrs = {"kernels": [4, 1], "strides": [2, 1]}
    image = IMAGES[:1, :, :3, :2]
    want = np.pad(image[0, 0], ((0, 1), (0, 0))).T
    check("im2sequence", {"X": image}, attrs, {"Out": want}, grads=("X",), lods={"X": [[]]})
    assert lods_of("im2sequence", {"X": image}, attrs, {"X": [[]]}) == [[[0, 2]]]


@pytest.mark.parametrize(
    ("real", "out_stride", "lod", "second"),
    [
        ([[3, 3], [4, 2]], [1, 1], [[0, 4, 7]], [[16, 17, 20, 21], [20, 21, 24, 25], [24, 25, 28, 29]]),
        ([[8, 5], [4, 7]], [2, 2], [[0, 6, 9]], [[16, 17, 20, 21], [17, 18, 21, 22], [18, 19, 22, 23]]),
    ],
)
def test_im2sequence_of_images_with_real_sizes(real, out_stride, lod, second):
    attrs = {"kernels": [2, 2], "out_stride": out_stride}
    inputs = {"X": IMAGES, "Y": np.array(real, "float32")}
    check("im2sequence", inputs, attrs, grads=("X",), lods=NO_LODS)
    np.testing.assert_array_equal(run_kernel("im2sequence", inputs, attrs, NO_LODS)["Out"][0][-3:], second)
    assert lods_of("im2sequence", inputs, attrs, NO_LODS) == [lod]


def test_im2sequence_of_images_smaller_than_they_say():
    inputs = {"X": IMAGES, "Y": np.array([[2, 3], [6, 3]], "float32")}
    check("im2sequence", inputs, {"kernels": [2, 2]}, grads=("X",), lods=NO_LODS)
    (rows,) = run_kernel("im2sequence", inputs, {"kernels": [2, 2]}, NO_LODS)["Out"]
    assert lods_of("im2sequence", inputs, {"kernels": [2, 2]}, NO_LODS) == [[[0, 2, 12]]]
    np.testing.assert_array_equal(rows[:2], [[0, 1, 4, 5], [1, 2, 5, 6]])
    np.testing.assert_array_equal(
        rows[6:], [[24, 25, 28, 29], [25, 26, 29, 30], [28, 29, 0, 0], [29, 30, 0, 0], *np.zeros((2, 4))]
    )
    inputs["Y"][1] = [1, 4]
    with pytest.raises(OperatorError, match="image 1 would have 0 x 3 patches"):
        run_kernel("im2sequence", inputs, {"kernels": [2, 2]}, NO_LODS)


@pytest.mark.parametrize(
    ("tokens", "left", "lod"),
    [
        ([1, 4], [0, 2, 3, 5], [[0, 1, 3], [0, 1, 1, 4]]),
        ([], [0, 1, 2, 3, 4, 5], [[0, 1, 3], [0, 2, 2, 6]]),
        (range(6), [], [[0, 1, 3], [0, 0, 0, 0]]),
    ],
)
@pytest.mark.parametrize("kind", ("int32", "int64"))
def test_sequence_erase(tokens, left, lod, kind):
    inputs, attrs = {"X": np.arange(6, dtype=kind).reshape(6, 1)}, {"tokens": list(tokens)}
    for deep, want in (([[0, 2, 2, 6]], lod[1:]), ([[0, 1, 3], [0, 2, 2, 6]], lod)):
        outputs = {"Out": np.array(left, kind).reshape(-1, 1)}
        check("sequence_erase", inputs, attrs, outputs, lods={"X": [deep]})
        assert lods_of("sequence_erase", inputs, attrs, {"X": [deep]}) == [want]


def test_what_tokens_cannot_be_erased_from():
    with pytest.raises(OperatorError, match="X has no LoD information"):
        run_kernel("sequence_erase", {"X": np.zeros((2, 1), "int64")}, {"tokens": [0]}, {"X": [[]]})
    with pytest.raises(OperatorError, match=r"X must have shape \[rows, 1\], got \[2, 2\]"):
        infer("sequence_erase", {"X": np.zeros((2, 2), "int64")})
