"""Indexing of eager tensors against NumPy."""

import numpy as np
import pytest

import fluidlite.paddle as paddle

ARRAY = np.random.RandomState(0).uniform(-1, 1, (3, 4, 2))


def tensors(index):
    """`index` with tensors in place of arrays."""
    if isinstance(index, tuple):
        return tuple(tensors(item) for item in index)
    return paddle.to_tensor(index) if isinstance(index, np.ndarray) else index


INDICES = [
    1,
    -1,
    (2, 1),
    (slice(1, None), Ellipsis, 0),
    [0, 2],
    [-1, 0, 0],
    [True, False, True],
    np.array([2, 0, 2]),
    np.array([[2, 0], [1, 1]]),
    np.array([True, True, False]),
    ARRAY > 0,
    ARRAY[:, :, 0] > 0,
    None,
    (None, 1),
    (slice(None), None, [0, 3]),
    (slice(None), np.array([3, 1])),
    (np.array([0, 2]), np.array([1, 3])),
    (np.array([0, 2]), slice(1, 3), np.array([1, 0])),
    (0, [1, 2]),
    (Ellipsis, np.array([1, 1, 0])),
    np.zeros(3, bool),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_parts_and_their_gradients(index):
    x = paddle.to_tensor(ARRAY, stop_gradient=False)
    for one in (index, tensors(index)):
        part = x[one]
        np.testing.assert_array_equal(part.numpy(), ARRAY[index])
    if part.size:
        weights = np.cos(np.arange(part.size)).reshape(part.shape)
        (x[tensors(index)] * paddle.to_tensor(weights)).sum().backward()
        expected = np.zeros_like(ARRAY)
        np.add.at(expected, index, weights)
        np.testing.assert_allclose(x.gradient(), expected, atol=1e-12)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_assignment(index):
    value = np.arange(ARRAY[index].size, dtype="float64").reshape(ARRAY[index].shape)
    expected = ARRAY.copy()
    expected[index] = value
    plain = paddle.to_tensor(ARRAY)
    plain[tensors(index)] = value
    by_numpy = plain.numpy()
    if np.unique(np.arange(ARRAY.size).reshape(ARRAY.shape)[index]).size == value.size:
        np.testing.assert_array_equal(by_numpy, expected)
    recorded = paddle.to_tensor(ARRAY, stop_gradient=False) * 1
    if value.size:
        recorded[index] = value
        np.testing.assert_array_equal(recorded.numpy(), by_numpy)


def test_gradients_of_assignment():
    x = paddle.to_tensor(ARRAY, stop_gradient=False)
    value = paddle.to_tensor([10.0, 20.0], "float64", stop_gradient=False)
    y = x * 2
    y[1, [0, 3]] = value  # broadcast over the first of the two axes left
    (y * y).sum().backward()
    inside = np.zeros(ARRAY.shape, bool)
    inside[1, [0, 3]] = True
    np.testing.assert_allclose(x.gradient(), np.where(inside, 0, 8 * ARRAY))
    np.testing.assert_allclose(value.gradient(), [40, 80])


def test_what_was_used_before_is_kept():
    weight = paddle.to_tensor([1.0, 1.0], stop_gradient=False)
    x = paddle.to_tensor([3.0, 4.0])
    y = weight * x
    x[0] = 100.0
    y.sum().backward()
    assert weight.gradient().tolist() == [3, 4] and x.tolist() == [100, 4]


def test_errors():
    x = paddle.to_tensor(ARRAY, stop_gradient=False)
    with pytest.raises(IndexError, match=r"of shape \[3, 4, 2\]: index must be in \[-3, 3\)"):
        x[[0, 3]]
    with pytest.raises(IndexError, match=r"of shape \[3, 4, 2\]: too many indices"):
        x[0, 0, 0, [0]]
    with pytest.raises(IndexError, match="boolean"):
        x[np.ones(5, bool)]
    with pytest.raises(ValueError, match="cannot be changed in place"):
        x[0] = 1.0
    with pytest.raises(ValueError, match="broadcast"):
        paddle.ones([3])[:] = np.ones(2)


def test_one_element():
    x = paddle.zeros([3])
    x[-1] = paddle.to_tensor([7.0])
    x[0] = np.array([5.0])
    x[paddle.to_tensor([1])] = 6.0
    assert x.tolist() == [5.0, 6.0, 7.0]
    weight = paddle.to_tensor([2.0], stop_gradient=False)
    y = paddle.ones([3]) * 1.0
    y[1] = weight
    (y * y).sum().backward()
    assert y.tolist() == [1.0, 2.0, 1.0] and weight.grad.tolist() == [4.0]
    z = paddle.to_tensor([1.0, 2.0], stop_gradient=False) * 1.0
    z[0] = 3.0
    assert z.tolist() == [3.0, 2.0]


def test_places_of_int64(compute):
    rows = np.arange(6.0).reshape(3, 2)
    for kind in ("int32", "int64"):
        (made,) = compute(lambda x, place: x[place], rows, np.array([1], kind))
        assert made.tolist() == [2.0, 3.0]


def test_leaves_change_under_no_grad():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    with paddle.no_grad():
        x[0] = 3.0
    assert x.tolist() == [3.0, 2.0] and not x.stop_gradient and x.is_leaf
