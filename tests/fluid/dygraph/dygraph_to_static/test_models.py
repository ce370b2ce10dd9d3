"""Layers with conditions and loops on tensors in `forward`: trained, saved, loaded, fed with several sizes."""

import numpy as np
import pytest

import fluidlite as fluid
from fluidlite import dygraph, layers
from fluidlite.dygraph import ProgramTranslator, declarative, to_variable
from fluidlite.paddle import jit
from fluidlite.paddle.static import InputSpec


@pytest.fixture(autouse=True)
def guard():
    with dygraph.guard():
        fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 5
        yield
        ProgramTranslator().enable(True)


class Net(dygraph.Layer):
    times = 3

    def __init__(self):
        super().__init__()
        self.fc = dygraph.Linear(2, 2)
        self.__scale = 2.0
        self.hidden = None

    def scaled(self, x):
        if layers.reduce_sum(x) > 0:
            return x * self.__scale
        return x

    def forward(self, x):
        y = self.fc(x)
        if layers.reduce_mean(y) > 0:
            self.hidden = y * 2
        else:
            self.hidden = y
        return self.scaled(self.hidden) * self.times


class Inheriting(Net):
    def forward(self, x, times=2, *args, scale=1.5, **more):
        y = super().forward(x)
        for _ in range(times):
            y = y * scale
        return y


class Nested(dygraph.Layer):
    def __init__(self):
        super().__init__()
        self.first = dygraph.Sequential(Net(), dygraph.Linear(2, 2), Net())
        self.rest = dygraph.LayerList([dygraph.Linear(2, 2) for _ in range(3)])

    def forward(self, x):
        x = self.first(x)
        for layer in self.rest:
            x = layer(x)
            if layers.reduce_sum(x) < 0:
                x = x * 0.5
        return x


def trained(kind, **options):
    """The losses of some steps with other batch sizes."""
    net = kind()
    sgd = fluid.optimizer.SGD(0.01, parameter_list=net.parameters())
    call = declarative(net.forward)
    array = np.random.default_rng(0).random((3, 2), "float32")
    losses = []
    for step in range(5):
        loss = layers.reduce_mean(call(to_variable(array[: 1 + step % 3] * (-1) ** step), **options))
        loss.backward()
        sgd.minimize(loss)
        net.clear_gradients()
        losses.append(loss.numpy().item())
    return losses


@pytest.mark.parametrize(
    ("kind", "options"), [(Net, {}), (Inheriting, {}), (Inheriting, {"times": 3, "scale": 2.0}), (Nested, {})]
)
def test_training_is_the_same_as_eagerly(kind, options):
    declared = trained(kind, **options)
    ProgramTranslator().enable(False)
    with dygraph.guard():
        fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 5
        np.testing.assert_allclose(declared, trained(kind, **options), rtol=1e-4)


class Decoder(dygraph.Layer):
    def __init__(self):
        super().__init__()
        self.table = dygraph.Embedding([7, 4])
        self.cell = dygraph.GRUUnit(12)
        self.before, self.after = dygraph.Linear(4, 12), dygraph.Linear(4, 7)

    @declarative
    def forward(self, ids, state, most=5):
        step = layers.fill_constant([1], "int64", 0)
        outs = []
        while step < most:
            state, _, _ = self.cell(self.before(self.table(ids)), state)
            outs.append(self.after(state))
            ids = layers.reshape(layers.argmax(outs[-1], 1), [-1])
            step = step + 1
            if layers.reduce_max(ids) > 5:
                break
        return layers.stack(outs, 1), ids


@pytest.mark.parametrize("seed", [5, 7])
def test_decoding_with_a_list_of_steps(seed):
    seen = []
    for on in (True, False):
        ProgramTranslator().enable(on)
        with dygraph.guard():
            fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = seed
            net = Decoder()
            for batch in (2, 3):
                given = np.arange(batch), np.ones((batch, 4), "float32")
                out, ids = net(*[to_variable(array) for array in given])
                layers.reduce_sum(out * out).backward()
                seen.append(
                    [out.numpy(), ids.numpy(), net.table.weight.gradient(), net.after.weight.gradient()]
                )
                net.clear_gradients()
    for one, other in zip(seen[:2], seen[2:], strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


class Recurrent(dygraph.Layer):
    def __init__(self):
        super().__init__()
        self.fc, self.out = dygraph.Linear(3, 3), dygraph.Linear(3, 2)

    def forward(self, x):
        state = layers.zeros([1, 3], "float32")
        outs = []
        for t in range(x.shape[1]):
            new = self.fc(x[:, t])
            if layers.reduce_mean(new) > 0:
                new = new * 2
            state = state + new
            outs.append(self.out(state))
        halvings = 0
        while layers.reduce_sum(state * state) > 1.0:
            state = state * 0.5
            halvings += 1
        return self.out(state), layers.stack(outs, 1), halvings


def test_saved_model_takes_other_sizes_and_has_gradients(tmp_path):
    net = Recurrent()
    jit.save(net, str(tmp_path / "net"), input_spec=[InputSpec([None, None, 3], "float32", "x")])
    loaded = jit.load(str(tmp_path / "net"))
    held = {parameter.name: parameter for parameter in net.parameters()}
    assert {parameter.name for parameter in loaded.parameters()} == set(held)
    for sizes in ((2, 3), (4, 5), (1, 1)):
        x = to_variable(np.random.default_rng(sizes[0]).standard_normal((*sizes, 3)).astype("float32"))
        eager, found = net(x), loaded(x)
        assert found[2].numpy().tolist() == [eager[2]]
        for one, other in zip(eager[:2], found[:2], strict=True):
            np.testing.assert_allclose(other.numpy(), one.numpy(), rtol=1e-4, atol=1e-5)
        for results in (eager, found):
            (layers.reduce_sum(results[0]) + layers.reduce_sum(results[1])).backward()
        for parameter in loaded.parameters():
            np.testing.assert_allclose(
                parameter.gradient(), held[parameter.name].gradient(), rtol=1e-4, atol=1e-4
            )
        net.clear_gradients()
        loaded.clear_gradients()


def test_masks_made_with_numpy_and_conditions_on_arrays():
    @declarative
    def masked(ids, x):
        mask = to_variable(ids.numpy().reshape(-1, 1) != 3).astype("float32")
        if (ids.numpy() == 0).any() and ids.numpy().sum() > 3:
            x = x * 2
        return x * mask

    x = np.ones((3, 2), "float32")
    for ids, expected in (([1, 3, 2], [1, 0, 1]), ([0, 1, 3], [2, 2, 0]), ([0, 0, 1], [1, 1, 1])):
        found = masked(to_variable(np.array(ids)), to_variable(x)).numpy()
        assert found[:, 0].tolist() == found[:, 1].tolist() == expected


def test_translator_gives_code_and_the_last_program():
    def doubled(x):
        if layers.reduce_sum(x) > 0:
            x = x * 2
        return x

    translator = ProgramTranslator()
    code = translator.get_code(doubled)
    assert code.startswith("def doubled(x):") and ".if_(" in code
    main, startup, inputs, outputs = translator.get_program(doubled, np.ones(2, "float32"))
    assert len(main.blocks) > 1 and inputs[0].shape == outputs[0].shape == (2,)
    assert translator.get_output(doubled, np.ones(2, "float32")).numpy().tolist() == [2, 2]
    name, (concrete, run) = translator.get_program_cache().last()
    assert name == "doubled" and concrete.parameters == [] and concrete.outputs[0].shape == (2,)
    assert run([to_variable(-np.ones(2, "float32"))]).numpy().tolist() == [-1, -1]
