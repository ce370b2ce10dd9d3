"""Samples to batches: conversions, shapes, sequences, memory used again, errors that name the culprit."""

from __future__ import annotations

import gc
import re

import numpy as np
import pytest

from fluidlite._ext.collate import Collator, FieldCountError, Spec, counters, empty, fill_rows, trim

from ..refusals import refuses


class Tensor:
    """Stands for LoDTensor, which extensions know only by its attributes."""

    def __init__(self, array: np.ndarray, lod: object) -> None:
        self.array, self._lod = array, [level.tolist() for level in lod]


def collator(*specs: tuple, **options: bool) -> Collator:
    return Collator([Spec(*spec) for spec in specs], Tensor, **options)


X = ("x", "float32", (-1, 2, 3))
Y = ("y", "int64", (-1, 1))


def one(spec: tuple, *values: object) -> Tensor:
    return collator(spec).collate([(value,) for value in values])[0]


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype="float64"),
        np.arange(6, dtype="int32").reshape(2, 3),
        np.arange(6, dtype="float32").reshape(3, 2).T.copy(order="F").T.reshape(2, 3),
        np.repeat(np.arange(6, dtype="float32"), 2)[::2],
        np.arange(6, dtype=">f4"),
        [0, 1, 2, 3, 4, 5],
        [0.0, 1, 2.0, 3, 4, 5],
        [[0, 1, 2], [3, 4, 5]],
        (0, 1, 2, 3, 4, 5),
        [np.float64(i) for i in range(6)],
        np.arange(6, dtype="float16"),
        np.arange(6, dtype="uint8"),
    ],
)
def test_items_are_converted_and_reshaped(value: object) -> None:
    assert one(X, value, value).array.tolist() == [[[0, 1, 2], [3, 4, 5]]] * 2


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int32", "int64", "int16", "uint8", "bool", "float16"]
)
@pytest.mark.parametrize(
    "value", [1, 1.0, True, np.float32(1), np.int64(1), np.array([1]), [1], [[1]], np.array(1)]
)
def test_one_number_of_every_type(dtype: str, value: object) -> None:
    got = one(("y", dtype, (-1, 1)), value, value).array
    assert got.tolist() == [[1], [1]] and got.dtype == dtype


def test_reals_for_whole_numbers_are_cut_as_numpy_does() -> None:
    assert one(Y, 1.7, -1.7, np.float32(2.5)).array.ravel().tolist() == [1, -1, 2]


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        (Y, 2**70),
        (("y", "int32", (-1, 1)), 2**31),
        (("y", "int32", (-1, 2)), [1, 2**31]),
        (("y", "int16", (-1, 1)), np.array([70_000])),
        (Y, float("nan")),
        (Y, np.array([np.inf])),
        (Y, 1e30),
    ],
)
def test_numbers_that_do_not_fit(spec: tuple, value: object) -> None:
    with pytest.raises((TypeError, ValueError), match="sample 1 of the batch, variable 'y'"):
        one(spec, [0] * spec[2][1], value)


def test_scalars_for_variables_without_a_second_dimension() -> None:
    assert one(("s", "float32", (-1,)), 1, [2], np.float32(3)).array.tolist() == [1, 2, 3]


def test_open_dimensions_come_from_the_first_sample() -> None:
    spec = ("img", "float32", (-1, -1, 2))
    assert one(spec, np.zeros((3, 2)), [[1, 2], [3, 4], [5, 6]]).array.shape == (2, 3, 2)
    with pytest.raises(
        ValueError,
        match=r"sample 1 .* 'img': expected shape \[3, 2\] as in the samples before it, got \[4, 2\]",
    ):
        one(spec, np.zeros((3, 2)), np.zeros((4, 2)))
    refuses(lambda: one(spec, [1, 2, 3, 4]), ValueError, r"expected shape \[-1, 2\] \(-1: any\), got \[4\]")
    assert one(("any", "float32", ()), np.zeros((3, 2))).array.shape == (1, 3, 2)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("abc", ValueError), (np.array(["a"]), ValueError), (None, TypeError), ([None], TypeError),
        ({"a": 1}, TypeError), (1j, TypeError),
    ],
)  # fmt: skip
def test_items_that_are_no_numbers(value: object, error: type[Exception]) -> None:
    refuses(lambda: one(Y, value), error, "sample 0 of the batch, variable 'y': expected int64 numbers, got")


