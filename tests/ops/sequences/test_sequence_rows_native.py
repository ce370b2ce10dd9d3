"""Rows of sequences repeated, cut, padded and scattered, as plans run them: exact sizes, offsets, native kernels."""

import numpy as np
import pytest

from fluidlite._ext.engine import KernelFailure
from fluidlite.base.dtypes import VarType
from fluidlite.ops.native import native_error
from fluidlite.ops.registry import OperatorError

from .. import in_native
from .test_sequence_native import LODS, each_lod, rows

RNG = np.random.default_rng(7)
each_width = pytest.mark.parametrize("width", ((1,), (3,), (2, 40), (0,)), ids=str)


def lengths(offsets):
    return np.diff(np.array(offsets))


def message_of(failure, op_type, inputs=()):
    """The message for users of a failed kernel."""
    return str(native_error(op_type, dict.fromkeys(inputs, ""), failure.value.code, failure.value.err))


@each_lod
@each_width
def test_rows_are_repeated(offsets, width):
    x, y = rows([len(offsets) - 1], *width), rows(offsets, 1)
    for op_type in ("sequence_expand", "sequence_expand_as"):
        in_native.check(op_type, {"X": x, "Y": y}, {}, {"X": [[]], "Y": [[offsets]]})


def test_integers_are_repeated():
    inputs = {"X": np.array([[3], [4]]), "Y": rows([3], 1)}
    in_native.check("sequence_expand", inputs, {}, {"X": [[]], "Y": [[[0, 1, 3]]]}, grads=False)


def test_the_gradient_of_rows_that_have_sequences_keeps_these():
    inputs, lods = {"X": rows([3], 2), "Y": rows([4], 1)}, {"X": [[[0, 3]]], "Y": [[[0, 2, 2, 4]]]}
    in_native.check("sequence_expand_as", inputs, {}, lods)


@pytest.mark.parametrize("level", (-1, 0, 1, 2))
def test_rows_are_repeated_as_an_upper_level_says(level):
    deep = [[0, 2, 2, 3], [0, 1, 1, 3], [0, 2, 5, 5]]
    count = len(deep[level]) - 1
    inputs = {"X": rows([count], 2), "Y": rows([5], 1)}
    in_native.check("sequence_expand", inputs, {"ref_level": level}, {"X": [[]], "Y": [deep]})


@pytest.mark.parametrize(
    "own", ([0, 2, 2, 5, 6], [0, 0, 0, 0, 0], [0, 1, 2, 3, 4], [0, 0, 0, 3, 50]), ids=str
)
@pytest.mark.parametrize("times", ([0, 3, 4, 4, 6], [0, 0, 0, 0, 0], [0, 1, 2, 3, 4]), ids=str)
def test_sequences_are_repeated(own, times):
    inputs = {"X": rows(own, 3), "Y": rows(times, 1)}
    in_native.check("sequence_expand", inputs, {}, {"X": [[own]], "Y": [[times]]})


@pytest.mark.parametrize(
    ("x", "own", "deep", "level", "message"),
    [
        (2, [], [], -1, "Y has no LoD information"),
        (3, [], [[0, 3, 4]], -1, "X has 3 rows but level -1 of Y has 2"),
        (3, [[0, 3]], [[0, 3, 4]], 0, "X has 1 sequences but level 0 of Y has 2"),
        (2, [], [[0, 3, 4]], 1, r"ref_level must be in \[-1, 1\), got 1"),
        (2, [], [[0, 3, 4]], -2, r"ref_level must be in \[-1, 1\), got -2"),
        (2, [[0, 1, 2], [0, 1, 2]], [[0, 3, 4]], -1, "X may have one level of sequences at most, got 2"),
    ],
)
def test_what_cannot_be_repeated(x, own, deep, level, message):
    inputs = {"X": rows([x], 1), "Y": rows([4], 1)}
    with pytest.raises(OperatorError, match=f"operator sequence_expand .*{message}"):
        in_native.check("sequence_expand", inputs, {"ref_level": level}, {"X": [own], "Y": [deep]})
    found = in_native.registry.find("sequence_expand")
    with pytest.raises(OperatorError, match=f"operator sequence_expand: {message}"):
        found.call(
            np, {"X": [inputs["X"]], "Y": [inputs["Y"]]}, {"ref_level": level}, {"X": [own], "Y": [deep]}
        )


