"""CompiledProgram.with_data_parallel and ParallelExecutor over CPU places."""

import threading
import time

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite._ext import threads
from fluidlite.base import unique_name

from ...refusals import refuses

L = fluid.layers


def batch(rows, seed=0):
    rng = np.random.RandomState(seed)
    return {
        "x": rng.uniform(-1, 1, (rows, 4)).astype("float32"),
        "y": rng.uniform(-1, 1, (rows, 1)).astype("float32"),
    }


def network(optimizer=None):
    x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 1], "float32")
    pred = L.fc(L.fc(x, 3, act="tanh"), 1)
    loss = L.reduce_mean(L.square_error_cost(pred, y))
    if optimizer is not None:
        optimizer.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe, pred, loss


def parameter(name="fc_0.w_0"):
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def compiled(loss, count=2, **options):
    program = fluid.CompiledProgram(fluid.default_main_program())
    return program.with_data_parallel(loss_name=loss.name, places=fluid.cpu_places(count), **options)


@pytest.mark.parametrize("count", [2, 3])
def test_equal_shares_train_like_one_big_batch(count):
    results = []
    for parallel in (False, True):
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 5
        with fluid.program_guard(main, startup), unique_name.guard(), fluid.scope_guard(fluid.Scope()):
            exe, _, loss = network(fluid.optimizer.Momentum(0.1, 0.9))
            program = compiled(loss, count) if parallel else main
            losses = [exe.run(program, feed=batch(12, k), fetch_list=[loss])[0] for k in range(4)]
            results.append(([part.mean() for part in losses], parameter()))
            assert losses[0].shape == ((count,) if parallel else (1,))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-5)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-5, atol=1e-7)


def test_fetched_values_are_concatenated_or_kept_by_place():
    exe, pred, loss = network(fluid.optimizer.SGD(0.1))
    program = compiled(loss)
    got = exe.run(program, feed=batch(5), fetch_list=[loss, pred])
    assert [v.shape for v in got] == [(2,), (5, 1)]
    got = exe.run(program, feed=[batch(3), batch(2)], fetch_list=[loss, pred, "fc_0.w_0"])
    assert [v.shape for v in got] == [(2,), (5, 1), (8, 3)]
    got = exe.run(program, feed=batch(8), fetch_list=[loss, pred], return_merged=False)
    assert [[part.shape for part in v] for v in got] == [[(1,), (1,)], [(4, 1), (4, 1)]]
    (tensor,) = exe.run(program, feed=batch(8), fetch_list=[pred], return_numpy=False)
    assert isinstance(tensor, fluid.LoDTensor) and tensor.shape() == [8, 1]
    assert exe.run(program, feed=batch(8)) == []


@pytest.mark.parametrize("sizes", [(3, 5), (1, 9), (5, 3), (2, 4, 3)])
@pytest.mark.parametrize("act", ["tanh", "relu", "softmax"])
def test_places_may_get_different_batch_sizes(sizes, act):
    x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 1], "float32")
    loss = L.reduce_mean(L.smooth_l1(L.fc(L.fc(x, 3, act=act), 1), y))
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    names = ("fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0")
    start = [parameter(name) for name in names]
    feeds = [batch(size, seed=size) for size in sizes]
    losses, alone = [], []
    for feed in feeds:
        for name, value in zip(names, start, strict=True):
            fluid.global_scope().find_var(name).get_tensor().set(value, fluid.CPUPlace())
        losses += exe.run(fluid.default_main_program(), feed=feed, fetch_list=[loss])
        alone.append([parameter(name) for name in names])
    for name, value in zip(names, start, strict=True):
        fluid.global_scope().find_var(name).get_tensor().set(value, fluid.CPUPlace())
    got = exe.run(compiled(loss, len(sizes)), feed=feeds, fetch_list=[loss])[0]
    np.testing.assert_allclose(got, np.concatenate(losses), rtol=1e-5)
    for name, *each in zip(names, *alone, strict=True):
        np.testing.assert_allclose(parameter(name), np.mean(each, axis=0), rtol=1e-5, atol=1e-7)


