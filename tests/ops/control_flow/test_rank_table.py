"""Sequences sorted by length, their steps as arrays and back."""

import numpy as np
import pytest

from fluidlite.base.lod import as_lists, as_lod
from fluidlite.base.rank_table import RankTable
from fluidlite.base.tensor_array import TensorArray
from fluidlite.ops.registry import LodArray, OperatorError, find

from ..on_device import paused

LENGTHS = [[2, 0, 3, 2], [1], [0, 0], [4, 4, 1, 0, 5, 5], []]


def offsets(lengths):
    return [0, *np.cumsum(lengths, dtype=int).tolist()]


def rows(count, width=2):
    return np.arange(count * width, dtype="float32").reshape(count, width)


def call(op_type, inputs, lods=None, **attrs):
    """The array and the LoD that an operator gives."""
    definition = find(op_type)
    given = {slot: [value] for slot, value in inputs.items()}
    known = {slot: [(lods or {}).get(slot, [])] for slot in inputs}
    (made,) = definition.call(np, given, attrs, known if definition.sequences.takes_lod else None)
    return (made.array, as_lists(made.lod)) if isinstance(made, LodArray) else (made, None)


def table_of(lod, level=0):
    return RankTable(as_lod(lod), level)


def sequences_of(x, level):
    return [x[begin:end] for begin, end in zip(level, level[1:], strict=False)]


def ranked(lengths):
    """The numbers of sequences, longest first, ties as they come."""
    return sorted(range(len(lengths)), key=lambda k: -lengths[k])


@pytest.mark.parametrize("lengths", LENGTHS)
def test_table(lengths):
    table = table_of([offsets(lengths)])
    order = ranked(lengths)
    assert table.order.tolist() == order
    assert table.lengths.tolist() == [lengths[k] for k in order]
    assert table.longest == max(lengths, default=0)
    assert len(table) == len(lengths)
    for step in range(-1, table.longest + 2):
        assert table.running_at(step) == sum(length > step >= 0 for length in lengths)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_rank_and_longest(lengths):
    x = rows(sum(lengths))
    table, _ = call("lod_rank_table", {"X": x}, {"X": [offsets(lengths)]}, level=0)
    assert table.order.tolist() == ranked(lengths)
    longest, _ = call("max_sequence_len", {"RankTable": table})
    assert longest.dtype == np.int64
    assert longest.tolist() == [max(lengths, default=0)]


@pytest.mark.parametrize(("lod", "level"), [([], 0), ([[0, 3]], 1), ([[0, 3]], -1)])
def test_rank_of_a_level_that_is_not_there(lod, level):
    with pytest.raises(OperatorError, match=f"lod_rank_table: cannot rank level {level} of X"):
        call("lod_rank_table", {"X": rows(3)}, {"X": lod}, level=level)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_rows_in_order_and_back(lengths):
    table = table_of([offsets(lengths)])
    x = rows(len(lengths))
    out, lod = call("reorder_lod_tensor_by_rank", {"X": x, "RankTable": table})
    np.testing.assert_array_equal(out, x[ranked(lengths)])
    assert lod == []
    back, _ = call("reorder_lod_tensor_by_rank_grad", {"X": out, "RankTable": table})
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize("inner", [[3, 1, 2, 0], [0, 0, 0, 0], [1, 1, 1, 1]])
def test_sequences_in_order_and_back(inner):
    table = table_of([offsets([2, 0, 3, 2])])
    x, level = rows(sum(inner)), offsets(inner)
    order = ranked([2, 0, 3, 2])
    out, lod = call("reorder_lod_tensor_by_rank", {"X": x, "RankTable": table}, {"X": [level]})
    np.testing.assert_array_equal(out, np.concatenate([sequences_of(x, level)[k] for k in order]))
    assert lod == [offsets([inner[k] for k in order])]
    back, lod = call("reorder_lod_tensor_by_rank_grad", {"X": out, "RankTable": table}, {"X": lod})
    np.testing.assert_array_equal(back, x)
    assert lod == [level]


