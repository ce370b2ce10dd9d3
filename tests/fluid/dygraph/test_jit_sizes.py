"""`declarative` with sizes that change: one trace for all of them, or one for each where the code asks for numbers."""

import gc
import json

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph, layers
from fluidlite.base import unique_name
from fluidlite.dygraph import declarative, to_variable
from fluidlite.executor.compile import compile_plan
from fluidlite.executor.ir.request import Request
from fluidlite.framework import mode

SIZES = (7, 9, 17, 2, 1, 30, 12, 13, 170, 9, 7, 3, 64, 5)


pytestmark = pytest.mark.usefixtures("eager")


def tensor(array):
    made = to_variable(array)
    made.stop_gradient = False
    return made


def random(*shape, seed=0):
    return np.random.default_rng(seed).random(shape, "float32") - 0.3


def outcome(function, *arrays):
    """The result of a function of tensors, and their gradients."""
    inputs = [tensor(array) for array in arrays]
    found = function(*inputs)
    found = found if isinstance(found, (list, tuple)) else [found]
    made = [item for item in found if isinstance(item, fluid.core.VarBase)]
    total = layers.sum([layers.reduce_sum(item * item) for item in made])
    total.backward()
    rest = [(type(item), item) for item in found if not isinstance(item, fluid.core.VarBase)]
    return [item.numpy() for item in made] + [x.gradient() for x in inputs], rest


def same(function, traced, *arrays):
    expected, expected_rest = outcome(function, *arrays)
    got, rest = outcome(traced, *arrays)
    assert rest == expected_rest
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-5)


def loop(x):
    out = x
    for k in range(x.shape[0]):
        out = out + k
    return out


