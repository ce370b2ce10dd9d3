"""Python constructs with tensors (decorators, properties, slices, nested loops): the same eagerly and as programs."""

import contextlib
import functools
import types

import numpy as np
import pytest

from fluidlite import dygraph, layers
from fluidlite.dygraph import to_variable

from .both_ways import assert_same


def break_and_else_in_nested_loops(x):
    s = layers.zeros([1], "float32")
    for i in range(4):
        for j in range(4):
            if layers.reduce_sum(x) * j > 3:
                break
            s = s + i * j
        else:
            s = s + 100
    return x * s


def continue_and_else_in_while(x):
    i = layers.zeros([1], "int64")
    while i < 5:
        i = i + 1
        if i == 3:
            continue
        if layers.reduce_sum(x) > 50:
            break
        x = x * 1.5
    else:
        x = x + 1
    return x


def loops_in_branches_in_loops(x):
    for _ in range(2):
        if layers.reduce_sum(x) > 0:
            j = layers.zeros([1], "int64")
            while j < 3:
                if layers.reduce_max(x) > 6:
                    break
                elif layers.reduce_min(x) < -5:
                    j = j + 2
                    continue
                x = x * 1.5
                j = j + 1
        else:
            x = x - 1
    return x


def return_from_a_while_in_a_for(x):
    for i in range(3):
        while layers.reduce_sum(x) < 20:
            x = x + 1
            if layers.reduce_max(x) > 4:
                return x * 100 + i
        x = x - 10
    return x


def shapes_count(x):
    n = x.shape[0]
    s = x
    for i in range(n - 1, -1, -1):
        s = s + x[i] * i
    i = 0
    while i < x.shape[1]:
        s = s + i
        i += 1
    return layers.reshape(s, [n * 2])


def indices_and_slices_by_tensors(x):
    i = layers.fill_constant([1], "int32", 1)
    return x[i], x[:i], layers.gather(x, i)


def lists_change(x):
    a = [x, x * 2, x * 3]
    first = a.pop(0)
    a.pop()
    a.insert(0, first + 1)
    a.extend([x * 4, x * 5])
    a += [x * 6]
    a.reverse()
    a[1] = x
    del a[0]
    for i in range(len(a)):
        a[i] = a[i - 1] * 2 + i
    return a


def lists_in_lists(x):
    out = [[], []]
    for i in range(3):
        out[i % 2].append(x * i)
    return layers.concat(out[0]), layers.concat(out[1])


def dicts_change(x):
    d = dict(a=x)
    d.update(b=x * 2)
    d.setdefault("c", x * 3)
    s = 0
    for k, v in sorted(d.items()):
        s = s + v * len(k)
        d[f"{k}{k}"] = s
    if layers.reduce_sum(x) > 0:
        d["a"] = s
    return d, d.get("z", x)


def choices_in_choices(x):
    m = layers.reduce_mean(x)
    y = x if m > 1 else (x * 2 if m > 0 else (x * 3 if m > -1 else x * 4))
    return layers.scale(y, scale=2.0 if x.shape[0] == 2 else 3.0) + (x if layers.reduce_sum(x) > 0 else -x)


def pythons_bools_among_tensors(x):
    m, flag, none = layers.reduce_mean(x), True, None
    if flag and m > 0:
        x = x + 1
    if none or m < 0:
        x = x + 2
    if not flag or not m > 0:
        x = x + 4
    if (m > 0 and flag and not none and m < 100) or m < -100:
        x = x + 8
    if -1 < m <= 0.9375 < 3 and x.shape[0] == 2 != 3:
        x = x + 16
    if any([False, x.shape[0] == 2]) and all([True]):
        x = x * 2
    return x


def doubled(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs) * 2

    return inner


@doubled
def decorated(y, up=1):
    if layers.reduce_sum(y) > 0:
        return y + up
    return y - up


def decorated_functions(x):
    return decorated(x) + decorated(x, up=3)


def functions_that_call_each_other(x):
    def even(n, y):
        return y if n == 0 else odd(n - 1, y * 2)

    def odd(n, y):
        return -y if n == 0 else even(n - 1, y + 1)

    return even(5, x)


