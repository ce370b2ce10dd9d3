"""Temporaries within FLUIDLITE_MEMORY_LIMIT: what is made again, and that no number of a step changes by it."""

import warnings

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph, layers
from fluidlite._ext import kernels
from fluidlite.base import flags
from fluidlite.executor.host.plan import Plan
from fluidlite.executor.parallel.in_one_program import InOneProgram
from fluidlite.executor.running.feeding import as_feed, expanded

RANDOM = np.random.RandomState(3)
IMAGES = RANDOM.rand(4, 3, 16, 16).astype("float32")
WORDS = RANDOM.rand(3, 12, 16).astype("float32")


def convolved(x, filters, act="relu"):
    x = layers.conv2d(x, filters, 3, padding=1, bias_attr=False)
    return layers.batch_norm(x, act=act)


def residual(dtype="float32"):
    x = fluid.data("x", [None, 3, 16, 16], dtype)
    out = convolved(x, 8)
    for _ in range(4):
        out = layers.elementwise_add(out, convolved(convolved(out, 8), 8, act=None), act="relu")
    out = layers.pool2d(out, 2, "max", 2)
    return layers.reduce_mean(layers.square(layers.fc(layers.dropout(out, 0.3, seed=5), 4)))


def heads(x):
    part = layers.reshape(layers.fc(x, 16, num_flatten_dims=2), [0, 0, 2, 8])
    return layers.transpose(part, [0, 2, 1, 3])


def encoder():
    x = fluid.data("x", [None, 12, 16])
    for _ in range(4):
        q, k, v = heads(x), heads(x), heads(x)
        weights = layers.softmax(layers.matmul(q, k, transpose_y=True, alpha=0.3))
        weights = layers.dropout(weights, 0.2, seed=3, dropout_implementation="upscale_in_train")
        mixed = layers.reshape(layers.transpose(layers.matmul(weights, v), [0, 2, 1, 3]), [0, 0, 16])
        x = layers.layer_norm(x + layers.fc(mixed, 16, num_flatten_dims=2), begin_norm_axis=2)
        hidden = layers.fc(x, 64, num_flatten_dims=2, act="gelu")
        x = layers.layer_norm(x + layers.fc(hidden, 16, num_flatten_dims=2), begin_norm_axis=2)
    return layers.reduce_mean(layers.square(x))


def elementwise():
    x = fluid.data("x", [None, 12, 16])
    out = x * layers.create_parameter([16], "float32")
    for k in range(6):
        out = layers.tanh(layers.exp(layers.scale(out, -0.5, bias=0.1 * k))) * layers.sigmoid(out) + x
    out = layers.cast(layers.concat([out, layers.transpose(out, [0, 1, 2])], 1), "float64")
    return layers.reduce_mean(layers.square(out))


MODELS = {"residual": (residual, IMAGES), "encoder": (encoder, WORDS), "elementwise": (elementwise, WORDS)}
OPTIMIZERS = {
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "adam": lambda: fluid.optimizer.Adam(0.01),
    "clipped": lambda: fluid.optimizer.SGD(0.1, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.5)),
    "decayed": lambda: fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L2Decay(0.01)),
}


class Model:
    """A program that trains, with its first values."""

    def __init__(self, build, optimizer="momentum"):
        self.main, self.startup = fluid.Program(), fluid.Program()
        self.main.random_seed = self.startup.random_seed = 9
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            self.loss = build()
            OPTIMIZERS[optimizer]().minimize(self.loss)

    def plan(self, data):
        """A plan of its own."""
        scope, exe = fluid.Scope(), fluid.Executor()
        exe.run(self.startup, scope=scope)
        return Plan(self.main, scope, expanded(as_feed(self.main, {"x": data})), [self.loss.name]), scope

    def trained(self, *batches):
        """Losses and all that persists after some steps; what the plans are."""
        scope, exe = fluid.Scope(), fluid.Executor()
        exe.run(self.startup, scope=scope)
        found = [exe.run(self.main, {"x": x}, [self.loss], scope=scope)[0] for x in batches]
        names = sorted(var.name for var in self.main.list_vars() if var.persistable)
        state = [np.array(scope.find_var(name).get_tensor()) for name in names]
        return [*found, *state], exe.describe(self.main, scope)


def same(a, b):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.fixture
def plans(monkeypatch):
    """The plans that are made."""
    made = []
    original = Plan._lower
    monkeypatch.setattr(Plan, "_lower", lambda plan, *args: made.append(plan) or original(plan, *args))
    return made


