"""fused_embedding_seq_pool, shuffle_batch, tdm_child and tdm_sampler, and the layers on them."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.ops.registry import OperatorError

from ..harness import check, infer, run_kernel

contrib = fluid.contrib.layers
RNG = np.random.default_rng(0)
TABLE = RNG.uniform(-1, 1, (6, 3)).astype("float32")
IDS = np.array([[1], [5], [1], [0], [2]])
OFFSETS = [0, 3, 3, 5]


@pytest.mark.parametrize("padding", [-1, 1])
def test_sums_of_rows(padding):
    rows = TABLE[IDS[:, 0]] * (IDS != padding)
    want = np.stack([rows[a:b].sum(axis=0) for a, b in zip(OFFSETS, OFFSETS[1:], strict=False)])
    check(
        "fused_embedding_seq_pool",
        {"W": TABLE, "Ids": IDS},
        {"padding_idx": padding},
        {"Out": want},
        grads=["W"],
        lods={"Ids": [[OFFSETS]]},
    )


@pytest.mark.parametrize("padding", [-1, 5])
def test_sums_of_rows_with_several_ids(padding):
    ids = np.array([[1, 5], [5, 0], [1, 3], [0, 0], [2, 5]])[..., None]
    rows = (TABLE[ids[..., 0]] * (ids != padding)).reshape(5, 6)
    want = np.stack([rows[a:b].sum(axis=0) for a, b in zip(OFFSETS, OFFSETS[1:], strict=False)])
    check(
        "fused_embedding_seq_pool",
        {"W": TABLE, "Ids": ids},
        {"padding_idx": padding},
        {"Out": want},
        grads=["W"],
        lods={"Ids": [[OFFSETS]]},
    )


@pytest.mark.parametrize("is_sparse", [False, True])
def test_tables_learn(is_sparse):
    main, start, exe = fluid.Program(), fluid.Program(), fluid.Executor()
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, start), fluid.unique_name.guard():
        ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
        start_at = fluid.ParamAttr("table", initializer=fluid.initializer.NumpyArrayInitializer(TABLE))
        out = contrib.fused_embedding_seq_pool(ids, [6, 3], is_sparse, padding_idx=-6, param_attr=start_at)
        fluid.optimizer.SGD(1.0).minimize(layers.reduce_sum(out))
        exe.run(start)
        feed = {"ids": fluid.create_lod_tensor(IDS, [[3, 0, 2]], fluid.CPUPlace())}
        made = exe.run(main, feed, [out])[0]
        table = np.array(fluid.global_scope().find_var("table").get_tensor())
    np.testing.assert_allclose(made[2], TABLE[2], rtol=1e-6)
    np.testing.assert_allclose(
        TABLE - table, np.array([[0], [2], [1], [0], [0], [1]]) * np.ones(3), atol=1e-6
    )


def test_sums_need_sequences():
    with pytest.raises(OperatorError, match="must be a LoDTensor with sequences"):
        run_kernel("fused_embedding_seq_pool", {"W": TABLE, "Ids": IDS}, {}, {})
    with pytest.raises(OperatorError, match="combiner must be 'sum', got 'mean'"):
        infer("fused_embedding_seq_pool", {"W": TABLE, "Ids": IDS}, {"combiner": "mean"})


def test_shuffle_batch():
    x = RNG.uniform(-1, 1, (4, 2, 3)).astype("float32")
    made = run_kernel("shuffle_batch", {"X": x, "Seed": np.array([5])})
    order = made["ShuffleIdx"][0]
    assert sorted(order) == list(range(8))
    np.testing.assert_array_equal(made["Out"][0].reshape(8, 3)[order], x.reshape(8, 3))
    repeated = run_kernel("shuffle_batch", {"X": x}, {"startup_seed": 5})
    np.testing.assert_array_equal(repeated["ShuffleIdx"][0], order)
    back = run_kernel("shuffle_batch_grad", {"ShuffleIdx": order, "Out@GRAD": made["Out"][0]})
    np.testing.assert_array_equal(back["X@GRAD"][0], x)


@pytest.mark.parametrize("mode", ["plan", "interpret"])
def test_each_run_has_another_order(mode, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_ENGINE", mode)
    main, start, exe = fluid.Program(), fluid.Program(), fluid.Executor()
    x = np.arange(64, dtype="float32").reshape(32, 2)
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, start):
        given = fluid.data("x", [None, 2])
        given.stop_gradient = False
        out = contrib.shuffle_batch(given, 3)
        (dx,) = fluid.gradients(layers.reduce_sum(out * out), given)
        exe.run(start)
        first, gradient = exe.run(main, {"x": x}, [out, dx])
        second = exe.run(main, {"x": x}, [out])[0]
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(np.sort(first, axis=0), x)
    np.testing.assert_array_equal(gradient, 2 * x)


# item, layer, parent, children: nodes 4, 5 and 6 are leaves
TREE = np.array(
    [
        [0] * 5, [0, 0, 0, 2, 3], [0, 1, 1, 4, 0], [0, 1, 1, 5, 6], [1, 2, 2, 0, 0], [2, 2, 3, 0, 0],
        [3, 2, 3, 0, 0],
    ]
)  # fmt: skip


def test_children():
    x = np.array([[0, 1], [3, 2], [6, 3]])
    child = np.array([[[0, 0], [2, 3]], [[5, 6], [4, 0]], [[0, 0], [5, 6]]], "int32")
    want = {"Child": child, "LeafMask": (child >= 4).astype("int32")}
    check("tdm_child", {"X": x, "TreeInfo": TREE.astype("int32")}, {"child_nums": 2}, want)
    with pytest.raises(
        OperatorError, match="TreeInfo must be \\[nodes, 3 \\+ child_nums\\] with child_nums 3"
    ):
        infer("tdm_child", {"X": x, "TreeInfo": TREE}, {"child_nums": 3})


TRAVEL, LAYER = np.array([[1, 3], [1, 4], [2, 0]], "int32"), np.array([[1], [2], [3], [4], [5]], "int32")
SAMPLER = {"neg_samples_num_list": [1, 2], "layer_offset_lod": [0, 2, 5]}


@pytest.mark.parametrize("positive", [True, False])
def test_samples_of_layers(positive):
    attrs = {**SAMPLER, "output_positive": positive, "seed": 3}
    given = {"X": np.array([[0], [1], [2]]), "Travel": TRAVEL, "Layer": LAYER}
    out, labels, mask = (
        run_kernel("tdm_sampler", given, attrs)[slot][0] for slot in ("Out", "Labels", "Mask")
    )
    widths = [1 + positive, 2 + positive]
    assert out.shape == (3, sum(widths)) and out.dtype == np.int32
    for item, path in enumerate(TRAVEL):
        for node, part in zip(path, (slice(0, widths[0]), slice(widths[0], None)), strict=True):
            nodes = out[item, part].tolist()
            if node == 0:
                assert not any(nodes) and not mask[item, part].any() and not labels[item, part].any()
                continue
            layer = {1, 2} if node < 3 else {3, 4, 5}
            assert set(nodes) <= layer and len(set(nodes)) == len(nodes) and mask[item, part].all()
            assert labels[item, part].tolist() == [int(n == node) for n in nodes]
            assert (node in nodes) == positive


def test_samplers_refuse():
    given = {"X": np.array([[0]]), "Travel": TRAVEL, "Layer": LAYER}
    with pytest.raises(OperatorError, match="less than the nodes of each layer, got 2 of 2 in layer 0"):
        infer("tdm_sampler", given, {**SAMPLER, "neg_samples_num_list": [2, 2]})
    with fluid.program_guard(fluid.Program()):
        x = fluid.data("x", [None, 1], "int64")
        with pytest.raises(ValueError, match="must be less than the nodes of the layer, got 2 of 2"):
            contrib.tdm_sampler(x, [2], [2], 3)
        with pytest.raises(TypeError, match="'dtype' of tdm_child must be int32 or int64"):
            contrib.tdm_child(x, 7, 2, dtype="float32")


def test_layers_of_trees():
    main, start, exe = fluid.Program(), fluid.Program(), fluid.Executor()

    def held(name, array):
        return fluid.ParamAttr(name, initializer=fluid.initializer.NumpyArrayInitializer(array))

    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, start), fluid.unique_name.guard():
        x = fluid.data("x", [None, 1], "int64")
        child, leaf = contrib.tdm_child(x, 7, 2, held("tree", TREE.astype("int32")))
        nodes, labels, _ = contrib.tdm_sampler(
            x, [1, 2], [2, 3], 3, held("travel", TRAVEL), held("layer", LAYER), seed=1
        )
        features, edges = fluid.data("n", [None, 3, 2]), fluid.data("e", [None, 2, 2], "int32")
        conv = contrib.tree_conv(features, edges, 4, num_filters=5)
        exe.run(start)
        feed = {
            "x": np.array([[1], [0]]),
            "n": np.ones((1, 3, 2), "float32"),
            "e": np.array([[[1, 2], [1, 3]]], "int32"),
        }
        made = exe.run(main, feed, [child, leaf, *nodes, *labels, conv])
    assert made[0].tolist() == [[[2, 3]], [[0, 0]]] and not made[1].any()
    assert [part.shape for part in made[2:6]] == [(2, 2, 1), (2, 3, 1)] * 2
    assert made[4][:, 0].tolist() == [[1], [1]] and made[6].shape == (1, 3, 4, 5)


def test_sums_about_clicks():
    main, start, exe = fluid.Program(), fluid.Program(), fluid.Executor()
    p, y = np.array([[0.2], [0.9]], "float32"), np.array([[1], [1]], "float32")
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, start):
        sums = contrib.ctr_metric_bundle(fluid.data("p", [None, 1]), fluid.data("y", [None, 1]))
        exe.run(start)
        for step in (1, 2):
            made = [float(v[0]) for v in exe.run(main, {"p": p, "y": y}, list(sums))]
            want = [0.65, 0.9, 1.1, float((1 / (1 + np.exp(-p))).sum()), 2, 2]
            np.testing.assert_allclose(made, step * np.array(want), rtol=1e-5)
        with pytest.raises(AssertionError, match="must have one shape"):
            contrib.ctr_metric_bundle(fluid.data("a", [None, 1]), fluid.data("b", [None, 2]))


def test_shuffled_rows_are_those_of_paddle():
    x = np.arange(8.0).reshape(8, 1)
    seed = np.array([], "int64")
    for wanted in ([2, 6, 4, 5, 7, 3, 0, 1], [6, 5, 4, 3, 7, 0, 1, 2], [4, 2, 5, 6, 1, 0, 3, 7]):
        made = run_kernel("shuffle_batch", {"X": x, "Seed": seed}, {"startup_seed": 5})
        np.testing.assert_array_equal(made["Out"][0].ravel(), wanted)
        seed = made["SeedOut"][0]