def test_gradients_may_be_summed_instead():
    strategy = fluid.BuildStrategy()
    strategy.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.One
    exe, _, loss = network(fluid.optimizer.SGD(0.1))
    start = parameter()
    exe.run(compiled(loss), feed=batch(8), fetch_list=[loss])
    mean_step = parameter() - start
    fluid.global_scope().find_var("fc_0.w_0").get_tensor().set(start, fluid.CPUPlace())
    fluid.global_scope().find_var("fc_1.w_0").get_tensor().set(parameter("fc_1.w_0"), fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    exe.run(compiled(loss, build_strategy=strategy), feed=batch(8), fetch_list=[loss])
    np.testing.assert_allclose(parameter() - start, 2 * mean_step, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("places", [1, 2])
def test_the_gradient_of_the_loss_may_be_fed(places):
    """The updates are those of Paddle 1.8.5."""
    x = fluid.data("x", [None, 2], "float32")
    loss = L.mean(L.fc(x, 1, param_attr=fluid.initializer.Constant(1.0), bias_attr=False))
    fluid.optimizer.SGD(1.0).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    strategy = fluid.BuildStrategy()
    strategy.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.Customized
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss.name, strategy, places=fluid.cpu_places(places)
    )
    gradient = loss.name + "@GRAD"
    rows = {"x": np.arange(8, dtype="float32").reshape(4, 2)}
    fed = np.array([0.1, 0.3], "float32")[:places]
    refuses(lambda: exe.run(program, feed=rows), fluid.core.EnforceNotMet, gradient)
    (got,) = exe.run(program, feed={**rows, gradient: fed}, fetch_list=[gradient])
    np.testing.assert_array_equal(got, fed)
    want = [[0.7], [0.6]] if places == 1 else [[-0.6], [-1.0]]
    np.testing.assert_allclose(parameter(), want, rtol=1e-5)


def test_moving_averages_follow_the_first_place():
    x = fluid.data("x", [None, 3], "float32")
    y = L.batch_norm(x, momentum=0.5)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        places=fluid.cpu_places(2)
    )
    feeds = [{"x": np.full((2, 3), value, "float32")} for value in (4.0, 8.0)]
    for _ in range(2):
        exe.run(program, feed=feeds, fetch_list=[y])
    np.testing.assert_allclose(parameter("batch_norm_0.w_1"), np.full(3, 3.0), rtol=1e-6)


def test_defaults_of_strategies_are_those_of_fluid():
    built, run = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    assert built.fuse_broadcast_ops is True and built.memory_optimize is None and built.enable_inplace is True
    assert run.use_cuda is True and run.use_experimental_executor is True and run.allow_op_delay is False


def test_strategies_are_printed_by_name():
    strategy = fluid.BuildStrategy()
    assert str(strategy.reduce_strategy) == "ReduceStrategy.AllReduce"
    assert str(strategy.GradientScaleStrategy.One) == "GradientScaleStrategy.One"


@pytest.mark.parametrize("trained", [True, False])
def test_with_reduce_places_share_variables_of_the_forward_pass(trained):
    """In real Paddle 1.8.5 the order of the places is random; the count is that of all places there as well."""
    x, label = fluid.data("x", [None, 2]), fluid.data("label", [None, 1], "int64")
    normal = L.batch_norm(L.scale(L.fc(x, 2), 1.0), moving_mean_name="mean", momentum=0.5)
    chances = L.fc(normal, 2, act="softmax")
    auc, _, [*_, positive, negative] = L.auc(chances, label, slide_steps=0)
    count = L.create_global_var([1], 0, "float32", persistable=True, name="count")
    L.increment(count)
    loss = L.mean(L.cross_entropy(chances, label))
    hidden = fluid.default_main_program().global_block().ops[2].input("X")[0]
    if trained:
        fluid.optimizer.SGD(0.0).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    strategy = fluid.BuildStrategy()
    strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    program = compiled(loss, build_strategy=strategy)
    rng = np.random.RandomState(0)
    mean, labels = np.zeros(2), []
    for step in range(3):
        labels.append(rng.randint(0, 2, (8, 1)))
        feed = {"x": rng.normal(size=(8, 2)).astype("float32"), "label": labels[-1]}
        counts, rows, areas = exe.run(program, feed=feed, fetch_list=[count, hidden, auc])
        assert counts.tolist() == [2 * step + 1, 2 * step + 2] and areas.shape == (2,)
        for part in (rows[:4], rows[4:]):
            mean = 0.5 * mean + 0.5 * part.mean(axis=0)
        np.testing.assert_allclose(parameter("mean"), mean, rtol=1e-5, atol=1e-6)
    assert parameter(positive.name).sum() == np.sum(labels)
    assert parameter(negative.name).sum() == 24 - np.sum(labels)


