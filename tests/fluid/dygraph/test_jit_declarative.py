"""`declarative`: what runs as a program gives what the same code gives eagerly, forwards and backwards."""

import copy
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph, layers
from fluidlite.base.errors import NotSupportedError
from fluidlite.base.selected_rows import SelectedRows
from fluidlite.dygraph import declarative, to_variable
from fluidlite.dygraph.jit.program_execution import SPARE_PLANS
from fluidlite.eager import Tensor

from ...refusals import refuses

pytestmark = pytest.mark.usefixtures("eager")


def tensor(*values, grad=False, dtype="float32"):
    made = to_variable(np.array(values, dtype))
    made.stop_gradient = not grad
    return made


def random(*shape, seed=0):
    return np.random.default_rng(seed).random(shape, "float32") - 0.3


class Net(dygraph.Layer):
    """Product, batch norm with moving averages, and losses computed from parameters alone."""

    def __init__(self):
        super().__init__()
        self.first = dygraph.Linear(3, 4, act="relu")
        self.norm = dygraph.BatchNorm(4)
        self.last = dygraph.Linear(4, 2)

    def forward(self, x):
        out = self.last(self.norm(self.first(x)))
        weights = layers.reduce_sum(self.first.weight * self.first.weight) + (self.last.weight**2)[0, 1]
        return out, {"loss": layers.mean(layers.square(out)) + 0.1 * weights}


def trained(as_program, steps=4):
    """Everything that can be seen of some steps of training, the third with another batch size."""
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 7
    net = Net()
    call = declarative(net.forward) if as_program else net
    adam = fluid.optimizer.AdamOptimizer(0.05, parameter_list=net.parameters())
    seen = []
    for step in range(steps):
        x = to_variable(random(3 if step == 2 else 5, 3, seed=step))
        x.stop_gradient = False
        out, more = call(x)
        (more["loss"] + layers.mean(out)).backward()
        seen += [out.numpy(), more["loss"].numpy(), x.gradient(), net.norm._mean.numpy()]
        seen += [p.gradient() for p in net.parameters() if p.trainable]
        adam.minimize(more["loss"])
        net.clear_gradients()
    return seen


def test_training_is_the_same_as_eagerly(engine):
    with dygraph.guard():
        eagerly = trained(False)
    with dygraph.guard():
        as_program = trained(True)
    assert len(eagerly) == len(as_program)
    for one, other in zip(eagerly, as_program, strict=True):
        np.testing.assert_allclose(other, one, rtol=2e-5, atol=1e-6)