@pytest.mark.parametrize(
    ("x", "deep", "message"),
    [
        (2, [], "Y has no LoD information"),
        (3, [[0, 3, 4]], "X has 3 rows but Y has 2 sequences"),
        (2, [[0, 1, 2], [0, 3, 4]], "Y must have one level of sequences, got 2"),
    ],
)
def test_what_cannot_be_repeated_as_another(x, deep, message):
    inputs = {"X": rows([x], 1), "Y": rows([4], 1)}
    with pytest.raises(OperatorError, match=f"operator sequence_expand_as .*{message}"):
        in_native.check("sequence_expand_as", inputs, {}, {"X": [[]], "Y": [deep]})


def test_an_upper_level_that_disagrees_with_the_one_below_is_noticed():
    inputs = {"X": rows([2], 1), "Y": rows([6], 1)}
    lods = {"X": [[]], "Y": [[[0, 2, 6], [0, 1, 6]]]}  # as lod_append makes them
    view = in_native.view_of(
        in_native.registry.find("sequence_expand"),
        {"X": ["x"], "Y": ["y"]},
        {"Out": ["out"]},
        {"ref_level": 0},
        {"x": inputs["X"], "y": inputs["Y"]},
        {"y": lods["Y"][0]},
    )
    with pytest.raises(KernelFailure) as failure:
        in_native.run(view, "baseline")
    assert "the sequences together have 6 rows, which does not fit the 2" in message_of(
        failure, "sequence_expand"
    )


@each_lod
@each_width
def test_a_part_of_each_sequence(offsets, width):
    counts = lengths(offsets)
    begin = RNG.integers(0, counts + 1).reshape(-1, 1)
    count = RNG.integers(0, counts[:, None] - begin + 1)
    inputs = {"X": rows(offsets, *width), "Offset": begin, "Length": count}
    in_native.check("sequence_slice", inputs, {}, {"X": [[offsets]], "Offset": [[]], "Length": [[]]})


@pytest.mark.parametrize(
    ("counts", "deep", "message"),
    [
        ((2, 3), [[0, 2, 4, 6]], "X has 3 sequences, but Offset has 2 and Length 3 elements"),
        ((3, 1), [[0, 2, 4, 6]], "X has 3 sequences, but Offset has 3 and Length 1 elements"),
        ((2, 2), [[0, 1, 2], [0, 2, 6]], "X must have one level of sequences, got 2"),
        ((2, 2), [], "X has no LoD information"),
    ],
)
def test_what_cannot_be_cut(counts, deep, message):
    inputs = {
        "X": rows([6], 1),
        **{s: np.zeros((n, 1), "int64") for s, n in zip(("Offset", "Length"), counts, strict=True)},
    }
    with pytest.raises(OperatorError, match=f"operator sequence_slice .*{message}"):
        in_native.check("sequence_slice", inputs, {}, {"X": [deep], "Offset": [[]], "Length": [[]]})


@each_lod
@each_width
@pytest.mark.parametrize("pad", ("one", "row"))
def test_padding(offsets, width, pad):
    longest = int(lengths(offsets).max(initial=0))
    value = np.array([2.5]) if pad == "one" else RNG.uniform(0, 1, width)
    lods = {"X": [[offsets]], "PadValue": [[]]}
    for padded in (-1, max(longest, 1), longest + 3):
        inputs = {"X": rows(offsets, *width), "PadValue": value}
        in_native.check("sequence_pad", inputs, {"padded_length": padded}, lods)


@pytest.mark.parametrize("kind", ("int32", "int64"))
def test_integers_are_padded(kind):
    inputs = {"X": np.arange(6).reshape(6, 1).astype(kind), "PadValue": np.array([7], kind)}
    in_native.check("sequence_pad", inputs, {"padded_length": 4}, {"X": [[[0, 4, 4, 6]]]}, grads=False)


