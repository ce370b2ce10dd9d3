"""Sizes count like the integers they are at the moment, and their formulas hold for all that the guards admit."""

import math
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluidlite.base.sizes import (
    Registers,
    ShapeEnv,
    SymFloat,
    SymInt,
    always_equal,
    current,
    formula,
    is_fixed,
    whole,
)

OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "max": max,
    "if": lambda a, b: a if a < b else b + 1,
    "same": lambda a, b: a * 2 if a == b else b,
}


def carried_out(program, numbers):
    """The numbers that a program of (operation, index, index) makes of those it is given."""
    values = list(numbers)
    for kind, a, b in program:
        x, y = values[a % len(values)], values[b % len(values)]
        if kind in ("//", "%") and y == 0:
            y = 3
        if not -(2**40) < x * y < 2**40:
            x, y = 2, 3
        values.append(OPERATIONS[kind](x, y))
    return values


programs = st.lists(
    st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 30), st.integers(0, 30)), max_size=12
)
sizes_of_three = st.lists(st.integers(2, 40), min_size=3, max_size=3)


@settings(max_examples=300, deadline=None)
@given(programs, sizes_of_three, st.lists(sizes_of_three, max_size=8))
def test_formulas_hold_where_the_guards_do(program, first, others):
    sizes = ShapeEnv()
    roots = [sizes.input_symbol(n, f"n{k}") for k, n in enumerate(first)]
    found = carried_out(program, [*roots, 2, 5])
    assert [current(n) for n in found] == carried_out(program, [*first, 2, 5])
    registers = Registers(sizes)
    places = [registers.integer(root) for root in roots]
    results = [registers.integer(n) for n in found]
    registers.add_guards()
    engine = registers.values
    assert engine.evaluate() and engine.holds()
    assert [engine.get(at) for at in results] == [current(n) for n in found]
    for other in others:
        for place, n in zip(places, other, strict=True):
            engine.set(place, n)
        if engine.evaluate() and engine.holds():
            assert [engine.get(at) for at in results] == carried_out(program, [*other, 2, 5])


def root(value=32, name="n"):
    return ShapeEnv().input_symbol(value, name)


def test_what_follows_by_algebra_needs_no_guard():
    n = root()
    before = len(n.env.guards)
    assert formula((n * 64) // 64) == "n" and (n * 64) % 64 == 0 and (n * 6) // n == 6
    assert n * 64 >= 0 and not n < 0 and n != 1 and n > 1 and max(n, 1) is n and n + n == 2 * n and n
    assert always_equal(n * 4 - n, 3 * n) and not always_equal(n, n + 1)
    assert len(n.env.guards) == before


@pytest.mark.parametrize("use", [int, hash, float, range, operator.index, math.sqrt, lambda n: [0] * n])
def test_whatever_needs_the_number_binds_the_plan_to_it(use):
    n = root()
    use(n)
    assert "n == 32" in map(str, n.env.guards.values())
    assert n == 32 and not n == 31


def test_equal_sizes_are_one():
    sizes = ShapeEnv()
    a, b = sizes.input_symbol(7, "a"), sizes.input_symbol(7, "b")
    assert not always_equal(a, b)
    assert a == b
    assert always_equal(3 * a, 3 * b) and always_equal(a * b, b * b)


def test_zero_and_one_are_numbers():
    sizes = ShapeEnv()
    assert type(sizes.input_symbol(0, "n")) is int and type(sizes.input_symbol(1, "n")) is int
    assert (
        type(sizes.input_symbol(2, "n", least=3)) is int
        and type(sizes.input_symbol(3, "n", least=3)) is SymInt
    )
    assert is_fixed((3, 1)) and not is_fixed((3, sizes.input_symbol(4, "n")))


def test_numbers_of_numpy_and_reals():
    n = root(8)
    assert formula(np.int64(3) * n) == "3*n" and formula(n * np.int32(2) + np.int64(1)) == "2*n + 1"
    mean = 1.0 / (n * 4)
    assert isinstance(mean, SymFloat) and mean.value == 1 / 32
    registers = Registers(n.env)
    place, real = registers.integer(n), registers.real(mean)
    for value in (8, 2, 100):
        registers.values.set(place, value)
        assert registers.values.evaluate() and registers.values.real(real) == 1.0 / (value * 4)
    assert formula(n * 2.0) == "2*n" and isinstance(n * 0.5, SymFloat)
    assert whole([n, np.int64(4)]) == [n, 4]


def test_division_by_nothing():
    n = root()
    with pytest.raises(ZeroDivisionError):
        n // 0
    with pytest.raises(ZeroDivisionError):
        n % (n - n)