NUMBERS = {
    "reshape": lambda x: layers.reshape(x, [x.shape[0], 2, -1]),
    "divide": lambda x: x / x.shape[0],
    "attribute": lambda x: layers.scale(x, 1.0 / x.shape[0]),
    "part": lambda x: x[: (x.shape[0] + 1) // 2],
    "range": loop,
    "array": lambda x: x * np.arange(x.shape[0]).astype("float32").reshape(-1, 1),
    "sum": lambda x: x * float(np.array(x.shape).sum()),
    "product": lambda x: x * float(np.prod(x.shape)),
    "text": lambda x: x * float(f"{x.shape[0]}"),
    "json": lambda x: x * json.loads(json.dumps({"n": x.shape[0]}))["n"],
    "root": lambda x: x * (x.shape[0] ** 0.5),
    "inverse": lambda x: x * (x.shape[0] ** -1),
    "square": lambda x: x * (x.shape[0] ** 2),
    "key": lambda x: x * {k: 2 * k for k in range(200)}[x.shape[0]],
    "integer": lambda x: x * x.shape[0] if isinstance(x.shape[0], int) else x * 7,
    "result": lambda x: (x * 1, x.shape[0], {"n": x.shape[0]}["n"], x.shape[0] / 2),
    "bits": lambda x: x * x.shape[0].bit_length(),
    "real": lambda x: x * 2 if x.shape[0] > 12.5 else x * 3,
    "turned": lambda x: x * 2 if x.shape[0] >= 12.5 else x * 3,
    "rounded": lambda x: x * round(x.shape[0] / 3),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_code_that_asks_for_a_number_is_traced_for_each(name):
    traced = declarative(NUMBERS[name])
    for seed, n in enumerate(SIZES):
        same(NUMBERS[name], traced, random(n, 4, seed=seed))
    assert traced._made >= len(set(SIZES)) - 1


BRANCHES = {
    "more": lambda x: x * 2 if x.shape[0] > 10 else x * 3,
    "equal": lambda x: x * 2 if x.shape[0] == 17 else x * 3,
    "shape": lambda x: x * 2 if tuple(x.shape) == (17, 4) else x * 3,
}


@pytest.mark.parametrize("name", BRANCHES)
def test_code_that_compares_sizes_is_traced_for_each_outcome(name):
    traced = declarative(BRANCHES[name])
    for seed, n in enumerate(SIZES):
        same(BRANCHES[name], traced, random(n, 4, seed=seed))
    assert traced._made <= 5


FREE = {
    "softmax": lambda x: layers.softmax(x),
    "matmul": lambda x: layers.matmul(x, x, transpose_y=True),
    "column_sum": lambda x: layers.reduce_sum(x, [0]),
    "mean": lambda x: layers.mean(x),
    "transpose": lambda x: layers.transpose(x, [1, 0]),
    "expand": lambda x: layers.expand(x, [2, 1]),
    "split": lambda x: layers.split(x, 2, 1),
    "stack": lambda x: layers.stack([x, x * 2], 0),
    "concat": lambda x: layers.concat([x, x * 2], 0),
    "flatten": lambda x: layers.flatten(layers.reshape(x, [0, 2, 2])),
    "reshape": lambda x: layers.reshape(x, [-1, 2]),
    "like": lambda x: layers.elementwise_max(
        x, layers.fill_constant_batch_size_like(x, [-1, 4], "float32", 0.3)
    ),
    "unused": lambda x: (x * 2, layers.relu(x)),
}


@pytest.mark.parametrize("name", FREE)
def test_other_code_is_traced_once_for_all_sizes(name):
    traced = declarative(FREE[name])
    for seed, n in enumerate(SIZES):
        same(FREE[name], traced, random(n, 4, seed=seed))
    assert traced._made == 3  # the first size, all others, and one row, which may mean broadcasting
    assert traced.last().inputs[0].shape == (-1, 4)


def test_everything_that_changes_is_left_open():
    traced = declarative(lambda x, y: layers.softmax(layers.matmul(x, y)))
    for k, (n, m) in enumerate([(4, 3), (5, 3), (6, 7), (8, 2), (9, 9), (3, 8)]):
        same(traced.function, traced, random(n, m, seed=k), random(m, 5, seed=k + 9))
    assert traced._made == 3
    with pytest.raises(ValueError, match="matmul"):
        traced(random(3, 4), random(5, 5))


class Net(dygraph.Layer):
    def __init__(self):
        super().__init__()
        self.conv = dygraph.Conv2D(1, 4, 3, act="relu")
        self.norm = dygraph.BatchNorm(4)
        self.last = dygraph.Linear(4, 3)

    def forward(self, x):
        out = self.norm(self.conv(x))
        return layers.softmax(self.last(layers.reduce_mean(out, [2, 3])))


def trained(as_program):
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 7
    net = Net()
    call = declarative(net.forward) if as_program else net
    adam = fluid.optimizer.AdamOptimizer(0.05, parameter_list=net.parameters())
    seen = []
    for seed, n in enumerate(SIZES):
        x = tensor(random(n, 1, 6, 5, seed=seed))
        loss = layers.mean(layers.square(call(x)))
        loss.backward()
        seen += [loss.numpy(), x.gradient(), net.norm._mean.numpy()]
        adam.minimize(loss)
        net.clear_gradients()
    return seen


def test_training_is_the_same_as_eagerly():
    with dygraph.guard():
        eagerly = trained(False)
    with dygraph.guard():
        as_program = trained(True)
    for one, other in zip(eagerly, as_program, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)


def test_calls_of_several_sizes_may_be_open_at_once():
    layer = dygraph.Linear(4, 3, act="tanh")
    call = declarative(layer.forward)
    arrays = [random(n, 4, seed=n) for n in (3, 8, 2, 40, 5)]
    seen = []
    for function in (layer, call):
        inputs = [tensor(array) for array in arrays]
        made = [layers.reduce_sum(function(x) * (k + 1)) for k, x in enumerate(inputs)]
        for k in (3, 0, 4, 2, 1):
            made[k].backward(retain_graph=True)
            made[k].backward()
        seen.append([x.gradient() for x in inputs])
        del made
        gc.collect()
    for one, other in zip(*seen, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5)
    assert call._made == 2


def test_code_that_takes_nothing_but_integers_is_traced_for_each_shape():
    def picky(x):
        if type(x.shape[0]) is not int:
            raise TypeError("no integer")
        return x * x.shape[0]

    traced = declarative(picky)
    for n in (3, 4, 5, 3):
        same(picky, traced, random(n, 4))
    assert traced._made == 3


def test_a_saved_model_takes_all_sizes(tmp_path):
    import fluidlite.paddle as paddle

    net = Net()
    paddle.jit.save(net, str(tmp_path / "net"), [paddle.static.InputSpec([None, 1, 6, 5], "float32")])
    net.eval()
    loaded = paddle.jit.load(str(tmp_path / "net"))
    for seed, n in enumerate(SIZES):
        x = random(n, 1, 6, 5, seed=seed)
        np.testing.assert_allclose(loaded(to_variable(x)).numpy(), net(to_variable(x)).numpy(), rtol=1e-5)
    assert loaded._run._made <= 3


def two_phases():
    """tanh(x @ w) of any number of rows, with the gradients of x and w from one that comes late."""
    main, scope = fluid.Program(), fluid.Scope()
    with mode.guard(False), fluid.program_guard(main), unique_name.guard():
        x = fluid.data("x", [None, 4], "float32")
        x.stop_gradient = False
        w = main.global_block().create_var(name="w", shape=[4, 2], dtype="float32", persistable=True)
        w.stop_gradient = False
        out = layers.tanh(layers.mul(x, w))
        weight = main.global_block().create_var(name="late", shape=[-1, 2], dtype="float32")
        gradients = fluid.gradients([out], [x, w], [weight])
    scope.var("w").get_tensor().set(W)
    names = [var.name for var in gradients]
    feed, late = {"x": random(3, 4)}, {"late": out.name}
    request = Request(main, scope, feed, [out.name, *names], late=late, early=1, held=["w"])
    return compile_plan(request)


W = np.array([[1, 2], [0, 1], [3, 1], [2, 2]], "float32")


def test_gradients_that_arrive_late_have_the_sizes_of_the_forward_pass():
    plan = two_phases()
    assert plan.feed_names == ["x", "w"]
    for n in (3, 5, 2, 100, 4):
        x, late = random(n, 4, seed=n), random(n, 2, seed=n + 1)
        assert plan.accepts([x, W])
        (out,) = plan.run_first()
        np.testing.assert_allclose(out, np.tanh(x @ W), rtol=1e-5)
        with pytest.raises(ValueError, match=rf"'late' is float32 \[{n}, 2\] after .* got .* \[{n + 1}, 2\]"):
            plan.run_second([random(n + 1, 2)])
        with pytest.raises(ValueError, match="got an array of float64"):
            plan.run_second([late.astype("float64")])
        by_x, by_w = plan.run_second([late])
        inner = late * (1 - np.tanh(x @ W) ** 2)
        np.testing.assert_allclose(by_x, inner @ W.T, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(by_w, x.T @ inner, rtol=1e-4, atol=1e-6)