def limit(monkeypatch, count):
    monkeypatch.setenv("FLUIDLITE_MEMORY_LIMIT", str(int(count)))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "share, target", [(0.8, None), (0.6, None), *((0.45, target) for target in kernels.targets())]
)
def test_the_limit_is_kept_and_numbers_are_the_same(name, share, target, monkeypatch):
    build, data = MODELS[name]
    before = kernels.use(target or kernels.targets()[0])
    try:
        model = Model(build)
        expected, _ = model.trained(data, data[::-1].copy(), data)
        taken = model.plan(data)[0].engine.arena_bytes
        limit(monkeypatch, taken * share)
        model = Model(build)
        found, described = model.trained(data, data[::-1].copy(), data)
        plan, _ = model.plan(data)
    finally:
        kernels.use(before)
    same(found, expected)
    assert plan.engine.arena_bytes <= taken * share
    assert "made again; the limit is" in described
    assert "@AGAIN" in described


def gated():
    x = fluid.data("x", [None, 3, 16, 16])
    out = convolved(x, 8)
    weights = layers.fc(layers.pool2d(out, global_pooling=True), 8, act="sigmoid")
    return layers.reduce_mean(layers.square(layers.elementwise_mul(out, weights, axis=0)))


def test_statistics_that_do_not_move_are_read_as_they_are(monkeypatch):
    """Programs for tests name them as results of normalisation, though nothing is written."""
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = 9
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = gated()
    tests = [main.clone(for_test=True) for _ in range(2)]
    exe = fluid.Executor()
    exe.run(startup)
    exe.run(main, {"x": IMAGES})
    expected = exe.run(tests[0], {"x": IMAGES}, [loss])
    limit(monkeypatch, 1000)
    with pytest.warns(UserWarning, match="temporaries take"):
        found = exe.run(tests[1], {"x": IMAGES}, [loss])
    same(found, expected)
    assert (
        "conv2d+batch_norm(x, conv2d_0.w_0, batch_norm_0.w_0, batch_norm_0.b_0, batch_norm_0.w_1"
        in exe.describe(tests[1])
    )
    assert "batch_norm_0.tmp_2@AGAIN" in exe.describe(tests[1])


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", ["residual", "encoder"])
def test_updates_of_any_kind(name, optimizer, monkeypatch):
    build, data = MODELS[name]
    model = Model(build, optimizer)
    expected, _ = model.trained(data, data)
    taken = model.plan(data)[0].engine.arena_bytes
    limit(monkeypatch, taken * 0.5)
    model = Model(build, optimizer)
    found, _ = model.trained(data, data)
    same(found, expected)
    assert model.plan(data)[0].engine.arena_bytes <= taken * 0.5


def test_one_program_with_batches_of_many_sizes(monkeypatch):
    """Where a limit is kept without, nothing is made again; larger batches have plans that do more."""
    batches = [np.tile(IMAGES, (count, 1, 1, 1)) for count in (2, 1, 4, 3, 1, 4)]
    model = Model(residual)
    expected, _ = model.trained(*batches)
    most = model.plan(batches[0])[0].engine.arena_bytes
    limit(monkeypatch, most)
    model = Model(residual)
    found, described = model.trained(*batches)
    same(found, expected)
    plans = described.split("instructions on the CPU")[1:]
    assert 2 <= len(plans) <= 4
    assert 1 <= sum("made again" in plan for plan in plans) < len(plans)
    for data in batches:
        assert model.plan(data)[0].engine.arena_bytes <= most


def test_sizes_that_need_no_other_plan_have_none(monkeypatch):
    model = Model(residual)
    taken = model.plan(IMAGES)[0].engine.arena_bytes
    limit(monkeypatch, taken * 0.6)
    _, described = model.trained(IMAGES, IMAGES[:3], IMAGES, IMAGES[:3])
    assert described.count("instructions on the CPU") <= 2


