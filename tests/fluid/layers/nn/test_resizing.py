"""Resizing and reordering images: appended operators, as in Fluid 1.8, and errors."""

import pytest

from fluidlite import layers
from fluidlite.data import data


@pytest.fixture
def image(programs):
    return data("x", [2, 3, 4, 3], "float32")


def test_sizes_as_numbers(image):
    out = layers.image_resize(image, [2, 5], name="foo")
    assert out.name == "foo.tmp_0" and out.shape == (2, 3, 2, 5) and out.op.type == "bilinear_interp"
    names = (
        "out_d", "out_h", "out_w", "scale", "align_corners", "align_mode", "data_layout", "interp_method",
    )  # fmt: skip
    assert [out.op.attr(name) for name in names] == [-1, 2, 5, 0.0, True, 1, "NCHW", "bilinear"]


def test_scale(image):
    out = layers.image_resize(image, scale=0.5, resample="NEAREST")
    assert out.shape == (2, 3, 2, 1) and out.op.type == "nearest_interp" and out.op.attr("scale") == 0.5
    by_variable = layers.resize_bilinear(image, scale=data("s", [1], "float32"))
    assert by_variable.shape == (2, 3, -1, -1) and by_variable.op.inputs["Scale"] == ["s"]


def test_sizes_as_variables(programs, image):
    size = data("size", [2], "int32")
    assert layers.resize_bilinear(image, out_shape=size).op.inputs["OutSize"] == ["size"]
    one = data("one", [1], "int32")
    mixed = layers.resize_nearest(image, out_shape=[one, 2])
    constant = programs[0].global_block().ops[-2]
    assert constant.type == "fill_constant" and constant.attr("value") == 2
    assert mixed.op.inputs["SizeTensor"] == ["one", constant.output_arg_names[0]]
    assert mixed.shape == (2, 3, -1, 2)
    actual = layers.resize_bilinear(image, [3, 3], actual_shape=size)
    assert actual.op.inputs["OutSize"] == ["size"] and actual.op.attr("out_h") == 3


def test_volumes_and_channels_last(programs, image):
    out = layers.image_resize(image, [2, 2], data_format="NHWC")
    assert out.shape == (2, 2, 2, 3) and out.op.attr("data_layout") == "NHWC"
    volume = data("v", [1, 1, 2, 2, 3], "float32")
    out = layers.resize_trilinear(volume, [2, 3, 4], align_corners=False, align_mode=0)
    assert out.shape == (1, 1, 2, 3, 4) and out.op.attr("data_layout") == "NCHW"
    assert layers.resize_trilinear(volume, [2, 3, 4], data_format="NDHWC").shape == (1, 2, 3, 4, 3)


def test_short_side(image):
    assert layers.image_resize_short(image, 6).shape == (2, 3, 8, 6)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"out_shape": [2, 5], "resample": "BICUBIC"}, ValueError, "can only be 'BILINEAR'"),
        ({"out_shape": 5}, TypeError, "must be a list or a Variable"),
        ({"out_shape": [2, 3, 4]}, ValueError, "must have 2 elements"),
        ({}, ValueError, "One of 'out_shape' and 'scale'"),
        ({"scale": -1.0}, ValueError, "must be greater than zero, got -1.0"),
        ({"out_shape": [2, 2], "align_corners": 3}, TypeError, "must be True or False, got 3"),
        ({"out_shape": [2, 2], "align_mode": 3}, ValueError, "'align_mode' of image_resize must be one of"),
        ({"out_shape": [2, 2], "data_format": "NCDHW"}, ValueError, "must be one of"),
        ({"out_shape": [2, 2, 2], "resample": "TRILINEAR"}, ValueError, "must have 5 dimensions"),
    ],
)
def test_bad_arguments(image, arguments, error, message):
    with pytest.raises(error, match=message):
        layers.image_resize(image, **arguments)


def test_rearranged(programs):
    x = data("x", [2, 8, 4, 4], "float32")
    assert layers.pixel_shuffle(x, 2).shape == (2, 2, 8, 8)
    assert layers.space_to_depth(x, 2).shape == (2, 32, 2, 2)
    assert layers.shuffle_channel(x, 4).name == "shuffle_channel_0.tmp_0"
    assert layers.temporal_shift(x, 2).op.attr("shift_ratio") == 0.25
    out = layers.unfold(x, [2, 3], 1, [1, 0], 1, name="n")
    assert out.name == "n.tmp_0" and out.shape == (2, 48, 10)
    assert out.op.attr("paddings") == [1, 0, 1, 0] and out.op.attr("kernel_sizes") == [2, 3]
    out = layers.lrn(x, n=3)
    assert out.name == "lrn_0.tmp_1" and programs[0].global_block().var("lrn_0.tmp_0").stop_gradient
    scale = layers.ones([8], "float32")
    assert layers.affine_channel(x, scale, scale, act="relu").name == "affine_channel_0.tmp_1"
    theta = data("theta", [2, 2, 3], "float32")
    grid = layers.affine_grid(theta, [2, 8, 3, 5])
    assert grid.op.attr("output_shape") == [2, 8, 3, 5]
    assert grid.shape[1:3] == (-1, -1) and layers.grid_sampler(x, grid).shape == (
        2,
        8,
        4,
        4,
    )  # as Fluid declares it
    size = data("size", [4], "int32")
    assert layers.affine_grid(theta, size).op.inputs["OutputShape"] == ["size"]
    assert layers.affine_grid(theta, size, name="n").name == "affine_grid_2.tmp_0"  # as in Fluid


def test_bad_rearrangements(programs):
    x = data("x", [2, 8, 4, 4], "float32")
    with pytest.raises(TypeError, match="'upscale_factor' of pixel_shuffle must be an integer"):
        layers.pixel_shuffle(x, 2.0)
    with pytest.raises(ValueError, match="'paddings' of unfold must be an integer or 2 or 4 of them"):
        layers.unfold(x, 2, paddings=[1, 2, 3])
    with pytest.raises(ValueError, match="'out_shape' of affine_grid should be a list"):
        layers.affine_grid(x, 5)
    with pytest.raises(TypeError, match="'scale' in affine_channel"):
        layers.affine_channel(x)


def test_cubic_by_interpolate_alone(image):
    out = layers.interpolate(image, [2, 5], resample="BICUBIC", align_corners=False)
    assert out.shape == (2, 3, 2, 5) and out.name == "bicubic_interp_0.tmp_0"
    assert out.op.type == "bicubic_interp" and out.op.attr("interp_method") == "bicubic"
    with pytest.raises(ValueError, match="image_resize can only be .*NEAREST', got"):
        layers.image_resize(image, [2, 5], resample="BICUBIC")
    with pytest.raises(ValueError, match="interpolate can only be .*'BICUBIC', got"):
        layers.interpolate(image, [2, 5], resample="AREA")
    with pytest.raises(ValueError, match="4 dimensions for BICUBIC"):
        layers.interpolate(data("v", [1, 1, 2, 2, 3], "float32"), [2, 3, 4], resample="BICUBIC")
