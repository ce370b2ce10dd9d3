"""Errors name the line of code that cannot be translated; tracebacks show the user's lines."""

import traceback

import numpy as np
import pytest

from fluidlite import layers
from fluidlite.base.errors import NotSupportedError
from fluidlite.dygraph import declarative, to_variable

pytestmark = pytest.mark.usefixtures("eager")


def x():
    return to_variable(np.array([1, 2], "float32"))


def line_of(function, text):
    code = function.__code__
    with open(code.co_filename) as file:
        lines = file.read().splitlines()
    return next(n for n in range(code.co_firstlineno, len(lines)) if text in lines[n - 1])


def text_on_one_way(x):
    name = "small"
    if layers.reduce_sum(x) > 0:  # here
        name = "large"
    return x, name


def none_on_one_way(x):
    y = None
    if layers.reduce_sum(x) > 0:  # here
        y = x
    return y


def other_type_after_an_iteration(x):
    y = layers.fill_constant([1], "int64", 1)
    while layers.reduce_sum(x) < 100:  # here
        y = y * layers.fill_constant([1], "int64", 2)
        y = layers.cast(y, "float32")
        x = x * 2
    return y


def tensors_of_two_types(x):
    if layers.reduce_sum(x) > 0:  # here
        x = layers.cast(x, "int64")
    return x


def raising(x):
    if layers.reduce_sum(x) > 0:
        raise ValueError("too large")  # here
    return x


def ends_without_return(x):
    for row in x:
        if layers.reduce_sum(row) > 0:
            return x  # any


def comprehension(x):
    return [row for row in x if layers.reduce_sum(row) > 0]  # here


def index_of_a_list(x):
    names = ["a", "b", "c"]
    for i in range(layers.cast(layers.reduce_sum(x), "int32")):
        x = x * len(names[i])  # here
    return x


def list_of_text_that_grows(x):
    names = []
    while layers.reduce_sum(x) < 100:  # here
        names.append("a")
        x = x * 2
    return x


def condition_of_several(x):
    if x > 0:  # here
        x = x * 2
    return x


REFUSED = [
    text_on_one_way, none_on_one_way, other_type_after_an_iteration, tensors_of_two_types, raising, comprehension,
    index_of_a_list, list_of_text_that_grows,
]  # fmt: skip


@pytest.mark.parametrize("function", REFUSED)
def test_refusals_name_the_line(function):
    with pytest.raises(NotSupportedError) as caught:
        declarative(function)(x())
    assert f"{function.__code__.co_filename}:{line_of(function, '# here')}" in str(caught.value)


def test_function_that_may_end_without_return():
    with pytest.raises(NotSupportedError, match="whether anything is returned depends on tensors"):
        declarative(ends_without_return)(x())


def test_condition_has_one_element():
    with pytest.raises(AssertionError, match="must have one element") as caught:
        declarative(condition_of_several)(x())
    assert f":{line_of(condition_of_several, '# here')}" in str(caught.value)


def test_generators_run_as_they_are():
    def numbers(x):
        if layers.reduce_sum(x) > 0:
            yield x

    with pytest.raises(NotSupportedError, match="needs the value of tensor"):
        declarative(lambda x: list(numbers(x)))(x())


def test_tracebacks_show_the_users_lines():
    def inner(y):
        return y.nothing  # inner

    def outer(y):
        while layers.reduce_sum(y) < 100:
            if layers.reduce_sum(y) > 0:
                y = inner(y)  # outer
        return y

    with pytest.raises(AttributeError) as caught:
        declarative(outer)(x())
    frames = [
        frame for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == __file__
    ]
    assert [(frame.name, frame.line.partition("  #")[2]) for frame in frames][-2:] == [
        ("outer", " outer"), ("inner", " inner"),
    ]  # fmt: skip
    assert [frame.lineno for frame in frames][-2:] == [line_of(outer, "# outer"), line_of(inner, "# inner")]


def test_operators_that_fail_name_the_users_line():
    def wrong(y):
        if layers.reduce_sum(y) > 0:
            y = layers.matmul(y, layers.zeros([3, 3], "float32"))  # wrong
        return y

    with pytest.raises(Exception, match="matmul") as caught:
        declarative(wrong)(to_variable(np.ones((2, 2), "float32")))
    assert f"test_messages.py:{line_of(wrong, '# wrong')}" in str(caught.value)


def test_asserts_and_prints_on_tensors(capfd):
    @declarative
    def checked(y):
        assert layers.reduce_sum(y) > 0, "no sum"
        print("the value", y)
        return y * 2

    assert checked(x()).numpy().tolist() == [2, 4]
    assert "the value" in capfd.readouterr().out
    with pytest.raises(AssertionError, match=r"no sum.*test_messages.py"):
        checked(x() * -1)


def test_what_one_branch_leaves_open_is_not_taken_for_a_value():
    @declarative
    def half(y):
        if layers.reduce_sum(y) > 0:
            z = y * 2
            n = 3
        return z, n

    assert [found.numpy().tolist() if hasattr(found, "numpy") else found for found in half(x())] == [
        [2, 4],
        3,
    ]
    assert np.isnan(half(x() * -1)[0].numpy()).all()


def test_a_condition_of_several_elements_is_an_error_only_where_it_is_asked():
    @declarative
    def chosen(y):
        if layers.reduce_sum(y) < 0:
            if y > 5:
                y = y * 2
        return y

    np.testing.assert_array_equal(chosen(x()).numpy(), [1, 2])
    with pytest.raises(
        AssertionError, match=r"a condition must have one element, got .*\[2\].*test_messages.py"
    ):
        chosen(x() * -1)


def test_conditions_of_several_types_are_joined_as_truths():
    @declarative
    def joined(y):
        total = layers.reduce_sum(y)
        if total + 1 and total > 1 and y is not None:
            y = y + 1
        if layers.cast(total, "int64") > 100 or total:
            y = y * 2
        return y

    for sign, want in ((1, [4, 6]), (-1, [-2, -4]), (0, [0, 0])):
        np.testing.assert_array_equal(joined(x() * sign).numpy(), want)


def test_methods_of_classes_are_declared_for_each_class():
    class Scaled:
        factor = 3

        @classmethod
        @declarative
        def of(cls, y):
            if layers.reduce_sum(y) > 0:
                y = y * cls.factor
            return y

    class More(Scaled):
        factor = 5

    for sign, (plain, more) in ((1, (3, 5)), (-1, (1, 1))):
        y = x() * sign
        np.testing.assert_array_equal(Scaled.of(y).numpy(), y.numpy() * plain)
        np.testing.assert_array_equal(More.of(y).numpy(), y.numpy() * more)
        np.testing.assert_array_equal(More().of(y).numpy(), y.numpy() * more)
