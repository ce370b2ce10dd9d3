"""Updates that take several batches: multi_batch_merge_pass among the passes of a BuildStrategy."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite.base import unique_name
from fluidlite.core import EOFException

L = fluid.layers


def merging(count):
    strategy = fluid.BuildStrategy()
    passes = strategy._finalize_strategy_and_create_passes()
    merge = passes.insert_pass(len(passes.all_passes()) - 2, "multi_batch_merge_pass")
    if count is not None:
        merge.set("num_repeats", count)
    return strategy


def compiled(loss, count, places=1):
    program = fluid.CompiledProgram(fluid.default_main_program())
    return program.with_data_parallel(
        loss_name=loss.name, build_strategy=merging(count), places=fluid.cpu_places(places)
    )


def parameters():
    scope = fluid.global_scope()
    found = fluid.default_main_program().all_parameters()
    return [np.array(scope.find_var(parameter.name).get_tensor()) for parameter in found]


def dense(x, words):
    return L.fc(L.fc(x, 5, act="tanh"), 1)


def sparse(x, words):
    return L.fc(L.reshape(fluid.embedding(words, [20, 4], is_sparse=True), [0, 8]), 1)


def looping(x, words):
    i, n = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 3)
    weight = L.create_parameter([4, 4], "float32")

    def body(i, h):
        return [L.increment(i), L.tanh(L.matmul(h, weight))]

    return L.fc(L.while_loop(lambda i, h: i < n, body, [i, x])[1], 1)


def train(network, batches, run):
    """The parameters after training on batches of a reader, a step for each `run` of the program until it ends."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
        words = fluid.data("words", [None, 2], "int64")
        loader = fluid.io.DataLoader.from_generator([x, y, words], capacity=4, iterable=False)
        loss = L.mean(L.square_error_cost(network(x, words), y))
        rate = L.exponential_decay(0.1, 1, 0.5, staircase=True)
        fluid.optimizer.Momentum(
            rate,
            0.9,
            regularization=fluid.regularizer.L2Decay(0.01),
            grad_clip=fluid.clip.GradientClipByGlobalNorm(0.5),
        ).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        loader.set_batch_generator(lambda: iter(batches), fluid.CPUPlace())
        loader.start()
        program, losses = run(loss), []
        with pytest.raises(EOFException):
            while True:
                losses.append(exe.run(program, fetch_list=[loss])[0].item())
        loader.reset()
        return losses, parameters()