def test_what_cannot_be_kept_is_said_once(monkeypatch):
    model = Model(encoder)
    expected, _ = model.trained(WORDS, WORDS)
    limit(monkeypatch, 1000)
    model = Model(encoder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found, _ = model.trained(WORDS, WORDS)
    (only,) = [each for each in caught if "FLUIDLITE_MEMORY_LIMIT" in str(each.message)]
    assert "cannot be kept: temporaries take" in str(only.message)
    assert "KB in the place of" in str(only.message)
    same(found, expected)


def test_the_pass_can_be_left_out(monkeypatch):
    model = Model(encoder)
    taken = model.plan(WORDS)[0].engine.arena_bytes
    limit(monkeypatch, taken * 0.5)
    monkeypatch.setenv("FLUIDLITE_WITHOUT_PASSES", "recomputation")
    plan, _ = Model(encoder).plan(WORDS)
    assert plan.engine.arena_bytes == taken
    assert "@AGAIN" not in plan.describe()


def test_sizes_beyond_memory_are_told_as_without(monkeypatch):
    limit(monkeypatch, 1000)
    huge = layers.expand(fluid.data("x", [None, 3]), [2**31, 2**32])
    with (
        pytest.warns(UserWarning, match="FLUIDLITE_MEMORY_LIMIT cannot be kept"),
        pytest.raises(MemoryError, match="variable 'expand"),
    ):
        fluid.Executor().run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[huge])


@pytest.mark.parametrize("text", ["", "0.5G", "-1", "0", "many", "5X"])
def test_limits_that_are_none(text, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_MEMORY_LIMIT", text)
    model = Model(encoder)
    if not text:
        assert "@AGAIN" not in model.plan(WORDS)[0].describe()
        return
    with pytest.raises(ValueError, match="FLUIDLITE_MEMORY_LIMIT must be a number of bytes above 0"):
        model.plan(WORDS)


@pytest.mark.parametrize("text, count", [("800", 800), ("3k", 3072), ("2MB", 2 << 20), (" 1g ", 1 << 30)])
def test_limits_in_words(text, count, monkeypatch):
    monkeypatch.setenv("FLUIDLITE_MEMORY_LIMIT", text)
    assert flags.memory_limit() == count


def test_what_is_fetched_is_kept(monkeypatch):
    model = Model(residual)
    names = [op.outputs["Y"][0] for op in model.main.global_block().ops if op.type == "batch_norm"]

    def fetched():
        scope, exe = fluid.Scope(), fluid.Executor()
        exe.run(model.startup, scope=scope)
        return exe.run(model.main, {"x": IMAGES}, [*names, model.loss], scope=scope)

    expected = fetched()
    limit(monkeypatch, model.plan(IMAGES)[0].engine.arena_bytes * 0.5)
    model = Model(residual)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(fetched(), expected)


def looped():
    """Convolutions in front of and behind a loop, whose turns read what is in front."""
    x = fluid.data("x", [None, 3, 16, 16])
    before = convolved(convolved(convolved(x, 4), 4), 4)
    flat = layers.reshape(before, [-1, 4 * 256])
    i, count = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)

    def turn(i, state):
        return i + 1, layers.tanh(layers.fc(state, 4 * 256, param_attr="w") + flat)

    _, state = layers.while_loop(lambda i, state: layers.less_than(i, count), turn, [i, flat])
    behind = layers.reshape(state, [-1, 4, 16, 16])
    return layers.reduce_mean(layers.square(convolved(convolved(behind, 4), 4)))


def ranked():
    x = fluid.data("x", [None, 16], lod_level=1)
    words = layers.tanh(layers.fc(layers.tanh(layers.fc(layers.tanh(layers.fc(x, 32)), 32)), 32))
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, state = rnn.step_input(words), rnn.memory(shape=[32], value=0.0)
        new = layers.tanh(layers.fc([word, state], 32))
        rnn.update_memory(state, new)
        rnn.output(new)
    out = layers.tanh(layers.fc(layers.tanh(layers.fc(rnn(), 32)), 32))
    return layers.reduce_mean(layers.square(layers.sequence_pool(out, "max")))


SENTENCES = fluid.create_lod_tensor(RANDOM.rand(9, 16).astype("float32"), [[4, 2, 3]], fluid.CPUPlace())


