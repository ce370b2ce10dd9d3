"""Ragged samples to batches: rows end to end, offsets as arrays, against what NumPy makes of the same samples."""

from __future__ import annotations

import gc
import random
from typing import Any

import numpy as np
import pytest

from fluidlite._ext.collate import Collator, Spec, counters

KINDS = ["int64", "int32", "float32", "float64", "uint8", "bool"]
FORMS = ["list", "tuple", "array", "strided", "swapped", "wider", "scalars", "column"]


def collator(*specs: tuple[Any, ...]) -> Collator:
    return Collator([Spec(*spec) for spec in specs], lambda array, lod: (array, lod))


def batch(spec: tuple[Any, ...], values: list[Any]) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """The batch of these values, which is the same whether they come in a list or one by one."""
    samples = [(value,) for value in values]
    ((array, lod),) = collator(spec).collate(samples)
    assert all(o.dtype == np.int64 and o.flags.c_contiguous and not o.flags.writeable for o in lod)
    if samples:
        ((streamed, levels),) = collator(spec).fill(iter(samples), len(samples), False)
        np.testing.assert_array_equal(streamed, array)
        assert streamed.dtype == array.dtype and [o.tolist() for o in levels] == [o.tolist() for o in lod]
    return array, lod


def formed(row: np.ndarray, form: str) -> Any:
    """The numbers of a sequence in another form."""
    if form == "strided":
        return np.repeat(row, 2, axis=0)[::2]
    if form == "swapped":
        return row.astype(row.dtype.newbyteorder())
    if form == "wider":
        return row.astype("int16" if row.dtype == "uint8" else row.dtype if row.dtype == bool else "float64")
    if form == "column":
        return row.reshape(-1, 1) if row.ndim == 1 else row.reshape(len(row), -1)
    return {"list": row.tolist(), "tuple": tuple(row.tolist()), "array": row, "scalars": list(row)}[form]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(-1, 1), (-1,), (-1, 3), (-1, 2, 2)])
