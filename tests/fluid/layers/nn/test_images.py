"""Convolution, pooling and normalisation layers: appended operators, as in Fluid 1.8, and errors."""

import pytest

from fluidlite import layers
from fluidlite.data import data


@pytest.fixture
def image(programs):
    return data("x", [None, 4, 7, 6], "float32")


def test_conv2d(programs, image):
    out = layers.conv2d(image, 8, 3, stride=2, padding=1, groups=2, act="relu")
    assert out.shape == (-1, 8, 4, 3) and out.name == "conv2d_0.tmp_2"
    conv, bias, act = programs[0].global_block().ops
    assert (conv.type, bias.type, act.type) == ("conv2d", "elementwise_add", "relu")
    assert conv.inputs == {"Input": ["x"], "Filter": ["conv2d_0.w_0"]}
    assert (conv.attr("strides"), conv.attr("paddings"), conv.attr("groups")) == ([2, 2], [1, 1], 2)
    assert bias.attr("axis") == 1
    assert {p.name: p.shape for p in programs[0].all_parameters()} == {
        "conv2d_0.w_0": (8, 2, 3, 3),
        "conv2d_0.b_0": (8,),
    }
    draw = programs[1].global_block().ops[1]
    assert draw.type == "gaussian_random" and draw.attr("std") == pytest.approx(0.2357022613286972)


@pytest.mark.parametrize(
    ("padding", "attrs", "size"),
    [
        (1, ([1, 1], "EXPLICIT"), (7, 6)),
        ([1, 0], ([1, 0], "EXPLICIT"), (7, 4)),
        ([0, 1, 2, 1], ([0, 1, 2, 1], "EXPLICIT"), (6, 7)),
        ([1, 1, 2, 2], ([1, 2], "EXPLICIT"), (7, 8)),
        ([[0, 0], [0, 0], [1, 2], [0, 1]], ([1, 2, 0, 1], "EXPLICIT"), (8, 5)),
        ("valid", ([0, 0], "VALID"), (5, 4)),
        ("SAME", ([0, 0], "SAME"), (7, 6)),
    ],
)
def test_paddings(image, padding, attrs, size):
    out = layers.conv2d(image, 8, 3, padding=padding, bias_attr=False)
    assert (out.op.attr("paddings"), out.op.attr("padding_algorithm")) == attrs
    assert out.shape == (-1, 8, *size)


def test_channels_last(programs):
    out = layers.conv2d(data("x", [None, 4, 7, 6], "float32"), 8, 3, data_format="NHWC")
    assert out.shape == (-1, 2, 5, 8)
    assert out.op.type == "elementwise_add" and out.op.attr("axis") == 3
    assert programs[0].all_parameters()[0].shape == (8, 6, 3, 3)


def test_depthwise_without_cudnn(image):
    assert layers.conv2d(image, 8, 3, groups=4, use_cudnn=False).name == "depthwise_conv2d_0.tmp_1"
    assert layers.conv2d(image, 8, 3, groups=4).name == "conv2d_0.tmp_1"


def test_one_channel_is_depthwise_only_by_groups(programs):
    """So that networks with and without cuDNN have the same names, as scripts that evaluate elsewhere rely on."""
    gray = data("gray", [None, 1, 8, 8], "float32")
    for build in (layers.conv2d, layers.conv2d_transpose):
        kind = build.__name__
        assert build(gray, 1, filter_size=3, use_cudnn=False).name == f"{kind}_0.tmp_1"
        assert build(gray, 1, filter_size=3, groups=1, use_cudnn=False).name == f"depthwise_{kind}_0.tmp_1"


def test_conv2d_transpose(programs, image):
    out = layers.conv2d_transpose(image, 3, output_size=[14, 13], stride=2, padding=1)
    assert out.shape == (-1, 3, 14, 13)
    assert programs[0].all_parameters()[0].shape == (4, 3, 4, 5)
    assert layers.conv2d_transpose(image, 3, filter_size=4, stride=2, padding=1).shape == (-1, 3, 14, 12)