def test_a_test_program_shares_parameters_and_needs_them_to_exist():
    exe, _, loss = network()
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe.run(fluid.default_startup_program())
    train = compiled(loss)
    evaluate = fluid.CompiledProgram(test).with_data_parallel(
        share_vars_from=train, places=fluid.cpu_places(2)
    )
    with pytest.raises(ValueError, match="not compiled and executed"):
        exe.run(evaluate, feed=batch(4), fetch_list=[loss])
    exe.run(train, feed=batch(4), fetch_list=[loss])
    with fluid.scope_guard(fluid.Scope()):
        assert exe.run(evaluate, feed=batch(4), fetch_list=[loss])[0].shape == (2,)


def test_a_single_place_runs_like_an_executor():
    exe, pred, loss = network(fluid.optimizer.SGD(0.1))
    program = compiled(loss, 1)
    for feed in (batch(4), [batch(4)]):
        assert [v.shape for v in exe.run(program, feed=feed, fetch_list=[loss, pred])] == [(1,), (4, 1)]
    refuses(lambda: exe.run(program, feed=[batch(4), batch(4)], fetch_list=[loss]), IndexError, "2 devices")


def test_uneven_batches_are_divided_as_fluid_does():
    x = fluid.data("x", [None, 1], "float32")
    words = fluid.data("words", [None, 1], "float32", lod_level=1)
    count = L.reduce_sum(L.ones_like(x)) + 0 * L.reduce_sum(L.sequence_pool(words, "sum"))
    exe = fluid.Executor()
    for places, rows, want in ((3, 7, [3, 3, 1]), (3, 4, [2, 2]), (4, 13, [4, 4, 4, 1]), (2, 1, [1])):
        program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
            places=fluid.cpu_places(places)
        )
        feed = {
            "x": np.ones((rows, 1), "float32"),
            "words": fluid.create_lod_tensor(
                np.ones((2 * rows, 1), "float32"), [[2] * rows], fluid.CPUPlace()
            ),
        }
        assert exe.run(program, feed=feed, fetch_list=[count])[0].tolist() == want
        feed["x"] = np.ones((8 * rows, 1), "float32")
        if len(want) < places:
            with pytest.raises(fluid.core.EnforceNotMet, match="different numbers of devices"):
                exe.run(program, feed=feed, fetch_list=[count])


def test_training_uses_every_place():
    exe, _, loss = network(fluid.optimizer.SGD(0.1))
    assert exe.run(compiled(loss, 3), feed=batch(4), fetch_list=[loss])[0].shape == (3,)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("average", [True, False])
def test_results_do_not_depend_on_the_number_of_kernel_threads(count, average):
    strategy = fluid.BuildStrategy()
    if not average:
        strategy.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.One
    results = []
    before = threads.count()
    for kernel_threads in (1, 8):
        threads.use(kernel_threads)
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 7
        with fluid.program_guard(main, startup), unique_name.guard(), fluid.scope_guard(fluid.Scope()):
            x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
            hidden = L.dropout(L.batch_norm(L.fc(x, 8, act="tanh"), momentum=0.5), 0.25)
            loss = L.mean(L.square_error_cost(L.fc(hidden, 1), y))
            rate = L.exponential_decay(0.05, 2, 0.5)
            fluid.optimizer.Adam(rate).minimize(loss)
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(startup)
            program = compiled(loss, count, build_strategy=strategy)
            fetched = [loss, hidden, "fc_0.w_0@GRAD", "fc_0.tmp_0@GRAD", "batch_norm_0.w_1", rate, "fc_0.w_0"]
            rng = np.random.RandomState(0)
            steps = []
            for _ in range(8):
                rows = rng.normal(size=(4 * count + 1, 3)).astype("float32")
                steps.append(exe.run(program, feed={"x": rows, "y": rows[:, :1]}, fetch_list=fetched))
            results.append((steps, [parameter(v.name) for v in main.list_vars() if v.persistable]))
    threads.use(before)
    (steps, last), (other_steps, other_last) = results
    for arrays, others in zip([*steps, last], [*other_steps, other_last], strict=True):
        for array, other in zip(arrays, others, strict=True):
            np.testing.assert_array_equal(other, array)