def test_sequences_in_all_forms_are_put_end_to_end(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    lengths = [3, 0, 1, 7, 0, 2, 400, 1, 0, 5]
    rows = [rng.integers(0, 2, (n, *(shape[1:] if shape[1:] != (1,) else ()))).astype(dtype) for n in lengths]
    values = [formed(row, FORMS[k % len(FORMS)]) for k, row in enumerate(rows)]
    array, (offsets,) = batch(("w", dtype, shape, 1), values)
    assert array.dtype == dtype and array.shape == (sum(lengths), *shape[1:])
    np.testing.assert_array_equal(array, np.concatenate([row.reshape(-1, *shape[1:]) for row in rows]))
    assert offsets.tolist() == [0, *np.cumsum(lengths).tolist()]


def nested(draw: random.Random, depth: int) -> list[Any]:
    if depth == 0:
        return [draw.randrange(-99, 99) for _ in range(draw.choice([0, 1, 2, 5]))]
    return [nested(draw, depth - 1) for _ in range(draw.choice([0, 1, 3]))]


def flat(value: Any, depth: int) -> list[Any]:
    return list(value) if depth == 0 else [item for part in value for item in flat(part, depth - 1)]


def ends(values: list[Any]) -> list[int]:
    return [0, *np.cumsum([len(value) for value in values]).tolist()]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_levels_nested_deep(depth: int, seed: int) -> None:
    draw = random.Random(seed)
    values = [nested(draw, depth) for _ in range(draw.choice([1, 4, 9]))]
    array, lod = batch(("n", "int64", (-1, 1), depth + 1), values)
    level = values
    for offsets in lod:
        assert offsets.tolist() == ends(level)
        level = [part for value in level for part in value]
    assert array.ravel().tolist() == level and array.shape[1:] == (1,)
    arrays = [[np.asarray(part, "int64") for part in value] for value in values] if depth == 1 else values
    collated, levels = batch(("n", "int64", (-1, 1), depth + 1), arrays)
    assert collated.tolist() == array.tolist() and [o.tolist() for o in levels] == [o.tolist() for o in lod]


def test_an_array_is_a_sequence_of_sequences_too() -> None:
    array, lod = batch(("n", "float32", (-1, 2), 2), [np.arange(12).reshape(2, 3, 2), np.zeros((0, 3, 2))])
    assert array.tolist() == np.arange(12).reshape(6, 2).tolist()
    assert [o.tolist() for o in lod] == [[0, 2, 2], [0, 3, 6]]


@pytest.mark.parametrize(
    ("values", "lod", "shape"),
    [
        ([], [[0]], (0, 1)),
        ([[]], [[0, 0]], (0, 1)),
        ([[], (), np.zeros(0), np.zeros((0, 1), "int64")], [[0, 0, 0, 0, 0]], (0, 1)),
    ],
)
def test_nothing_in_it(values: list[Any], lod: list[list[int]], shape: tuple[int, ...]) -> None:
    array, offsets = batch(("w", "int64", (-1, 1), 1), values)
    assert array.shape == shape and array.dtype == np.int64 and [o.tolist() for o in offsets] == lod


def test_no_sentences_in_a_document() -> None:
    array, lod = batch(("n", "int64", (-1, 1), 2), [[], [[], [1]], []])
    assert array.tolist() == [[1]] and [o.tolist() for o in lod] == [[0, 0, 2, 2], [0, 0, 1]]


def test_a_huge_sequence_among_many_short_ones() -> None:
    long = np.arange(3_000_000)
    values: list[Any] = [[7]] * 5000 + [long] + [[8]] * 5000
    array, (offsets,) = batch(("w", "int64", (-1, 1), 1), values)
    assert len(array) == 3_010_000 and offsets[5000] == 5000 and offsets[5001] == 3_005_000
    np.testing.assert_array_equal(array[5000:3_005_000, 0], long)


def test_sizes_that_change_from_batch_to_batch() -> None:
    collate = collator(("w", "float32", (-1, 2), 1), ("d", "int64", (-1, 1)))
    for count in (1, 900, 2, 0, 40):
        rows = [np.full((k % 7, 2), k, "float32") for k in range(count)]
        samples = [(row, k) for k, row in enumerate(rows)]
        for made in (collate.collate(samples), collate.fill(iter(samples), 10**6, False)):
            if made is not None:
                (array, (offsets,)), (numbers, none) = made
                assert array.tolist() == [row.tolist() for value in rows for row in value]
                assert offsets.tolist() == ends(rows) and none == () and len(numbers) == count


def test_a_batch_stays_when_the_next_is_made() -> None:
    collate = collator(("w", "int64", (-1, 1), 1))
    kept = [collate.collate([([k] * k,), ([k],)])[0] for k in range(6)]
    for k, (array, (offsets,)) in enumerate(kept):
        assert array.ravel().tolist() == [k] * (k + 1) and offsets.tolist() == [0, k, k + 1]


DENSE = "; its lod_level is 0: .* need a variable with lod_level=1"


@pytest.mark.parametrize(
    ("shape", "levels", "values", "sample", "message"),
    [
        # Sequences for a variable that knows of none.
        ((-1, 2), 0, [[1, 2], [3]], 1, r"expected shape \[2\], got \[1\]" + DENSE),
        (
            (-1, -1),
            0,
            [[1, 2], [3]],
            1,
            r"expected shape \[2\] as in the samples before it, got \[1\]" + DENSE,
        ),
        ((-1, 1), 0, [[1], [2, 3]], 1, r"expected shape \[1\], got \[2\]" + DENSE),
        ((-1, 2), 0, [[[1], [2, 3]]], 0, "expected int64 numbers, got a ragged list: .*" + DENSE),
        # Nested too deep, or elements of another shape.
        (
            (-1, 1),
            1,
            [[1], [[1, 2], [3]]],
            1,
            "expected int64 numbers in lists nested 1 deep .*, got a ragged list",
        ),
        ((-1, 1), 1, [[[1, 2], [3, 4]]], 0, r"elements of shape \[1\], got shape \[2, 2\]"),
        ((-1, 3), 1, [np.ones((2, 3)), np.ones((2, 4))], 1, r"elements of shape \[3\], got shape \[2, 4\]"),
        # Not nested deep enough.
        ((-1, 1), 1, [[1], 3], 1, r"expected a sequence \(lod_level is 1\), got 3"),
        ((-1, 1), 2, [[[1]], [2, 3]], 1, r"expected a sequence \(lod_level is 2\), got 2"),
        ((-1, 1), 2, [[[1]], 4], 1, r"expected .* nested 2 deep \(its lod_level\), got 4 \(int\) at depth 0"),
        # No numbers.
        ((-1, 1), 1, [[1, None]], 0, "expected int64 numbers"),
        ((-1, 1), 1, [[2**70]], 0, "too large|expected int64 numbers|too big"),
        ((-1, 1), 1, [iter([1])], 0, "expected .*got <list_iterator"),
        ((-1, 1), 2, [{1: 2}], 0, r"expected .*got \{1: 2\} \(dict\)"),
    ],
)
def test_what_does_not_fit_is_named_and_leaves_nothing(
    shape: tuple[int, ...], levels: int, values: list[Any], sample: int, message: str
) -> None:
    gc.collect()
    before = counters()["live_blocks"]
    samples = [(value,) for value in values]
    spec = ("w", "int64", shape, levels)
    with pytest.raises((TypeError, ValueError), match=f"sample {sample} .*variable 'w': .*({message})"):
        collator(spec).collate(samples)
    with pytest.raises((TypeError, ValueError), match=f"sample {sample} .*variable 'w': .*({message})"):
        collator(spec).fill(iter(samples), 9, False)
    gc.collect()
    assert counters()["live_blocks"] == before


def test_after_an_error_the_next_batch_is_whole() -> None:
    collate = collator(("w", "int64", (-1, 1), 2))
    with pytest.raises(TypeError):
        collate.collate([([[1, 2], [3]],), ([[4], 5],)])
    ((array, lod),) = collate.collate([([[6]],)])
    assert array.tolist() == [[6]] and [o.tolist() for o in lod] == [[0, 1], [0, 1]]