def test_two_levels_in_order():
    """Numbers of Fluid 1.8.5."""
    x = rows(7, 1)
    table = table_of([[0, 1, 4, 6]])
    deep = {"X": [[0, 1, 3, 4], [0, 2, 3, 5, 7]]}
    out, lod = call("reorder_lod_tensor_by_rank", {"X": x, "RankTable": table}, deep)
    assert out.ravel().tolist() == [2, 3, 4, 5, 6, 0, 1]
    assert lod == [[0, 2, 3, 4], [0, 1, 3, 5, 7]]
    back, lod = call("reorder_lod_tensor_by_rank_grad", {"X": out, "RankTable": table}, {"X": lod})
    np.testing.assert_array_equal(back, x)
    assert lod == deep["X"]


@pytest.mark.parametrize(("lod", "what"), [([], "4 rows"), ([[0, 1, 4]], "2 sequences")])
def test_another_number_of_rows_cannot_be_ordered(lod, what):
    with pytest.raises(
        OperatorError, match=f"reorder_lod_tensor_by_rank: X has {what}, but RankTable ranks 3"
    ):
        call("reorder_lod_tensor_by_rank", {"X": rows(4), "RankTable": table_of([[0, 1, 2, 3]])}, {"X": lod})


@pytest.mark.parametrize("lengths", [lengths for lengths in LENGTHS if sum(lengths)])
def test_steps_and_back(lengths):
    level = offsets(lengths)
    table, x = table_of([level]), rows(sum(lengths))
    array, _ = call("lod_tensor_to_array", {"X": x, "RankTable": table}, {"X": [level]})
    sequences = [sequences_of(x, level)[k] for k in ranked(lengths)]
    want = [np.array([s[t] for s in sequences if t < len(s)]) for t in range(max(lengths))]
    assert len(array) == len(want)
    for step, expected in enumerate(want):
        np.testing.assert_array_equal(array.arrays[step], expected)
        assert not array.lods[step]
    back, lod = call("array_to_lod_tensor", {"X": array, "RankTable": table})
    np.testing.assert_array_equal(back, x)
    assert lod == [level]


def test_steps_share_one_buffer():
    table = table_of([[0, 3, 4]])
    array, _ = call("lod_tensor_to_array", {"X": rows(4), "RankTable": table}, {"X": [[0, 3, 4]]})
    assert array.arrays[0].base is not None
    assert array.arrays[0].base is array.arrays[2].base


def test_steps_that_are_sequences():
    """Numbers of Fluid 1.8.5."""
    deep, x = [[0, 1, 3, 4], [0, 2, 3, 5, 7]], rows(7, 1)
    table = table_of(deep)
    array, _ = call("lod_tensor_to_array", {"X": x, "RankTable": table}, {"X": deep})
    assert [a.ravel().tolist() for a in array.arrays] == [[2, 0, 1, 5, 6], [3, 4]]
    assert [as_lists(lod) for lod in array.lods] == [[[0, 1, 3, 5]], [[0, 2]]]
    back, lod = call("array_to_lod_tensor", {"X": array, "RankTable": table})
    np.testing.assert_array_equal(back, x)
    assert lod == deep


def test_steps_of_the_inner_level():
    deep, x = [[0, 1, 3, 3], [0, 2, 3, 7]], rows(7, 1)
    table = table_of(deep, 1)
    array, _ = call("lod_tensor_to_array", {"X": x, "RankTable": table}, {"X": deep})
    assert [a.ravel().tolist() for a in array.arrays] == [[3, 0, 2], [4, 1], [5], [6]]
    back, lod = call("array_to_lod_tensor", {"X": array, "RankTable": table})
    np.testing.assert_array_equal(back, x)
    assert lod == deep


def test_three_levels():
    deep = [[0, 2, 3], [0, 1, 3, 5], [0, 2, 3, 3, 5, 6]]
    x, table = rows(6, 1), table_of(deep)
    array, _ = call("lod_tensor_to_array", {"X": x, "RankTable": table}, {"X": deep})
    assert [a.ravel().tolist() for a in array.arrays] == [[0, 1, 3, 4, 5], [2]]
    assert [as_lists(lod) for lod in array.lods] == [[[0, 1, 3], [0, 2, 4, 5]], [[0, 2], [0, 1, 1]]]
    back, lod = call("array_to_lod_tensor", {"X": array, "RankTable": table})
    np.testing.assert_array_equal(back, x)
    assert lod == deep


