"""rank_attention: neighbours by rank."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer

RNG = np.random.default_rng(1)
X = RNG.uniform(-1, 1, (4, 2)).astype("float32")
TABLE = RNG.uniform(-1, 1, (9 * 2, 3)).astype("float32")
OFFSETS = np.array([[1, 1, 0, 2, 1, 0, 0], [2, 1, 0, 2, 1, 3, 3], [0] * 7, [3, 1, 0, 0, 0, 0, 0]], "int32")


def expected():
    out = np.zeros((4, 3), "float32")
    for row, (own, *others) in enumerate(OFFSETS):
        for rank, index in zip(others[::2], others[1::2], strict=True):
            if own and rank:
                block = (own - 1) * 3 + rank - 1
                out[row] += X[index] @ TABLE[2 * block : 2 * block + 2]
    return out


def test_rank_attention():
    given = {"X": X, "RankOffset": OFFSETS, "RankParam": TABLE}
    check("rank_attention", given, {"MaxRank": 3}, {"Out": expected()}, grads=["RankParam"])
    with pytest.raises(OperatorError, match=r"RankOffset \[rows, 5\]"):
        infer("rank_attention", given, {"MaxRank": 2})


def test_the_layer(programs):
    x, offsets = fluid.data("x", [None, 2]), fluid.data("offsets", [None, 7], "int32")
    initial = fluid.initializer.NumpyArrayInitializer(TABLE)
    out = fluid.contrib.layers.rank_attention(
        x, offsets, [18, 3], fluid.ParamAttr("table", initializer=initial)
    )
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    (found,) = exe.run(feed={"x": X, "offsets": OFFSETS}, fetch_list=[out])
    np.testing.assert_allclose(found, expected(), rtol=1e-5)
