"""Results convert to numbers where they have one element, and nothing else about them is special."""

import copy
import math
import pickle

import numpy as np
import pytest

from fluidlite.base.arrays import Convertible, convertible


def test_becomes_a_number():
    loss = convertible(np.array([0.25], "float32"))
    assert (float(loss), int(loss), complex(loss)) == (0.25, 0, 0.25 + 0j)
    assert f"{float(convertible(np.array([[3]]))):.1f}" == "3.0"
    assert repr(loss) == "array([0.25], dtype=float32)"


def test_arithmetic_and_formats():
    loss = convertible(np.array([4.0]))
    assert float(loss / 2 + 1) == 3.0 and "%.1f %d" % (loss, loss) == "4.0 4"  # noqa: UP031 - what scripts do
    assert [1, 2, 3][convertible(np.array([1]))] == 2


def test_rows_and_slices_become_numbers():
    scores = convertible(np.arange(6, dtype="float32").reshape(6, 1))
    assert [float(row) for row in scores] == [0, 1, 2, 3, 4, 5]
    assert float(scores[2:3]) == 2.0 and "%.2f" % scores[4] == "4.00"  # noqa: UP031 - what scripts do
    assert float(scores.T[:, 3]) == 3.0 and math.sqrt(scores.reshape(2, 3)[1:, 1:2]) == 2.0
    means = np.zeros(2)
    means[0] = scores[5]
    assert means.tolist() == [5.0, 0.0]


@pytest.mark.parametrize("shape", [(2,), (0, 3)])
def test_other_sizes_are_refused_as_numpy_does(shape):
    for number in (float, int, complex):
        with pytest.raises(TypeError, match="can be converted"):
            number(convertible(np.zeros(shape)))
    with pytest.raises(TypeError, match="scalar index"):
        [1, 2][convertible(np.zeros(shape, int))]


def test_without_dimensions_it_stays_what_it_is():
    plain = np.array(1.0)
    assert convertible(plain) is plain


def test_what_is_made_from_it_is_plain():
    loss = convertible(np.array([2.0]))
    for made in (
        loss * np.ones(3),
        convertible(np.ones(3)) + 1,
        convertible(np.ones((2, 3))).sum(0),
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
    assert isinstance(loss, Convertible)
    assert loss[0] == 2
