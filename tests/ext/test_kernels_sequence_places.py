"""Errors of kernels on rows of sequences; their results: `tests/ops/sequences/test_sequence_rows_native.py`."""

import numpy as np
import pytest

from fluidlite._ext import kernels
from fluidlite._ext.engine import KernelFailure

from .native import blank, draw, each_target

OUT_OF_RANGE, TOO_LARGE, UNEVEN = 1, 5, 7
LOD = np.array([0, 2, 2, 6])
ROW = 3 * 4  # bytes of three floats


def ints(*values):
    return np.array(values, "int64")


# Kernel, operands that it does not write, output, integers, code, details.
BAD = {
    "copies that are not as many as there is room": (
        "sequence_expand", [draw(3, 3), LOD], blank(5, 3), [3, 5, ROW], UNEVEN, (-1, 6, 5),
    ),
    "more copies than there are gradients": (
        "sequence_expand_grad.f32", [draw(11, 3), LOD, ints(0, 2, 3, 5)],
        blank(6, 3), [3, 11, 6, 3], UNEVEN, (-1, 12, 11),
    ),
    "rows without offsets that are not one for each": (
        "sequence_expand_grad.f32", [draw(6, 3), None, LOD], blank(4, 3), [3, 6, 4, 3], UNEVEN, (-1, 3, 4),
    ),
    "a slice that begins before its sequence": (
        "sequence_slice_grad", [draw(3, 3), LOD, ints(-1, 0, 0), ints(1, 0, 2)],
        blank(6, 3), [3, 3, 6, ROW], UNEVEN, (0, -1, 2),
    ),
    "a slice that is too long": (
        "sequence_slice_grad", [draw(3, 3), LOD, ints(1, 0, 0), ints(2, 0, 1)],
        blank(6, 3), [3, 3, 6, ROW], UNEVEN, (0, 2, 1),
    ),
    "a slice of huge length": (
        "sequence_slice_grad", [draw(3, 3), LOD, ints(1, 0, 0), ints(2**63 - 1, 0, 1)],
        blank(6, 3), [3, 3, 6, ROW], UNEVEN,
        (0, 2**63 - 1, 1),
    ),
    "slices that are more than there are gradients": (
        "sequence_slice_grad", [draw(3, 3), LOD, ints(1, 0, 0), ints(1, 0, 3)],
        blank(6, 3), [3, 3, 6, ROW], UNEVEN, (-1, 4, 3),
    ),
    "a first part of more rows than the mask chooses": (
        "merge_rows", [np.array([1, 0, 1, 0], bool), draw(3, 3), draw(1, 3)], blank(4, 3), [4, 3, 1, ROW], UNEVEN,
        (0, 3, 2),
    ),
    "a second part of fewer rows than the mask leaves": (
        "merge_rows", [np.array([1, 0, 1, 0], bool), draw(2, 3), draw(1, 3)], blank(4, 3), [4, 2, 1, ROW], UNEVEN,
        (1, 1, 2),
    ),
    "a padded batch that is too short": (
        "sequence_pad_grad", [draw(9, 3), LOD], blank(6, 3), [3, 6, 3, ROW], UNEVEN, (2, 4, 3),
    ),
    "a negative length": (
        "sequence_unpad_grad", [draw(4, 3), ints(2, -1, 3)], blank(12, 3), [3, 4, 4, ROW], UNEVEN, (1, -1, 4),
    ),
    "a length beyond the padding": (
        "sequence_unpad_grad", [draw(4, 3), ints(2, 5, 3)], blank(12, 3), [3, 4, 4, ROW], UNEVEN, (1, 5, 4),
    ),
    "lengths that are more than there are gradients": (
        "sequence_unpad_grad", [draw(4, 3), ints(2, 0, 3)], blank(12, 3), [3, 4, 4, ROW], UNEVEN, (-1, 5, 4),
    ),
    "lengths of an unknown type": (
        "sequence_mask.f32", [np.zeros(6, "uint8")], blank(3, 4), [3, 4, 2], TOO_LARGE, (2, 8),
    ),
    "a column that is not there": (
        "sequence_scatter.f32", [draw(3, 5), ints(0, 1, 2, 3, 4, 5), LOD, draw(6)],
        blank(3, 5), [3, 6, 3, 5], OUT_OF_RANGE,
        (5, 5, 5),
    ),
    "more sequences of ids than rows": (
        "sequence_scatter.f32", [draw(2, 5), ints(0, 1, 2, 3, 4, 4), LOD, draw(6)],
        blank(2, 5), [3, 6, 2, 5], UNEVEN,
        (-1, 3, 2),
    ),
    "sequences of more ids than there are": (
        "sequence_scatter.f32", [draw(3, 5), ints(0, 1, 2, 3, 4), LOD, draw(5)],
        blank(3, 5), [3, 5, 3, 5], UNEVEN, (-1, 6, 5),
    ),
    "numbers of offsets that differ": ("set_offsets", [], ints(77, 77, 77), [2, 0, 1], UNEVEN, (-1, 1, 2)),
}  # fmt: skip


@each_target
@pytest.mark.parametrize("what", BAD)
def test_bad_data_are_noticed_before_anything_is_written(what, target):
    name, given, out, numbers, code, details = BAD[what]
    before = out.copy()
    with pytest.raises(KernelFailure) as failure:
        kernels.call(name, [*given, out], numbers, target=target)
    assert failure.value.code == code and failure.value.err[: len(details)] == details
    np.testing.assert_array_equal(out, before)


def test_offsets_may_be_as_many_as_one_likes():
    for count in (0, 1, 3, 1000):
        out = np.full(count + 1, 77)
        kernels.call("set_offsets", [out], [count, *range(count + 1)])
        np.testing.assert_array_equal(out, np.arange(count + 1))
    with pytest.raises(ValueError, match="has|bytes as operand 0"):
        kernels.call("set_offsets", [np.zeros(2, "int64")], [2, 0, 1, 2])


@each_target
@pytest.mark.parametrize("count", [0, 1, 2, 7])
@pytest.mark.parametrize("row", [(), (3,), (0,), (37,)])
def test_rows_are_counted_split_and_merged(target, count, row):
    random = np.random.default_rng(count)
    size = 4 * int(np.prod(row))
    for mask in (random.random(count) < 0.5, np.ones(count, bool), np.zeros(count, bool)):
        x, counts = random.standard_normal((count, *row)).astype("float32"), np.full(2, 9)
        kernels.call("count_rows", [mask, counts], [count], target=target)
        assert counts.tolist() == [mask.sum(), (~mask).sum()]
        parts = [np.full((n, *row), 7, "float32") for n in counts]
        kernels.call("split_rows", [mask, x, *parts], [count, *counts, size], target=target)
        np.testing.assert_array_equal(parts[0], x[mask])
        np.testing.assert_array_equal(parts[1], x[~mask])
        again = np.full_like(x, 7)
        kernels.call("merge_rows", [mask, *parts, again], [count, *counts, size], target=target)
        np.testing.assert_array_equal(again, x)


def test_other_rows_than_the_mask_says_are_refused():
    mask, x = np.array([True, False, True]), np.zeros((3, 2), "float32")
    parts = [np.zeros((1, 2), "float32"), np.zeros((2, 2), "float32")]
    with pytest.raises(KernelFailure) as failure:
        kernels.call("split_rows", [mask, x, *parts], [3, 1, 2, 8])
    assert failure.value.err[:3] == (0, 1, 2)
