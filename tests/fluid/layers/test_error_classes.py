"""Error classes: errors are instances, also by name, of the classes that Fluid 1.8.5 raises at the same place."""

import numpy as np
import pytest

import fluidlite as fluid

layers = fluid.layers
EnforceNotMet = fluid.core.EnforceNotMet


def parameters(x):
    layers.fc(x, 2)
    return fluid.default_main_program()


@pytest.mark.parametrize(
    ("theirs", "call"),
    [
        (AssertionError, lambda x, img: layers.reshape(x, [-1, -1])),
        (AssertionError, lambda x, img: layers.reshape(x, [4, -2])),
        (AssertionError, lambda x, img: layers.reshape(x, [])),
        (AssertionError, lambda x, img: layers.split(x, 2, 1)),
        (AssertionError, lambda x, img: layers.split(x, 0, 1)),
        (AssertionError, lambda x, img: layers.matmul(x, x)),
        (AssertionError, lambda x, img: layers.unfold(x, 3)),
        (AssertionError, lambda x, img: layers.image_resize(img, [0, 4])),
        (AssertionError, lambda x, img: layers.pad2d(img, [1, 1, 1, 1], mode="foo")),
        (AssertionError, lambda x, img: layers.conv2d(img, 2, 3, param_attr=False)),
        (AssertionError, lambda x, img: layers.batch_norm(img, param_attr=False)),
        (AssertionError, lambda x, img: layers.trace(x, 0, 0, 0)),
        (AssertionError, lambda x, img: layers.clamp(x)),
        (EnforceNotMet, lambda x, img: layers.dropout(x, -0.5)),
        (EnforceNotMet, lambda x, img: layers.fc(x, 2, num_flatten_dims=3)),
        (EnforceNotMet, lambda x, img: layers.transpose(x, [0, 0])),
        (EnforceNotMet, lambda x, img: layers.conv2d(x, 2, 3)),
        (EnforceNotMet, lambda x, img: layers.conv2d(img, 2, 3, groups=3)),
        (EnforceNotMet, lambda x, img: layers.kldiv_loss(x, x, reduction="foo")),
        (EnforceNotMet, lambda x, img: layers.layer_norm(x, begin_norm_axis=0)),
        (ValueError, lambda x, img: layers.fc(x, 2, act="nothing")),
        (ValueError, lambda x, img: layers.cast(x, "foo")),
        (ValueError, lambda x, img: layers.fill_constant([2], "foo", 1.0)),
        (ValueError, lambda x, img: layers.conv2d(img, 2, 3, data_format="foo")),
        (TypeError, lambda x, img: x + np.ones(3, "float32")),
        (AssertionError, lambda x, img: fluid.optimizer.SGD(0.1).minimize(layers.fc(x, 2))),
        (AssertionError, lambda x, img: fluid.optimizer.SGD(None)),
        (AssertionError, lambda x, img: fluid.optimizer.Adam(epsilon=None)),
        (ValueError, lambda x, img: fluid.optimizer.RMSProp(0.1, rho=None)),
        (AssertionError, lambda x, img: fluid.initializer.Uniform(1.0, 0.0)),
        (AssertionError, lambda x, img: fluid.initializer.NumpyArrayInitializer([1, 2])),
        (AssertionError, lambda x, img: fluid.regularizer.L2Decay(None)),
        (EnforceNotMet, lambda x, img: fluid.io.load_persistables(None, "no_such_folder", parameters(x))),
    ],
)
def test_errors_are_those_of_fluid(theirs, call):
    x, img = fluid.data("x", [4, 3]), fluid.data("img", [2, 3, 8, 8])
    with pytest.raises(theirs):
        call(x, img)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("AssertionError", lambda x: layers.reshape(x, [-1, -1])),
        ("EnforceNotMet", lambda x: layers.concat([x, layers.reshape(x, [2, 6])])),
        ("ValueError", lambda x: layers.cast(x, "foo")),
        ("ValueError", lambda x: layers.fc(x, 2, act="nothing")),
        ("AssertionError", lambda x: layers.matmul(x, x)),
        ("ValueError", lambda x: layers.matmul(*(fluid.data(f"b{n}", [n, 4, 4]) for n in (2, 3)))),
        ("AssertionError", lambda x: layers.split(x, 2, 1)),
        ("AssertionError", lambda x: layers.pad2d(fluid.data("img", [2, 3, 8, 8]), mode="foo")),
        ("AssertionError", lambda x: layers.image_resize(fluid.data("img", [2, 3, 8, 8]), [0, 4])),
        ("EnforceNotMet", lambda x: layers.conv2d(x, 2, 3)),
        ("EnforceNotMet", lambda x: layers.dropout(x, 2.0)),
        ("EnforceNotMet", lambda x: layers.sequence_pool(x, "foo")),
        ("EnforceNotMet", lambda x: layers.slice(x, [0], [0, 1], [1])),
        ("AssertionError", lambda x: fluid.initializer.NumpyArrayInitializer([1, 2])),
        ("AssertionError", lambda x: fluid.initializer.Normal(None)),
        ("AssertionError", lambda x: fluid.clip.GradientClipByValue(-1.0)),
        ("AssertionError", lambda x: fluid.Executor().run(fetch_list=3)),
        ("AssertionError", lambda x: fluid.io.DataLoader.from_generator([x], 3).start()),
        ("AssertionError", lambda x: fluid.io.DataLoader.from_dataset(3, fluid.cpu_places())),
    ],
)
def test_their_names_are_those_of_fluid(name, call):
    with pytest.raises(Exception) as caught:
        call(fluid.data("x", [4, 3]))
    assert type(caught.value).__name__ == name