def functions_made_in_a_loop(x):
    made = []
    for i in range(3):

        def times(y, i=i):
            return y * i if layers.reduce_sum(y) > 0 else y - i

        made.append(times)
    return sum([f(x) for f in made])


def closures_see_the_last_value(x):
    k, w = 2, x * 2
    f = lambda y: y * k if layers.reduce_sum(y) > 0 else y - w  # noqa: E731
    k = 3
    return f(x)


class Base(dygraph.Layer):
    def forward(self, x):
        if layers.reduce_sum(x) > 0:
            return x * 2
        return x * 3


class Derived(Base):
    def forward(self, x, k=1):
        y = super(Derived, self).forward(x)  # noqa: UP008
        if layers.reduce_sum(y) > 0:
            y = y + k
        return y


def super_with_arguments(x):
    return Derived()(x, k=5)


class Thing:
    factor = 3

    def __init__(self):
        self.calls = 0

    @property
    def more(self):
        return self.factor * 2

    @staticmethod
    def sevenfold(y):
        return y * 7 if layers.reduce_sum(y) > 0 else y

    @classmethod
    def threefold(cls, y):
        if layers.reduce_sum(y) > 0:
            return y * cls.factor
        return y

    def __call__(self, y):
        self.calls += 1
        return self.threefold(y) + self.more + self.calls


def methods_of_every_kind(x):
    thing = Thing()
    return thing(x) + thing(x) + Thing.sevenfold(x) + thing.calls


def attributes_in_a_loop(x):
    thing = Thing()
    thing.value = x
    i = layers.zeros([1], "int64")
    while i < 3:
        thing.value = thing.value * 2
        thing.calls += 1
        i = i + 1
    return thing.value, thing.calls


def arguments_with_stars(x):
    def f(a, b, *c, d=0, **e):
        return a + b * len(c) + d + sum(e.values())

    (a, b), c = (x, x * 2), [x * 3]
    a, *rest = [a, b, *c]
    if layers.reduce_sum(a) > 0:
        a, b = b, a
    return f(*[a, b, 1, 2], **{"d": 3, "z": 4}), rest


@contextlib.contextmanager
def three():
    yield 3


def contexts_with_values(x):
    with three() as k, three() as j:
        if layers.reduce_sum(x) > 0:
            x = x * k * j
    return x


def iterables(x):
    s = layers.zeros([2], "float32")
    for i, row in enumerate(x, 5):
        s = s + row * i
    for a, b, c in zip([x, x + 1], (1, 2), [3.0, 4.0], strict=True):
        s = s + a * b + c
    for part in layers.split(x, 2, dim=0):
        s = s + part * part
    for k, part in enumerate(layers.unstack(x, axis=0)):
        s = s + part * k
    for weight in [x, -x, x * 2]:
        if layers.reduce_sum(weight) <= 0:
            continue
        s = s + weight
        if layers.reduce_sum(s) > 50:
            break
    return s


def numbers_of_tensors(x):
    m = layers.reduce_sum(x)
    a = to_variable(np.arange(4, dtype="float32").reshape(2, 2))
    return x * int(m), x + float(m), bool(m), max(m, m * 2), min(m, 0.0), sum([m, m]), 2**x, x * a


def results_in_dicts(x):
    if layers.reduce_sum(x) > 0:
        return {"a": x, "b": [x]}
    return {"a": x * 3, "b": [x - 1]}


def what_is_no_tensor(x):
    return x, 3, 2.5, [True, 4]


def kinds_are_asked_for(x, m=None):
    if m is None:
        m = x
    if isinstance(m, (list, tuple)):
        m = m[0]
    names = {"v2": 3}
    return x * m * names[f"v{x.shape[0]}"] * (2 if hasattr(x, "shape") else 3)


WAYS = {
    name: value
    for name, value in list(globals().items())
    if isinstance(value, types.FunctionType) and value.__module__ == __name__
    if name not in ("doubled", "decorated", "three")
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", WAYS)
def test_ways_give_the_same_as_eagerly(name, sign):
    assert_same(WAYS[name], sign)