def test_error_messages():
    exe, _, loss = network(fluid.optimizer.SGD(0.1))
    program = compiled(loss)
    with pytest.raises(fluid.core.EnforceNotMet, match="1 rows for 2 devices.*CPU_NUM"):
        exe.run(program, feed=batch(1), fetch_list=[loss])
    with pytest.raises(fluid.core.EnforceNotMet, match="number 1 does not match the device number 2"):
        exe.run(program, feed=[batch(3)], fetch_list=[loss])
    refuses(lambda: exe.run(program, feed=batch(4), fetch_list=["zzz"]), fluid.core.EnforceNotMet, "'zzz'")
    refuses(lambda: exe.run(program, fetch_list=[loss]), fluid.core.EnforceNotMet, "not fed")
    refuses(lambda: program.with_data_parallel(loss_name=loss.name), AssertionError, "cannot be recompiled")
    with pytest.raises(AssertionError, match="loss name"):
        fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(places=fluid.cpu_places(2))
    refuses(lambda: fluid.CompiledProgram(3), TypeError, "expected Graph or Program")
    with pytest.raises(AttributeError, match="no option 'fuse_everything'"):
        fluid.BuildStrategy().fuse_everything = True


def test_an_error_at_one_place_leaves_the_parameters_unchanged():
    x, label = fluid.data("x", [None, 4], "float32"), fluid.data("label", [None, 1], "int64")
    loss = L.mean(L.softmax_with_cross_entropy(L.fc(x, 3), label))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    before = parameter()
    feeds = [{"x": np.ones((1, 4), "float32"), "label": np.array([[k]])} for k in (1, 9)]
    with pytest.raises(fluid.core.EnforceNotMet, match="got 9 at position 0"):
        exe.run(compiled(loss), feed=feeds, fetch_list=[loss])
    np.testing.assert_array_equal(parameter(), before)


def test_a_step_with_an_error_at_one_place_ends_after_the_other_places():
    failed, ended = threading.Event(), threading.Event()

    def work(x):
        if not np.array(x).any():
            failed.set()
            raise KeyError("the first place")
        failed.wait()
        time.sleep(0.05)
        ended.set()
        return np.array(x)

    x = fluid.data("x", [None, 1])
    out = fluid.default_main_program().global_block().create_var(name="out", dtype="float32", shape=[-1, 1])
    L.py_func(work, x, out)
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        places=fluid.cpu_places(2)
    )
    with pytest.raises(Exception, match="the first place"):
        fluid.Executor().run(program, feed={"x": np.array([[0], [1]], "float32")}, fetch_list=[out])
    assert ended.is_set()


def test_parallel_executor_counts_cpu_num(monkeypatch):
    monkeypatch.setenv("CPU_NUM", "3")
    _, _, loss = network(fluid.optimizer.SGD(0.1))
    parallel = fluid.ParallelExecutor(
        use_cuda=False, loss_name=loss.name, main_program=fluid.default_main_program()
    )
    assert parallel.device_count == 3
    assert parallel.run(fetch_list=[loss.name], feed=batch(6))[0].shape == (3,)
    monkeypatch.setenv("CPU_NUM", "many")
    refuses(fluid.cpu_places, ValueError, "CPU_NUM must be a positive integer, got 'many'")


def test_without_training_a_short_list_of_feeds_runs_on_the_first_places():
    exe, pred, loss = network()
    program = compiled(loss, 3)
    (got,) = exe.run(program, feed=[batch(3), batch(2, 1)], fetch_list=[pred])
    alone = [exe.run(feed=part, fetch_list=[pred])[0] for part in (batch(3), batch(2, 1))]
    np.testing.assert_array_equal(got, np.concatenate(alone))
    with pytest.raises(IndexError, match="4 devices.*3 places"):
        exe.run(program, feed=[batch(1)] * 4, fetch_list=[pred])
    refuses(lambda: exe.run(program, feed=[batch(1), 3], fetch_list=[pred]), TypeError, "should be a dict")