LAYERS = {
    "conv": (lambda: dygraph.Conv2D(4, 3, 3, act="relu"), [(2, 4, 6, 6)]),
    "conv_transpose": (lambda: dygraph.Conv2DTranspose(4, 3, 3), [(2, 4, 4, 4)]),
    "pool": (lambda: dygraph.Pool2D(2, "avg", 2), [(2, 4, 6, 6)]),
    "instance_norm": (lambda: dygraph.InstanceNorm(4), [(2, 4, 6, 6)]),
    "layer_norm": (lambda: dygraph.LayerNorm([4]), [(3, 4)]),
    "gru": (lambda: dygraph.GRUUnit(size=12), [(2, 12), (2, 4)]),
    "spectral_norm": (lambda: dygraph.SpectralNorm([4, 3], power_iters=2), [(4, 3)]),
    "prelu": (lambda: dygraph.PRelu("channel", channel=4), [(2, 4, 3, 3)]),
    "bilinear": (lambda: dygraph.BilinearTensorProduct(3, 4, 5), [(2, 3), (2, 4)]),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_the_same_as_eagerly(name):
    make, shapes = LAYERS[name]
    seen = []
    for as_program in (False, True):
        with dygraph.guard():
            fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 5
            layer = make()
            inputs = [tensor(*random(*shape), grad=True) for shape in shapes]
            out = (declarative(layer.forward) if as_program else layer)(*inputs)
            first = out[0] if isinstance(out, (list, tuple)) else out
            layers.reduce_sum(first * first).backward()
            values = [first.numpy(), *[x.gradient() for x in inputs]]
            seen.append(values + [p.gradient() for p in layer.parameters() if not p.stop_gradient])
    for one, other in zip(*seen, strict=True):
        np.testing.assert_allclose(other, one, rtol=2e-5, atol=1e-5)


def test_embedding_ids_are_not_differentiated():
    table = dygraph.Embedding([5, 2])
    out = declarative(table.forward)(tensor(1, 3, 1, dtype="int64"))
    assert out.shape == [3, 2]
    out.backward()
    assert np.asarray(table.weight.gradient()).sum() == 6


def test_sparse_gradients_stay_sparse(engine):
    table = dygraph.Embedding([6, 2], is_sparse=True)
    out = declarative(lambda ids: table(ids) + table(ids))(tensor(1, 3, 1, dtype="int64"))
    out.backward()
    gradient = table.weight.grad_array
    assert isinstance(gradient, SelectedRows)
    assert gradient.dense().tolist() == [[0, 0], [4, 4], [0, 0], [2, 2], [0, 0], [0, 0]]


def test_function_runs_once_for_each_kind_of_arguments():
    calls = []

    @declarative
    def double(x, times=2):
        calls.append(list(x.shape))
        return x * times

    for _ in range(3):
        assert double(tensor(1, 2)).numpy().tolist() == [2, 4]
    assert double(np.array([1, 2], "float32")).numpy().tolist() == [2, 4]
    assert len(calls) == 1
    assert double(tensor(1, 2), times=3).numpy().tolist() == [3, 6]
    assert double(tensor(1, 2, 3)).numpy().tolist() == [2, 4, 6]
    assert double(tensor(1, 2, dtype="int64")).numpy().tolist() == [2, 4]
    assert calls == [[2], [2], [3], [2]]


def test_true_one_and_one_point_zero_are_different_constants():
    @declarative
    def kind(x, what):
        return x + {bool: 1, int: 2, float: 3}[type(what)]

    assert [kind(tensor(0), what).numpy()[0] for what in (True, 1, 1.0, True)] == [1, 2, 3, 1]


def test_numbers_of_numpy_and_tuples_count_by_value():
    calls = []

    @declarative
    def scaled(x, by, axes):
        calls.append(by)
        return layers.reduce_sum(x * float(by), list(axes))

    for _ in range(2):
        assert scaled(tensor([1, 2]), np.float32(3), frozenset([0, 1])).numpy().tolist() == [9]
    assert len(calls) == 1


def test_many_traces_are_warned_of():
    add = declarative(lambda x, number: x + number)
    with pytest.warns(
        RuntimeWarning, match="traced 32 times.*numbers that change should come as tensors"
    ) as caught:
        for number in range(33):
            add(tensor(1), number)
    assert [warning.filename for warning in caught] == [__file__]


def test_layers_in_attributes_of_an_object_are_watched():
    class Trainer:
        def __init__(self):
            self.net = dygraph.Dropout(0.5, dropout_implementation="upscale_in_train")

        @declarative
        def step(self, x):
            return self.net(x)

    trainer = Trainer()
    assert 0 in trainer.step(np.ones(64, "float32")).numpy()
    trainer.net.eval()
    assert 0 not in trainer.step(np.ones(64, "float32")).numpy()


def test_state_made_by_layers_lasts_between_calls():
    @declarative
    def counted(x):
        total = layers.create_global_var([1], 0.0, "float32", persistable=True, name="total")
        layers.assign(total + x, output=total)
        return total * 1.0

    assert [counted(tensor(2)).numpy()[0] for _ in range(3)] == [2, 4, 6]


def test_nested_arguments_and_results():
    @declarative
    def swap(pair, extra):
        return {"ab": (pair[1], pair[0]), "sum": [pair[0] + extra["c"]], "name": "n", "none": None}

    got = swap([tensor(1), tensor(2)], {"c": tensor(10)})
    assert [t.numpy().tolist() for t in got["ab"]] == [[2], [1]]
    assert got["sum"][0].numpy().tolist() == [11]
    assert (got["name"], got["none"]) == ("n", None)


def test_arguments_and_parameters_may_be_results_themselves():
    weight = dygraph.Linear(1, 1).weight

    @declarative
    def same(x):
        y = x + 1
        return x, weight, y, y

    x = tensor(1, grad=True)
    got = same(x)
    assert got[0] is x
    assert got[1] is weight
    (got[2] * 2 + got[3]).backward()
    assert x.gradient().tolist() == [3]


def test_gradients_from_outside_add_to_those_from_inside():
    @declarative
    def both(x):
        y = x * x
        return y, layers.reduce_sum(y) * 3

    x = tensor(1, 2, grad=True)
    y, total = both(x)
    (layers.reduce_sum(y) + total).backward()
    assert x.gradient().tolist() == [8, 16]


def test_calls_before_backward_keep_their_own_values(engine):
    @declarative
    def square(x):
        return x * x

    first, second = tensor(3, grad=True), tensor(5, grad=True)
    total = square(first) + square(second) * 10
    total.backward()
    assert (first.gradient().tolist(), second.gradient().tolist()) == ([6], [100])
    assert square(square(tensor(2))).numpy().tolist() == [16]


def test_overlapping_calls_get_a_plan_each_and_few_are_kept():
    call = declarative(lambda x: layers.exp(x))
    x = tensor(1, grad=True)
    outputs = [call(x) for _ in range(12)]
    layers.sum(outputs).backward()
    np.testing.assert_allclose(x.gradient(), [12 * np.e], rtol=1e-6)
    (runner,) = call.last()._runners.values()
    assert 1 <= len(runner._spare) <= SPARE_PLANS


def test_results_are_not_overwritten_by_later_calls():
    @declarative
    def shifted(x):
        return layers.reshape(x + 1, [1, 2])

    one = shifted(tensor(1, 2))
    shifted(tensor(5, 6))
    assert one.numpy().tolist() == [[2, 3]]


def test_tape_can_be_kept(engine):
    @declarative
    def cube(x):
        return layers.exp(x) * x

    x = tensor(1, grad=True)
    y = cube(x)
    for _ in range(2):
        got = dygraph.grad(y, x, retain_graph=True)[0].numpy()
        np.testing.assert_allclose(got, [2 * np.e], rtol=1e-6)
    y.backward()
    np.testing.assert_allclose(x.gradient(), [2 * np.e], rtol=1e-6)


def test_dropout_masks_are_those_of_the_forward_pass_and_change():
    @declarative
    def drop(x):
        return layers.dropout(x, 0.5, dropout_implementation="upscale_in_train")

    x = tensor(*[1.0] * 256, grad=True)
    first = drop(x)
    second = drop(x)
    assert not np.array_equal(first.numpy(), second.numpy())
    first.backward()
    np.testing.assert_array_equal(x.gradient(), first.numpy())


def test_eval_and_train_decide_for_dropout_in_between():
    """As eagerly: the last of them, whoever's, and each has a trace of its own."""

    class Net(dygraph.Layer):
        def forward(self, x):
            return layers.dropout(x, 0.5), layers.dropout(x, 0.25, is_test=True)

    net, x = Net(), tensor(*[1.0] * 64)
    call = declarative(net.forward)
    for _ in range(2):
        net.eval()
        dropped, tested = (out.numpy() for out in call(x))
        assert set(dropped) == {0.5} and set(tested) == {0.75}
        net.train()
        assert set(call(x)[0].numpy()) == {0.0, 1.0}


def test_parameters_changed_from_outside_are_seen():
    linear = dygraph.Linear(2, 1, bias_attr=False)
    call = declarative(linear.forward)
    call(tensor([1, 1]))
    linear.weight.set_value(np.full((2, 1), 3, "float32"))
    assert call(tensor([1, 1])).numpy().tolist() == [[6]]
    linear.weight.array = np.full((2, 1), 4, "float32")
    assert call(tensor([1, 1])).numpy().tolist() == [[8]]


def test_frozen_parameters_get_no_gradient():
    linear = dygraph.Linear(2, 1)
    call = declarative(linear.forward)
    call(tensor([1, 2])).backward()
    assert linear.weight.gradient().tolist() == [[1], [2]]
    linear.weight.stop_gradient = True
    linear.clear_gradients()
    call(tensor([1, 2])).backward()
    assert linear.bias.gradient().tolist() == [1]
    linear.bias.stop_gradient = True
    assert call(tensor([1, 2])).stop_gradient


def test_no_grad_outside_and_inside():
    @declarative
    def half_known(x):
        with dygraph.no_grad():
            known = x * 3
        return x * known + (x * x).detach()

    x = tensor(2, grad=True)
    half_known(x).backward()
    assert x.gradient().tolist() == [6]
    with dygraph.no_grad():
        assert half_known(x).stop_gradient


def test_modes_of_layers_belong_to_the_trace():
    class Dropping(dygraph.Layer):
        def __init__(self):
            super().__init__()
            self.inner = dygraph.Sequential(dygraph.Dropout(0.5, dropout_implementation="upscale_in_train"))

        @declarative
        def forward(self, x):
            return self.inner(x)

    net = Dropping()
    ones = np.ones(64, "float32")
    assert 0 in net(ones).numpy()
    net.eval()
    assert net(ones).numpy().tolist() == ones.tolist()
    net.train()
    assert 0 in net(ones).numpy()


def test_layers_that_a_function_only_names_are_watched():
    net = dygraph.Dropout(0.5, dropout_implementation="upscale_in_train")

    @declarative
    def call(x):
        return net(x)

    ones = np.ones(64, "float32")
    assert 0 in call(ones).numpy()
    net.eval()
    assert 0 not in call(ones).numpy()


def test_methods_have_traces_of_their_own_and_objects_go_away():
    class Scale(dygraph.Layer):
        def __init__(self, start):
            super().__init__()
            self.weight = self.create_parameter(
                [1], fluid.ParamAttr(initializer=fluid.initializer.Constant(start))
            )

        @declarative
        def forward(self, x):
            return x * self.weight

    two, three = Scale(2.0), Scale(3.0)
    assert (two(tensor(1)).numpy()[0], three(tensor(1)).numpy()[0]) == (2, 3)
    assert two.forward is two.forward
    twin = copy.deepcopy(two)
    twin.weight.set_value(np.array([7], "float32"))
    assert (twin(tensor(1)).numpy()[0], two(tensor(1)).numpy()[0]) == (7, 2)
    gone = weakref.ref(two)
    del two
    gc.collect()
    assert gone() is None


def test_constants_made_inside_are_part_of_the_program():
    @declarative
    def shift(x):
        table = to_variable(np.array([10, 20], "float32"))
        return x + table * np.array([1, 2], "float32") + layers.fill_constant([2], "float32", 100)

    assert shift(tensor(1, 2)).numpy().tolist() == [111, 142]
    assert shift(tensor(0, 0)).numpy().tolist() == [110, 140]


def test_captured_tensors_keep_clear_of_temporaries():
    outside = [tensor(float(k)) * 1.0 for k in range(12)]
    first = dygraph.Linear(1, 1, bias_attr=False)
    second = dygraph.Linear(1, 1, bias_attr=False)
    second.weight.name = first.weight.name
    for factor, linear in ((2, first), (3, second)):
        linear.weight.set_value(np.full((1, 1), factor, "float32"))

    @declarative
    def add_all(x):
        for one in outside:
            x = x + one
        return first(x) + second(x)

    assert add_all(tensor([0])).numpy().tolist() == [[66 * 5]]


def test_loops_over_rows_are_unrolled():
    @declarative
    def last(x):
        state = layers.zeros([2], "float32")
        for row in x:
            state = state * 2 + row
        return state

    x = tensor([1, 2], [3, 4], grad=True)
    out = last(x)
    assert out.numpy().tolist() == [5, 8]
    out.backward()
    assert x.gradient().tolist() == [[2, 2], [1, 1]]


def test_shapes_that_depend_on_values_are_interpreted():
    @declarative
    def positive(x):
        return layers.reduce_sum(layers.gather(x * x, layers.where(x > 0)))

    x = tensor(1, -2, 3, grad=True)
    y = positive(x)
    assert y.numpy().tolist() == [10]
    y.backward()
    assert x.gradient().tolist() == [2, 0, 6]
    assert positive(tensor(-1, -1, 1)).numpy().tolist() == [1]


def test_declarative_functions_call_each_other():
    inner = declarative(lambda x: x * 2)
    outer = declarative(lambda x: inner(x) + 1)
    x = tensor(3, grad=True)
    y = outer(x)
    y.backward()
    assert (y.numpy().tolist(), x.gradient().tolist()) == ([7], [2])


def test_variables_of_a_program_are_followed():
    double = declarative(lambda x: x * 2)
    main = fluid.Program()
    with fluid.program_guard(main):
        out = double(fluid.data("x", [2], "float32"))
    assert out.block.program is main
    got = fluid.Executor().run(main, feed={"x": np.array([1, 2], "float32")}, fetch_list=[out])
    assert got[0].tolist() == [2, 4]


def test_grad_and_hooks_reach_through():
    call = declarative(lambda x: x * x * x)
    x = tensor(2, grad=True)
    assert dygraph.grad(call(x), x)[0].numpy().tolist() == [12]
    refuses(lambda: dygraph.grad(call(x), x, create_graph=True), NotSupportedError, "second derivatives")
    y = call(x)
    y.register_hook(lambda gradient: gradient * 10)
    y.backward()
    assert x.gradient().tolist() == [120]


def test_gradients_are_taken_inside(engine):
    def penalty(x, weight):
        y = layers.reduce_sum(layers.tanh(layers.matmul(x, weight)))
        (slope,) = dygraph.grad(y, x, create_graph=True)
        (fixed,) = dygraph.grad(y, x, retain_graph=True)
        return layers.reduce_sum(layers.square(slope)) + layers.reduce_sum(fixed * x)

    seen = []
    for call in (penalty, declarative(penalty)):
        x, weight = tensor([0.1, 0.2], [0.3, -0.1], grad=True), tensor([0.5], [-0.4], grad=True)
        loss = call(x, weight)
        loss.backward()
        seen.append([loss.numpy(), x.gradient(), weight.gradient()])
    for one, other in zip(*seen, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5)
    unused = declarative(lambda x: dygraph.grad(x * 2, tensor(1, grad=True), allow_unused=True))
    assert unused(tensor(1)) == [None]


def test_threads_call_at_the_same_time():
    net = dygraph.Linear(8, 8)
    call = declarative(net.forward)
    inputs = [random(4, 8, seed=seed) for seed in range(4)]
    expected = [net(Tensor(x)).numpy() for x in inputs]
    wrong = []

    def work(k):
        for _ in range(50):
            if not np.allclose(call(inputs[k]).numpy(), expected[k], rtol=1e-5, atol=1e-6):
                wrong.append(k)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert not wrong


def line_of(function, text):
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, line in enumerate(lines) if text in line)


