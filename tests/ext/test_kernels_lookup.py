"""Lookup, one-hot, top_k and accuracy."""

import numpy as np
import pytest

from fluidlite._ext import kernels
from fluidlite._ext.engine import KernelFailure

from .native import blank, draw, each_real, each_target

IDS = np.array([1, 3, 1, 2])


@each_real
@pytest.mark.parametrize("padding", (-1, 1, 3))
def test_lookup_and_its_gradient(kind, padding):
    w, out = draw(4, 5, kind=kind), blank(4, 5, kind=kind)
    ints = [4, 4, 5, padding]
    kernels.call(f"lookup_table.{kind}", [w, IDS, out], ints)
    kept = (padding != IDS)[:, None]
    np.testing.assert_array_equal(out, np.where(kept, w[IDS], 0))
    g, dw = draw(4, 5, kind=kind, seed=1), blank(4, 5, kind=kind)
    kernels.call(f"lookup_table_grad.{kind}", [IDS, g, dw], ints)
    want = np.zeros_like(w)
    np.add.at(want, IDS, np.where(kept, g, 0))
    np.testing.assert_array_equal(dw, want)


@pytest.mark.parametrize("width", (1, 40))
def test_many_rows_are_looked_up_in_chunks(width):
    w, ids, out = draw(5000, width), np.arange(40000) * 7919 % 5000, blank(40000, width)
    kernels.call("lookup_table.f32", [w, ids, out], [40000, 5000, width, 3])
    np.testing.assert_array_equal(out, np.where((ids == 3)[:, None], 0, w[ids]))


def test_lookup_of_nothing_leaves_a_zero_gradient():
    dw = blank(3, 2)
    kernels.call("lookup_table_grad.f32", [np.empty(0, np.int64), blank(0, 2), dw], [0, 3, 2, -1])
    assert not dw.any()


@pytest.mark.parametrize("bad", (-1, 4))
def test_ids_out_of_range_are_refused_before_anything_is_written(bad):
    ids, out, table = np.array([0, bad]), blank(2, 5), blank(4, 5)
    for name, operands in (
        ("lookup_table", [draw(4, 5), ids, out]),
        ("lookup_table_grad", [ids, draw(2, 5), table]),
    ):
        with pytest.raises(KernelFailure, match=rf"the value {bad} at position 1 is not in \[0, 4\)"):
            kernels.call(f"{name}.f32", operands, [2, 4, 5, -1])
        assert (out == 77).all() and (table == 77).all()


@each_real
def test_one_hot(kind):
    x, out = np.array([1, 0, 2]), blank(3, 3, kind=kind)
    kernels.call(f"one_hot.{kind}", [x, out], [3, 3, 0])
    np.testing.assert_array_equal(out, np.eye(3)[x])
    x[1] = 5
    with pytest.raises(KernelFailure, match="value 5 at position 1"):
        kernels.call(f"one_hot.{kind}", [x, out], [3, 3, 0])
    kernels.call(f"one_hot.{kind}", [x, out], [3, 3, 1])
    np.testing.assert_array_equal(out[1], 0)


@each_target
@each_real
@pytest.mark.parametrize("n, k", [(30, 1), (30, 2), (30, 5), (30, 30), (1000, 1), (1000, 4), (1000, 200)])
def test_top_k(kind, n, k, target):
    x = draw(6, n, kind=kind)
    out, indices = blank(6, k, kind=kind), blank(6, k, kind="i64")
    kernels.call(f"top_k.{kind}", [x, out, indices], [6, n, k], target=target)
    order = np.argsort(-x, axis=1)[:, :k]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(out, np.take_along_axis(x, order, 1))


@each_target
@pytest.mark.parametrize("k", [1, 2, 4])
def test_top_k_of_what_is_not_a_number(k, target):
    """That comes last, and is found first where there is nothing else."""
    nan, inf = np.nan, np.inf
    x = np.full((6, 300), nan, np.float32)
    x[1, 299], x[2, 7], x[3, [3, 200]], x[4], x[5, 150:] = -inf, inf, [1, 2], -inf, 0
    out, indices = blank(6, k), blank(6, k, kind="i64")
    kernels.call("top_k.f32", [x, out, indices], [6, 300, k], target=target)
    assert [row[0] for row in indices][1:4] == [299, 7, 200]
    np.testing.assert_array_equal(out[:, 0], [nan, -inf, inf, 2, -inf, 0])
    np.testing.assert_array_equal(out, np.take_along_axis(x, indices, 1))
    if k == 1:
        assert indices[:, 0].tolist() == [0, 299, 7, 200, 0, 150]


@each_target
@pytest.mark.parametrize(
    "k, want", [(1, [[1], [0]]), (2, [[2, 1], [0, 1]]), (4, [[4, 1, 2, 3], [1, 3, 0, 2]])]
)
def test_top_k_orders_equal_values_as_fluid_does(k, want, target):
    x = np.array([[1, 3, 3, 2, 3], [0, 0, 0, 0, 0]], np.float32)
    out, indices = blank(2, k), blank(2, k, kind="i64")
    kernels.call("top_k.f32", [x, out, indices], [2, 5, k], target=target)
    assert indices.tolist() == want


def test_accuracy():
    indices, label = np.array([[1, 2], [0, 1], [3, 2]]), np.array([[2], [2], [3]])
    share, correct, total = blank(1), blank(1, kind="i32"), blank(1, kind="i32")
    kernels.call("accuracy.f32", [indices, label, share, correct, total], [3, 2])
    assert (correct[0], total[0]) == (2, 3)
    assert share[0] == np.float32(2 / 3)
    kernels.call("accuracy.f32", [indices, label, share, correct, total], [0, 2])
    assert (share[0], correct[0], total[0]) == (0, 0, 0)
