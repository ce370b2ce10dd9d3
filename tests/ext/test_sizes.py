"""Formulas of sizes mean what they mean for Python's numbers, or are refused."""

import math
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidlite._ext.engine import Sizes

LEAST, MOST = -(1 << 63), (1 << 63) - 1
INTEGERS = {
    Sizes.ADD: operator.add, Sizes.SUB: operator.sub, Sizes.MUL: operator.mul,
    Sizes.FLOORDIV: operator.floordiv, Sizes.MOD: operator.mod, Sizes.MIN: min, Sizes.MAX: max,
}  # fmt: skip
REALS = {
    Sizes.REAL_ADD: operator.add,
    Sizes.REAL_SUB: operator.sub,
    Sizes.REAL_MUL: operator.mul,
    Sizes.REAL_DIV: operator.truediv,
    Sizes.REAL_SQRT: lambda a, _: math.sqrt(a),
}
COMPARISONS = {Sizes.EQ: operator.eq, Sizes.NE: operator.ne, Sizes.LT: operator.lt, Sizes.LE: operator.le}

integers = st.one_of(
    st.integers(-40, 40),
    st.integers(LEAST, MOST),
    st.sampled_from([LEAST, LEAST + 1, MOST, 1 << 31, 1 << 32]),
)
programs = st.lists(
    st.tuples(st.sampled_from(sorted(INTEGERS)), st.integers(0, 1000), st.integers(0, 1000)), max_size=20
)


def in_python(roots, program):
    """The registers, or None if Python has no value for one or it does not fit."""
    values = list(roots)
    for op, a, b in program:
        try:
            found = INTEGERS[op](values[a % len(values)], values[b % len(values)])
        except ZeroDivisionError:
            return None
        if not LEAST <= found <= MOST:
            return None
        values.append(found)
    return values


@given(integers, integers)
def test_each_operation_on_integers(a, b):
    for op in INTEGERS:
        sizes = Sizes()
        out = sizes.add(op, sizes.add(Sizes.ROOT, a), sizes.add(Sizes.CONST, b))
        want = in_python([a, b], [(op, 0, 1)])
        assert sizes.evaluate() == (want is not None)
        if want is not None:
            assert sizes.get(out) == want[-1]


@given(st.lists(st.lists(integers, min_size=3, max_size=3), min_size=1, max_size=4), programs)
def test_programs_are_evaluated_anew_for_other_roots(runs, program):
    sizes = Sizes()
    for value in runs[0]:
        sizes.add(Sizes.ROOT, value)
    for op, a, b in program:
        sizes.add(op, a % len(sizes), b % len(sizes))
    for roots in runs:
        for k, value in enumerate(roots):
            sizes.set(k, value)
        want = in_python(roots, program)
        assert sizes.evaluate() == (want is not None)
        if want is not None:
            assert [sizes.get(k) for k in range(len(sizes))] == want


@given(integers, integers)
def test_each_operation_on_reals(a, b):
    for op, function in REALS.items():
        sizes = Sizes()
        left = sizes.add_real(Sizes.REAL_OF, sizes.add(Sizes.ROOT, a))
        right = sizes.add_real(Sizes.REAL_OF, sizes.add(Sizes.ROOT, b))
        out = sizes.add_real(op, left, right)
        try:
            want = function(float(a), float(b))
        except (ZeroDivisionError, ValueError):
            assert not sizes.evaluate()
        else:
            assert sizes.evaluate()
            assert sizes.real(out) == want


def test_a_real_formula_follows_its_root():
    sizes = Sizes()
    root = sizes.add(Sizes.ROOT, 64)
    root_of = sizes.add_real(Sizes.REAL_SQRT, sizes.add_real(Sizes.REAL_OF, root))
    scale = sizes.add_real(Sizes.REAL_DIV, sizes.add_real_const(0.5), root_of)
    assert sizes.evaluate() and sizes.real(scale) == 0.5 / 8
    sizes.set(root, 3)
    assert sizes.evaluate() and sizes.real(scale) == 0.5 / math.sqrt(3)
    sizes.set(root, 0)
    assert not sizes.evaluate()
    sizes.set(root, 64)
    assert sizes.evaluate() and sizes.real(scale) == 0.5 / 8


@given(st.lists(st.tuples(st.sampled_from(sorted(COMPARISONS)), integers, integers), max_size=6))
def test_guards_compare_and_the_first_broken_one_is_reported(conditions):
    sizes = Sizes()
    for compare, a, b in conditions:
        sizes.guard(compare, sizes.add(Sizes.ROOT, a), sizes.add(Sizes.ROOT, b))
    assert sizes.evaluate()
    broken = [k for k, (compare, a, b) in enumerate(conditions) if not COMPARISONS[compare](a, b)]
    assert sizes.holds() == (not broken)
    assert sizes.failed == (broken[0] if broken else -1)


def test_guards_do_not_hold_for_values_that_were_not_evaluated():
    sizes = Sizes()
    root, one = sizes.add(Sizes.ROOT, 1), sizes.add(Sizes.CONST, 1)
    sizes.guard(Sizes.LE, one, root)
    assert not sizes.holds() and sizes.evaluate() and sizes.holds()
    sizes.set(root, 2)
    assert not sizes.holds() and sizes.evaluate() and sizes.holds()
    sizes.set(root, 2)
    assert sizes.holds(), "nothing changed"
    sizes.add(Sizes.FLOORDIV, one, sizes.add(Sizes.CONST, 0))
    assert not sizes.evaluate() and not sizes.holds() and sizes.failed == -1


def test_what_does_not_exist_is_refused():
    sizes = Sizes()
    one = sizes.add(Sizes.CONST, 1)
    with pytest.raises(ValueError, match="only a root"):
        sizes.set(one, 2)
    for wrong in (-1, 1):
        with pytest.raises(IndexError):
            sizes.set(wrong, 2)
        with pytest.raises(IndexError):
            sizes.get(wrong)
        with pytest.raises(IndexError):
            sizes.real(wrong)
        with pytest.raises(IndexError):
            sizes.add(Sizes.ADD, one, wrong)
        with pytest.raises(IndexError):
            sizes.add_real(Sizes.REAL_OF, wrong)
        with pytest.raises(IndexError):
            sizes.add_real(Sizes.REAL_SQRT, wrong)
        with pytest.raises(IndexError):
            sizes.guard(Sizes.EQ, one, wrong)
    for wrong in (-1, 99):
        with pytest.raises(ValueError, match="no such operation"):
            sizes.add(wrong, one, one)
        with pytest.raises(ValueError, match="no such operation"):
            sizes.add_real(wrong, one, one)
        with pytest.raises(ValueError, match="no such comparison"):
            sizes.guard(wrong, one, one)
    assert len(sizes) == 1