def test_values_are_refused_with_the_line():
    def choose(x):
        if np.sign(layers.mean(x).numpy()) > 0:
            return x
        return -x

    with pytest.raises(NotSupportedError, match="a function of NumPy needs the elements") as caught:
        declarative(choose)(tensor(1, 2))
    assert f"test_jit_declarative.py:{line_of(choose, 'if np.sign')}" in str(caught.value)
    assert choose(tensor(-1, -2)).numpy().tolist() == [1, 2]


@pytest.mark.parametrize("use", [lambda x: x.backward(), lambda x: x.gradient()])
def test_values_are_not_known_while_tracing(use):
    refuses(lambda: declarative(use)(tensor(1)), NotSupportedError, "needs the value of tensor")


def test_parameters_are_not_made_while_tracing():
    with pytest.raises(NotSupportedError, match="fc_0.w_0.*outside of the traced function"):
        declarative(lambda x: layers.fc(x, 2))(tensor([1, 2]))


def test_a_failed_trace_restores_eager_mode():
    refuses(lambda: declarative(lambda x: x / (1 // 0))(tensor(1)), ZeroDivisionError)
    assert (tensor(1) + tensor(2)).numpy().tolist() == [3]
    assert fluid.in_dygraph_mode()


def test_operators_name_the_users_line_when_they_fail():
    @declarative
    def pick(table, index):
        return layers.gather(table, index)

    pick(tensor(1, 2), tensor(1, dtype="int64"))
    with pytest.raises(Exception, match=r"gather.*test_jit_declarative\.py"):
        pick(tensor(1, 2), tensor(9, dtype="int64"))
    assert pick(tensor(1, 2), tensor(0, dtype="int64")).numpy().tolist() == [1]


def test_eager_tensors_in_an_ordinary_program_are_refused(programs):
    x = fluid.data("x", [1], "float32")
    refuses(lambda: layers.elementwise_add(x, tensor(1)), TypeError, "eager tensor .* Feed")


def test_evaluation_without_gradients_runs_and_refuses_backward():
    norm = dygraph.BatchNorm(2)
    norm.eval()
    with dygraph.base.eager.recording(True):
        out = declarative(norm.forward)(tensor([1, 2], [3, 4]))
        np.testing.assert_allclose(out.numpy(), [[1, 2], [3, 4]], rtol=1e-4)
        refuses(out.backward, Exception, "no gradient with is_test")
    norm.train()


def test_products_that_share_a_packed_weight_belong_to_the_phase_that_packs_it():
    """One instruction more in front of the forward pass does not push its last one into the backward pass."""
    linear = dygraph.Linear(128, 128, act="tanh")

    def thrice(x):
        return linear(linear(linear(x)))

    x = to_variable(np.random.RandomState(0).rand(16, 128).astype("float32"))
    results = []
    for function in (thrice, declarative(thrice)):
        linear.clear_gradients()
        out = function(x)
        layers.reduce_mean(out).backward()
        results.append((out.numpy(), linear.weight.gradient()))
    for eager, traced in zip(*results, strict=True):
        np.testing.assert_allclose(traced, eager, rtol=1e-5, atol=1e-7)
