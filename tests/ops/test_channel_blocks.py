"""Calls on images in blocks of channels give what those on images as they are give."""

import numpy as np
import pytest

from fluidlite._ext import kernels
from fluidlite.ops.kernels.layouts import images_of, in_blocks, reordered
from fluidlite.ops.registry import Call

N, C, H, W = 3, 48, 7, 6
IMAGE, OUT = (N, C, H, W), (N, C, 4, 3)
CHANNELS = (C,)
POOL = [N, C, H, W, 3, 3, 2, 2, 1, 1, 4, 3]
NORM = [IMAGE, *[CHANNELS] * 4, IMAGE, *[CHANNELS] * 4]
NORM_GRAD = [IMAGE, *[CHANNELS] * 3, IMAGE, IMAGE, *[CHANNELS] * 2]
CONV = [N, C, H, W, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1]
CALLS = {
    "relu": ([IMAGE, IMAGE], [N * C * H * W], []),
    "elementwise_add": ([IMAGE] * 3, [N * C * H * W], []),
    "elementwise_add_mid": ([IMAGE, CHANNELS, IMAGE], [N, C, H * W], []),
    "elementwise_add_mid_grad": ([None, None, None, IMAGE, None, CHANNELS], [N, C, H * W], []),
    "elementwise_add_mid_grad, both": ([None, None, None, IMAGE, IMAGE, CHANNELS], [N, C, H * W], []),
    "batch_norm": (NORM, [N, C, H * W], [1e-5, 0.9]),
    "batch_norm, relu": (NORM, [N, C, H * W, 1], [1e-5, 0.9]),
    "batch_norm_infer": (NORM[:6], [N, C, H * W], [1e-5]),
    "batch_norm_infer, relu": (NORM[:6], [N, C, H * W, 1], [1e-5]),
    "batch_norm_grad": (NORM_GRAD, [N, C, H * W], [1e-5]),
    "batch_norm_grad, alone": ([*NORM_GRAD[:5], None, *NORM_GRAD[6:]], [N, C, H * W], [1e-5]),
    "pool2d_max": ([IMAGE, OUT], [*POOL, 0], []),
    "pool2d_max_grad": ([IMAGE, OUT, OUT, IMAGE], [*POOL, 0], []),
    "pool2d_avg": ([IMAGE, OUT], [*POOL, 0], []),
    "pool2d_avg, exclusive": ([IMAGE, OUT], [*POOL, 1], []),
    "pool2d_avg, global": ([IMAGE, (N, C, 1, 1)], [N, C, H, W, H, W, 1, 1, 0, 0, 1, 1, 1], []),
    "pool2d_avg_grad": ([OUT, IMAGE], [*POOL, 0], []),
    "pool2d_avg_grad, exclusive": ([OUT, IMAGE], [*POOL, 1], []),
    "concat": ([IMAGE, (N, 16, H, W), (N, 64, H, W)], [N, 4 * C * H * W, 4 * 16 * H * W], []),
    "split": ([(N, 64, H, W), IMAGE, (N, 16, H, W)], [N, 4 * C * H * W, 4 * 16 * H * W], []),
    "split, of one": ([(N, 64, H, W), None, (N, 16, H, W)], [N, 4 * C * H * W, 4 * 16 * H * W], []),
    "conv2d": ([IMAGE, (32, C, 3, 3), (32,), (N, 32, H, W)], CONV, []),
    "conv2d_plain": ([IMAGE, (32, C, 3, 3), None, (N, 32, H, W)], CONV[:15], []),
    "conv2d_plain, relu": ([IMAGE, (32, C, 3, 3), None, (N, 32, H, W)], [*CONV[:15], 1], []),
    "conv2d_norm": ([IMAGE, (32, C, 3, 3), None, (N, 32, H, W), *[(32,)] * 4], CONV, [1e-5]),
    "conv2d_norm, groups": (
        [IMAGE, (C, 1, 3, 3), (C,), IMAGE, *[(C,)] * 4],
        [*CONV[:4], C, *CONV[5:15], C],
        [1e-5],
    ),
    "conv2d_plain_norm": ([IMAGE, (32, C, 3, 3), None, (N, 32, H, W), *[(32,)] * 4], [*CONV[:15], 1], [1e-5]),
    "conv2d_grad_input": ([(32, C, 3, 3), (N, 32, H, W), IMAGE], CONV, []),
    "conv2d_plain_grad_filter": ([IMAGE, (N, 32, H, W), (32, C, 3, 3)], CONV[:15], []),
}
MADE = {
    "relu": [1], "elementwise_add": [2], "elementwise_add_mid": [2], "elementwise_add_mid_grad": [4, 5],
    "batch_norm": [5, 6, 7, 8, 9], "batch_norm_infer": [5], "batch_norm_grad": [5, 6, 7],
    "pool2d_max": [1], "pool2d_max_grad": [3],
    "pool2d_avg": [1], "pool2d_avg_grad": [1], "conv2d": [3], "conv2d_plain": [3], "conv2d_grad_input": [2],
    "conv2d_plain_grad_filter": [2], "concat": [2], "split": [1, 2],
    "conv2d_norm": [3], "conv2d_plain_norm": [3],
}  # fmt: skip

