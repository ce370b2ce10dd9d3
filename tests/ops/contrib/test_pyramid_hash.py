"""pyramid_hash; recorded rows are those of Fluid 1.8.5."""

import struct

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.contrib.layers import search_pyramid_hash
from fluidlite.ops.contrib.pyramid_hash import murmur3, xxh32
from fluidlite.ops.registry import OperatorError

from ..harness import infer, run_kernel

IDS = np.array([[1], [2], [3], [4], [5], [9], [7], [8]], "int32")
LODS = {"X": [[[0, 4, 5, 8]]]}
W = np.arange(104, dtype="float32").reshape(-1, 1)
ATTRS = {
    "num_emb": 8, "space_len": 100, "pyramid_layer": 4, "rand_len": 4, "drop_out_percent": 0.0, "is_training": 1,
    "use_filter": False, "seed": 3, "lr": 0.5,
}  # fmt: skip
STARTS = [[3, 95], [64, 72], [53, 26], [66, 78], [84, 83], [33, 82], None, [52, 87], [1, 30], [55, 45]]


def rows(starts, factor=1.0):
    """The embeddings of runs by their positions in W; zeros for None, a sequence without runs."""
    each = [
        [0.0] * 8 if s is None else [factor * (first + k) for first in s for k in range(4)] for s in starts
    ]
    return np.array(each, "float32")


def run(lods=LODS, ids=IDS, **attrs):
    inputs = {
        "X": ids,
        "W": W,
        **{slot: attrs.pop(slot) for slot in ("WhiteList", "BlackList") if slot in attrs},
    }
    return run_kernel("pyramid_hash", inputs, {**ATTRS, **attrs}, lods)


