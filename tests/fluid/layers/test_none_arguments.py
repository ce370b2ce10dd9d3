"""None for an optional argument: the operator keeps its default, as in Fluid."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.contrib import layers as contrib

IMAGE = np.arange(16, dtype="float32").reshape(1, 1, 4, 4)
REGION = np.float32([[0, 0, 3, 3]])


def run(*results, **feed):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return [np.array(value) for value in exe.run(feed=feed, fetch_list=list(results), return_numpy=False)]


@pytest.mark.parametrize(
    ("layer", "arguments", "expected"),
    [
        # Recorded on Fluid: one bin where a size is None, the scale 1.
        (layers.roi_pool, {"pooled_height": None, "pooled_width": 2}, [[13.0, 15.0]]),
        (layers.roi_pool, {"pooled_height": 2, "pooled_width": None}, [[7.0], [15.0]]),
        (layers.roi_pool, {"pooled_height": 2, "pooled_width": 2, "spatial_scale": None}, [[5.0, 7.0], [13.0, 15.0]]),
        (layers.roi_align, {"pooled_height": None, "pooled_width": 2}, [[6.75, 8.25]]),
        (layers.roi_align, {"pooled_height": 2, "pooled_width": None}, [[4.5], [10.5]]),
        (layers.roi_align, {"pooled_height": 2, "pooled_width": 2, "spatial_scale": None},
         [[3.75, 5.25], [9.75, 11.25]]),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("alone")
def test_regions(layer, arguments, expected):
    image = fluid.data("image", [None, 1, 4, 4])
    regions = fluid.data("regions", [None, 4], lod_level=1)
    region = fluid.create_lod_tensor(REGION, [[1]], fluid.CPUPlace())
    (got,) = run(layer(image, regions, **arguments), image=IMAGE, regions=region)
    np.testing.assert_allclose(got[0, 0], expected, 1e-6)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("missing", ["nms_threshold", "nms_eta"])
def test_suppression(missing):
    boxes, scores = fluid.data("boxes", [None, 3, 4]), fluid.data("scores", [None, 2, 3])
    given = {"score_threshold": 0.1, "nms_top_k": 3, "keep_top_k": 3, missing: None}
    feed = {
        "boxes": np.float32([[[0, 0, 4, 4], [0, 0, 4, 3.5], [6, 6, 8, 8]]]),
        "scores": np.float32([[[0, 0, 0], [0.9, 0.7, 0.8]]]),
    }
    (got,) = run(contrib.multiclass_nms2(boxes, scores, **given), **feed)
    np.testing.assert_allclose(got, [[1, 0.9, 0, 0, 4, 4], [1, 0.8, 6, 6, 8, 8]])
    with pytest.raises(TypeError, match=f"'{missing}' of multiclass_nms must be a number, got None"):
        layers.multiclass_nms(boxes, scores, **given)


@pytest.mark.usefixtures("alone")
def test_patches_without_a_stride():
    x = fluid.data("x", [None, 1, 3, 3])
    image = np.arange(9, dtype="float32").reshape(1, 1, 3, 3)
    (got,) = run(layers.im2sequence(x, filter_size=2, stride=None), x=image)
    np.testing.assert_array_equal(got, np.float32([[0, 1, 3, 4], [1, 2, 4, 5], [3, 4, 6, 7], [4, 5, 7, 8]]))


@pytest.mark.usefixtures("alone")
def test_dropout_and_ftrl():
    x = fluid.data("x", [None, 2])
    out = layers.dropout(x, 0.25, is_test=True, dropout_implementation=None)
    (got,) = run(out, x=np.ones((1, 2), "float32"))
    np.testing.assert_array_equal(got, np.float32([[0.75, 0.75]]))
    with fluid.dygraph.guard(), pytest.raises(ValueError, match="dropout_implementation"):
        layers.dropout(fluid.dygraph.to_variable(np.ones(2, "float32")), 0.5, dropout_implementation=None)
    found = fluid.optimizer.Ftrl(0.1, l1=None, l2=None, lr_power=None)._attrs
    assert found == fluid.optimizer.Ftrl(0.1)._attrs


def test_moving_averages_without_a_wish_about_model_averages():
    with fluid.dygraph.guard():
        layer = fluid.dygraph.BatchNorm(2, do_model_average_for_mean_and_var=None)
        assert layer(fluid.dygraph.to_variable(np.ones((3, 2), "float32"))).shape == [3, 2]


def test_batches_without_a_wish_about_the_last():
    """Fluid leaves out the last, shorter batch: it asks whether `drop_last` equals False."""
    read = lambda: iter(range(5))  # noqa: E731
    assert list(fluid.io.batch(read, 2, drop_last=None)()) == [[0, 1], [2, 3]]
    assert list(fluid.io.batch(read, 2, drop_last=0)()) == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize(
    ("layer", "arguments", "expected"),
    [
        # Recorded on Fluid: switches are off, also those that are on by default.
        (layers.scale, ([1.0, 2.0], 2.0, 1.0, None), [4.0, 6.0]),
        (layers.iou_similarity, ([[0.0, 0, 2, 2]], [[1.0, 1, 2, 2]], None), [[0.44444445]]),
        (layers.scatter, ([[1.0], [2.0]], [0, 0], [[3.0], [4.0]], None, None), [[7.0], [2.0]]),
    ],
)
def test_switches_of_eager_operators(layer, arguments, expected):
    with fluid.dygraph.guard():
        given = [fluid.dygraph.to_variable(np.array(one, "int64" if one == [0, 0] else "float32"))
                 if isinstance(one, list) else one for one in arguments]  # fmt: skip
        np.testing.assert_allclose(layer(*given).numpy(), expected, 1e-6)