def test_longer_sequences_lose_their_ends():
    table = table_of([[0, 1, 3]])
    array, _ = call("lod_tensor_to_array", {"X": rows(7, 1), "RankTable": table}, {"X": [[0, 4, 7]]})
    assert [a.ravel().tolist() for a in array.arrays] == [[4, 0], [5]]


@pytest.mark.parametrize(
    ("lod", "message"),
    [
        ([], "X has 0 levels of sequences"),
        ([[0, 4]], "X has 1 sequences, but RankTable ranks 2"),
        ([[0, 3, 4]], "sequence 1 of X has 1 steps, but RankTable has 2 for it"),
    ],
)
def test_other_sequences_than_ranked(lod, message):
    with pytest.raises(OperatorError, match=f"lod_tensor_to_array: {message}"):
        call("lod_tensor_to_array", {"X": rows(4), "RankTable": table_of([[0, 1, 3]])}, {"X": lod})


@pytest.mark.parametrize(
    ("steps", "message"),
    [([2], "X has 1 steps, but RankTable has 2"), ([2, 2], "element 1 of X has 2 rows, but 1 sequences")],
)
def test_other_steps_than_ranked(steps, message):
    array = TensorArray()
    for step, count in enumerate(steps):
        array.write(step, rows(count))
    with pytest.raises(OperatorError, match=f"array_to_lod_tensor: {message}"):
        call("array_to_lod_tensor", {"X": array, "RankTable": table_of([[0, 1, 3]])})


@pytest.mark.parametrize("step", range(6))
@pytest.mark.parametrize("lod", [[], [[0, 2, 5, 6]], [[0, 1, 3, 4], [0, 2, 2, 5, 6]]])
def test_shrink(step, lod):
    lengths = [1, 3, 2]
    table = table_of([offsets(lengths)])
    x = rows(6 if lod else 3)
    index = np.array([step], "int64")
    out, made = call("shrink_rnn_memory", {"X": x, "RankTable": table, "I": index}, {"X": lod})
    running = sum(length > step for length in lengths)
    count, left = running, []
    for level in lod:
        left.append(level[: count + 1])
        count = level[count]
    np.testing.assert_array_equal(out, x[:count])
    assert made == left
    dx, kept = call("shrink_rnn_memory_grad", {"X": x, "Out@GRAD": out + 1}, {"X": lod})
    np.testing.assert_array_equal(dx, np.concatenate([out + 1, np.zeros_like(x[count:])]))
    assert kept == lod


def test_gradient_of_splitting_into_steps():
    """The gradient is zero for steps that were not written, and for rows after the last step."""
    table, source = table_of([[0, 1, 3]]), np.ones((6, 2), "float32")
    array = TensorArray()
    array.write(1, rows(1) + 5)
    inputs = {"X": array, "RankTable": table, "X_W": source}
    out, lod = call("array_to_lod_tensor", inputs, {"X_W": [[0, 3, 6]]})
    want = np.zeros((6, 2))
    want[4] = [5, 6]
    np.testing.assert_array_equal(out, want)
    assert lod == [[0, 3, 6]]
    array.write(0, rows(2) + 7)
    out, _ = call("array_to_lod_tensor", inputs, {"X_W": [[0, 3, 6]]})
    want[[3, 0]] = [[7, 8], [9, 10]]
    np.testing.assert_array_equal(out, want)


def test_gradients_are_added_to_the_array():
    table = table_of([[0, 1, 3]])
    array = TensorArray()
    array.write(1, rows(1) + 5)
    inputs = {"X": rows(3), "RankTable": table, "Out": array}
    with paused():  # the array is changed where it is
        made, _ = call("lod_tensor_to_array", inputs, {"X": [[0, 1, 3]]}, accumulate=True)
    assert made is array
    assert [rows.ravel().tolist() for rows in made.arrays] == [[2, 3, 0, 1], [4 + 5, 5 + 6]]


def test_no_steps_at_all():
    table = table_of([[0, 0, 0]])
    array, _ = call("lod_tensor_to_array", {"X": rows(0), "RankTable": table}, {"X": [[0, 0, 0]]})
    assert len(array) == 0
    inputs = {"X": array, "RankTable": table, "X_W": rows(0)}
    out, lod = call("array_to_lod_tensor", inputs, {"X_W": [[0, 0, 0]]})
    assert out.shape == (0, 2) and lod == [[0, 0, 0]]