def test_volumes(programs):
    x = data("x", [None, 4, 6, 5, 5], "float32")
    assert layers.conv3d(x, 4, 2, groups=4).shape == (-1, 4, 5, 4, 4)
    assert layers.conv3d_transpose(x, 2, filter_size=2).shape == (-1, 2, 7, 6, 6)
    assert layers.pool3d(x, 2, pool_stride=2).shape == (-1, 4, 3, 2, 2)
    assert layers.adaptive_pool3d(x, [1, 2, 3], "avg").shape == (-1, 4, 1, 2, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": 3}, "channels of .input. of conv2d must be divisible by groups = 3, got 4"),
        ({"num_filters": 7, "groups": 2}, "'num_filters' of conv2d must be divisible by groups = 2, got 7"),
        ({"data_format": "HWC"}, r"'data_format' of conv2d must be one of \['NCHW', 'NHWC'\], got 'HWC'"),
        ({"use_cudnn": 1}, "'use_cudnn' of conv2d must be True or False, got 1"),
        ({"padding": "Q"}, "Unknown padding: 'Q'"),
        ({"padding": [1, 2, 3]}, "'padding' of conv2d must be an integer or 2 of them"),
        ({"padding": [[1, 1], [0, 0], [1, 1], [1, 1]]}, r"with \[0, 0\] for batch and channels"),
        ({"param_attr": False}, "must not be False"),
        ({"filter_size": 9}, "smaller than the filter"),
    ],
)
def test_conv2d_refuses(image, arguments, message):
    with pytest.raises(ValueError, match=message):
        layers.conv2d(**{"input": image, "num_filters": 8, "filter_size": 3, **arguments})


def test_conv2d_needs_to_know_the_channels(programs):
    with pytest.raises(ValueError, match="needs to know the channels of 'x'"):
        layers.conv2d(data("x", [None, None, 7, 6], "float32"), 8, 3)
    with pytest.raises(TypeError, match="data type of 'input' in conv2d must be .* received int64"):
        layers.conv2d(data("y", [None, 4, 7, 6], "int64"), 8, 3)
    with pytest.raises(ValueError, match="must have 4 dimensions"):
        layers.conv2d(data("z", [None, 4, 7], "float32"), 8, 3)


def test_conv2d_transpose_refuses(image):
    with pytest.raises(ValueError, match="needs 'output_size' or 'filter_size'"):
        layers.conv2d_transpose(image, 3)
    with pytest.raises(ValueError, match=r"output_size must be in \[9, 10\)"):
        layers.conv2d_transpose(image, 3, output_size=20, filter_size=3)


def test_pool2d(image):
    out = layers.pool2d(image, [3, 2], "avg", 2, pool_padding=[1, 0], ceil_mode=True, exclusive=False)
    assert out.shape == (-1, 4, 4, 3) and out.name == "pool2d_0.tmp_0"
    assert out.op.attr("ksize") == [3, 2] and out.op.attr("strides") == [2, 2]
    assert layers.pool2d(image, pool_type="avg", global_pooling=True).shape == (-1, 4, 1, 1)
    assert layers.pool2d(image, 3, pool_padding="SAME", pool_stride=2).shape == (-1, 4, 4, 3)


def test_adaptive_pool2d(image):
    assert layers.adaptive_pool2d(image, [3, 2], "avg").shape == (-1, 4, 3, 2)
    out, index = layers.adaptive_pool2d(image, 3, require_index=True)
    assert (out.name, index.name) == ("max_pool2d_with_index_0.tmp_0", "max_pool2d_with_index_0.tmp_1")
    assert index.shape == (-1, 4, 3, 3) and index.stop_gradient


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda x: layers.pool2d(x, 2, "min"),
            r"'pool_type' of pool2d must be one of \['max', 'avg'\], got 'min'",
        ),
        (lambda x: layers.pool2d(x), "needs 'pool_size' unless 'global_pooling'"),
        (
            lambda x: layers.adaptive_pool2d(x, 2, "avg", True),
            "'require_index' true when 'pool_type' is 'avg'",
        ),
    ],
)
def test_pooling_refuses(image, build, message):
    with pytest.raises(ValueError, match=message):
        build(image)