def bloom(size, hashes, share, rng):
    """A filter whose bits are set with a chance of `share`."""
    bits = (rng.rand(size // 8, 8) < share).dot(1 << np.arange(8)).astype("u1")
    data = struct.pack("<QQQQ", 17070416, size, hashes, 1) + bits.tobytes()
    return np.frombuffer(data + b"\0" * (-len(data) % 4), "float32").reshape(-1, 1)


def test_rows_of_all_runs():
    made = run()
    np.testing.assert_array_equal(made["Out"][0], rows(STARTS))
    np.testing.assert_array_equal(made["DropPos"][0].ravel(), [1] * 9 + [0] * 23)
    np.testing.assert_array_equal(made["X_Temp_Out"][0], IDS.astype("float32"))
    shorter = run(pyramid_layer=2)
    np.testing.assert_array_equal(shorter["Out"][0], rows([STARTS[k] for k in (0, 1, 2, 6, 7, 8)]))
    np.testing.assert_array_equal(run(is_training=0, drop_out_percent=0.5)["Out"][0], rows(STARTS, 0.5))
    np.testing.assert_array_equal(run(num_emb=4)["Out"][0], rows(STARTS)[:, :4])
    empty = run(lods={"X": [[[0, 0, 1]]]}, ids=IDS[:1])
    np.testing.assert_array_equal(empty["Out"][0], np.zeros((2, 8)))


@pytest.mark.parametrize(
    ("seed", "drop", "flags"),
    [(3, 0.5, "100110100"), (7, 0.5, "101000001"), (3, 0.9, "000000100"), (0, 0.5, "011011011"), (3, 0.999, "0" * 9)],
)  # fmt: skip
def test_runs_are_left_out_as_paddle_draws_them(seed, drop, flags):
    made = run(seed=seed, drop_out_percent=drop)
    assert "".join(map(str, made["DropPos"][0][:9, 0])) == flags
    starts = []
    for mine in ([0, 1, 2, 3, 4, 5], [], [6, 7, 8]):
        left = [STARTS[k + (k > 5)] for k in mine if flags[k] == "1"]
        starts += left or [None]
    np.testing.assert_array_equal(made["Out"][0], rows(starts))


def test_filters():
    rng = np.random.RandomState(0)
    recorded = [
        ((1024, 1, 0.8), 0.3, 0.0, 3, "101000110"),
        ((1000, 2, 0.9), 0.5, 0.3, 3, "001001101"),
        ((4096, 3, 0.95), 0.5, 0.5, 11, "000101110"),
        ((512, 1, 0.5), 0.1, 0.2, 0, "000000011"),
    ]
    for (size, hashes, share), black_share, drop, seed, flags in recorded:
        white, black = bloom(size, hashes, share, rng), bloom(size, hashes, black_share, rng)
        made = run(
            use_filter=True, WhiteList=white, BlackList=black, white_list_len=len(white), black_list_len=len(black),
            drop_out_percent=drop, seed=seed,
        )  # fmt: skip
        assert "".join(map(str, made["DropPos"][0][:9, 0])) == flags
    with pytest.raises(
        OperatorError, match="WhiteList is no Bloom filter: it should begin with the number 17070416"
    ):
        run(use_filter=True, WhiteList=np.ones((20, 1), "float32"), white_list_len=20)
    with pytest.raises(OperatorError, match="BlackList is no Bloom filter"):
        run(use_filter=True, BlackList=bloom(4096, 1, 0.5, rng)[:20], black_list_len=20)


def test_hashes_of_bytes():
    """The values that the algorithms' own implementations give for these bytes."""
    assert [int(xxh32(np.zeros((1, n), "u1"), 0)[0]) for n in (4, 16)] == [0x08D6D969, 0x8E022B3A]
    one, two = murmur3(np.frombuffer(b"The quick brown fox jumps over the lazy dog", "u1")[None], 0)
    assert (int(one[0]), int(two[0])) == (0xE34BBC7BBC071B6C, 0x7A433CA9C49A9347)


@pytest.mark.parametrize("learns", [True, False])
def test_the_vector_learns_on_the_way_back(learns):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        x = fluid.data("x", [-1, 1], "int32", lod_level=1)
        x.stop_gradient = not learns
        initial = fluid.initializer.NumpyArrayInitializer(W)
        out = search_pyramid_hash(
            x, 8, 100, 4, 4, 0.5, True, False, 0, 0, 3, 0.5, fluid.ParamAttr("W", initializer=initial)
        )
        assert out.shape == (-1, 8) and out.lod_level == 1
        pooled = layers.fc(layers.sequence_pool(out, "sum"), 1, param_attr=fluid.initializer.Constant(2.0))
        fluid.optimizer.SGD(0.0).minimize(layers.reduce_sum(pooled))
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        feed = fluid.create_lod_tensor(IDS, [[4, 1, 3]], fluid.CPUPlace())
        expected = W.copy()
        for _ in range(2):
            exe.run(main, feed={"x": feed}, fetch_list=[])
            for first in (3, 95, 66, 78, 84, 83, 52, 87):  # of the runs that are kept
                expected[first : first + 4] -= learns * 0.5 * 2.0
            np.testing.assert_allclose(np.array(scope.find_var("W").get_tensor()), expected)


def test_what_does_not_fit():
    taken = {"X": IDS, "W": W}
    with pytest.raises(OperatorError, match="num_emb must be a multiple of rand_len, got 6 and 4"):
        infer("pyramid_hash", taken, {**ATTRS, "num_emb": 6})
    with pytest.raises(
        OperatorError, match=r"W must be \[space_len \+ rand_len, 1\] = \[94, 1\], got \[104, 1\]"
    ):
        infer("pyramid_hash", taken, {**ATTRS, "space_len": 90})
    with pytest.raises(OperatorError, match="pyramid_layer must be at least 2"):
        infer("pyramid_hash", taken, {**ATTRS, "pyramid_layer": 1})
    with pytest.raises(OperatorError, match=r"WhiteList must be \[white_list_len, 1\] = \[20, 1\], got None"):
        infer("pyramid_hash", taken, {**ATTRS, "use_filter": True, "white_list_len": 20})
    with pytest.raises(OperatorError, match="one level of sequences, got 0"):
        run(lods=None)
    with fluid.program_guard(fluid.Program()):
        x = fluid.data("x", [-1, 1], "int32", lod_level=1)
        with pytest.raises(ValueError, match="no parameter 'v' for distribute_update_vars"):
            search_pyramid_hash(
                x,
                8,
                100,
                4,
                4,
                0.5,
                True,
                False,
                0,
                0,
                3,
                0.5,
                fluid.ParamAttr("W"),
                distribute_update_vars=["v"],
            )
