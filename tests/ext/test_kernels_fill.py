"""Scaling, sums of tensors, fills, copies, casts and the finiteness check."""

import numpy as np
import pytest

from fluidlite._ext import kernels

from .native import SIZES, TYPES, blank, draw, each_real, each_target, near

NUMERIC = pytest.mark.parametrize("kind", ("f32", "f64", "i32", "i64"))


@each_target
@each_real
def test_scale(kind, target):
    for n in SIZES:
        x, out = draw(n, kind=kind), blank(n, kind=kind)
        kernels.call(f"scale.{kind}", [x, out], [n, 1], [2.5, 0.5], target=target)
        near(out, x * 2.5 + 0.5, kind)
        kernels.call(f"scale.{kind}", [x, x], [n, 0], [2.5, 0.5], target=target)
        near(x, out - 0.5 + 1.25, kind)


@each_target
@pytest.mark.parametrize("kind", ("i32", "i64"))
def test_scale_of_integers(kind, target):
    x, out = np.array([1, -3, 5], TYPES[kind]), blank(3, kind=kind)
    kernels.call(f"scale.{kind}", [x, out], [3, 1], [2.0, 1.0], target=target)
    assert out.tolist() == [3, -5, 11]


@each_target
@NUMERIC
def test_increment(kind, target):
    x = np.array([4], TYPES[kind])
    kernels.call(f"increment.{kind}", [x, x], [1], [1.0], target=target)
    assert x.tolist() == [5]


@each_target
@NUMERIC
@pytest.mark.parametrize("count", (1, 2, 5))
def test_sum_of_tensors(kind, count, target):
    for n in (*SIZES, 5000):
        xs = [draw(n, kind=kind, seed=k, low=-9, high=9) for k in range(count)]
        want = np.sum(xs, axis=0, dtype=np.float64)
        out = blank(n, kind=kind)
        kernels.call(f"sum.{kind}", [*xs, out], [n], target=target)
        near(out, want, kind if kind in ("f32", "f64") else "f64", 10)
        for place in range(count):
            copies = [x.copy() for x in xs]
            kernels.call(f"sum.{kind}", [*copies, copies[place]], [n], target=target)
            np.testing.assert_array_equal(copies[place], out)


@each_target
def test_fill(target):
    for kind in ("f32", "f64"):
        out = blank(7, kind=kind)
        kernels.call(f"fill.{kind}", [out], [7], [1.25], target=target)
        assert out.tolist() == [1.25] * 7
    for kind, value in (("i32", -3), ("i64", 1 << 60), ("u8", 1)):
        out = blank(7, kind=kind)
        kernels.call(f"fill.{kind}", [out], [7, value], target=target)
        assert out.tolist() == [value] * 7


def test_copy():
    x, out = draw(3, 5), blank(3, 5)
    kernels.call("copy", [x, out], [x.nbytes])
    np.testing.assert_array_equal(out, x)
    kernels.call("copy", [x, x], [x.nbytes])
    np.testing.assert_array_equal(out, x)


@each_target
@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("to", (*TYPES, "b1"))
def test_casts(source, to, target):
    x = np.array([0, 1, 2, 250, 7.75], TYPES[source])
    out = np.full(5, 9, np.uint8 if to == "b1" else TYPES[to])
    kernels.call(f"cast.{source}.{to}", [x, out], [5], target=target)
    np.testing.assert_array_equal(out, x.astype(bool if to == "b1" else TYPES[to]))


def test_casts_to_bool_and_bytes():
    x, out = np.array([0.0, -0.0, 0.25, np.nan, -3.0]), np.empty(5, np.uint8)
    kernels.call("cast.f64.b1", [x, out], [5])
    assert out.tolist() == [0, 0, 1, 1, 1]
    kernels.call("cast.f64.u8", [np.array([3.9, 255.0, 0.0, 1.0, 2.0]), out], [5])
    assert out.tolist() == [3, 255, 0, 1, 2]
    kernels.call("cast.b1.i64", [np.array([True, False]), big := np.empty(2, np.int64)], [2])
    assert big.tolist() == [1, 0]


