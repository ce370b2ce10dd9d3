"""match_matrix_tensor and sequence_topk_avg_pooling."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

RNG = np.random.default_rng(0)
LEFT, RIGHT = [0, 2, 2, 3], [0, 1, 3, 6]


def floats(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


def test_match_matrix_tensor():
    x, y, w = floats(3, 2), floats(6, 3), floats(2, 2, 3)
    parts = [
        [(x[a:b] @ w[:, t] @ y[c:d].T).ravel() for t in range(2)]
        for a, b, c, d in zip(LEFT, LEFT[1:], RIGHT, RIGHT[1:], strict=False)
    ]
    want = {
        "Out": np.concatenate([m for pair in parts for m in pair])[:, None],
        "Tmp": np.einsum("nh,htk->ntk", x, w).reshape(-1, 1),
    }
    lods = {"X": [[LEFT]], "Y": [[RIGHT]]}
    given = {"X": x, "Y": y, "W": w}
    check("match_matrix_tensor", given, {"dim_t": 2}, want, grads=["X", "Y", "W"], lods=lods)
    with pytest.raises(OperatorError, match="as many sequences, got 3 and 2"):
        run_kernel("match_matrix_tensor", given, {"dim_t": 2}, {**lods, "Y": [[[0, 1, 6]]]})
    with pytest.raises(OperatorError, match="W \\[width of X, 3, width of Y\\]"):
        infer("match_matrix_tensor", given, {"dim_t": 3})


@pytest.mark.parametrize("topks", [[1], [1, 3], [3, 2]])
def test_sequence_topk_avg_pooling(topks):
    channels = 2
    sizes = [(2, 1), (0, 2), (1, 3)]
    parts = [floats(channels, *size) for size in sizes]
    means = [
        [
            [-np.sort(-p[c, r])[:k].sum() / k for c in range(channels) for k in topks]
            for r in range(p.shape[1])
        ]
        for p in parts
    ]
    x = np.concatenate([p.ravel() for p in parts])[:, None]
    lods = {"X": [[np.cumsum([0, *(p.size for p in parts)]).tolist()]], "ROW": [[LEFT]], "COLUMN": [[RIGHT]]}
    given = {"X": x, "ROW": floats(3, 1), "COLUMN": floats(6, 1)}
    attrs = {"topks": topks, "channel_num": channels}
    want = {"Out": np.array([row for one in means for row in one], "float32")}
    check("sequence_topk_avg_pooling", given, attrs, want, grads=["X"], lods=lods)
    with pytest.raises(OperatorError, match="topks must be positive"):
        infer("sequence_topk_avg_pooling", given, {**attrs, "topks": [0]})
    with pytest.raises(OperatorError, match="is no 3 channels of 2 rows and 1 columns"):
        run_kernel("sequence_topk_avg_pooling", given, {**attrs, "channel_num": 3}, lods)


def test_layers_of_matching():
    contrib = fluid.contrib.layers
    main, start, exe = fluid.Program(), fluid.Program(), fluid.Executor()
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, start), fluid.unique_name.guard():
        x, y = (fluid.data(name, [None, 3], lod_level=1) for name in "xy")
        matched, through = contrib.match_matrix_tensor(x, y, 2, act="relu")
        pooled = contrib.sequence_topk_avg_pooling(matched, x, y, [1, 2], 2)
        exe.run(start)
        feed = {
            name: fluid.create_lod_tensor(floats(sum(lens), 3), [lens], fluid.CPUPlace())
            for name, lens in (("x", [2, 1]), ("y", [1, 3]))
        }
        made = exe.run(main, feed, [matched, through, pooled], return_numpy=False)
    assert made[0].lod() == [[0, 4, 10]] and np.array(made[1]).shape == (18, 1)
    assert made[2].lod() == [[0, 2, 3]] and np.array(made[2]).shape == (3, 4)
    np.testing.assert_allclose(np.array(made[2])[0, 0], np.array(made[0])[0, 0])


def test_what_match_matrix_tensor_keeps_is_not_trained(programs):
    """As in Paddle 1.8.5."""
    x, y = (fluid.data(name, [None, 3], "float32", lod_level=1) for name in "xy")
    out, kept = fluid.contrib.layers.match_matrix_tensor(x, y, 2)
    assert kept.stop_gradient and not out.stop_gradient