def batches(count, rows=6):
    rng = np.random.RandomState(3)
    return [
        (
            rng.rand(rows, 4).astype("float32"),
            rng.rand(rows, 1).astype("float32"),
            rng.randint(0, 20, (rows, 2)).astype("int64"),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("engine", ["plan", "interpret"])
@pytest.mark.parametrize("network", [dense, sparse, looping])
def test_merged_batches_train_like_one_large_batch(network, engine, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_ENGINE", engine)
    small = batches(9)
    joined = [
        tuple(np.concatenate(parts) for parts in zip(*small[k : k + 3], strict=True)) for k in (0, 3, 6)
    ]
    merged_losses, merged = train(network, small, lambda loss: compiled(loss, 3))
    losses, expected = train(network, joined, lambda loss: fluid.default_main_program())
    assert len(merged_losses) == len(losses) == 3
    for ours, theirs in zip(merged, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)


def test_batches_may_have_different_sizes():
    small = [batches(1, rows)[0] for rows in (2, 7, 3, 9, 1, 4)]
    losses, merged = train(dense, small, lambda loss: compiled(loss, 3))
    expected = []
    for order in ([0, 1, 2, 3, 4, 5], [1, 2, 0, 5, 3, 4]):
        expected.append(train(dense, [small[k] for k in order], lambda loss: compiled(loss, 3))[1])
    assert len(losses) == 2
    for ours, *others in zip(merged, *expected, strict=True):
        for other in others:
            np.testing.assert_allclose(ours, other, rtol=2e-5, atol=1e-6)


def test_an_incomplete_group_at_the_end_makes_no_step():
    few, _ = train(dense, batches(7), lambda loss: compiled(loss, 3))
    all_of_them, _ = train(dense, batches(7), lambda loss: compiled(loss, 1))
    assert (len(few), len(all_of_them)) == (2, 7)


def fed_program(repeats):
    """A program with batch_norm; variables of its state for each time, if `repeats`, as public scripts make them."""
    main, startup = (
        fluid.default_main_program().global_block(),
        fluid.default_startup_program().global_block(),
    )
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    hidden = L.batch_norm(x, moving_mean_name="mean", moving_variance_name="variance", momentum=0.5)
    loss = L.mean(L.square_error_cost(L.fc(hidden, 1), y))
    fluid.optimizer.SGD(0.1).minimize(loss)
    for time in range(repeats):
        for name, value in (("mean", 0.0), ("variance", 1.0)):
            var = startup.create_var(
                name=f"{name}.repeat.{time}", shape=[4], dtype="float32", persistable=True
            )
            main._clone_variable(var)
            startup.append_op(
                type="fill_constant",
                inputs={},
                outputs={"Out": var},
                attrs={"shape": [4], "dtype": var.dtype, "value": value},
            )
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe, loss


def value(name):
    return np.array(fluid.global_scope().find_var(name).get_tensor())


@pytest.mark.parametrize("own", [True, False])
def test_each_repeat_has_its_own_running_mean_if_declared(own):
    exe, loss = fed_program(3 if own else 0)
    x, y, _ = batches(1)[0]
    exe.run(compiled(loss, 3), feed={"x": x, "y": y}, fetch_list=[loss])
    mean = x.mean(axis=0)
    if own:
        for time in range(3):
            np.testing.assert_allclose(value(f"mean.repeat.{time}"), mean / 2, rtol=1e-5)
        assert not value("mean").any()
    else:
        np.testing.assert_allclose(value("mean"), mean * 7 / 8, rtol=1e-5)


def test_several_places_merge_their_batches():
    results = []
    for places, count in ((1, 1), (2, 3)):
        with (
            fluid.program_guard(fluid.Program(), fluid.Program()),
            unique_name.guard(),
            fluid.scope_guard(fluid.Scope()),
        ):
            fluid.default_startup_program().random_seed = 5
            x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
            loss = L.mean(L.square_error_cost(dense(x, None), y))
            fluid.optimizer.Adam(0.1).minimize(loss)
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(fluid.default_startup_program())
            program = compiled(loss, count, places)
            for rows, target, _ in batches(4):
                exe.run(program, feed={"x": rows, "y": target}, fetch_list=[loss])
            results.append(parameters())
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_the_program_is_left_as_it_was():
    exe, loss = fed_program(0)
    program = fluid.default_main_program()
    before = str(program)
    x, y, _ = batches(1)[0]
    exe.run(compiled(loss, 4), feed={"x": x, "y": y}, fetch_list=[loss])
    assert str(program) == before


def test_a_pass_without_a_number_is_refused():
    exe, loss = fed_program(0)
    with pytest.raises(
        fluid.core.EnforceNotMet,
        match="Required attribute num_repeats for pass < multi_batch_merge_pass > is not set",
    ):
        exe.run(compiled(loss, None), feed={"x": np.ones((2, 4), "f"), "y": np.ones((2, 1), "f")})


def test_the_passes_of_a_strategy():
    strategy = fluid.BuildStrategy()
    named = "coalesce_grad_tensor add_reader_dependency all_reduce_mode_multi_devices fuse_all_reduce_op "
    named += "all_reduce_deps modify_op_lock_and_record_event multi_devices_check"
    passes = strategy._finalize_strategy_and_create_passes()
    assert [each.type() for each in passes.all_passes()] == [f"{name}_pass" for name in named.split()]
    assert strategy._finalize_strategy_and_create_passes() is passes
    other = fluid.BuildStrategy()
    other.reduce_strategy, other.num_trainers = fluid.BuildStrategy.ReduceStrategy.Reduce, 2
    other.fuse_all_optimizer_ops = other.fuse_bn_act_ops = True
    named = "fuse_bn_act add_reader_dependency reduce_mode_multi_devices all_reduce_deps backward_optimizer_op_deps "
    named += "modify_op_lock_and_record_event multi_devices_check"
    listed = other._finalize_strategy_and_create_passes().all_passes()
    assert [each.type() for each in listed] == [f"{name}_pass" for name in named.split()]
