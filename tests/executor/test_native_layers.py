"""Layers that plans of the host compute by kernels, forward and backward, and not by NumPy."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers

IMAGES, VOLUMES = [2, 4, 8, 8], [2, 4, 6, 8, 8]
LAYERS = {
    "conv2d, channels last": (IMAGES, lambda x: layers.conv2d(x, 8, 3, data_format="NHWC")),
    "conv2d in groups, channels last": (
        [2, 8, 8, 4],
        lambda x: layers.conv2d(x, 8, 3, groups=2, data_format="NHWC"),
    ),
    "conv3d": (VOLUMES, lambda x: layers.conv3d(x, 8, 3)),
    "conv3d, channels last": (VOLUMES, lambda x: layers.conv3d(x, 8, 3, data_format="NDHWC")),
    "conv2d_transpose, channels last": (
        IMAGES,
        lambda x: layers.conv2d_transpose(x, 8, filter_size=3, data_format="NHWC"),
    ),
    "conv3d_transpose": (VOLUMES, lambda x: layers.conv3d_transpose(x, 8, filter_size=3)),
    "pool2d, channels last": (IMAGES, lambda x: layers.pool2d(x, 2, "max", 2, data_format="NHWC")),
    "pool3d": (VOLUMES, lambda x: layers.pool3d(x, 2, "max", 2)),
    "pool3d of means": (VOLUMES, lambda x: layers.pool3d(x, 2, "avg", 2, data_format="NDHWC")),
    "adaptive_pool2d": (IMAGES, lambda x: layers.adaptive_pool2d(x, 3, "avg")),
    "adaptive_pool3d": (VOLUMES, lambda x: layers.adaptive_pool3d(x, 3, "avg")),
    "maxout": (IMAGES, lambda x: layers.maxout(x, 2)),
    "resize_bilinear": (IMAGES, lambda x: layers.resize_bilinear(x, [5, 11])),
    "resize_nearest": (IMAGES, lambda x: layers.resize_nearest(x, [16, 16])),
    "resize_trilinear": (VOLUMES, lambda x: layers.resize_trilinear(x, [3, 9, 8])),
    "reduce_sum": (IMAGES, lambda x: layers.reduce_sum(x, dim=[0, 2])),
    "reduce_mean": (VOLUMES, lambda x: layers.reduce_mean(x, dim=[0, 2, 4], keep_dim=True)),
    "reduce_max": (IMAGES, lambda x: layers.reduce_max(x, dim=[1, 3])),
    "reduce_min": (IMAGES, lambda x: layers.reduce_min(x, dim=[-1, 0])),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_native_in_plans(name):
    shape, build = LAYERS[name]
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [None, *shape[1:]], "float32")
        x.stop_gradient = False
        loss = layers.mean(build(x))
        fluid.backward.append_backward(loss)
        with fluid.scope_guard(fluid.Scope()):
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(fluid.default_startup_program())
            feed = {"x": np.random.default_rng(0).normal(size=shape).astype("float32")}
            exe.run(feed=feed, fetch_list=[loss, "x@GRAD"])
            told = exe.describe()
    assert "native" in told and "reference" not in told
