"""data_norm, hash and filter_by_instag; recorded numbers are those of Fluid 1.8.5."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers
from fluidlite.ops.registry import OperatorError

from ..harness import check, gradients, infer, run_kernel

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (4, 4)).astype("float32")
SUMS = {
    "BatchSize": np.array([10, 20, 30, 10], "float32"),
    "BatchSum": np.array([1, -2, 3, 0], "float32"),
    "BatchSquareSum": np.array([12, 30, 40, 9], "float32"),
}
SCALED = {"scale_w": np.array([1, 2, 3, 0.5], "float32"), "bias": np.array([0.1, 0.2, 0.3, 0.4], "float32")}
MEANS, SCALES = SUMS["BatchSum"] / SUMS["BatchSize"], np.sqrt(SUMS["BatchSize"] / SUMS["BatchSquareSum"])


def test_data_norm():
    normal = (X - MEANS) * SCALES
    want = {"Y": normal, "Means": MEANS, "Scales": SCALES}
    check("data_norm", {"X": X, **SUMS}, {}, want, grads=["X"])
    want = {"Y": normal * SCALED["scale_w"] + SCALED["bias"]}
    given = {"X": X, **SUMS, **SCALED}
    check("data_norm", given, {"enable_scale_and_shift": True}, want, grads=["X", "scale_w", "bias"])


def test_sums_get_what_the_batch_adds():
    made = gradients("data_norm", {"X": X, **SUMS}, {"epsilon": 1e-3}, {"Y": [np.ones_like(X)]})
    np.testing.assert_array_equal(made["BatchSize"][0], [4] * 4)
    np.testing.assert_allclose(made["BatchSum"][0], X.sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(
        made["BatchSquareSum"][0], ((X - MEANS) ** 2).sum(axis=0) + 4 * 1e-3, rtol=1e-5
    )


def test_slots_that_were_not_shown():
    x = X.copy()
    x[1:, 2] = 0
    given = {"X": x, **SUMS}
    normal = (x - MEANS) * SCALES
    normal[1:, 2:] = 0
    attrs = {"slot_dim": 2, "epsilon": 1e-3}
    check("data_norm", given, attrs, {"Y": normal})
    made = gradients("data_norm", given, attrs, {"Y": [np.ones_like(x)]})
    np.testing.assert_array_equal(made["BatchSize"][0], np.ones(4))
    np.testing.assert_allclose(made["BatchSum"][0], [*x[:, :2].mean(axis=0), *x[0, 2:]], rtol=1e-5)
    squares = (x - MEANS) ** 2
    want = [*(squares[:, :2].mean(axis=0) + 4e-3), *(squares[0, 2:] + 1e-3)]
    np.testing.assert_allclose(made["BatchSquareSum"][0], want, rtol=1e-5)
    np.testing.assert_allclose(made["X"][0], np.tile(SCALES, (4, 1)), rtol=1e-6)
    scaled = {**attrs, "enable_scale_and_shift": True}
    made = gradients("data_norm", {**given, **SCALED}, scaled, {"Y": [np.ones_like(x)]})
    np.testing.assert_array_equal(made["X"][0][1:, 2:], np.zeros((3, 2)))
    np.testing.assert_array_equal(made["bias"][0], [4, 4, 1, 1])


def test_data_norm_refuses():
    with pytest.raises(OperatorError, match=r"epsilon must be in \[0, 0.001\], got 0.1"):
        infer("data_norm", {"X": X, **SUMS}, {"epsilon": 0.1})
    with pytest.raises(OperatorError, match="BatchSize must have shape \\[3\\]"):
        infer("data_norm", {"X": X[:, :3], **SUMS})
    with pytest.raises(OperatorError, match="X must be \\[rows, width\\]"):
        infer("data_norm", {"X": X[None], **SUMS})


def test_the_optimizer_adds_up_sums():
    main, start, exe = fluid.Program(), fluid.Program(), fluid.Executor()
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, start), fluid.unique_name.guard():
        x = fluid.data("x", [None, 4])
        out = layers.data_norm(x, name="n", param_attr={"batch_size": 10.0, "batch_square": 12.0}, act="relu")
        fluid.optimizer.SGD(0.1).minimize(layers.mean(out))
        exe.run(start)
        made = exe.run(main, feed={"x": X}, fetch_list=[out])[0]
        held = {
            name: np.array(fluid.global_scope().find_var(name).get_tensor())
            for name in ("n.batch_size", "n.batch_sum")
        }
    np.testing.assert_allclose(made, np.maximum(X * np.sqrt(10 / 12), 0), rtol=1e-5)
    np.testing.assert_allclose(held["n.batch_size"], [9.6] * 4, rtol=1e-6)
    np.testing.assert_allclose(held["n.batch_sum"], -0.1 * X.sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize(
    ("width", "dtype", "attrs", "want"),
    [
        (1, "int64", {}, [[43708], [51248]]),
        (2, "int64", {"num_hash": 3, "mod_by": 1000}, [[288, 434, 5], [241, 87, 198]]),
        (3, "int32", {"num_hash": 2, "mod_by": 1000}, [[144, 185], [60, 693]]),
        (9, "int32", {"mod_by": 10**6}, [[414006], [122320]]),
        (5, "int64", {"num_hash": 2, "mod_by": 10**6}, [[426712, 690047], [317220, 829649]]),
    ],
)
def test_hash(width, dtype, attrs, want):
    ids = (np.arange(2 * width).reshape(2, width) * 77 - 100).astype(dtype)
    out = np.array(want, dtype)[:, :, None]
    check("hash", {"X": ids}, attrs, {"Out": out})
    check("hash", {"X": ids}, attrs, {"Out": out}, lods={"X": [[[0, 1, 2]]]})


def test_hash_refuses():
    with pytest.raises(OperatorError, match="X must be int32 or int64"):
        infer("hash", {"X": X})
    with pytest.raises(OperatorError, match="must be positive, got 0 and 100000"):
        infer("hash", {"X": np.ones((1, 1), "int64")}, {"num_hash": 0})


ROWS = RNG.uniform(-1, 1, (6, 3)).astype("float32")
TAGS = np.array([[1], [2], [3], [4], [3]])
TAGGED = {"Ins": [[[0, 2, 5, 6]]], "Ins_tag": [[[0, 1, 3, 5]]]}


def test_samples_with_a_tag():
    given = {"Ins": ROWS, "Ins_tag": TAGS, "Filter_tag": np.array([3, 9])}
    want = {
        "Out": ROWS[2:],
        "LossWeight": np.ones((2, 1), "float32"),
        "IndexMap": np.array([[0, 2, 3], [3, 5, 1]]),
    }
    check("filter_by_instag", given, {}, want, grads=["Ins"], lods=TAGGED)
    want = {"Out": ROWS[1:3], "IndexMap": np.array([[0, 1, 1], [1, 2, 1]])}
    check("filter_by_instag", given, {"is_lod": False}, want, grads=["Ins"], lods=TAGGED)


def test_no_sample_has_a_tag():
    given = {"Ins": ROWS, "Ins_tag": TAGS, "Filter_tag": np.array([8])}
    want = {
        "Out": np.full((1, 3), 7, "float32"),
        "LossWeight": np.zeros((1, 1), "float32"),
        "IndexMap": np.array([[0, 1, 1]]),
    }
    check("filter_by_instag", given, {"out_val_if_empty": 7}, want, lods=TAGGED)
    made = gradients("filter_by_instag", given, {}, {"Out": [np.ones((1, 3), "float32")]}, lods=TAGGED)
    np.testing.assert_array_equal(made["Ins"][0], np.zeros_like(ROWS))


def test_samples_and_tags_must_go_together():
    given = {"Ins": ROWS, "Ins_tag": TAGS, "Filter_tag": np.array([3])}
    with pytest.raises(OperatorError, match="Ins has 2 samples, but Ins_tag has tags of 3"):
        run_kernel("filter_by_instag", given, {}, {**TAGGED, "Ins": [[[0, 2, 6]]]})
    with pytest.raises(OperatorError, match="Ins has no sequences"):
        run_kernel("filter_by_instag", given, {}, {**TAGGED, "Ins": [[]]})


def test_layers_of_click_models():
    main = fluid.Program()
    with fluid.program_guard(main), fluid.unique_name.guard():
        ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
        rows = fluid.data("rows", [None, 3], lod_level=1)
        tags, wanted = (
            fluid.data("tags", [None, 1], "int64", lod_level=1),
            fluid.data("wanted", [None], "int64"),
        )
        hashed = layers.hash(ids, 1000, 2)
        chosen, weight = layers.filter_by_instag(rows, tags, wanted, True)
    assert hashed.lod_level == 1 and list(hashed.shape) == [-1, 2, 1]
    lens = [[2, 1]]
    feed = {
        "ids": fluid.create_lod_tensor(np.array([[1], [2], [1]]), lens, fluid.CPUPlace()),
        "rows": fluid.create_lod_tensor(ROWS[:3], lens, fluid.CPUPlace()),
        "tags": fluid.create_lod_tensor(np.array([[5], [6]]), [[1, 1]], fluid.CPUPlace()),
        "wanted": np.array([6]),
    }
    made = fluid.Executor().run(main, feed, [hashed, chosen, weight], return_numpy=False)
    first = np.array(made[0])
    assert made[0].lod() == [[0, 2, 3]] and (first[0] == first[2]).all() and (first < 1000).all()
    np.testing.assert_array_equal(np.array(made[1]), ROWS[2:3])
    np.testing.assert_array_equal(np.array(made[2]), [[1.0]])
