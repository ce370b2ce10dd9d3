"""Kernels on SelectedRows: merging, tables, and updates of the rows named."""

import numpy as np
import pytest

from fluidlite._ext import kernels
from fluidlite._ext.engine import Engine, KernelFailure

from .native import TYPES, blank, draw, each_real, each_target, near

ROWS = np.array([4, 1, -1, 4, 0, 1, 4])
HEIGHT, WIDTH = 6, 5


def values(kind):
    found = draw(len(ROWS), WIDTH, kind=kind)
    found[ROWS < 0] = 0
    return found


def dense(kind):
    table = np.zeros((HEIGHT, WIDTH), TYPES[kind])
    np.add.at(table, ROWS[ROWS >= 0], values(kind)[ROWS >= 0])
    return table


def scalar(kind, value):
    return np.array([value], TYPES[kind])


INTS = [len(ROWS), HEIGHT, WIDTH]


@each_target
@each_real
def test_rows_to_dense(kind, target):
    out = blank(HEIGHT, WIDTH, kind=kind)
    kernels.call(f"rows_to_dense.{kind}", [ROWS, values(kind), out], INTS, target=target)
    near(out, dense(kind), kind)


@each_target
@each_real
def test_merged_rows_come_first_and_the_rest_is_empty(kind, target):
    rows, out = np.full(len(ROWS), 99), blank(len(ROWS), WIDTH, kind=kind)
    kernels.call(f"merge_rows.{kind}", [ROWS, values(kind), rows, out], INTS, target=target)
    np.testing.assert_array_equal(rows, [4, 1, 0, -1, -1, -1, -1])
    near(out[:3], dense(kind)[[4, 1, 0]], kind)
    assert not out[3:].any()


@each_target
@each_real
@pytest.mark.parametrize("step", [1, 1 << 14, 3 << 20, (1 << 40) - 1])
def test_rows_of_any_table_are_merged(step, kind, target):
    height, order = 1 << 50, np.random.RandomState(step % 1000).randint(0, 700, 1500)
    rows, out = np.empty(1500, "int64"), blank(1500, 2, kind=kind)
    given = draw(1500, 2, kind=kind)
    kernels.call(f"merge_rows.{kind}", [order * step, given, rows, out], [1500, height, 2], target=target)
    first = np.sort(np.unique(order, return_index=True)[1])
    np.testing.assert_array_equal(rows[: len(first)], order[first] * step)
    assert (rows[len(first) :] == -1).all()
    sums = np.zeros((700, 2))
    np.add.at(sums, order, given)
    near(out[: len(first)], sums[order[first]], kind, 10)


def test_a_merge_begins_anew_in_every_run():
    plan, rows, out = Engine(4), np.empty(3, "int64"), np.empty((3, 1), "float32")
    plan.add("merge_rows.f32", [0, 1, 2, 3], [3, 4, 1], [])
    for slot, array in enumerate((np.array([2, 2, 0]), np.ones((3, 1), "float32"), rows, out)):
        plan.bind(slot, array)
    for _ in range(2):
        plan.run()
        np.testing.assert_array_equal(rows, [2, 0, -1])
        np.testing.assert_array_equal(out, [[2], [1], [0]])


@each_target
@each_real
def test_sgd(kind, target):
    param = draw(HEIGHT, WIDTH, kind=kind, seed=1)
    want = param - TYPES[kind](0.1) * dense(kind)
    kernels.call(f"sgd_rows.{kind}", [scalar(kind, 0.1), param, ROWS, values(kind)], INTS, target=target)
    near(param, want, kind)


@each_target
@each_real
def test_adagrad_leaves_other_rows_alone(kind, target):
    param, moment = draw(HEIGHT, WIDTH, kind=kind, seed=1), draw(HEIGHT, WIDTH, kind=kind, seed=2, low=0)
    old_param, old_moment, grad = param.copy(), moment.copy(), dense(kind)
    kernels.call(
        f"adagrad_rows.{kind}", [scalar(kind, 0.1), param, ROWS, values(kind), moment], INTS, [1e-6], target=target
    )  # fmt: skip
    near(moment, old_moment + grad * grad, kind, 4)
    near(param, old_param - 0.1 * grad / (np.sqrt(old_moment + grad * grad) + 1e-6), kind, 8)
    np.testing.assert_array_equal(param[[2, 3, 5]], old_param[[2, 3, 5]])


@each_target
@each_real
@pytest.mark.parametrize("lazy", (0, 1))
def test_adam(lazy, kind, target):
    param, first = (draw(HEIGHT, WIDTH, kind=kind, seed=k) for k in (1, 2))
    second = draw(HEIGHT, WIDTH, kind=kind, seed=3, low=0)
    power1, power2 = scalar(kind, 0.9), scalar(kind, 0.99)
    old, grad = (param.copy(), first.copy(), second.copy()), dense(kind)
    operands = [scalar(kind, 0.1), param, ROWS, values(kind), first, second, power1, power2]
    kernels.call(f"adam_rows.{kind}", operands, [*INTS, lazy], [0.9, 0.99, 1e-8], target=target)
    near(power1, scalar(kind, 0.81), kind)
    near(power2, scalar(kind, 0.9801), kind)
    want_first = 0.9 * old[1] + 0.1 * grad
    want_second = 0.99 * old[2] + 0.01 * grad * grad
    step = 0.1 * np.sqrt(1 - 0.9801) / (1 - 0.81)
    want = old[0] - step * want_first / (np.sqrt(want_second) + 1e-8)
    touched = [0, 1, 4] if lazy else slice(None)
    for got, made, before in zip((param, first, second), (want, want_first, want_second), old, strict=True):
        expected = before.copy()
        expected[touched] = made[touched]
        near(got, expected, kind, 30)