needs_dnn = pytest.mark.skipif(not kernels.available("conv2d.f32"), reason="needs oneDNN")


def put_in_blocks(images, block, back=False):
    out = np.empty_like(images)
    call = reordered("x", "y", images.shape, block, back)
    kernels.call(call.kernel, [images, out], list(call.ints))
    return out


def test_order():
    images = np.arange(2 * 16 * 2 * 3, dtype="float32").reshape(2, 16, 2, 3)
    got = put_in_blocks(images, 8).reshape(2, 2, 2, 3, 8)
    np.testing.assert_array_equal(got, images.reshape(2, 2, 8, 2, 3).transpose(0, 1, 3, 4, 2))
    np.testing.assert_array_equal(put_in_blocks(got.reshape(images.shape), 8, back=True), images)


@needs_dnn
@pytest.mark.parametrize("block", [8, 16])
@pytest.mark.parametrize("name", CALLS)
def test_calls(name, block):
    shapes, ints, floats = CALLS[name]
    stem = name.partition(",")[0]
    random = np.random.RandomState(0)
    low = -0.5 if stem.startswith("conv2d_plain") else 0  # of which a relu makes something else
    arrays = [None if shape is None else random.uniform(low, 1, shape).astype("float32") for shape in shapes]
    if stem.endswith("_norm"):
        arrays[7] = abs(arrays[7])
    if stem == "pool2d_max_grad":
        kernels.call("pool2d_max.f32", arrays[:2], ints)
    names = [None if each is None else f"v{k}" for k, each in enumerate(arrays)]
    call = Call(stem if stem in ("concat", "split") else f"{stem}.f32", names, ints, floats)
    places = images_of(call).places
    assert len(places) > 0
    blocked = in_blocks(call, block, places)
    given = [put_in_blocks(each, block) if k in places else each for k, each in enumerate(arrays)]
    given = [None if each is None else each.copy() for each in given]
    kernels.call(call.kernel, arrays, ints, floats)
    operands = [None if each is None else given[names.index(each)] for each in blocked.operands]
    kernels.call(blocked.kernel, operands, list(blocked.ints), list(blocked.floats))
    for k in MADE[stem]:
        if arrays[k] is not None:
            got = put_in_blocks(given[k], block, back=True) if k in places else given[k]
            np.testing.assert_allclose(got, arrays[k], rtol=2e-5, atol=2e-5)


def test_sizes_that_fit():
    concat = images_of(Call("concat", ["a", "b", "c"], [3, 4 * 48 * 42, 4 * 16 * 42]))
    assert concat.fit([IMAGE, (N, 16, H, W), (N, 64, H, W)])
    assert concat.fit([IMAGE, None, (N, 64, H, W)])
    assert not concat.fit([(1, C, H, N * W), (N, 16, H, W), (N, 64, H, W)])  # along another axis
    assert not images_of(Call("batch_norm.f32", [*"abcdefghij"], [N * C * H, W, 1])).fit([IMAGE, IMAGE])
    assert not images_of(Call("conv2d.f32", [*"abcd"], CONV)).fit([IMAGE, (N, 48, H, W)])


@pytest.mark.parametrize(
    "name, shapes, ints",
    [
        ("relu.f64", 2, [8]),
        ("elementwise_add_mid.f32", 3, [3, 48, 42, 2]),
        ("elementwise_mul_mid.f32", 3, [3, 48, 42]),
        ("conv2d_plain.f32", 4, [*CONV[:15], 2]),
        ("conv2d_last.f32", 4, CONV),
        ("conv2d_plain_norm.f32", 8, [*CONV[:15], 3]),
        ("dropout.f32", 3, [8, 1, 5]),
        ("batch_norm.f32", 10, [3, 48, 42, 2]),
        ("batch_norm_infer.f32", 6, [3, 48, 42, 3]),
        ("batch_norm_infer_grad.f32", 8, [3, 48, 42]),
    ],
)
def test_calls_that_cannot(name, shapes, ints):
    assert images_of(Call(name, [f"v{k}" for k in range(shapes)], ints, [0.1, 0.1])) is None
