"""Steps of other sizes than the plan was made for: whole nets that train, steps that fail, memory, threads, forks."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import layers

from ..engines import run_by

BATCHES = (4, 2, 7, 16, 3, 33, 4, 1, 5, 2)


pytestmark = pytest.mark.filterwarnings("ignore")


def images():
    x = fluid.data("x", [None, 3, 8, 8], "float32")
    label = fluid.data("label", [None, 1], "int64")
    y = layers.conv2d(x, 4, 3, padding=1, bias_attr=False)
    y = layers.batch_norm(y, act="relu")
    y = layers.pool2d(y, 2, "max", 2)
    y = layers.conv2d(y, 6, 3, groups=2, act="relu")
    y = layers.pool2d(y, pool_type="avg", global_pooling=True)
    y = layers.fc(y, 5)
    loss = layers.mean(layers.softmax_with_cross_entropy(y, label))
    return loss, layers.accuracy(layers.softmax(y), label)


def attention():
    x = fluid.data("ids", [None, None], "int64")
    label = fluid.data("label", [None, 1], "int64")
    seen = fluid.embedding(x, [20, 8])
    q, k, v = (layers.fc(seen, 8, num_flatten_dims=2, bias_attr=False) for _ in range(3))
    heads = [layers.transpose(layers.reshape(t, [0, 0, 2, 4]), [0, 2, 1, 3]) for t in (q, k, v)]
    weights = layers.softmax(layers.matmul(heads[0], heads[1], transpose_y=True, alpha=0.5))
    mixed = layers.transpose(layers.matmul(weights, heads[2]), [0, 2, 1, 3])
    mixed = layers.layer_norm(layers.reshape(mixed, [0, 0, 8]) + seen, begin_norm_axis=2)
    first, second = layers.split(mixed, 2, dim=2)
    y = layers.concat([layers.reduce_mean(first, dim=1), layers.reduce_max(second, dim=1)], axis=1)
    best, places = layers.topk(layers.fc(y, 5), 2)
    loss = layers.mean(layers.square_error_cost(layers.fc(y, 1), layers.cast(label, "float32")))
    spread = layers.expand(layers.unsqueeze(best, [1]), [1, 3, 1])
    return loss + 0.1 * layers.reduce_mean(spread), places


def sequences():
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    label = fluid.data("label", [None, 1], "int64")
    seen = layers.embedding(words, [20, 6], is_sparse=True)
    y = layers.sequence_conv(seen, 8, act="tanh")
    hidden = layers.sequence_concat([y, layers.sequence_reverse(y)])
    pooled = [layers.sequence_pool(hidden, kind) for kind in ("max", "average", "sqrt", "last")]
    weights = layers.sequence_softmax(layers.fc(hidden, 1, bias_attr=False))
    pooled.append(layers.sequence_pool(layers.elementwise_mul(hidden, weights, axis=0), "sum"))
    y = layers.fc(layers.concat(pooled, axis=1), 4, act="softmax")
    return layers.mean(layers.cross_entropy(y, label)), layers.accuracy(y, label)


def in_pieces():
    x = fluid.data("x", [None, 6], "float32")
    label = fluid.data("label", [None, 1], "int64")
    y = layers.fc(x, 8, act="tanh")
    chosen = layers.where(
        layers.greater_than(layers.reduce_sum(y, dim=1), layers.fill_constant([1], "float32", 0.0))
    )
    some = layers.gather_nd(y, chosen)  # as many rows as the data say
    more = layers.fc(some, 4, act="relu")
    total = layers.reduce_sum(more) * 0.01
    return layers.mean(layers.softmax_with_cross_entropy(layers.fc(y, 5), label)) + total, chosen


def batch(build, rng, n):
    label = rng.integers(0, 4, (n, 1)).astype("int64")
    if build is images:
        return {"x": rng.normal(size=(n, 3, 8, 8)).astype("float32"), "label": label}
    if build is attention:
        return {"ids": rng.integers(0, 20, (n, n % 5 + 2)).astype("int64"), "label": label}
    if build is in_pieces:
        return {"x": rng.normal(size=(n, 6)).astype("float32"), "label": label}
    lengths = rng.integers(1, 9, n).tolist()
    words = rng.integers(0, 20, (sum(lengths), 1)).astype("int64")
    return {"words": fluid.create_lod_tensor(words, [lengths], fluid.CPUPlace()), "label": label}


def program(build):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        found = build()
        fluid.optimizer.Adam(0.01).minimize(found[0])
    return main, startup, found


def trained(build, engine, batches):
    with run_by(engine):
        main, startup, fetches = program(build)
        scope, exe, rng = fluid.Scope(), fluid.Executor(fluid.CPUPlace()), np.random.default_rng(3)
        with fluid.scope_guard(scope):
            exe.run(startup)
            made = [exe.run(main, feed=batch(build, rng, n), fetch_list=list(fetches)) for n in batches]
            kept = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()}
            return made, kept, exe.describe(main, scope)


@pytest.mark.parametrize("build", [images, attention, sequences, in_pieces])
def test_nets_train_on_batches_of_all_sizes(build):
    want, want_kept, _ = trained(build, "interpret", BATCHES)
    got, got_kept, told = trained(build, "plan", BATCHES)
    for n, one, other in zip(BATCHES, want, got, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(b, a, rtol=2e-3, atol=2e-5, err_msg=f"batch of {n}")
    for name, value in want_kept.items():
        np.testing.assert_allclose(got_kept[name], value, rtol=5e-3, atol=2e-4, err_msg=name)
    if build is not in_pieces:
        assert told.count("instructions on the CPU") <= 2, told  # one of them for the batch of 1


@pytest.fixture
def net():
    """A program of two fed matrices, its scope with parameters, and an executor."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    startup.random_seed = 5
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        x, ids = fluid.data("x", [None, 6], "float32"), fluid.data("ids", [None], "int64")
        y = layers.relu(layers.fc(x, 8)) + fluid.embedding(ids, [10, 8])
        main.fetches = [
            layers.reshape(y, [-1, 2]),
            layers.reshape(x, [-1]),
            layers.relu(layers.scale(y, -1.0)),
        ]
        exe.run(startup)
        w, b, table = (np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters())

    def run(n, wrong=False):
        rng = np.random.default_rng(n)
        given = rng.normal(size=(n, 6)).astype("float32")
        at = rng.integers(0, 10, n)
        feed = {"x": given, "ids": at + 10 if wrong else at}
        got = exe.run(main, feed=feed, fetch_list=main.fetches, scope=scope)
        want = np.maximum(given @ w + b, 0) + table[at]
        np.testing.assert_allclose(got[0], want.reshape(-1, 2), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(got[1], given.reshape(-1))
        np.testing.assert_allclose(got[2], np.maximum(-want, 0), rtol=1e-4, atol=1e-5)

    run.plans = lambda: [plan for cache in main._plans[scope].values() for plan in cache.plans]
    return run


def test_a_thousand_sizes_in_a_row_are_one_plan(net):
    for n in np.random.default_rng(1).permutation(np.arange(2, 1002)).tolist():
        net(n)
    assert len(net.plans()) == 1


def test_sizes_of_0_and_1_have_plans_of_their_own(net):
    for n in (0, 1, 5, 0, 3, 1, 2, 0, 1, 7):
        net(n)
    assert len(net.plans()) == 3


def test_a_step_that_fails_at_one_size_leaves_nothing_behind(net):
    for n in (4, 9, 2, 1, 4):
        net(n)
        with pytest.raises(ValueError, match="lookup_table"):
            net(n + 1, wrong=True)
        with pytest.raises(ValueError, match="lookup_table"):
            net(n, wrong=True)
        net(n + 1)


def test_memory_goes_up_with_the_batch_and_down_again(net):
    net(3)
    (plan,) = net.plans()
    small = plan.engine.arena_bytes
    net(30_000)
    large = plan.engine.arena_bytes
    assert large > 1000 * small
    for _ in range(600):
        net(5)
    assert net.plans() == [plan] and plan.engine.arena_bytes < large // 100
    net(30_000)


def test_threads_share_a_plan_while_sizes_change(net):
    net(4)
    failures = []

    def work(seed):
        try:
            for n in np.random.default_rng(seed).integers(0, 60, 60).tolist():
                net(n)
        except BaseException as failure:
            failures.append(failure)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    # Sizes 0 and 1 have plans of their own; threads that need one at the same time may each make it.
    assert failures == [] and 3 <= len(net.plans()) <= 2 + 2 * 4


def test_a_fork_goes_on_at_other_sizes(net):
    for n in (4, 11, 300):
        net(n)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for n in (2, 500, 11, 1, 0):
                net(n)
            code = 0
        finally:
            os._exit(code)
    for n in (7, 600):
        net(n)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("times", [1 << 18, 1 << 30])
def test_sizes_that_need_more_memory_than_there_is_are_refused(times):
    main, exe, scope = fluid.Program(), fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 1], "float32"), fluid.data("y", [1, None], "float32")
        total = x + y
        wide = layers.reduce_sum(layers.expand(total, [1, times]), dim=1)

    def run(n, m):
        rng = np.random.default_rng(n)
        feed = {
            "x": rng.normal(size=(n, 1)).astype("float32"),
            "y": rng.normal(size=(1, m)).astype("float32"),
        }
        got = exe.run(main, feed=feed, fetch_list=[total] if m < 100 else [total, wide], scope=scope)
        np.testing.assert_array_equal(got[0], feed["x"] + feed["y"])

    run(3, 4)
    for _ in range(2):
        with pytest.raises(MemoryError, match="memory"):
            run(1 << 13, 1 << 15)
        run(5, 4)