@pytest.mark.parametrize("build, data", [(looped, IMAGES), (ranked, SENTENCES)])
@pytest.mark.parametrize("size", [3000, 60000, 150000])
def test_programs_with_loops(build, data, size, monkeypatch):
    expected, _ = Model(build).trained(data, data)
    limit(monkeypatch, size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, described = Model(build).trained(data, data)
    same(found, expected)
    assert "in the place of" in described or (build is ranked and size > 3000)


@pytest.mark.parametrize("threads", [False, True])
def test_data_parallel(threads, plans, monkeypatch):
    monkeypatch.setenv("CPU_NUM", "2")
    monkeypatch.setattr(InOneProgram, "fits", lambda runner: not threads)

    def trained():
        model = Model(encoder)
        scope, exe = fluid.Scope(), fluid.Executor()
        exe.run(model.startup, scope=scope)
        compiled = fluid.CompiledProgram(model.main).with_data_parallel(loss_name=model.loss.name)
        with fluid.scope_guard(scope):
            losses = [exe.run(compiled, {"x": np.tile(WORDS, (4, 1, 1))}, [model.loss])[0] for _ in range(3)]
        state = [np.array(scope.find_var(p.name).get_tensor()) for p in model.main.all_parameters()]
        return [*losses, *state]

    expected = trained()
    limit(monkeypatch, 150000)
    plans.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(trained(), expected)
    assert sum("@AGAIN" in plan.describe() for plan in plans) == (2 if threads else 1)


def test_two_phases(plans, monkeypatch):
    """Traced functions make again what is made of what they keep, and not what weights have made."""

    def trained():
        with dygraph.guard(), fluid.unique_name.guard():
            fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 9
            linear = dygraph.Linear(16, 16, param_attr=fluid.initializer.Constant(0.03))

            @dygraph.declarative
            def run(x):
                out = linear(x)
                for _ in range(5):
                    out = layers.tanh(layers.exp(layers.scale(out, -0.5))) * layers.sigmoid(out)
                return layers.reduce_mean(layers.square(out))

            results = []
            for _ in range(3):
                loss = run(dygraph.to_variable(WORDS))
                linear.weight.set_value(linear.weight.numpy() * 0.5)  # between the phases
                loss.backward()
                results += [loss.numpy(), linear.weight.gradient(), linear.bias.gradient()]
                linear.clear_gradients()
            return results

    expected = trained()
    plans.clear()
    limit(monkeypatch, 20000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(trained(), expected)
    (plan,) = [plan for plan in plans if type(plan).__name__ == "TwoPhasePlan"]
    first = [each.describe() for each in plan.instructions[: plan._cut]]
    assert "@AGAIN" in plan.describe()
    assert not any("@AGAIN" in line for line in first)


def drawn(seed):
    """Operators of many kinds, each on what some of those before have made."""
    random = np.random.RandomState(seed)
    x = fluid.data("x", [None, 12, 16])
    made = [layers.fc(x, 16, num_flatten_dims=2)]
    alone = [
        layers.tanh,
        layers.relu,
        layers.softmax,
        lambda v: layers.gelu(v),
        lambda v: layers.scale(v, 0.7, 0.1),
        lambda v: layers.layer_norm(v, begin_norm_axis=2),
        lambda v: layers.fc(v, 16, num_flatten_dims=2, act="sigmoid"),
        lambda v: layers.dropout(v, 0.3, seed=4),
        lambda v: layers.reshape(
            layers.transpose(layers.reshape(v, [0, 3, 4, 16]), [0, 2, 1, 3]), [0, 12, 16]
        ),
        lambda v: layers.cast(layers.exp(layers.cast(v, "float64") * 0.1), "float32"),
        lambda v: layers.concat(layers.split(v, 2, 2)[::-1], 2),
        lambda v: layers.expand(layers.reduce_mean(v, [1], keep_dim=True), [1, 12, 1]),
        lambda v: layers.pool2d(layers.unsqueeze(v, [1]), 3, "max", 1, 1)[:, 0],
    ]
    both = [
        layers.elementwise_add,
        layers.elementwise_mul,
        layers.elementwise_sub,
        lambda a, b: layers.matmul(layers.softmax(layers.matmul(a, b, transpose_y=True, alpha=0.1)), b),
        lambda a, b: layers.sum([a, b, a]),
    ]
    for _ in range(24):
        recent = made[-6:]
        pick = [recent[random.randint(len(recent))] for _ in range(2)]
        way = random.randint(len(alone) + len(both))
        made.append(alone[way](pick[0]) if way < len(alone) else both[way - len(alone)](*pick))
    return layers.reduce_mean(layers.square(layers.layer_norm(layers.sum(made[-4:]), begin_norm_axis=2)))


@pytest.mark.parametrize("seed", range(8))
def test_programs_of_any_kind(seed, monkeypatch):
    expected, _ = Model(lambda: drawn(seed), "adam").trained(WORDS, WORDS)
    taken = Model(lambda: drawn(seed), "adam").plan(WORDS)[0].engine.arena_bytes
    for share in (0.7, 0.4, 0.01):
        limit(monkeypatch, taken * share)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, described = Model(lambda: drawn(seed), "adam").trained(WORDS, WORDS)
        same(found, expected)
    assert "@AGAIN" in described
