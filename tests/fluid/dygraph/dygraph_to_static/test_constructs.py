"""Functions with conditions and loops on tensors give the same as programs and eagerly: results and gradients."""

import contextlib

import pytest

from fluidlite import layers

from .both_ways import assert_same


def early_return(x):
    if layers.reduce_mean(x) > 0:
        return x + 1
    x = x * 2
    return x * x


def number_that_changes(x):
    n = 0
    if layers.reduce_mean(x) > 0:
        n = 5
    return x * n


def while_tensor(x):
    i = 0
    s = layers.reduce_mean(x)
    while s < 10:
        s = s * 1.5 + 1.0
        i += 1
    return i, s


def range_of_tensor(x):
    s = layers.zeros([1], "float32")
    n = layers.cast(layers.reduce_sum(layers.ones_like(x)), "int32")
    for i in range(n):
        s = s + i * layers.reduce_mean(x)
    return s


def sum_from_python_zero(x):
    s = 0
    for i in range(layers.cast(layers.reduce_sum(layers.ones_like(x)), "int32")):
        s = s + x * i
    return s


def rows(x):
    s = layers.zeros([2], "float32")
    for v in x:
        s = s + v * v
    return s


def break_by_tensor(x):
    s = layers.zeros([1], "float32")
    for i in range(10):
        if layers.reduce_mean(x) > 0 and i > 3:
            break
        s = s + layers.reduce_sum(x)
    return s


def conditional_expression(x):
    return x + 1 if layers.reduce_mean(x) > 0 else x * x


def and_or_not(x):
    if layers.reduce_mean(x) > 0 and layers.reduce_mean(x) < 2:
        x = x * 3
    if not (layers.reduce_mean(x) > 0 or layers.reduce_mean(x) < -5):
        x = x * 2
    return x


def chained_comparison(x):
    if 0 < layers.reduce_mean(x) < 2:
        x = x * x
    return x


def assigned_in_one_branch(x):
    if layers.reduce_mean(x) > 0:
        y = x * 2
    if layers.reduce_mean(x) > 0:
        x = x * y
    return x


def while_true_with_break_and_continue(x):
    i = 0
    while True:
        i += 1
        x = x * 1.1
        if layers.reduce_sum(x * x) > 20 or i > 30:
            break
        if i > 2 and layers.reduce_sum(x) < 0:
            continue
        x = x * 1.1
    return x, i


def return_in_loop(x):
    for _ in range(10):
        x = x * 1.2
        if layers.reduce_sum(x * x) > 20:
            return x * x
    return x


def nested_function(x):
    def inner(y, k):
        if layers.reduce_sum(y) > 0:
            return y * k
        else:
            return y / k

    for row in x:
        if layers.reduce_sum(row) > 0.5:
            x = x + inner(row, 3)
        else:
            x = inner(x, 2.0)
    return x


def enumerate_rows(x):
    s = x * 0
    for i, v in enumerate(x):
        s = s + v * i
        if layers.reduce_sum(s) > 1000:
            break
    return s


def dict_and_list_changed_in_place(x):
    d = {"a": x}
    items = [x, x * 2]
    if layers.reduce_sum(x) > 0:
        d["a"] = x * x
        items[0] = x * 3
    else:
        items[1] = x * 5
    return d, items


def swap_in_loop(x):
    a, b = x, x * 2
    i = layers.fill_constant([1], "int64", 0)
    while i < 3:
        a, b = b, a + b
        i = i + 1
    return a, b


def tensor_that_grows(x):
    y = x
    i = layers.fill_constant([1], "int64", 0)
    while i < 3:
        y = layers.concat([y, x], 0)
        i = i + 1
    return y


def try_and_with(x):
    try:
        if layers.reduce_sum(x) > 0:
            y = x * x
        else:
            y = x
    finally:
        x = x + 1
    with contextlib.nullcontext():
        if layers.reduce_sum(x) > 0:
            return y * 2
    return y * 3


def length_of_tensor(x):
    n = len(x)
    k = 0
    for i in range(n):
        k += i
    return x * k


def assigned_in_loop_only(x):
    for i in range(layers.cast(layers.reduce_sum(layers.ones_like(x)), "int32")):
        y = x * i
    return y


def max_of_tensors(x):
    m = max(layers.reduce_sum(x), layers.reduce_sum(x * x))
    return x * m


def continue_in_loop(x):
    i = 0
    n = layers.cast(layers.reduce_sum(layers.ones_like(x)), "int32")
    tot = 0.0
    while i < n:
        if i % 2 == 0:
            i += 1
            continue
        tot = tot + i / 2 * x
        i += 1
    return tot


CONSTRUCTS = {
    name: value for name, value in list(globals().items()) if getattr(value, "__module__", "") == __name__
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_construct_gives_the_same_as_eagerly(name, sign):
    assert_same(CONSTRUCTS[name], sign)