def test_a_fed_learning_rate_goes_to_all_places():
    exe, pred, loss = network()
    rate = L.create_global_var([1], 0.0, "float32", persistable=True, name="rate")
    scaled = pred * rate
    fluid.optimizer.SGD(rate).minimize(loss)
    exe.run(fluid.default_startup_program())
    program, before = compiled(loss, 3), parameter()
    alone = exe.run(feed={**batch(6), "rate": np.zeros(1, "float32")}, fetch_list=[pred])[0]
    fed = {"rate": np.array([0.5], "float32")}
    got = exe.run(program, feed={**batch(6), **fed}, fetch_list=[scaled, rate])
    np.testing.assert_allclose(got[0], alone * 0.5, rtol=1e-6)
    assert not np.array_equal(parameter(), before), "the rate reached the update"
    got += exe.run(program, feed=[{**batch(2, i), **fed} for i in range(3)], fetch_list=[rate])
    assert [value.tolist() for value in got[1:]] == [[0.5] * 3] * 2


def test_the_feed_of_each_place_is_checked_before_any_place_runs():
    x = fluid.data("x", [2, 3], "float32")
    total = L.create_global_var([1], 0.0, "float32", persistable=True)
    L.increment(total)
    loss = L.reduce_mean(x)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    program = compiled(loss)
    assert exe.run(program, feed={"x": np.ones((4, 3), "float32")}, fetch_list=[loss])[0].shape == (2,)
    for rows, got in ((5, 3), (3, 1)):
        with pytest.raises(ValueError, match=rf"'x'.*\[2, 3\].*\[{got}, 3\]"):
            exe.run(program, feed={"x": np.ones((rows, 3), "float32")}, fetch_list=[loss])
    assert parameter(total.name) == 1


def test_placeholders_of_layers_data_take_any_width_and_type_on_all_places():
    x = L.data("x", [2], dtype="float32")
    y = L.scale(x, 2.0)
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        places=fluid.cpu_places(2)
    )
    exe = fluid.Executor(fluid.CPUPlace())
    for value in (np.ones((4, 5), "float32"), np.ones(4), np.ones((3, 2, 2), "int64")):
        (got,) = exe.run(program, feed={"x": value}, fetch_list=[y])
        assert (got.shape, got.dtype, got.max()) == (value.shape, value.dtype, 2)


def sequences(lengths, first=0.0):
    rows = np.arange(first, first + sum(lengths[-1]), dtype="float32").reshape(-1, 1)
    return fluid.create_lod_tensor(rows, lengths, fluid.CPUPlace())


def summed(levels=1):
    """A trained network over sequences: the words times two, their sums, the loss."""
    words = fluid.data("words", [None, 1], "float32", lod_level=levels)
    words.stop_gradient = False
    label = fluid.data("label", [None, 1], "float32")
    twice, sums = L.scale(words, 2.0), L.sequence_pool(words, "sum")
    start = fluid.initializer.Constant(1.0)
    made = L.fc(sums, 1, param_attr=fluid.ParamAttr("w", initializer=start), bias_attr=False)
    loss = L.reduce_mean(made) + 0 * L.reduce_mean(label)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe, twice, sums, loss


def shown(tensor):
    return np.array(tensor).ravel().tolist(), tensor.lod()


# The sums of the places' sequences, losses and weights are those of real Paddle 1.8.5 with CPU_NUM=2.
@pytest.mark.parametrize(
    ("lengths", "sums", "losses", "weight"),
    [
        ([2, 1, 3], [1, 2, 12], [1.5, 12], 0.325),
        ([2, 1, 3, 1], [1, 2, 12, 6], [1.5, 9], 0.475),
        ([2, 0, 3], [1, 0, 9], [0.5, 9], 0.525),
        ([1, 1, 1, 1, 1], [0, 1, 2, 3, 4], [1, 3.5], 0.775),
    ],
)
def test_sequences_are_scattered_and_gathered(lengths, sums, losses, weight):
    exe, twice, pooled, loss = summed()
    feed = {"words": sequences([lengths]), "label": np.zeros((len(lengths), 1), "float32")}
    got = exe.run(compiled(loss), feed=feed, fetch_list=[twice, pooled, loss], return_numpy=False)
    rows = sum(lengths)
    assert shown(got[0]) == ([2.0 * k for k in range(rows)], [[0, *np.cumsum(lengths).tolist()]])
    assert shown(got[1]) == (sums, []) and shown(got[2]) == (losses, [])
    np.testing.assert_allclose(parameter("w"), [[weight]], rtol=1e-6)