@pytest.mark.parametrize(
    ("sample", "error", "message"),
    [
        (
            [1, 1, 1],
            FieldCountError,
            r"fields \(3\) .* match len\(feed_list\) \(1: 'y'\); .* write it as a tuple",
        ),
        (np.zeros(3), FieldCountError, r"fields \(3\)"),
        ((), FieldCountError, r"fields \(0\)"),
        ("abc", FieldCountError, r"fields \(3\)"),
        (1, TypeError, r"must have one item for each variable of feed_list \('y'\).*, got 1 \(int\)"),
        (np.array(1), TypeError, "must have one item .*, got 1"),
        (None, TypeError, "must have one item .*, got None"),
        ({"y": 1}, ValueError, "whose order says which is which"),
        ({1}, ValueError, "whose order says which is which"),
    ],
)
def test_samples_without_an_item_for_each_variable(
    sample: object, error: type[Exception], message: str
) -> None:
    assert issubclass(FieldCountError, AssertionError) and issubclass(FieldCountError, ValueError)
    with pytest.raises(error, match="sample 1 of the batch ") as caught:
        collator(Y).collate([(0,), sample])
    assert re.search(message, str(caught.value))


def test_empty_batch() -> None:
    x, y = collator(X, ("w", "int64", (-1, -1), 1)).collate([])
    assert x.array.shape == (0, 2, 3) and y.array.shape[0] == 0 and y._lod == [[0]]


def test_sequences() -> None:
    words = one(("w", "int64", (-1, 1), 1), [1, 2], [], (3,), np.array([4, 5]), np.array([[6], [7]], "int32"))
    assert words.array.tolist() == [[1], [2], [3], [4], [5], [6], [7]]
    assert words._lod == [[0, 2, 2, 3, 5, 7]]
    vectors = one(("v", "float32", (-1, 2), 1), [[1, 2], [3, 4]], np.ones((1, 2), "float32"))
    assert vectors.array.tolist() == [[1, 2], [3, 4], [1, 1]] and vectors._lod == [[0, 2, 3]]
    nested = one(("n", "int64", (-1, 1), 2), [[1, 2], [3]], [[4, 5, 6]])
    assert nested.array.ravel().tolist() == [1, 2, 3, 4, 5, 6]
    assert nested._lod == [[0, 2, 3], [0, 2, 3, 6]]
    flat = one(("f", "int64", (-1,), 1), [1, 2], [3])
    assert flat.array.tolist() == [1, 2, 3]


def test_long_sequences_outgrow_the_first_block() -> None:
    lengths = [1, 500, 3, 20_000, 7]
    got = one(("w", "int64", (-1, 1), 1), *[list(range(n)) for n in lengths])
    assert got.array.ravel().tolist() == [i for n in lengths for i in range(n)]


@pytest.mark.parametrize(
    ("spec", "value", "message"),
    [
        (("w", "int64", (-1, 1), 1), 3, "expected a sequence"),
        (("w", "int64", (-1, 2), 1), [1, 2, 3], r"elements of shape \[2\], got shape \[3\]"),
        (("w", "int64", (-1, 1), 2), [1, 2], "expected a sequence"),
        (("w", "int64", (-1, 1), 3), ["abc"], "lists nested 3 deep"),
        (("w", "int64", (-1, 1), 1), "abc", "expected a sequence|expected int64"),
    ],
)
def test_bad_sequences(spec: tuple, value: object, message: str) -> None:
    refuses(lambda: one(spec, value), (TypeError, ValueError), f"variable 'w': .*({message})")


