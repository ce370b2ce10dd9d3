"""var_conv_2d: convolution of pictures of various sizes."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer

RNG = np.random.default_rng(0)
SIZES = [(3, 4), (0, 2), (2, 1)]


def floats(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


def convolved(picture, weights, stride):
    """The definition, place by place."""
    rows, columns = picture.shape[1:]
    if not rows or not columns:
        return np.zeros(0)
    out, _, kh, kw = weights.shape
    size = [(n - 1) // s + 1 for n, s in zip((rows, columns), stride, strict=True)]
    padded = np.pad(picture, ((0, 0), (kh // 2, kh), (kw // 2, kw)))
    made = np.zeros((out, *size))
    for i in range(size[0]):
        for j in range(size[1]):
            window = padded[:, i * stride[0] : i * stride[0] + kh, j * stride[1] : j * stride[1] + kw]
            made[:, i, j] = (weights * window).sum(axis=(1, 2, 3))
    return made.ravel()


@pytest.mark.parametrize(("kernel", "stride"), [((3, 3), (1, 1)), ((2, 4), (2, 3)), ((5, 1), (1, 2))])
def test_var_conv_2d(kernel, stride):
    pictures, weights = [floats(2, *size) for size in SIZES], floats(3, 2, *kernel)
    lods = {
        "X": [[np.cumsum([0, *(p.size for p in pictures)]).tolist()]],
        "ROW": [[[0, 3, 3, 5]]],
        "COLUMN": [[[0, 4, 6, 7]]],
        "W": [[]],
    }
    given = {
        "X": np.concatenate([p.ravel() for p in pictures])[:, None],
        "ROW": floats(5, 1),
        "COLUMN": floats(7, 1),
        "W": weights.reshape(3, -1),
    }
    attrs = {"InputChannel": 2, "OutputChannel": 3, "KernelH": kernel[0], "KernelW": kernel[1]}
    attrs.update(StrideH=stride[0], StrideW=stride[1])
    want = np.concatenate([convolved(p, weights, stride) for p in pictures])[:, None].astype("float32")
    check("var_conv_2d", given, attrs, {"Out": want}, grads=["X", "W"], lods=lods)
    with pytest.raises(OperatorError, match="W must be \\[3, "):
        infer("var_conv_2d", {**given, "W": floats(3, 1)}, attrs)


def test_layer():
    main, start, exe = fluid.Program(), fluid.Program(), fluid.Executor()
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, start):
        x, row, column = (fluid.data(name, [None, 1], lod_level=1) for name in ("x", "row", "column"))
        out = fluid.contrib.layers.var_conv_2d(x, row, column, 2, 3, [3, 2], stride=2, act="relu")
        exe.run(start)
        lens = {"x": [12, 4], "row": [3, 1], "column": [2, 2]}
        feed = {
            name: fluid.create_lod_tensor(floats(sum(n), 1), [n], fluid.CPUPlace())
            for name, n in lens.items()
        }
        (op,) = (op for op in main.global_block().ops if op.type == "var_conv_2d")
        made, patches = exe.run(main, feed, [out, op.output("Col")[0]], return_numpy=False)
    assert made.lod() == [[0, 6, 9]] and (np.array(made) >= 0).all()
    # The pixels that each place of the kernel sees, by channel: 2 * 3 * 2 places of 2 x 1 results, then of 1 x 1.
    assert patches.lod() == [[0, 24, 36]]
    first, pixels = np.array(patches)[:24].reshape(2, 3, 2, 2), np.array(feed["x"])[:12].reshape(2, 3, 2)
    np.testing.assert_array_equal(first[:, 1, 1], pixels[:, ::2, 0])
    np.testing.assert_array_equal(first[:, 2, 1], np.stack([pixels[:, 1, 0], np.zeros(2, "float32")], axis=1))


def test_the_gradient_names_all_that_fluid_names(programs):
    x, row, column = (fluid.data(name, [None, 1], lod_level=1) for name in ("x", "row", "column"))
    out = fluid.contrib.layers.var_conv_2d(x, row, column, 1, 1, [3, 3])
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(out))
    ops = fluid.default_main_program().global_block().ops
    (back,) = (op for op in ops if op.type == "var_conv_2d_grad")
    assert back.input("Out") == [out.name] and back.input("Col") == ["var_conv_2d_0.tmp_1"]
