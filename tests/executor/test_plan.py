"""Plans against the interpreter: the same numbers, step after step, for the networks the engine is made for."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import unique_name
from fluidlite.executor.compile import compile_for_cpu
from fluidlite.executor.executor import _cache, fetch_names
from fluidlite.executor.feeding import as_feed, expanded
from fluidlite.executor.ir.request import Request

from ..engines import run_by

L = fluid.layers


def softmax_regression():
    image, label = fluid.data("image", [None, 20], "float32"), fluid.data("label", [None, 1], "int64")
    loss = L.reduce_mean(L.softmax_with_cross_entropy(L.fc(image, 10), label))
    fluid.optimizer.Adam(0.01).minimize(loss)
    return loss, {"image": (20,), "label": 10}


def perceptron():
    image, label = fluid.data("image", [None, 1, 5, 4], "float32"), fluid.data("label", [None, 1], "int64")
    h = L.fc(L.fc(image, 16, act="relu"), 8, act="tanh")
    p = L.fc(h, 10, act="softmax")
    loss = L.mean(L.cross_entropy(p, label))
    L.accuracy(p, label)
    fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
    return loss, {"image": (1, 5, 4), "label": 10}


def conv_net():
    image, label = fluid.data("image", [None, 1, 12, 12], "float32"), fluid.data("label", [None, 1], "int64")
    h = fluid.nets.simple_img_conv_pool(
        image, filter_size=3, num_filters=4, pool_size=2, pool_stride=2, act="relu"
    )
    h = L.dropout(L.batch_norm(h), 0.0)
    p = L.fc(h, 10, act="softmax")
    loss = L.mean(L.cross_entropy(p, label))
    fluid.optimizer.SGD(0.05).minimize(loss)
    return loss, {"image": (1, 12, 12), "label": 10}


def feeds(shapes, rows, seed):
    rng = np.random.RandomState(seed)
    return {
        "image": rng.uniform(-1, 1, (rows, *shapes["image"])).astype("float32"),
        "label": rng.randint(0, shapes["label"], (rows, 1)).astype("int64"),
    }


def train(build, engine, rows=(6, 6, 3, 6, 3)):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 7
    with run_by(engine), fluid.program_guard(main, startup), unique_name.guard(), fluid.scope_guard(scope):
        loss, shapes = build()
        exe = fluid.Executor()
        exe.run(startup)
        losses = [exe.run(main, feed=feeds(shapes, n, k), fetch_list=[loss])[0] for k, n in enumerate(rows)]
        kept = [v.name for v in main.list_vars() if v.persistable]
        return losses, {name: np.array(scope.find_var(name).get_tensor()) for name in kept}


@pytest.mark.parametrize("build", [softmax_regression, perceptron, conv_net])
def test_plans_give_what_the_interpreter_gives(build):
    losses, state = train(build, "plan")
    expected_losses, expected = train(build, "interpret")
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5, atol=1e-6)
    assert sorted(state) == sorted(expected)
    for name in expected:
        np.testing.assert_allclose(state[name], expected[name], rtol=2e-4, atol=2e-6, err_msg=name)


@pytest.mark.parametrize("build", [softmax_regression, perceptron, conv_net])
def test_the_whole_warm_step_is_native(build):
    loss, shapes = build()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    feed = expanded(as_feed(main, feeds(shapes, 6, 0)))
    plan = compile_for_cpu(Request(main, fluid.global_scope(), feed, (loss.name,)))
    python = [op.type for op, native in zip(plan.ops, plan.is_native, strict=True) if not native]
    if build is conv_net:
        from fluidlite._ext import kernels

        if not any(name.startswith("conv2d") for name in kernels.table()):
            pytest.skip("this build has no convolution kernels: oneDNN was not there")
    assert python == []


def test_values_that_the_program_lists_are_constants_of_a_plan():
    values = np.arange(2000, dtype="float32")
    out = fluid.layers.elementwise_add(fluid.data("x", [None, 2000]), fluid.layers.assign(values))
    exe = fluid.Executor()
    (found,) = exe.run(feed={"x": np.ones((2, 2000), "float32")}, fetch_list=[out])
    np.testing.assert_array_equal(found, np.tile(values + 1, (2, 1)))
    assert "assign_value" not in exe.describe()


def plans_of(*fetches, feeds=("x",)):
    cache = _cache(
        fluid.default_main_program(), fluid.global_scope(), (feeds, fetch_names(list(fetches)), False)
    )
    return cache.plans


@pytest.mark.parametrize("build", [softmax_regression, perceptron, conv_net])
def test_one_plan_serves_all_batch_sizes(build, monkeypatch):
    loss, shapes = build()
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    exe = fluid.Executor()
    exe.run(startup)
    before = {
        p.name: np.array(fluid.global_scope().find_var(p.name).get_tensor()) for p in main.all_parameters()
    }
    sizes = (4, 4, 2, 7, 3, 64, 5)
    got = [exe.run(feed=feeds(shapes, rows, k), fetch_list=[loss])[0] for k, rows in enumerate(sizes)]
    assert len(plans_of(loss, feeds=("image", "label"))) == 1
    other = fluid.Scope()
    with fluid.scope_guard(other):
        exe.run(startup)
        for name, array in before.items():
            other.find_var(name).get_tensor().set(array, fluid.CPUPlace())
        monkeypatch.setenv("FLUIDLITE_ENGINE", "interpret")
        expected = [
            exe.run(main, feed=feeds(shapes, rows, k), fetch_list=[loss])[0] for k, rows in enumerate(sizes)
        ]
    np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-6)


def test_sizes_of_0_and_1_have_plans_of_their_own():
    x = fluid.data("x", [None, 2], "float32")
    y = L.relu(x)
    exe = fluid.Executor()
    for rows in (*range(60), *range(60)):
        (got,) = exe.run(feed={"x": np.full((rows, 2), -1, "float32")}, fetch_list=[y])
        assert got.shape == (rows, 2)
        assert not got.any()
    assert len(plans_of(y)) == 3


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_sizes_that_a_formula_divides_by_may_become_0():
    x = fluid.data("x", [None, 3], "float32")
    loss = L.reduce_mean(L.square(L.fc(x, 2)))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for rows in (4, 0, 5):
        (got,) = exe.run(feed={"x": np.ones((rows, 3), "float32")}, fetch_list=[loss])
        assert np.isnan(got) == (rows == 0)


def test_shapes_that_are_computed_follow_the_sizes():
    x = fluid.data("x", [None, 6], "float32")
    rows = L.slice(L.shape(x), [0], [0], [1])
    filled = L.fill_constant(L.concat([rows, L.fill_constant([1], "int32", 4)]), "float32", 1.5)
    halves = L.reshape(x, L.concat([rows * 2, L.fill_constant([1], "int32", 3)]))
    copies = L.expand(L.reshape(L.reduce_mean(x), [1, 1]), [rows, 2])
    exe = fluid.Executor()
    fetches = [filled, halves, copies, L.size(x)]
    for n in (5, 7, 9, 2, 64):
        data = np.arange(6 * n, dtype="float32").reshape(n, 6)
        got = exe.run(feed={"x": data}, fetch_list=fetches)
        np.testing.assert_array_equal(got[0], np.full((n, 4), 1.5))
        np.testing.assert_array_equal(got[1], data.reshape(-1, 3))
        np.testing.assert_array_equal(got[2], np.full((n, 2), data.mean()))
        assert got[3] == 6 * n
    assert len(plans_of(*fetches)) == 1


def test_memory_follows_the_sizes_up_and_down():
    x = fluid.data("x", [None, 64], "float32")
    y = L.reduce_sum(L.relu(L.scale(x, 2.0)))
    exe = fluid.Executor()
    small, large = np.ones((4, 64), "float32"), np.ones((4096, 64), "float32")
    exe.run(feed={"x": small}, fetch_list=[y])
    (plan,) = plans_of(y)
    begin = plan.engine.arena_bytes
    assert exe.run(feed={"x": large}, fetch_list=[y])[0] == 2 * 64 * 4096
    assert plan.engine.arena_bytes >= large.nbytes
    for _ in range(1000):
        assert exe.run(feed={"x": small}, fetch_list=[y])[0] == 2 * 64 * 4
    assert plan.engine.arena_bytes <= 2 * begin
    assert exe.run(feed={"x": large}, fetch_list=[y])[0] == 2 * 64 * 4096


def test_temporaries_share_memory():
    x = fluid.data("x", [64, 64], "float32")
    y = x
    for _ in range(20):
        y = L.relu(L.scale(y, 1.5))
    main = fluid.default_main_program()
    feed = expanded(as_feed(main, {"x": np.ones((64, 64), "float32")}))
    plan = compile_for_cpu(Request(main, fluid.global_scope(), feed, (y.name,)))
    assert plan.engine.arena_bytes <= 2 * 64 * 64 * 4 + 128


def test_one_plan_serves_all_lengths():
    x = fluid.data("x", [None, 3], "float32", lod_level=1)
    y = L.sequence_pool(L.scale(x, 2.0), "sum")
    z = L.scale(x, 3.0)
    exe = fluid.Executor()
    for lengths in ([1, 2], [3, 3, 4], [5, 0, 1, 7], [0, 4, 2]):
        rows = np.arange(3 * sum(lengths), dtype="float32").reshape(-1, 3)
        tensor = fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())
        got, same = exe.run(feed={"x": tensor}, fetch_list=[y, z], return_numpy=False)
        ends = np.cumsum(lengths)
        expected = [2 * rows[end - n : end].sum(axis=0) for n, end in zip(lengths, ends, strict=True)]
        np.testing.assert_array_equal(np.array(got), expected)
        assert got.lod() == [] and same.recursive_sequence_lengths() == [lengths]
        np.testing.assert_array_equal(np.array(same), 3 * rows)
    assert len(plans_of(y, z)) == 1


def test_feeds_with_and_without_sequences_have_plans_of_their_own():
    x = fluid.data("x", [None, 2], "float32", lod_level=1)
    w = fluid.data("w", [None, 2], "float32", lod_level=1)
    y, z = L.scale(x, 2.0), L.scale(w, 3.0)
    exe = fluid.Executor()
    rows = np.ones((3, 2), "float32")
    ragged = fluid.create_lod_tensor(rows, [[1, 2]], fluid.CPUPlace())
    deep = fluid.create_lod_tensor(rows, [[2], [1, 2]], fluid.CPUPlace())
    for a, b in ((ragged, deep), (deep, ragged), (ragged, ragged), (rows, deep), (deep, rows)) * 2:
        found = exe.run(feed={"x": a, "w": b}, fetch_list=[y, z], return_numpy=False)
        lods = [tensor.lod() if isinstance(tensor, fluid.LoDTensor) else [] for tensor in (a, b)]
        assert [tensor.lod() for tensor in found] == lods


def test_sequences_that_do_not_end_where_the_rows_do_are_refused_in_every_step():
    x = fluid.data("x", [None, 1], "float32", lod_level=1)
    y = L.sequence_pool(x, "sum")
    exe = fluid.Executor()
    for rows in (5, 6, 5, 4):
        tensor = fluid.create_lod_tensor(np.ones((5, 1), "float32"), [[2, 3]], fluid.CPUPlace())
        tensor.set(np.ones((rows, 1), "float32"), fluid.CPUPlace())
        if rows == 5:
            assert exe.run(feed={"x": tensor}, fetch_list=[y])[0].ravel().tolist() == [2, 3]
        else:
            with pytest.raises(fluid.core.EnforceNotMet, match=f"'x' has {rows} rows, but .* end at 5"):
                exe.run(feed={"x": tensor}, fetch_list=[y])


def test_threads_may_share_an_executor():
    x = fluid.data("x", [None, 50], "float32")
    y = L.reduce_sum(L.fc(x, 50, param_attr=fluid.initializer.Constant(1.0)))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    main, scope = fluid.default_main_program(), fluid.global_scope()
    wrong = []

    def work(value):
        for _ in range(50):
            (got,) = exe.run(
                main, feed={"x": np.full((2, 50), value, "float32")}, fetch_list=[y], scope=scope
            )
            if got[0] != 2 * 50 * 50 * value:
                wrong.append((value, got[0]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, map(float, range(4))))
    assert wrong == []


def test_views_share_the_memory_of_what_they_view():
    x = fluid.data("x", [2, 6], "float32")
    y = L.reshape(L.relu(x), [3, 4])
    z = L.scale(y, 2.0)
    data = np.arange(12, dtype="float32").reshape(2, 6) - 5
    for _ in range(2):
        got = fluid.Executor().run(feed={"x": data}, fetch_list=[y, z])
        np.testing.assert_array_equal(got[0], np.maximum(data, 0).reshape(3, 4))
        np.testing.assert_array_equal(got[1], 2 * np.maximum(data, 0).reshape(3, 4))


def plan_of(feed, *fetches):
    main = fluid.default_main_program()
    return compile_for_cpu(
        Request(main, fluid.global_scope(), expanded(as_feed(main, feed)), tuple(v.name for v in fetches))
    )


@pytest.mark.parametrize("act", [None, "relu", "sigmoid", "tanh"])
def test_products_take_their_bias_and_activation_along(act):
    x = fluid.data("x", [None, 6], "float32")
    y = L.fc(x, 5, act=act, bias_attr=fluid.initializer.Constant(0.3))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {"x": np.random.RandomState(1).uniform(-1, 1, (3, 6)).astype("float32")}
    assert [op.type for op in plan_of(feed, y).ops] == ["mul"]
    scope = fluid.global_scope()
    sums = feed["x"] @ np.array(scope.find_var("fc_0.w_0").get_tensor()) + np.float32(0.3)
    expected = {"relu": np.maximum(sums, 0), "sigmoid": 1 / (1 + np.exp(-sums)), "tanh": np.tanh(sums)}
    (got,) = exe.run(feed=feed, fetch_list=[y])
    np.testing.assert_allclose(got, expected.get(act, sums), rtol=2e-6, atol=1e-6)


def test_what_is_fetched_or_read_elsewhere_is_not_fused_away():
    x = fluid.data("x", [None, 6], "float32")
    y = L.fc(x, 5, act="relu")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {"x": np.random.RandomState(1).uniform(-1, 1, (3, 6)).astype("float32")}
    block = fluid.default_main_program().global_block()
    names = ["fc_0.tmp_0", "fc_0.tmp_1", "fc_0.tmp_2"]
    for product, sums, out in (exe.run(feed=feed, fetch_list=names) for _ in range(2)):
        np.testing.assert_allclose(product, sums, atol=1e-7)  # the bias is zero
        np.testing.assert_array_equal(np.maximum(sums, 0), out)
    also = L.scale(block.var("fc_0.tmp_1"), 2.0)
    got = exe.run(feed=feed, fetch_list=[y, also])
    np.testing.assert_array_equal(np.maximum(got[1], 0), 2 * got[0])


def test_updates_of_all_parameters_are_one_instruction():
    loss, shapes = perceptron()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    types = [op.type for op in plan_of(feeds(shapes, 4, 0), loss).ops]
    assert types.count("momentum") == 1 and types[-1] == "momentum"


def test_plans_keep_neither_programs_nor_scopes_alive():
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), unique_name.guard(), fluid.scope_guard(scope):
        loss, shapes = softmax_regression()
        exe = fluid.Executor()
        exe.run(startup)
        for k in range(3):
            exe.run(main, feed=feeds(shapes, 4, k), fetch_list=[loss])
    dead_scope, parameter = weakref.ref(scope), weakref.ref(scope.find_var("fc_0.w_0").get_tensor())
    del scope
    gc.collect()
    assert dead_scope() is None and parameter() is None
    exe.run(startup)
    exe.run(main, feed=feeds(shapes, 4, 0), fetch_list=[loss])
    dead_program = weakref.ref(main)
    del main, startup, loss
    gc.collect()
    assert dead_program() is None


def test_operators_that_overwrite_what_they_read():
    """Steps do not write fed arrays, and in-place results are those of separate memory."""
    x = fluid.data("x", [2, 3], "float32")
    block = fluid.default_main_program().global_block()
    temporary = L.scale(x, 1.0)
    for _ in range(2):
        block.append_op(
            type="softmax", inputs={"X": temporary}, outputs={"Out": temporary}, attrs={"axis": 0}
        )
    block.append_op(type="scale", inputs={"X": x}, outputs={"Out": x}, attrs={"scale": 3.0})
    y = L.scale(x, 2.0)
    data = np.arange(6, dtype="float32").reshape(2, 3)
    kept = data.copy()

    def softmax(a):
        e = np.exp(a - a.max(0))
        return e / e.sum(0)

    for _ in range(3):
        got = fluid.Executor().run(feed={"x": data}, fetch_list=[temporary, y])
        np.testing.assert_allclose(got[0], softmax(softmax(kept)), rtol=1e-6)
        np.testing.assert_array_equal(got[1], 6 * kept)
        np.testing.assert_array_equal(data, kept)


def test_results_in_place_that_no_kernel_is_made_for_get_memory_of_their_own(monkeypatch):
    monkeypatch.setenv("FLUIDLITE_WITHOUT_PASSES", "chains")
    x = fluid.data("x", [4, 3], "float32")
    temporary = L.scale(x, 2.0)
    block = fluid.default_main_program().global_block()
    block.append_op(type="elementwise_sub", inputs={"X": x, "Y": temporary}, outputs={"Out": temporary})
    data = np.arange(12, dtype="float32").reshape(4, 3)
    (got,) = fluid.Executor().run(feed={"x": data}, fetch_list=[temporary])
    np.testing.assert_array_equal(got, -data)
    plan = plan_of({"x": data}, temporary)
    assert list(zip((op.type for op in plan.ops), plan.is_native, strict=True)) == [
        ("scale", True),
        ("elementwise_sub", True),
    ]


def test_what_lasts_is_made_although_a_product_could_go_on_without():
    """A variable that the user lets last, so as to look at it afterwards, between a product and its bias."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), unique_name.guard():
        x = fluid.data("x", [None, 4], "float32")
        product = L.fc(x, 3, bias_attr=False)
        product.persistable = True
        out = L.relu(L.elementwise_add(product, L.create_parameter([3], "float32"), axis=1))
    exe = fluid.Executor()
    exe.run(startup, scope=scope)
    (weight,) = (p.name for p in main.all_parameters() if p.shape == (4, 3))
    for step in range(4):
        given = np.full([2, 4], step + 1, "float32")
        exe.run(main, feed={"x": given}, fetch_list=[out], scope=scope)
        found = np.array(scope.find_var(product.name).get_tensor())
        expected = given @ np.array(scope.find_var(weight).get_tensor())
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert "instructions on the CPU for x[" in exe.describe(main, scope)