@each_target
@each_real
def test_casts_of_what_no_integer_holds(kind, target):
    """As Fluid 1.8.5 has it."""
    numbers = [
        np.nan, np.inf, -np.inf, 2.0**31, -(2.0**33), 3 * 2.0**32 + 1024, 1e19, -1e19, 300.7, -1.5,
        -(2.0**31),
    ]  # fmt: skip
    x = np.array(numbers * 3, TYPES[kind])
    least, lowest = -(2**31), -(2**63)
    wanted = {
        "i32": [least] * 8 + [300, -1, least],
        "i64": [lowest] * 3 + [2**31, -(2**33), 3 * 2**32 + 1024, lowest, lowest, 300, -1, least],
        "u8": [0] * 8 + [44, 255, 0],
    }
    for to, values in wanted.items():
        out = blank(x.size, kind=to)
        kernels.call(f"cast.{kind}.{to}", [x, out], [x.size], target=target)
        assert out.tolist() == values * 3
    out = blank(2, kind="u8")
    kernels.call("cast.f64.u8", [np.array([3000000001.0, -4294967299.0]), out], [2], target=target)
    assert out.tolist() == [0, 0]


@each_target
@each_real
def test_isfinite(kind, target):
    for bad in (None, np.nan, np.inf, -np.inf):
        xs = [draw(n, kind=kind) for n in (0, 3, 40)]
        if bad is not None:
            xs[2][37] = bad
        out = np.full(1, 9, np.uint8)
        kernels.call(f"isfinite.{kind}", [*xs, out], [x.size for x in xs], target=target)
        assert out[0] == (bad is None)


@each_target
def test_halves(target):
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = np.empty(halves.size, np.float32)
    kernels.call("cast.f16.f32", [halves, wide], [halves.size], target=target)
    with np.errstate(invalid="ignore"):  # some processors complain about NaN that signal
        np.testing.assert_array_equal(wide, halves.astype(np.float32))
    back = np.empty_like(halves)
    for name in ("round.f32.f16", "cast.f32.f16"):
        kernels.call(name, [wide, back], [halves.size], target=target)
        np.testing.assert_array_equal(back, halves)
    # Those between two halves, just beside the middle and on it, beyond the largest and below the smallest.
    middle = wide[np.isfinite(wide)]
    middle = ((middle[:-1].astype(float) + middle[1:]) / 2).astype(np.float32)
    odd = np.array([65519.99, 65520, 1e30, -1e30, 2.0**-25, 2.0**-25 * 1.001, 1e-40, -0.0], np.float32)
    single = np.concatenate([middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf), odd])
    back = np.empty(single.size, np.float16)
    kernels.call("round.f32.f16", [single, back], [single.size], target=target)
    with np.errstate(over="ignore", under="ignore"):
        nearest = single.astype(np.float16)
    np.testing.assert_array_equal(back.view(np.uint16), nearest.view(np.uint16))
    kernels.call("cast.f32.f16", [single, back], [single.size], target=target)
    beyond = np.abs(nearest.astype(np.float32)) > np.abs(single)
    below = np.where(beyond, np.nextafter(nearest, np.float16(0)), nearest)
    below = np.where(np.abs(single) > 65504, np.copysign(np.float16(np.inf), single), below)
    np.testing.assert_array_equal(back.view(np.uint16), below.astype(np.float16).view(np.uint16))


LEAST, MOST = {"i32": -(2**31), "i64": -(2**63)}, {"i32": 2**31 - 1, "i64": 2**63 - 1}


@each_target
@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_integers_wrap_around_as_those_of_numpy(kind, target):
    """For the sanitizer of undefined behaviour: signed integers of C++ must not overflow."""
    least, most = LEAST[kind], MOST[kind]
    x = np.array([most, least, least, most // 2 + 1, -1, 3] * 7, TYPES[kind])
    y = np.array([1, -1, least, 2, least, most] * 7, TYPES[kind])

    def run(name, operands, ints, floats=()):
        kernels.call(f"{name}.{kind}", operands, ints, floats, target)
        return operands[-1]

    out = np.empty_like
    with np.errstate(over="ignore"):
        for name, f in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
            np.testing.assert_array_equal(run(f"elementwise_{name}", [x, y, out(x)], [x.size]), f(x, y))
        np.testing.assert_array_equal(run("increment", [x, out(x)], [x.size], [1.0]), x + 1)
        np.testing.assert_array_equal(run("sum", [x, y, x, out(x)], [x.size]), x + y + x)
        for name, f in (("sum", np.add), ("prod", np.multiply)):
            whole = [1.0] if name == "sum" else []
            made = run(f"reduce_{name}", [x, out(x[:1])], [1, x.size, 1], whole)
            np.testing.assert_array_equal(made, [f.reduce(x, dtype=x.dtype)])
            made = run(f"reduce_{name}", [x, out(x[:6])], [1, 7, 6], whole)
            np.testing.assert_array_equal(made, f.reduce(x.reshape(7, 6), 0, dtype=x.dtype))
