"""Families of functions: each has its name, words, defaults and the family's signature."""

import inspect
import pickle

import pytest

from fluidlite import layers
from fluidlite.paddle.nn import functional


@pytest.mark.parametrize(
    ("function", "name", "first", "data_format"),
    [
        (layers.conv2d, "conv2d", "input", "NCHW"),
        (layers.conv3d, "conv3d", "input", "NCDHW"),
        (functional.conv1d, "conv1d", "x", "NCL"),
        (functional.conv3d_transpose, "conv3d_transpose", "x", "NCDHW"),
    ],
)
def test_members_are_functions_of_their_own(function, name, first, data_format):
    assert function.__name__ == function.__qualname__ == name
    assert f"{name}`)" in function.__doc__
    assert pickle.loads(pickle.dumps(function)) is function
    taken = inspect.signature(function).parameters
    assert next(iter(taken)) == first
    assert taken["data_format"].default == data_format


def test_wrong_calls_are_told_of_by_name():
    with pytest.raises(TypeError, match=r"^conv3d\(\) missing 3 required positional arguments: 'input', "):
        layers.conv3d()
    with pytest.raises(TypeError, match=r"^conv3d\(\) got an unexpected keyword argument 'filters'"):
        layers.conv3d(None, 1, 1, filters=2)