def test_batch_norm(programs, image):
    out = layers.batch_norm(image, act="relu", moving_mean_name="mm")
    norm = programs[0].global_block().ops[0]
    assert norm.inputs == {
        "X": ["x"],
        "Scale": ["batch_norm_0.w_0"],
        "Bias": ["batch_norm_0.b_0"],
        "Mean": ["mm"],
        "Variance": ["batch_norm_0.w_1"],
    }
    assert norm.output("MeanOut") == ["mm"] and norm.output("Y") == ["batch_norm_0.tmp_2"]
    assert out.name == "batch_norm_0.tmp_3"
    mean = programs[0].global_block().var("mm")
    assert mean.persistable and mean.stop_gradient and not mean.trainable
    filled = {op.output_arg_names[0]: op.attr("value") for op in programs[1].global_block().ops}
    assert filled == {"batch_norm_0.w_1": 1.0, "mm": 0.0, "batch_norm_0.b_0": 0.0, "batch_norm_0.w_0": 1.0}


def test_other_normalisations(programs, image):
    assert layers.layer_norm(image).name == "layer_norm_0.tmp_2"
    assert programs[0].global_block().var("layer_norm_0.w_0").shape == (168,)
    groups = layers.group_norm(image, 2).op
    assert groups.output("Mean") == ["_generated_var_0"]
    assert (
        groups.input("Scale") == groups.input("Bias") == []
    )  # Fluid makes them only when they are described
    described = layers.group_norm(image, 2, param_attr="scale", bias_attr=True).op
    assert described.input("Scale") == ["scale"] and described.input("Bias") == ["group_norm_1.b_0"]
    assert layers.instance_norm(image).shape == image.shape
    assert layers.l2_normalize(image, None).op.attr("axis") == 1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: layers.batch_norm(x, bias_attr=False), "must not be False"),
        (lambda x: layers.batch_norm(x, data_layout="X"), "'data_layout' of batch_norm must be one of"),
        (lambda x: layers.layer_norm(x, begin_norm_axis=4), r"must be in \[1, 4\) .* got 4"),
        (lambda x: layers.layer_norm(x, param_attr=False), "must not be False with 'scale'"),
        (lambda x: layers.group_norm(x, 3), "groups must divide the 4 channels"),
        (lambda x: layers.instance_norm(x, param_attr=False), "must not be False"),
    ],
)
def test_normalisation_refuses(image, build, message):
    with pytest.raises(ValueError, match=message):
        build(image)


@pytest.mark.parametrize("use_cudnn", [True, False])
def test_activations_of_convolutions_say_that_cudnn_is_used_as_the_layer_does(image, use_cudnn):
    for layer in (layers.conv2d, layers.conv2d_transpose):
        out = layer(image, 2, filter_size=3, act="relu", use_cudnn=use_cudnn)
        assert out.op.type == "relu" and out.op.attr("use_cudnn") is use_cudnn


def test_any_value_switches_global_pooling(programs):
    x = data("x", [2, 3, 6, 6])
    pooled = [layers.pool2d(x, 2, global_pooling=switch) for switch in (1, 0, None)]
    assert [out.shape[2:] for out in pooled] == [(1, 1), (5, 5), (5, 5)]


@pytest.mark.parametrize("layer", [layers.conv2d, layers.conv2d_transpose])
def test_no_groups(layer, image):
    with pytest.raises(ZeroDivisionError):  # as in Fluid
        layer(image, 4, filter_size=3, groups=0)
