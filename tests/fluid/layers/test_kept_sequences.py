"""Results that keep the sequences of their input, declared and at run time, as observed in Fluid 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from tests.engines import run_by

pytestmark = pytest.mark.usefixtures("alone")
LENGTHS = [[2, 1, 3]]
OFFSETS = [[0, 2, 3, 6]]


def images(x):
    return layers.reshape(x, [-1, 4, 2, 2])


def column(x):
    return layers.slice(x, [1], [0], [1])


def ones(*shape):
    return layers.fill_constant(list(shape), "float32", 1.0)


KEPT = {
    "scale": lambda x: layers.scale(x, 2.0),
    "fc": lambda x: layers.fc(x, 3),
    "add": lambda x: x + ones(16),
    "topk": lambda x: layers.topk(x, 2)[1],
    "argsort": lambda x: layers.argsort(x, 1)[1],
    "reduce_sum": lambda x: layers.reduce_sum(x, dim=1),
    "slice": lambda x: layers.slice(x, [1], [0], [2]),
    "split": lambda x: layers.split(x, 2, dim=1)[1],
    "concat": lambda x: layers.concat([x, x], axis=1),
    "expand": lambda x: layers.expand(x, [1, 2]),
    "stack": lambda x: layers.stack([x, x], axis=1),
    "conv2d": lambda x: layers.conv2d(images(x), 2, 2),
    "temporal_shift": lambda x: layers.temporal_shift(images(x), 3),
    "cross_entropy": lambda x: layers.cross_entropy(layers.softmax(x), ones(6, 16), soft_label=True),
    "row_conv": lambda x: layers.row_conv(x, 2),
    "prelu": lambda x: layers.prelu(x, "all"),
}

LOST = {
    "transpose": lambda x: layers.transpose(x, [0, 1]),
    "reverse": lambda x: layers.reverse(x, [1]),
    "gather": lambda x: layers.gather(x, layers.fill_constant([6], "int32", 1)),
    "argmax": lambda x: layers.argmax(x, 1),
    "unstack": lambda x: layers.unstack(x, axis=1)[0],
    "expand_as": lambda x: layers.expand_as(x, ones(6, 32)),
    "crop": lambda x: layers.crop_tensor(x, shape=[6, 2], offsets=[0, 1]),
    "maxout": lambda x: layers.maxout(images(x), 2),
    "pixel_shuffle": lambda x: layers.pixel_shuffle(images(x), 2),
    "shuffle_channel": lambda x: layers.shuffle_channel(images(x), 2),
    "interpolation": lambda x: layers.resize_nearest(images(x), [4, 4]),
    "unfold": lambda x: layers.unfold(images(x), [2, 2]),
    "conv2d_transpose": lambda x: layers.conv2d_transpose(images(x), 2, filter_size=2),
    "adaptive_pool2d": lambda x: layers.adaptive_pool2d(images(x), 2),
    "smooth_l1": lambda x: layers.smooth_l1(x, ones(6, 16)),
    "kldiv_loss": lambda x: layers.kldiv_loss(x, ones(6, 16), reduction="none"),
    "rank_loss": lambda x: layers.rank_loss(column(x), column(x), column(x)),
    "margin_rank_loss": lambda x: layers.margin_rank_loss(column(x), column(x), column(x)),
    "random": lambda x: layers.uniform_random_batch_size_like(x, [-1, 3]),
}


def of(build):
    """The lod_level that is declared, and the offsets that the result has."""
    x = fluid.data("x", [None, 16], "float32", lod_level=1)
    result = build(x)
    rows = np.random.default_rng(0).uniform(0.1, 1, (6, 16)).astype("float32")
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"x": fluid.create_lod_tensor(rows, LENGTHS, fluid.CPUPlace())}
    (made,) = exe.run(feed=feed, fetch_list=[result], return_numpy=False)
    return result.lod_level, made.lod()


@pytest.mark.parametrize("name", KEPT)
def test_sequences_are_kept(name):
    assert of(KEPT[name]) == (1, OFFSETS)


@pytest.mark.parametrize("name", LOST)
def test_sequences_are_lost(name):
    assert of(LOST[name]) == (0, [])


TWO = {
    "lod + plain": (lambda x, y: x + y, OFFSETS, [], OFFSETS),
    "plain + lod": (lambda x, y: x + y, [], OFFSETS, []),
    "lod + lod": (lambda x, y: x + y, OFFSETS, [[0, 6]], OFFSETS),
    "plain < lod": (layers.less_than, [], OFFSETS, []),
    "lod < plain": (layers.less_than, OFFSETS, [], OFFSETS),
    "cos_sim": (layers.cos_sim, [], OFFSETS, []),
    "sums": (lambda x, y: layers.sums([x, y]), [], OFFSETS, []),
    "beside": (lambda x, y: layers.concat([x, y], axis=1), [], OFFSETS, []),
    "below": (lambda x, y: layers.concat([x, y], axis=0), OFFSETS, [[0, 1, 6]], [[0, 2, 3, 6, 7, 12]]),
    "below, from the end": (lambda x, y: layers.concat([x, y], axis=-2), OFFSETS, [[0, 6]],
        [[0, 2, 3, 6, 12]]),
    "below, one plain": (lambda x, y: layers.concat([x, y], axis=0), OFFSETS, [], []),
    "below, two levels": (lambda x, y: layers.concat([x, y], axis=0), [[0, 1, 3], [0, 2, 3, 6]],
        [[0, 2], [0, 0, 6]], [[0, 1, 3, 5], [0, 2, 3, 6, 6, 12]]),
    "below, three": (lambda x, y: layers.concat([x, y, x], axis=0), OFFSETS, [[0, 6]],
        [[0, 2, 3, 6, 12, 14, 15, 18]]),
    "of labels": (lambda x, y: layers.cross_entropy(layers.softmax(x), labels(y)), [], OFFSETS, []),
    "of predictions": (lambda x, y: layers.cross_entropy(layers.softmax(x), labels(y)), OFFSETS, [[0, 6]],
        OFFSETS),
    "lookup": (lambda x, y: layers.embedding(labels(y), [4, 3]), OFFSETS, [[0, 1, 6]], [[0, 1, 6]]),
}  # fmt: skip


def labels(y):
    return layers.cast(layers.clip(column(y), 0.0, 0.0), "int64")


@pytest.mark.parametrize("engine", ["plan", "interpret"])
@pytest.mark.parametrize("name", TWO)
def test_of_two_inputs(name, engine):
    build, *given, want = TWO[name]
    feed = {}
    for key, offsets in zip("xy", given, strict=True):
        feed[key] = fluid.LoDTensor()
        feed[key].set(np.full((6, 16), 0.5, "float32"), fluid.CPUPlace())
        feed[key].set_lod(offsets)
    x, y = [fluid.data(key, [None, 16], "float32", lod_level=len(feed[key].lod())) for key in "xy"]
    result = build(x, y)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    with run_by(engine):
        for _ in range(2):
            (made,) = exe.run(feed=feed, fetch_list=[result], return_numpy=False)
            assert made.lod() == want


def test_rows_from_the_front_are_no_sequences():
    for begin, end in ((0, 6), (0, 100), (1, 3)):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            assert of(lambda x: layers.slice(x, [0], [begin], [end]))[1] == []  # noqa: B023


GRADIENTS = {
    "relu": lambda x: layers.relu(x),
    "mul": lambda x: layers.fc(x, 3),
    "reshape": lambda x: layers.reshape(x, [-1, 8]),
    "transpose": lambda x: layers.transpose(x, [1, 0]),
    "matmul": lambda x: layers.matmul(x, ones(16, 2)),
    "relu before matmul": lambda x: layers.matmul(layers.relu(x), ones(16, 2)),
    "softmax": lambda x: layers.softmax(x),
    "reversed before softmax": lambda x: layers.softmax(layers.sequence_reverse(layers.scale(x, 2.0))),
    "conv2d": lambda x: layers.conv2d(images(x), 2, 2),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    build = GRADIENTS[name]
    x = fluid.data("x", [None, 16], "float32", lod_level=1)
    x.stop_gradient = False
    (gradient,) = fluid.gradients(layers.reduce_sum(layers.square(build(x))), x)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"x": fluid.create_lod_tensor(np.ones((6, 16), "float32"), LENGTHS, fluid.CPUPlace())}
    (made,) = exe.run(feed=feed, fetch_list=[gradient], return_numpy=False)
    assert made.lod() == OFFSETS
    (array,) = exe.run(feed=feed, fetch_list=[gradient])
    np.testing.assert_array_equal(array, np.array(made))