MANY, TABLE = np.arange(9000) * 7919 % 8192, 8200
"""Row indices with repetitions, enough to be updated in chunks."""


@each_target
@pytest.mark.parametrize("width", (1, 20))
def test_updates_of_many_rows(width, target):
    found, start, (m1, m2) = (
        draw(9000, width),
        draw(TABLE, width, seed=1),
        draw(2, TABLE, width, seed=2, low=0.5),
    )
    table, named, ints = np.zeros((TABLE, width)), np.zeros((TABLE, 1), bool), [9000, TABLE, width]
    np.add.at(table, MANY, found)
    named[MANY] = True
    param, moment = start.copy(), m1.copy()
    kernels.call(
        "adagrad_rows.f32", [scalar("f32", 0.1), param, MANY, found, moment], ints, [1e-6], target=target
    )
    near(moment, m1 + table**2, "f32", 10)
    near(param, start - 0.1 * table / (np.sqrt(m1 + table**2) + 1e-6), "f32", 10)
    first, second = 0.9 * m1 + 0.1 * table, 0.99 * m2 + 0.01 * table**2
    rate = 0.1 * np.sqrt(1 - 0.5 * 0.99) / (1 - 0.5 * 0.9)
    want = start - rate * first / (np.sqrt(second) + 1e-8)
    for lazy in (0, 1):
        param, one, two, powers = start.copy(), m1.copy(), m2.copy(), np.full((2, 1), 0.5, "f4")
        operands = [scalar("f32", 0.1), param, MANY, found, one, two, *powers]
        kernels.call("adam_rows.f32", operands, [*ints, lazy], [0.9, 0.99, 1e-8], target=target)
        touched = named if lazy else ~np.zeros_like(named)
        near(one, np.where(touched, first, m1), "f32", 10)
        near(two, np.where(touched, second, m2), "f32", 10)
        near(param, np.where(touched, want, start), "f32", 30)


@pytest.mark.parametrize("name", ("rows_to_dense", "merge_rows", "sgd_rows"))
def test_rows_outside_the_table_are_noticed(name):
    operands = {
        "rows_to_dense": [np.array([6]), draw(1, WIDTH), blank(HEIGHT, WIDTH)],
        "merge_rows": [np.array([6]), draw(1, WIDTH), np.zeros(1, "int64"), blank(1, WIDTH)],
        "sgd_rows": [scalar("f32", 0.1), blank(HEIGHT, WIDTH), np.array([6]), draw(1, WIDTH)],
    }[name]
    with pytest.raises(KernelFailure):
        kernels.call(f"{name}.f32", operands, [1, HEIGHT, WIDTH])


@each_target
@each_real
@pytest.mark.parametrize("limit", (0.5, 1e6))
def test_clip_by_norm(limit, kind, target):
    x, out = draw(40, kind=kind), blank(40, kind=kind)
    kernels.call(f"clip_by_norm.{kind}", [x, out], [40], [limit], target=target)
    near(out, x * min(1, limit / np.sqrt((x.astype("float64") ** 2).sum())), kind)
    kernels.call(f"clip_by_norm.{kind}", [x, x], [40], [limit], target=target)
    np.testing.assert_array_equal(x, out)


@each_target
@each_real
def test_average_accumulates_over_windows(kind, target):
    param, sums = np.ones(3, TYPES[kind]), [np.zeros(3, TYPES[kind]) for _ in range(3)]
    counts = [np.zeros(1, "int64") for _ in range(3)]
    seen = []
    for _ in range(7):
        operands = [param, *sums, *counts]
        kernels.call(f"average_accumulates.{kind}", operands, [3, 2, 4, 16384], [0.5], target=target)
        seen.append([*(int(s[0]) for s in sums), *(int(c[0]) for c in counts)])
    # sum_1, sum_2, sum_3, steps in the window, steps in the last window, steps
    assert seen == [
        [1, 0, 0, 1, 0, 1], [0, 0, 2, 0, 2, 2], [1, 0, 2, 1, 2, 3], [0, 0, 2, 0, 2, 4], [1, 0, 2, 1, 2, 5],
        [2, 0, 2, 2, 2, 6], [0, 0, 3, 0, 3, 7],
    ]  # fmt: skip
    kernels.call(f"average_accumulates.{kind}", [param, *sums, *counts], [3, 99, 99, 8], [0.5], target=target)
    assert (sums[0][0], sums[1][0], int(counts[2][0])) == (0, 1, 8)
