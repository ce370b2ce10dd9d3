"""Levels of detail as arrays: valid and invalid input, and sharing."""

import numpy as np
import pytest

from fluidlite.base import lod as lods


def test_offsets_are_read_only_int64():
    (level,) = lods.as_lod([[0, 2, 2, 5]])
    assert level.dtype == np.int64 and level.tolist() == [0, 2, 2, 5]
    with pytest.raises(ValueError, match="read-only"):
        level[0] = 1


def test_arrays_are_taken_only_if_they_cannot_be_written():
    writable = np.array([0, 3])
    frozen = lods.freeze(np.array([0, 3]))
    wide = lods.freeze(np.array([0, 1, 3, 4])[::2])
    taken = lods.as_lod([writable, frozen, wide])
    assert taken[0] is not writable and taken[1] is frozen and taken[2] is not wide
    writable[1] = 7
    assert lods.as_lists(taken) == [[0, 3], [0, 3], [0, 3]]
    assert all(level.flags.c_contiguous and not level.flags.writeable for level in taken)


@pytest.mark.parametrize(
    "level", [(0, 3), np.array([0, 3], "int32"), np.array([0, 3], ">i8"), range(0, 4, 3)]
)
def test_whole_numbers_of_any_kind_are_offsets(level):
    (made,) = lods.as_lod([level])
    assert made.dtype == np.dtype("int64") and made.dtype.isnative and made.tolist() == [0, 3]


@pytest.mark.parametrize("level", [[0.0, 3.0], [[0, 3]], 3, ["0", "3"], [[0], [1, 2]], [True, False], None])
def test_other_things_are_no_offsets(level):
    with pytest.raises(TypeError, match="whole numbers"):
        lods.frozen_offsets(level)


def test_lengths_and_back():
    assert lods.from_lengths([2, 0, 3]).tolist() == [0, 2, 2, 5]
    assert lods.from_lengths([]).tolist() == [0]
    assert lods.lengths(lods.as_lod([[0, 2, 2, 5]])) == [[2, 0, 3]]
    huge = lods.from_lengths(np.ones(1 << 20, np.int32))
    assert huge[-1] == 1 << 20 and lods.problem((huge,), 1 << 20) is None


@pytest.mark.parametrize(
    ("levels", "rows", "problem"),
    [
        ([[0, 2, 5]], 5, None),
        ([[0, 2, 5]], None, None),
        ([[0, 0, 0]], 0, None),
        ([[0, 1, 2], [0, 2, 5]], 5, None),
        ([[0, 2, 2], [0, 2, 5]], 5, None),
        ([], 5, None),
        ([[0, 2, 5]], 4, "the last level ends at 5 but the tensor has 4 rows"),
        ([[0, 5]], 0, "the last level ends at 5 but the tensor has 0 rows"),
        ([[0]], 0, "level 0 must begin with 0 and have an end"),
        ([[]], None, "level 0 must begin with 0 and have an end"),
        ([[1, 5]], 5, "level 0 must begin with 0 and have an end"),
        ([[0, 3, 2, 5]], 5, "the offsets of level 0 decrease from 3 to 2 at position 2"),
        ([[0, -1, 5]], 5, "decrease from 0 to -1 at position 1"),
        ([[0, 3], [0, 2, 5]], 5, "level 0 ends at 3 but level 1 has 2 sequences"),
    ],
)
def test_what_does_not_add_up_is_named(levels, rows, problem):
    found = lods.problem(lods.as_lod(levels), rows)
    assert found is None if problem is None else problem in found


def test_the_same_levels():
    one = lods.as_lod([[0, 1], [0, 3]])
    assert lods.same(one, lods.as_lod([[0, 1], [0, 3]])) and lods.same((), ())
    assert not lods.same(one, one[:1]) and not lods.same(one, lods.as_lod([[0, 1], [0, 4]]))