@pytest.mark.parametrize(
    ("value", "deep", "message"),
    [
        (
            [1.0, 2.0, 3.0],
            [[0, 2, 6]],
            r"PadValue must have one element or the shape \[2\] of a row, got \[3\]",
        ),
        ([1.0], [[0, 1, 2], [0, 2, 6]], "X must have one level of sequences, got 2"),
        ([1.0], [], "X has no LoD information"),
    ],
)
def test_what_cannot_be_padded(value, deep, message):
    inputs = {"X": rows([6], 2), "PadValue": np.array(value)}
    with pytest.raises(OperatorError, match=f"operator sequence_pad .*{message}"):
        in_native.check("sequence_pad", inputs, {"padded_length": 5}, {"X": [deep], "PadValue": [[]]})


def failing(op_type, inputs, attrs, lods):
    """The failure of the native kernels of an operator; inputs by slot."""
    definition = in_native.registry.find(op_type)
    names = {slot: [slot] for slot in inputs}
    outputs = {slot.name: [f"{slot.name}_out"] for slot in definition.output_slots}
    view = in_native.view_of(definition, names, outputs, attrs, inputs, lods)
    with pytest.raises(KernelFailure) as failure:
        in_native.run(view, "baseline")
    return message_of(failure, op_type, inputs)


@each_lod
@pytest.mark.parametrize("width", ((), (1,), (3,), (0,)), ids=str)
def test_padding_taken_off(offsets, width):
    counts = lengths(offsets)
    padded = int(counts.max(initial=0)) + 2
    inputs = {"X": RNG.uniform(-1, 1, (len(counts), padded, *width)), "Length": counts}
    in_native.check("sequence_unpad", inputs, {}, {"X": [[]], "Length": [[]]})


def test_lengths_that_are_not_one_for_each():
    inputs = {"X": rows([3], 4), "Length": np.array([1, 2])}
    with pytest.raises(OperatorError, match="operator sequence_unpad .*X has 3 rows but Length has 2"):
        in_native.check("sequence_unpad", inputs, {}, {"X": [[]], "Length": [[]]})


@pytest.mark.parametrize("kind", ("int32", "int64"))
@pytest.mark.parametrize("made", (VarType.FP32, VarType.FP64, VarType.INT32, VarType.INT64, VarType.BOOL))
@pytest.mark.parametrize("shape", ((5,), (2, 3), (0,), (3, 1)), ids=str)
def test_masks(shape, made, kind):
    x = RNG.integers(-1, 6, shape).astype(kind)
    for width in (1, 4, 40):
        in_native.check("sequence_mask", {"X": x}, {"maxlen": width, "out_dtype": int(made)}, {"X": [[]]})


def test_the_width_of_a_mask_that_only_the_data_know():
    in_native.check("sequence_mask", {"X": np.array([1, 3])}, {"out_dtype": int(VarType.INT32)}, {"X": [[]]})


@each_lod
@pytest.mark.parametrize("more", (0, 2))
def test_scattering(offsets, more):
    count, width = len(offsets) - 1 + more, 5
    ids = RNG.integers(0, width, (offsets[-1], 1))
    inputs = {"X": rows([count], width), "Ids": ids, "Updates": rows(offsets, 1)}
    in_native.check("sequence_scatter", inputs, {}, {"X": [[]], "Ids": [[offsets]], "Updates": [[offsets]]})


def test_what_is_scattered_has_no_sequences_of_its_own():
    inputs = {"X": rows([3], 4), "Ids": np.array([[1], [1], [3]]), "Updates": rows([3], 1)}
    lods = {"X": [[[0, 1, 3]]], "Ids": [[[0, 2, 2, 3]]], "Updates": [[[0, 2, 2, 3]]]}
    in_native.check("sequence_scatter", inputs, {}, lods)
    whole = {"X": np.arange(12).reshape(3, 4), "Ids": inputs["Ids"], "Updates": np.array([[1], [2], [3]])}
    in_native.check("sequence_scatter", whole, {}, lods, grads=False)


@pytest.mark.parametrize(
    ("count", "updates", "deep", "message"),
    [
        (2, 3, [[0, 2, 2, 3]], "3 sequences of 3 ids for 2 rows and 3 updates"),
        (3, 4, [[0, 2, 2, 3]], "3 sequences of 3 ids for 3 rows and 4 updates"),
        (3, 3, [], "Ids has no LoD information"),
        (3, 3, [[0, 1, 2], [0, 1, 3]], "Ids must have one level of sequences, got 2"),
    ],
)
def test_what_cannot_be_scattered(count, updates, deep, message):
    inputs = {"X": rows([count], 4), "Ids": np.zeros((3, 1), "int64"), "Updates": rows([updates], 1)}
    with pytest.raises(OperatorError, match=f"operator sequence_scatter .*{message}"):
        in_native.check("sequence_scatter", inputs, {}, {"X": [[]], "Ids": [deep], "Updates": [[]]})