def test_a_plan_goes_on_after_sizes_that_found_no_memory():
    main, exe, scope = fluid.Program(), fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 1, 1], "float32"), fluid.data("y", [1, None, 1], "float32")
        z = fluid.data("z", [1, 1, None], "float32")
        total = layers.relu((x + y) + z)

    def run(n, m, k):
        rng = np.random.default_rng(n)
        shapes = {"x": (n, 1, 1), "y": (1, m, 1), "z": (1, 1, k)}
        feed = {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}
        got = exe.run(main, feed=feed, fetch_list=[total], scope=scope)
        np.testing.assert_array_equal(got[0], np.maximum(feed["x"] + feed["y"] + feed["z"], 0))

    for n in (3, 5):
        run(n, 4, 6)
        for huge in ((1 << 17,) * 3, (1 << 21,) * 3):  # 2^53 bytes, and more than can be counted
            with pytest.raises(MemoryError, match="memory"):
                run(*huge)
            run(n + 1, n, n)
    with pytest.raises(MemoryError, match="memory"):
        exe.run(main, feed={name: np.ones(shape, "float32") for name, shape in
                            {"x": (1 << 18, 1, 1), "y": (1, 1 << 18, 1), "z": (1, 1, 1 << 18)}.items()},
                fetch_list=[total], scope=fluid.Scope())  # fmt: skip
