"""`fluid.layers.utils`; results and errors are those of Paddle 1.8.5."""

from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.layers import utils
from tests.refusals import refuses

Pair = namedtuple("Pair", "x y")


@pytest.mark.parametrize(
    "nest, flat",
    [
        (Pair(1, [2, 3]), [1, 2, 3]),
        (OrderedDict([("b", 1), ("a", 2)]), [2, 1]),
        ({"b": [1, (2, 3)], "a": 4}, [4, 1, 2, 3]),
        ("abc", ["abc"]),
        (None, [None]),
        ([[], ()], []),
        (range(3), [0, 1, 2]),
    ],
)
def test_flattened_and_packed(nest, flat):
    assert utils.flatten(nest) == flat
    if not isinstance(nest, range):
        packed = utils.pack_sequence_as(nest, flat)
        assert packed == nest and type(packed) is type(nest)
    assert fluid.layers.utils is utils


def test_keys_without_order():
    refuses(lambda: utils.flatten({1: 2, "a": 3}), TypeError, "sortable")


@pytest.mark.parametrize("flat, error", [([1], ValueError), ([1, 2, 3], ValueError), (4, TypeError)])
def test_wrong_numbers_of_elements(flat, error):
    refuses(lambda: utils.pack_sequence_as([1, 2], flat), error)
    refuses(lambda: utils.pack_sequence_as(1, [1, 2]), ValueError, "scalar")


def test_functions_of_structures():
    assert utils.map_structure(lambda x: x + 1, {"a": 1, "b": (2, Pair(3, 4))}) == {
        "a": 2,
        "b": (3, Pair(4, 5)),
    }
    assert utils.map_structure(lambda a, b: a * b, [1, (2, [3])], [4, (5, [6])]) == [4, (10, [18])]
    assert utils.map_structure(lambda a, b: a, [1, 2], (1, 2)) == [1, 2]
    assert utils.map_structure(lambda x: x + 1, 3) == 4


def test_dicts_keep_their_order():
    assert list(utils.pack_sequence_as({"b": 0, "a": 0}, [1, 2]).items()) == [("b", 2), ("a", 1)]


@pytest.mark.parametrize(
    "one, two, error",
    [
        ([1, [2]], [3, [4]], None),
        ([1, [2]], [3, 4], ValueError),
        ([1], [1, 2], ValueError),
        ([[1], 2], [1, [2]], ValueError),
        (1, [1], ValueError),
        ([1, 2], (3, 4), TypeError),
        (Pair(1, 2), (1, 2), TypeError),
        ({"a": 1}, OrderedDict(a=1), TypeError),
        ({"a": 1}, {"b": 1}, ValueError),
    ],
)
def test_the_same_structure(one, two, error):
    if error is None:
        return utils.assert_same_structure(one, two)
    refuses(lambda: utils.assert_same_structure(one, two), error, "The two")
    return None


def test_types_may_differ():
    utils.assert_same_structure([1, 2], (3, 4), check_types=False)
    utils.assert_same_structure({"a": 1}, {"b": 1}, check_types=False)


@pytest.mark.parametrize(
    "value, made",
    [(3, [3, 3]), ((4, 5), [4, 5]), ([1.5, 2], [1.5, 2]), (True, [True, True]), (np.array([1, 2]), [1, 2])],
)
def test_one_number_or_a_list(value, made):
    assert utils.convert_to_list(value, 2, "n") == made


@pytest.mark.parametrize("value", [(1, 2, 3), "ab", None, 1.5, [1, "a"]])
def test_what_is_no_list(value):
    refuses(lambda: utils.convert_to_list(value, 2, "n"), ValueError, "The n's")


def test_small_questions():
    assert [utils.is_sequence(v) for v in ([1], (1,), "ab", {"a": 1}, 3, {1}, np.ones(2))] == [
        True, True, False, True, False, False, False,
    ]  # fmt: skip
    assert utils._is_symmetric_padding([1, 1, 2, 2], 2) and not utils._is_symmetric_padding([1, 2, 2, 2], 2)
    refuses(lambda: utils._is_symmetric_padding([1, 2, 3], 2), AssertionError)
    outer = [1, [2]]
    copy = utils.copy_mutable_vars(outer)
    assert copy == outer and copy is not outer and copy[1] is not outer[1]


def test_whether_variables_are_among_them(programs):
    assert utils._contain_var([1, fluid.data("x", [1])]) and not utils._contain_var([1, 2])