@pytest.mark.parametrize("offsets", [lod for lod in LODS if all(n % 2 == 0 for n in lod)], ids=str)
@pytest.mark.parametrize(("width", "made"), [(6, 6), (6, 3), (6, 1), (6, 4), (6, 12), (1, 2)])
def test_rows_of_another_width(offsets, width, made):
    in_native.check("sequence_reshape", {"X": rows(offsets, width)}, {"new_dim": made}, {"X": [[offsets]]})


def test_elements_that_do_not_fill_the_rows():
    for offsets in ([0, 2, 3, 6], [0, 4, 5, 6]):
        text = failing("sequence_reshape", {"X": rows(offsets, 2)}, {"new_dim": 4}, {"X": [offsets]})
        assert text == "operator sequence_reshape: sequence 1 has 2 elements, which rows of 4 do not divide"
    with pytest.raises(OperatorError, match="X must have one level of sequences, got 3"):
        in_native.check(
            "sequence_reshape", {"X": rows([2], 2)}, {"new_dim": 1}, {"X": [[[0, 1], [0, 1], [0, 2]]]}
        )


@pytest.mark.parametrize(
    "deep", ([], [[0, 2, 6]], [[0, 1, 2], [0, 2, 6]], [[0, 2], [0, 1, 2], [0, 0, 6]]), ids=str
)
@pytest.mark.parametrize("append", (False, True))
@pytest.mark.parametrize("wanted", ([0, 6], [0, 0, 3, 3, 6], [0, 1, 2, 3, 4, 5, 6]), ids=str)
def test_other_sequences(deep, append, wanted):
    x, attrs = rows([6], 3), {"append": append}
    in_native.check("lod_reset", {"X": x}, {**attrs, "target_lod": wanted}, {"X": [deep]})
    for kind in ("int32", "int64"):
        in_native.check("lod_reset", {"X": x, "Y": np.array(wanted, kind)}, attrs, {"X": [deep], "Y": [[]]})
    theirs = [[0, 2, 3], [0, 1, 1, 6]]
    in_native.check("lod_reset", {"X": x, "Y": rows([6], 1)}, attrs, {"X": [deep], "Y": [theirs]})


def test_other_sequences_of_no_rows():
    in_native.check("lod_reset", {"X": rows([0], 3)}, {"target_lod": [0]}, {"X": [[]]})
    in_native.check("lod_reset", {"X": rows([0], 3), "Y": np.array([0, 0, 0])}, {}, {"X": [[]], "Y": [[]]})


@pytest.mark.parametrize("wanted", ([0, 1, 5], [0, 4, 2, 6], [1, 4, 6], []), ids=str)
def test_offsets_that_are_not_good(wanted):
    with pytest.raises(
        OperatorError, match="lod_reset .*the offsets must go up from 0 to the 6 rows of X, got"
    ):
        in_native.check("lod_reset", {"X": rows([6], 1)}, {"target_lod": wanted}, {"X": [[]]})
    if wanted:
        inputs = {"X": rows([6], 1), "Y": np.array(wanted, "int32")}
        text = failing("lod_reset", inputs, {}, {})
        assert text.startswith("operator lod_reset: the offsets must go up from 0 to the 6 rows of X, got ")


@pytest.mark.parametrize(
    ("y", "deep", "message"),
    [
        (rows([5], 1), [[0, 2, 5]], "the sequences of Y have 5 rows, but X has 6"),
        (rows([5], 1), [], "Y must have sequences, or be int32 or int64 offsets"),
        (np.zeros(0, "int32"), [], "Y must have sequences, or be int32 or int64 offsets"),
    ],
)
def test_sequences_of_another_that_do_not_fit(y, deep, message):
    with pytest.raises(OperatorError, match=f"operator lod_reset .*{message}"):
        in_native.check("lod_reset", {"X": rows([6], 1), "Y": y}, {}, {"X": [[]], "Y": [deep]})
