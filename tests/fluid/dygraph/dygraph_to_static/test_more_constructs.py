"""Python's variables, containers and functions around tensors: the same as programs and eagerly."""

import functools
import sys
import types

import pytest

from fluidlite import dygraph, layers

from .both_ways import assert_same


def list_with_two_names(x):
    items = [x]
    m = items
    if layers.reduce_sum(x) > 0:
        items[0] = x * 3
    return m[0]


def global_variable(x):
    global GG
    GG = 1
    if layers.reduce_sum(x) > 0:
        GG = 2
    return x * GG


def nonlocal_variable(x):
    k = 1.0

    def f(y):
        nonlocal k
        k = k + 1
        if layers.reduce_sum(y) > 0:
            k = k * 3
        return y * k

    y = f(x)
    return f(y), k


def recursion(x, n=4):
    if n == 0:
        return x
    if layers.reduce_sum(x) > 0:
        x = x * 1.5
    return recursion(x, n - 1)


def lambdas(x):
    """Two lambdas on a line are distinguished by the columns of their instructions (Python 3.11)."""
    if sys.version_info < (3, 11):
        several = [lambda y: y * 2 if layers.reduce_sum(y) > 0 else y * 3]
        return several[0](x) + 1
    several = [lambda y: y * 2 if layers.reduce_sum(y) > 0 else y * 3, lambda z: z and 1]
    return several[0](x) + several[1](3)


def elif_chain(x):
    s = layers.reduce_sum(x)
    if s > 10:
        r = x * 1
    elif s > 3:
        r = x * 2
    elif s > -1:
        r = x * 3
    else:
        r = x * 4
    return r


def nested_while(x):
    i = 0
    t = x * 0
    n = layers.cast(layers.reduce_sum(layers.ones_like(x)), "int64")
    while i < n:
        j = 0
        while j < i:
            t = t + x * j
            if layers.reduce_sum(t) > 50:
                break
            j += 1
        i += 1
    return t, i


def for_else(x):
    for _ in range(layers.cast(layers.reduce_sum(layers.ones_like(x)), "int64")):
        if layers.reduce_sum(x) > 5:
            break
        x = x + 1
    else:
        x = x * 100
    return x


def return_from_nested_loops(x):
    for _ in range(3):
        for row in x:
            if layers.reduce_sum(row) > 2:
                return row * 10
            elif layers.reduce_sum(row) < -2.2:
                continue
            x = x * 1.3
    return x[0]


def tuples(x):
    def two(y):
        return y + 1, y * 2

    a, (b, c) = x, two(x)
    while layers.reduce_sum(b * b) < 200:
        a, (b, c) = b + 1, two(b + c)
    return a, b, c


def dict_made_in_each_iteration(x):
    st = {"h": x, "n": 0}
    while layers.reduce_sum(st["h"] * st["h"]) < 100:
        st = {"h": st["h"] * 1.5, "n": st["n"] + 1}
    return st


def dict_changed_in_loop(x):
    st = {"h": x, "n": 0}
    while layers.reduce_sum(st["h"] * st["h"]) < 100:
        st["h"] = st["h"] * 1.5
        st["n"] += 1
    return st


def list_changed_in_loop(x):
    st = [x, x * 2]
    for _ in range(layers.cast(layers.reduce_sum(layers.ones_like(x)), "int64")):
        st[0] = st[1] + st[0]
        st[1] = st[0] * 0.5
    return st


def two_lists(x):
    a, b = [], []
    i = 0
    while i < layers.reduce_sum(layers.ones_like(x)):
        a.append(x * i)
        if layers.reduce_sum(a[-1]) > 3:
            b.append(x + i)
        else:
            b.append(x - i)
        i += 1
    return layers.stack(a), layers.concat(b, 1), i


def comprehensions(x):
    return [r * 2 if layers.reduce_sum(r) > 0 else r for r in x], sum([layers.reduce_sum(r) for r in x])


def ranges_with_steps(x):
    s = x * 0
    n = layers.cast(layers.reduce_sum(layers.ones_like(x)), "int64")
    for i in range(n, 0, -1):
        s = s + x * i
    for i in range(1, n * 3, 4):
        s = s * 2 + i
    for i in range(n * 3, n, -5):
        s = s * 2 + i
    return s