def test_a_list_of_feeds_with_sequences():
    exe, twice, pooled, loss = summed()
    one = np.zeros((1, 1), "float32")
    feed = [{"words": sequences([[2, 1]]), "label": one}, {"words": sequences([[1, 1, 1]], 10), "label": one}]
    fetches = [twice, pooled, loss]
    got = exe.run(compiled(loss), feed=feed, fetch_list=fetches, return_numpy=False)
    assert shown(got[0]) == ([0, 2, 4, 20, 22, 24], [[0, 2, 3, 4, 5, 6]])
    assert shown(got[1]) == ([1, 2, 10, 11, 12], []) and shown(got[2]) == ([1.5, 11], [])
    np.testing.assert_allclose(parameter("w"), [[0.375]], rtol=1e-6)
    got = exe.run(compiled(loss), feed=feed, fetch_list=fetches, return_numpy=False, return_merged=False)
    assert [part.lod() for part in got[0]] == [[[0, 2, 3]], [[0, 1, 2, 3]]]


def test_two_levels_are_scattered_by_the_outer_one():
    exe, twice, pooled, loss = summed(2)
    feed = {"words": sequences([[2, 1, 0, 1], [1, 2, 3, 1]]), "label": np.zeros((4, 1), "float32")}
    got = exe.run(compiled(loss), feed=feed, fetch_list=[twice, pooled], return_numpy=False)
    assert shown(got[0]) == ([0, 2, 4, 6, 8, 10, 12], [[0, 2, 3, 3, 4], [0, 1, 3, 6, 7]])
    assert shown(got[1]) == ([0, 3, 12, 6], [[0, 2, 3, 3, 4]])
    np.testing.assert_allclose(parameter("w"), [[0.45]], rtol=1e-6)


def test_sequences_are_not_returned_as_arrays():
    exe, twice, pooled, loss = summed()
    feed = {"words": sequences([[2, 1, 3]]), "label": np.zeros((3, 1), "float32")}
    for merged in (True, False):
        with pytest.raises(RuntimeError, match="LoD information"):
            exe.run(compiled(loss), feed=feed, fetch_list=[twice], return_merged=merged)
    (got,) = exe.run(compiled(loss), feed=feed, fetch_list=[pooled])
    assert got.ravel().tolist() == [1, 2, 12]


def test_empty_sequences_and_too_few():
    exe, twice, pooled, loss = summed()
    feed = {"words": sequences([[0, 0, 3, 3]]), "label": np.zeros((4, 1), "float32")}
    got = exe.run(compiled(loss), feed=feed, fetch_list=[twice, pooled], return_numpy=False)
    assert got[0].lod() == [[0, 0, 0, 3, 6]] and shown(got[1]) == ([0, 0, 3, 12], [])
    feed = {"words": sequences([[4]]), "label": np.zeros((4, 1), "float32")}
    with pytest.raises(fluid.core.EnforceNotMet, match="'words' was fed with 1 sequences for 2 devices"):
        exe.run(compiled(loss), feed=feed, fetch_list=[loss])


def test_values_with_and_without_sequences_cannot_be_concatenated():
    words = fluid.data("words", [None, 1], "float32", lod_level=1)
    twice = L.scale(words, 2.0)
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        places=fluid.cpu_places(2)
    )
    feed = [{"words": sequences([[2, 1]])}, {"words": np.ones((2, 1), "float32")}]
    with pytest.raises(fluid.core.EnforceNotMet, match=r"has \[1, 0\] levels of sequences"):
        fluid.Executor().run(program, feed=feed, fetch_list=[twice], return_numpy=False)
    got = fluid.Executor().run(
        program, feed=feed, fetch_list=[twice], return_numpy=False, return_merged=False
    )
    assert [part.lod() for part in got[0]] == [[[0, 2, 3]], []]


def test_fetched_gradients_are_scaled_by_the_number_of_places():
    exe, _, _, loss = summed()
    feed = {"words": sequences([[2, 1, 3, 1]]), "label": np.zeros((4, 1), "float32")}
    got = exe.run(compiled(loss), feed=feed, fetch_list=["words@GRAD", "w@GRAD"], return_numpy=False)
    assert shown(got[0]) == ([0.25] * 7, [[0, 2, 3, 6, 7]]) and shown(got[1])[0] == [5.25, 5.25]
    strategy = fluid.BuildStrategy()
    strategy.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.One
    program = compiled(loss, build_strategy=strategy)
    weight = parameter("w").item()
    (got,) = exe.run(program, feed=feed, fetch_list=["words@GRAD"], return_numpy=False)
    np.testing.assert_allclose(np.array(got), np.full((7, 1), 0.5 * weight), rtol=1e-6)
