"""Arrays of one element convert to numbers, and nothing else about them is special."""

import copy
import pickle

import numpy as np

from fluidlite.base.one_element import OneElement, convertible


def test_becomes_a_number():
    loss = convertible(np.array([0.25], "float32"))
    assert (float(loss), int(loss), complex(loss)) == (0.25, 0, 0.25 + 0j)
    assert f"{float(convertible(np.array([[3]]))):.1f}" == "3.0"
    assert repr(loss) == "array([0.25], dtype=float32)"


def test_arithmetic_and_formats():
    loss = convertible(np.array([4.0]))
    assert float(loss / 2 + 1) == 3.0 and "%.1f %d" % (loss, loss) == "4.0 4"  # noqa: UP031 - what scripts do
    assert [1, 2, 3][convertible(np.array([1]))] == 2


def test_only_what_has_one_element_and_dimensions():
    for plain in (np.zeros(2), np.zeros((0, 3)), np.array(1.0)):
        assert convertible(plain) is plain


def test_what_is_made_from_it_is_plain():
    loss = convertible(np.array([2.0]))
    for made in (
        loss * np.ones(3),
        np.concatenate([loss, loss]),
        pickle.loads(pickle.dumps(loss)),
        np.asarray(loss),
    ):
        assert type(made) is np.ndarray
    assert isinstance(loss.sum(), np.float64) and isinstance(np.mean(loss), np.float64)
    assert type(pickle.loads(pickle.dumps(loss, 5))) is np.ndarray
    assert b"fluidlite" not in pickle.dumps(loss)
    twin = copy.deepcopy(loss)
    twin[0] = 5
    assert isinstance(loss, OneElement)
    assert loss[0] == 2