def shapes_are_pythons(x):
    if x.shape[0] > 1 and x.shape == [2, 2] or x.shape == (2, 2):
        return x * 2
    return x


def swap_in_branch(x):
    a, b = x, x * 2
    if layers.reduce_sum(x) > 0:
        a, b = b, a
    return a, b


def increment_in_place(x):
    i = layers.zeros([1], "float32")
    while i < 5:
        x = x * 1.1
        layers.increment(i)
    return x, i


def bool_that_becomes_a_tensor(x):
    done = False
    n = 0
    while not done:
        n += 1
        x = x * 2
        done = layers.reduce_sum(x * x) > 500 or n >= 4
    return x, n, done


def numbers_divide_as_pythons(x):
    n = 0
    t = 1.5
    while layers.reduce_sum(x * x) < 300:
        n = n + 1
        t = t / 2 + n
        x = x * (1 + 1 / n) + t
    return x, n, t


def floor_and_remainder(x):
    n = int(layers.reduce_sum(x * x))
    c = 0
    while n > 0:
        c += n % 3
        n = n // 2
    return x * c


def returns_in_branches(x):
    if layers.reduce_sum(x) > 0:
        if layers.reduce_max(x) > 1:
            return x * 2
        y = x + 1
    else:
        if layers.reduce_min(x) < -5:
            return x
        y = x - 1
    y = y * y
    if layers.reduce_sum(y) > 100:
        return y
    return y + x


def no_grad_inside(x):
    with dygraph.no_grad():
        w = x * 2
        if layers.reduce_sum(w) > 0:
            w = w + 1
    return x * w


def starred_arguments(*args, **kw):
    s = 0
    for a in args:
        if layers.reduce_sum(a) > 0:
            s = s + a
    return s


def annotated(x):
    y: float = 0
    if layers.reduce_sum(x) > 0:
        y += 2
    z = y if y else 3
    return x * y * z


def named_expressions(x):
    if (s := layers.reduce_sum(x)) > 0:
        x = x * s
    while (s := s + 1) < 4:
        x = x + s
    return x


def deleted_variable(x):
    t = x * 2
    if layers.reduce_sum(x) > 0:
        u = t + 1
        del u
    del t
    return x


def none_or_tensor(x, m=None):
    if m is not None and layers.reduce_sum(x) > 0:
        x = x * m
    if m is None or layers.reduce_sum(x) > 0:
        x = x * 2
    return x


def loop_variable_afterwards(x):
    for r in x:
        if layers.reduce_sum(r) > 1e6:
            break
    return r


def exceptions(x):
    try:
        if layers.reduce_sum(x) > 0:
            y = x * 2
        else:
            y = x * 3
        y = y + {}["a"]
    except KeyError:
        if layers.reduce_sum(x) > 0:
            y = y + 1
    else:
        y = y * 100
    finally:
        y = y * 2
    return y


def numbers_chosen(x):
    k = layers.reduce_sum(x)
    m = 1 if k > 0 else 2
    n = 1.0 if k > 0 else 2
    return x * m, x * n


def many_rows(x):
    s = layers.zeros([1], "float32")
    r = layers.reshape(layers.expand(x, [40, 1]), [-1, 2])
    for v in r:
        s = s + layers.reduce_sum(v * v)
    return s


def nested_not(x):
    y = layers.reduce_sum(x)
    return x * 1 if not (y > 0 and not (y < 2)) or y == 3.75 else x * 2


def sum_min_max(x):
    return sum(r for r in x), min(layers.reduce_sum(x), 0.5), max([1, 2])


def map_of_lambda(x):
    return list(map(lambda r: r * 2 if layers.reduce_sum(r) > 0 else r, x))


class Doubling:
    def __call__(self, x):
        if layers.reduce_sum(x) > 0:
            return x * 2
        return x


def object_that_is_called(x):
    return Doubling()(x)


def partial(x):
    def f(a, b):
        if layers.reduce_sum(b) > 0:
            return a * b
        return b

    return functools.partial(f, 3)(x)


CONSTRUCTS = {
    name: value
    for name, value in list(globals().items())
    if isinstance(value, types.FunctionType) and value.__module__ == __name__
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_construct_gives_the_same_as_eagerly(name, sign):
    assert_same(CONSTRUCTS[name], sign)