def test_no_inputs_have_no_gradients():
    assert fluid.gradients(layers.mean(fluid.data("x", [4, 3])), []) == []


# Accepted while a program is built, as in Fluid.


def run(build, **feeds):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        fetched = build(**{name: fluid.data(name, list(value.shape)) for name, value in feeds.items()})
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    return [exe.run(main, feed=feeds, fetch_list=[fetched])[0] for _ in range(2)]


IMAGES = np.random.RandomState(0).rand(2, 3, 8, 8).astype("float32")


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_a_window_less_than_a_stride_larger_than_the_image(ceil_mode):
    for got in run(lambda x: layers.pool2d(x, 9, pool_stride=2, ceil_mode=ceil_mode), x=IMAGES):
        np.testing.assert_array_equal(got, IMAGES.max((2, 3), keepdims=True))
    for got in run(lambda y: layers.pool2d(y, 9, "avg", pool_stride=2, ceil_mode=ceil_mode), y=IMAGES):
        np.testing.assert_allclose(got, IMAGES.mean((2, 3), keepdims=True), rtol=1e-6)
    with pytest.raises(EnforceNotMet, match="smaller than the window"):
        layers.pool2d(fluid.data("z", [2, 3, 8, 8]), 10, pool_stride=2, ceil_mode=False)


def test_the_axis_of_operands_of_one_rank_says_nothing():
    x = np.ones((4, 3), "float32")
    for got in run(lambda x: layers.elementwise_add(x, x, axis=5), x=x):
        np.testing.assert_array_equal(got, x + x)


def test_where_takes_numbers():
    x = np.array([[0, 2], [3, 0]], "float32")
    for got in run(layers.where, condition=x):
        assert got.tolist() == [[0, 1], [1, 0]]


def test_labels_of_a_sigmoid_cross_entropy_have_the_shape_of_its_logits():
    x, label = fluid.data("x", [4, 3]), fluid.data("label", [5, 2])
    with pytest.raises(EnforceNotMet, match=r"Label must have the shape of X, \[4, 3\], got \[5, 2\]"):
        layers.sigmoid_cross_entropy_with_logits(x, label)
