"""Declared shapes of layers for sizes that are unknown while a program is built, as in Paddle 1.8.5."""

import itertools

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers

NAMES = itertools.count()


def data(*shape, dtype="float32"):
    return fluid.data(f"open{next(NAMES)}", list(shape), dtype)


def boxes(*shape):
    return layers.yolo_box(data(*shape), data(-1, 2, dtype="int32"), [10, 13, 16, 30, 33, 23], 2, 0.1, 32)


def suppressed(*shape):
    found, scores = boxes(*shape)
    return layers.multiclass_nms(found, layers.transpose(scores, [0, 2, 1]), 0.1, 100, 50)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: data(1, 1) * layers.flatten(data(-1, 5, 1), 2), (-1, 1)),
        (lambda: layers.flatten(data(-1, 5, 2), 2) * layers.flatten(data(-1, 5, 1), 2), (-1, 2)),
        (lambda: layers.flatten(data(-1, 5, 2), 2) * layers.flatten(data(-1, 5, 2), 2), (-5, 2)),
        (lambda: layers.flatten(data(-1, 5, 2), 2) * data(7, 1), (7, 2)),
        (lambda: layers.crop(data(24, 3, 19, 19), data(-1, 3, -1, -1)), (-1, 3, -1, -1)),
        (lambda: layers.crop(data(-1, 3, 19, 19), data(2, -1, 4, 4), offsets=[0, 0, 1, 1]), (2, -1, 4, 4)),
        (lambda: boxes(-1, 21, -1, -1)[0], (-1, 3, 4)),
        (lambda: boxes(-1, 21, 5, -1)[1], (-1, -15, 2)),
        (lambda: suppressed(-1, 21, -1, -1), (3, 6)),
        (lambda: layers.distribute_fpn_proposals(data(1000, 4), 2, 4, 3, 224)[1], (-1, 1)),
    ],
)
def test_shapes_of_open_sizes(programs, layer, shape):
    assert layer().shape == shape


@pytest.mark.parametrize(
    ("points", "expected"), [([[0], [1]], [[1, 2], [3, 4]]), ([[0, 1], [1, 0]], [2, 3]), ([[1, 1]], [4])]
)
def test_points_of_an_unknown_number_of_indices(programs, points, expected):
    x, index = fluid.data("x", [None, 2]), fluid.data("index", [None, None], "int64")
    out = layers.scale(layers.gather_nd(x, index), 10.0)
    feed = {"x": np.float32([[1, 2], [3, 4]]), "index": np.array(points)}
    for _ in range(2):
        (got,) = fluid.Executor(fluid.CPUPlace()).run(programs[0], feed, [out])
        np.testing.assert_array_equal(got, 10 * np.array(expected))


def test_batches_of_other_dimensions(programs):
    x, y = fluid.data("x", [None, 1, 2]), fluid.data("y", [None, 2, 2, 1])
    out = layers.matmul(x, y)
    assert out.shape == (-1, 1, 1)
    feed = {"x": np.float32([[[1, 2]], [[3, 4]]]), "y": np.float32([[[[1], [2]], [[3], [4]]]])}
    (got,) = fluid.Executor(fluid.CPUPlace()).run(programs[0], feed, [out])
    np.testing.assert_array_equal(got, [[[5]], [[25]]])