def test_fill_takes_samples_from_an_iterator() -> None:
    fill = collator(Y).fill
    samples = iter([(i,) for i in range(7)])
    assert [fill(samples, 3, False)[0].array.ravel().tolist() for _ in range(3)] == [
        [0, 1, 2],
        [3, 4, 5],
        [6],
    ]
    assert fill(samples, 3, False) is None
    samples = iter([(i,) for i in range(4)])
    assert fill(samples, 3, True)[0].array.shape == (3, 1)
    assert fill(samples, 3, True) is None


def test_fill_with_a_batch_size_of_everything() -> None:
    got = collator(Y).fill(((i,) for i in range(10_000)), 10**12, False)[0].array
    assert got.shape == (10_000, 1) and got[-1, 0] == 9_999


def test_fill_copies_at_once_so_that_a_reader_may_use_one_array_for_all_samples() -> None:
    def reuse():
        buffer = np.zeros(6, "float32")
        for i in range(3):
            buffer[:] = i
            yield buffer, i

    assert collator(X, Y).fill(reuse(), 3, True)[0].array[:, 0, 0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("sample", [5, [5], (5,), np.array([5]), np.int64(5)])
def test_fill_takes_bare_items_for_a_single_variable(sample: object) -> None:
    assert collator(Y).fill(iter([sample]), 1, True)[0].array.tolist() == [[5]]


def test_fill_numbers_the_samples_of_the_reader() -> None:
    collate = collator(Y)
    samples = iter([(0,)] * 5 + [("x",)])
    collate.fill(samples, 4, True)
    refuses(lambda: collate.fill(samples, 4, True), ValueError, "sample 5 of the reader, variable 'y'")


def test_memory_is_reused_but_never_while_it_is_referenced() -> None:
    trim()
    gc.collect()
    before = counters()["live_blocks"]
    collate = collator(("x", "float32", (-1, 1000)))
    samples = [(np.ones(1000, "float32"),)] * 100
    first = collate.collate(samples)[0].array
    place = first.__array_interface__["data"][0]
    part = first[3, 5:]
    del first
    other = collate.collate(samples)[0].array
    assert other.__array_interface__["data"][0] != place and counters()["live_blocks"] == before + 2
    part[:] = 7
    assert other.min() == other.max() == 1
    del part
    assert counters()["live_blocks"] == before + 1 and counters()["cached_bytes"] >= 400_000
    reused = collate.collate(samples)[0].array
    assert reused.__array_interface__["data"][0] == place and place % 64 == 0
    del reused, other
    trim()
    assert counters() == {"live_blocks": before, "live_bytes": counters()["live_bytes"], "cached_bytes": 0}


def test_as_much_memory_is_kept_as_was_in_use_at_a_time() -> None:
    trim()
    gc.collect()
    if counters()["live_blocks"]:
        pytest.skip("other tests hold batches")
    first = [empty((1 << 20,), "float32") for _ in range(40)]
    places = {array.__array_interface__["data"][0] for array in first}
    last = first.pop()
    first.clear()
    assert counters()["cached_bytes"] == 39 << 22  # more than is kept for who may come
    reused = [empty((1 << 20,), "float32") for _ in range(39)]
    assert {array.__array_interface__["data"][0] for array in reused} <= places
    reused.clear()
    for _ in range(1024):  # who needed so much has not for long
        empty((1,), "float32")
    assert counters()["cached_bytes"] <= 96 << 20
    del last
    reused = [empty((1 << 20,), "float32") for _ in range(40)]
    reused.clear()
    assert counters() == {"live_blocks": 0, "live_bytes": 0, "cached_bytes": 96 << 20}
    other = empty((32 << 20,), "uint8")  # memory of another size makes room for it
    del other
    assert counters()["cached_bytes"] == 32 << 20
    trim()


@pytest.mark.parametrize(
    ("spec", "value", "expected"),
    [
        (("y", "int64", (-1, 1)), np.int64(1 << 40), 1 << 40),
        (("y", "int64", (-1, 1)), np.int32(-3), -3),
        (("y", "int64", (-1, 1)), np.uint64(3), 3),
        (("y", "int64", (-1, 1)), np.array(7), 7),
        (("y", "int64", (-1, 1)), np.array([7]), 7),
        (("y", "int32", (-1,)), np.int64(7), 7),
        (("y", "float32", (-1, 1)), np.float32(0.1), np.float32(0.1)),
        (("y", "float32", (-1, 1)), np.float64(0.1), np.float32(0.1)),
        (("y", "float64", (-1, 1)), np.float64(0.1), 0.1),
        (("y", "bool", (-1, 1)), np.True_, True),
        (("y", "float16", (-1, 1)), np.float16(0.1), np.float16(0.1)),
    ],
)
def test_numbers_of_numpy(spec: tuple, value: object, expected: object) -> None:
    made = collator(spec).fill(iter([(value,)] * 3), 3, True)[0].array
    assert made.dtype == spec[1] and made.ravel().tolist() == [expected] * 3


def test_numbers_of_numpy_that_do_not_fit() -> None:
    for value in (np.int64(1 << 40), np.uint64((1 << 64) - 1), np.float64("nan")):
        with pytest.raises(ValueError, match="int32 cannot"):
            collator(("y", "int32", (-1, 1))).collate([(1,), (value,)])


def test_the_shape_of_a_batch_that_is_ready() -> None:
    spec = Spec("x", "float32", (-1, 3))
    assert spec.takes(np.zeros((2, 3), "float32")) and spec.takes(np.zeros((3, 2), "float32").T)
    for other in (
        np.zeros((2, 3)),
        np.zeros((2, 3), ">f4"),
        np.zeros((2, 4), "f4"),
        np.zeros((2, 3, 1), "f4"),
    ):
        assert not spec.takes(other)


def test_a_failed_batch_holds_no_memory() -> None:
    before = counters()["live_blocks"]
    collate = collator(X, Y)
    refuses(lambda: collate.collate([(np.zeros(6), 1), (np.zeros(6), None)]), TypeError)
    assert counters()["live_blocks"] == before
    assert collate.collate([(np.zeros(6), 1)])[1].array.tolist() == [[1]]


def test_rows_are_filled_until_one_does_not_fit() -> None:
    out = empty((3, 2), "float32")
    assert out.shape == (3, 2) and out.dtype == np.float32
    rows = [np.full(2, i, "float32") for i in range(3)]
    assert fill_rows([(row, 0) for row in rows], 0, 2, out) == 3 and np.array_equal(out, rows)
    assert fill_rows(rows, -1, 0, out) == 3
    for bad in (np.zeros(3, "float32"), np.zeros(2), np.zeros((1, 2), "float32"), 1.0, None, "x"):
        assert fill_rows([rows[0], bad, rows[2]], -1, 0, out) == 1
    assert fill_rows([(rows[0], 0), (rows[1],), (rows[2], 0)], 0, 2, out) == 1
    numbers = np.zeros(3, "int64")
    assert fill_rows([5, 2**40, 2**70], -1, 0, numbers) == 2 and numbers[1] == 2**40
    assert fill_rows([[np.int64(4)], [True]], 0, 1, numbers) == 1 and numbers[0] == 4
    assert fill_rows([], -1, 0, numbers) == 0
    for wrong in (np.zeros((3, 4), "float32")[:, ::2], np.zeros((2, 2), "float32"), np.zeros((), "float32")):
        with pytest.raises(ValueError, match="a row for each sample"):
            fill_rows(rows, -1, 0, wrong)


def test_memory_of_empty_arrays_is_reused() -> None:
    first = empty((1000, 100), "float64")
    place = first.ctypes.data
    del first
    assert empty((1000, 100), "float64").ctypes.data == place
    assert empty((0, 3), "int32").shape == (0, 3)
