"""Composed networks: the operators Fluid 1.8 makes of them."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from fluidlite import nets
from fluidlite.base.place import CPUPlace
from fluidlite.data import data
from fluidlite.executor import Executor, Scope, scope_guard


def types(programs):
    return [op.type for op in programs[0].global_block().ops]


def run(programs, fetch, **feed):
    with scope_guard(Scope()):
        executor = Executor(CPUPlace())
        executor.run(programs[1])
        return executor.run(programs[0], feed=feed, fetch_list=fetch)


@pytest.fixture
def image(programs):
    return data("x", [None, 1, 8, 8], "float32")


def test_simple_img_conv_pool(programs, image):
    out = nets.simple_img_conv_pool(image, 4, 3, 2, 2, act="relu")
    assert types(programs) == ["conv2d", "elementwise_add", "relu", "pool2d"]
    assert out.shape == (-1, 4, 3, 3)


def test_img_conv_group(programs, image):
    out = nets.img_conv_group(
        image,
        [4, 5],
        2,
        conv_act="relu",
        conv_with_batchnorm=[True, False],
        conv_batchnorm_drop_rate=[0.3, 0.0],
        pool_stride=2,
    )
    first = ["conv2d", "elementwise_add", "batch_norm", "relu", "dropout"]
    assert types(programs) == [*first, "conv2d", "elementwise_add", "relu", "pool2d"]
    assert out.shape == (-1, 5, 4, 4)


def test_img_conv_group_refuses(image):
    with pytest.raises(TypeError, match="'conv_num_filter' of img_conv_group must be a list or tuple"):
        nets.img_conv_group(image, 4, 2)
    with pytest.raises(
        ValueError, match="'conv_padding' of img_conv_group must have one element for each of 2"
    ):
        nets.img_conv_group(image, [4, 5], 2, conv_padding=[1, 1, 1])


def test_sequence_conv_pool(programs):
    nets.sequence_conv_pool(data("x", [None, 5], "float32", lod_level=1), 6, 3)
    assert types(programs) == ["sequence_conv", "elementwise_add", "sigmoid", "sequence_pool"]


def test_glu(programs):
    out = nets.glu(data("x", [None, 6], "float32"))
    assert types(programs) == ["split", "sigmoid", "elementwise_mul"]
    x = np.linspace(-2, 2, 12, dtype="float32").reshape(2, 6)
    np.testing.assert_allclose(run(programs, [out], x=x)[0], x[:, :3] * expit(x[:, 3:]), rtol=1e-5)
    with pytest.raises(ValueError, match="needs an even dimension"):
        nets.glu(data("odd", [None, 5], "float32"))


def attended(q, k, v):
    return softmax(q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]), axis=-1) @ v


def test_attention_with_one_head(programs):
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=shape).astype("float32") for shape in ((2, 3, 6), (2, 4, 6), (2, 4, 8)))
    feeds = [data(name, [2, *a.shape[1:]], "float32") for name, a in (("q", q), ("k", k), ("v", v))]
    out = nets.scaled_dot_product_attention(*feeds)
    assert types(programs) == ["scale", "matmul", "reshape2", "softmax", "reshape2", "matmul"]
    np.testing.assert_allclose(
        run(programs, [out], q=q, k=k, v=v)[0], attended(q, k, v), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("batch", [2, None])
def test_attention_with_two_heads(programs, batch):
    shapes = {"q": (3, 6), "k": (4, 6), "v": (4, 8)}
    feeds = [data(name, [batch, *shape], "float32") for name, shape in shapes.items()]
    out = nets.scaled_dot_product_attention(*feeds, num_heads=2)
    assert types(programs)[:6] == ["mul", "elementwise_add"] * 3
    assert out.shape[1:] == (3, 8)
    ones = {name: np.ones((2, *shape), "float32") for name, shape in shapes.items()}
    got = run(programs, [out], **ones)[0]
    np.testing.assert_allclose(got, np.broadcast_to(got[:1, :1], (2, 3, 8)), rtol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "heads", "message"),
    [
        (((3, 6), (4, 5), (4, 8)), 1, "must be of one width, got 6 and 5"),
        (((3, 6), (4, 6), (5, 8)), 1, "must be as many, got 4 and 5"),
        (((3, 6), (4, 6), (4, 8)), 4, "num_heads must divide the widths 6 and 8, got 4"),
        (((3,), (4, 6), (4, 8)), 1, "'queries' must have 3 dimensions"),
    ],
)
def test_attention_refuses(programs, shapes, heads, message):
    feeds = [data(f"x{k}", [2, *shape], "float32") for k, shape in enumerate(shapes)]
    with pytest.raises(ValueError, match=message):
        nets.scaled_dot_product_attention(*feeds, num_heads=heads)
