"""Real numbers that are computed with sizes, and numbers that are no integers beside sizes."""

import math
import operator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fluidlite.base.sizes import Registers, ShapeEnv, SymFloat, SymInt, always_equal, current

STEPS = (
    "+", "-", "*", "//", "%", "min", "max", "if ==", "if <", "if <=", "if !=", "+c", "*c", "//c", "%c",
    "/", "*f",
)  # fmt: skip
steps = st.lists(
    st.tuples(st.sampled_from(STEPS), st.integers(0, 30), st.integers(0, 30), st.integers(-4, 70)),
    max_size=14,
)
numbers = st.integers(2, 12) | st.integers(2, 300)


COMPARISONS = {"==": operator.eq, "<": operator.lt, "<=": operator.le, "!=": operator.ne}
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "min": min, "max": max}


def worked_out(roots, program):
    """All numbers that a program makes of its roots."""
    values, reals = list(roots), [0.5]
    for step, i, j, c in program:
        a, b = values[i % len(values)], values[j % len(values)]
        if step.startswith("if"):
            values.append(a + c if COMPARISONS[step[3:]](a, b) else b - 1)
        elif step in ("//", "%"):
            if b > 0:
                values.append(a // b if step == "//" else a % b)
        elif step in ("//c", "%c"):
            if c:
                values.append(a // c if step == "//c" else a % c)
        elif step == "/":
            if b != 0:
                reals.append(a / b)
        elif step == "*f":
            reals.append(reals[-1] * a)
        elif step.endswith("c"):
            values.append(OPERATIONS[step[0]](c, a))
        else:
            values.append(OPERATIONS[step](a, b))
    return values, reals


@settings(max_examples=400, deadline=None)
@given(
    st.lists(numbers, min_size=2, max_size=3),
    st.lists(st.lists(numbers, min_size=3, max_size=3), max_size=8),
    steps,
)
def test_where_the_guards_hold_the_formulas_are_what_python_would_say(first, others, program):
    sizes = ShapeEnv()
    roots = [sizes.input_symbol(n, f"n{k}") for k, n in enumerate(first)]
    values, reals = worked_out(roots, program)
    assert [current(v) for v in values] == worked_out(first, program)[0]
    registers = Registers(sizes)
    at = [registers.integer(root) for root in roots]
    integers = [registers.integer(v) for v in values]
    floats = [registers.real(v) for v in reals]
    registers.add_guards()
    found = registers.values
    for other in [first, *(other[: len(first)] for other in others)]:
        for register, n in zip(at, other, strict=True):
            found.set(register, n)
        if not found.evaluate() or not found.holds():
            assert other is not first or not found.evaluate(), "a plan holds for the sizes it is made for"
            continue
        wanted, wanted_reals = worked_out(other, program)
        assert [found.get(k) for k in integers] == wanted
        assert [found.real(k) for k in floats] == wanted_reals


def test_numbers_that_are_no_integers_bind_a_plan():
    for ask, answer in [
        (lambda n: n == 4.0, True), (lambda n: n == 4.5, False), (lambda n: n < 4.5, True), (lambda n: n > 4.5, False),
        (lambda n: n ** 0.5, 2.0), (lambda n: n ** -1, 0.25), (lambda n: n // 2.5, 1.0), (lambda n: 9.0 % n, 1.0),
        (lambda n: int(n * 0.6), 2), (lambda n: math.ceil(n / 3), 2), (lambda n: round(n / 3, 1), 1.3),
        (lambda n: n / 8 < 0.5, False), (lambda n: n / 8 == 0.5, True), (lambda n: bool(n * 0.5), True),
        (lambda n: np.float32(4) == n, True), (lambda n: 2**n, 16), (lambda n: math.sqrt(n), 2.0),
        (lambda n: list(range(n)), [0, 1, 2, 3]), (lambda n: {n: 1}, {4: 1}), (lambda n: np.zeros(n).shape, (4,)),
    ]:  # fmt: skip
        sizes = ShapeEnv()
        assert ask(sizes.input_symbol(4, "n")) == answer
        assert [str(guard) for guard in sizes.guards.values()] == ["2 <= n", "n == 4"]


def test_what_needs_no_guard():
    sizes = ShapeEnv()
    n = sizes.input_symbol(4, "n")
    assert (
        isinstance(n * 0.5, SymFloat)
        and isinstance(np.float32(2.5) * n, SymFloat)
        and isinstance(1.0 - 1.0 / n, SymFloat)
    )
    assert isinstance(round(n), SymInt) and +n is n and abs(n) is n and divmod(n * 6, n) == (6, 0)
    assert n * 64 // 64 + 1 > n and n != 1 and n * 3 >= 6 and always_equal(n * 2, n + n) and n
    assert [str(guard) for guard in sizes.guards.values()] == ["2 <= n"]
